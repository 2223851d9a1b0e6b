"""Each rule speaks beyond its threshold, is silent at it, and says what is missing when it cannot judge."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from iolens.cli.main import iolens
from iolens.errors import InputError
from iolens.findings import checked_thresholds, evaluate, get_rule, rule_codes
from iolens.findings.remedies import stripes_for
from iolens.findings.rule import INPUTS, STUDY, FileUse, Finding, OstTimes, Writers

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


def rpcs(*sizes: tuple[int, int, int]) -> dict[int, dict[str, int]]:
    return {size: {"read": reads, "write": writes} for size, reads, writes in sizes}


def nodes(first: int, other: int, count: int = 16) -> Writers:
    return Writers.of("nodes", {f"n{number}": other if number else first for number in range(count)})


def ops(reads: int, writes: int) -> dict[str, int]:
    return {"read": reads, "write": writes}


def accesses(small_reads: int, large_reads: int, small_writes: int = 0, large_writes: int = 0) -> dict[str, Any]:
    """In Darshan's bins up to 100 KiB and up to 1 MiB."""
    return {
        "read": {100 * KIB: small_reads, MIB: large_reads},
        "write": {100 * KIB: small_writes, MIB: large_writes, None: 0},
    }


def file(**values: Any) -> FileUse:
    usual: dict[str, Any] = {
        "path": "/scratch/out/a.h5", "interface": "mpiio", "ranks": 16, "read_bytes": 0, "write_bytes": 0,
        "extent_bytes": None,
    }  # fmt: skip
    return FileUse(**{**usual, **values})


def osts(mean_s: float, p: float = 0.001, others: int = 2, files: int = 5) -> dict[str, Any]:
    """OST 14, and others on which files of as many bytes took 10 s."""
    usual = {"mount": "/scratch", "file_bytes": GIB}
    group = [OstTimes(ost=14, files=files, mean_s=mean_s, p=p, io_s=500.0, lost_s=90.0, **usual)]
    group += [OstTimes(ost=ost, files=5, mean_s=10.0, p=0.5, io_s=50.0, lost_s=0.0, **usual) for ost in range(others)]
    return {"ost_times": [group]}


# code → inputs that just trigger it, and those that just do not
CASES: Mapping[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "small-rpcs": (
        {"rpc_sizes": rpcs((64 * KIB, 501, 0), (MIB, 499, 0))},
        [
            {"rpc_sizes": rpcs((64 * KIB, 500, 0), (MIB, 500, 0))},  # exactly half
            {"rpc_sizes": rpcs((64 * KIB, 999, 999))},  # too few
            {"rpc_sizes": rpcs((128 * KIB, 5000, 5000))},  # not small
        ],
    ),
    "many-opens": (
        {"opens": 1601, "processes": 16},
        [{"opens": 1600, "processes": 16}, {"opens": 160, "processes": 16, "file_uses": 16}],
    ),
    "metadata-bound": (
        {"metadata_s": 10.0, "io_s": 25.0},
        [{"metadata_s": 10.0, "io_s": 25.1}, {"metadata_s": 9.9, "io_s": 9.9}],
    ),
    "client-cache": (
        {"read_bytes": 2 * MIB + 1, "write_bytes": 0, "rpc_sizes": rpcs((MIB, 1, 0))},
        [{"read_bytes": 2 * MIB, "write_bytes": 0, "rpc_sizes": rpcs((MIB, 1, 0))}],
    ),
    "stat-storm": (
        {"stats_by_node": {"n1": (3001, 60.0), "n2": (10, 60.0)}},
        [{"stats_by_node": {"n1": (3000, 60.0)}}, {"stats_by_node": {"n1": (10_000, 59.0)}}],
    ),
    "single-writer": (
        {"written_by": nodes(91 * GIB // 10, GIB // 15)},
        [
            {"written_by": nodes(9 * 15 * GIB, GIB)},  # exactly 90 %
            {"written_by": nodes(9 * GIB, 0, count=15)},
            {"written_by": nodes(GIB - 1, 0)},
        ],
    ),
    "small-accesses": (
        {"access_sizes": accesses(501, 499)},
        [
            {"access_sizes": accesses(500, 500)},  # exactly half
            {"access_sizes": accesses(999, 0)},  # too few
            {"access_sizes": accesses(0, 5000, 0, 5000)},
        ],
    ),
    "misaligned": (
        {"misaligned_ops": 501, "posix_ops": ops(400, 600)},
        [
            {"misaligned_ops": 500, "posix_ops": ops(400, 600)},
            {"misaligned_ops": 999, "posix_ops": ops(399, 600)},
        ],
    ),
    "random-access": (
        {"sequential_ops": ops(499, 0), "posix_ops": ops(1000, 0)},
        [
            {"sequential_ops": ops(500, 0), "posix_ops": ops(1000, 0)},
            {"sequential_ops": ops(0, 0), "posix_ops": ops(999, 0)},
        ],
    ),
    "rank-imbalance": (
        {"slowest_rank_s": 10.1, "io_s": 5.0 * 16, "processes": 16},
        [
            {"slowest_rank_s": 10.0, "io_s": 5.0 * 16, "processes": 16},  # exactly twice
            {"slowest_rank_s": 9.9, "io_s": 16.0, "processes": 16},  # too short
        ],
    ),
    "no-collectives": (
        {"shared_mpiio_files": [file(independent_ops=910, collective_ops=90)]},
        [
            {"shared_mpiio_files": [file(independent_ops=90, collective_ops=10)]},
            {"shared_mpiio_files": [file(independent_ops=91, ranks=15)]},
            {"shared_mpiio_files": [file(independent_ops=15)]},  # not from each of 16 ranks
            {"shared_mpiio_files": [file(independent_ops=99)]},  # too few to speak of
            {"shared_mpiio_files": [file()]},  # opened only
            {"shared_mpiio_files": []},
        ],
    ),
    "redundant-reads": (
        {"files_read": [file(read_bytes=2 * MIB + 1, extent_bytes=MIB)]},
        [
            {"files_read": [file(read_bytes=2 * MIB, extent_bytes=MIB)]},
            {"files_read": [file(read_bytes=MIB - 1, extent_bytes=KIB)]},  # too little
            {"files_read": [file(read_bytes=MIB)]},  # its extent is not known
        ],
    ),
    "stripe": (
        {"striped_files": [file(extent_bytes=GIB, stripe_count=1)]},
        [
            {"striped_files": [file(extent_bytes=GIB - 1, stripe_count=1)]},
            {"striped_files": [file(extent_bytes=GIB, stripe_count=2)]},
            {"striped_files": [file(extent_bytes=GIB, stripe_count=1, ranks=1)]},
        ],
    ),
    "slow-ost": (
        osts(30.1),
        [osts(30.0), osts(30.1, p=0.01), osts(30.1, others=1), osts(30.1, files=4), {"ost_times": []}],
    ),
    "stdio": (
        {"stdio_files": [file(interface="stdio", write_bytes=101 * MIB)], "moved_bytes": 201 * MIB},
        [
            {"stdio_files": [file(interface="stdio", write_bytes=101 * MIB)], "moved_bytes": 202 * MIB},  # half
            {"stdio_files": [file(interface="stdio", write_bytes=99 * MIB)], "moved_bytes": 99 * MIB},  # too little
            {"stdio_files": [], "moved_bytes": 0},
        ],
    ),
    "redundant-writes": (
        {"files_written": [file(write_bytes=2 * MIB + 1, written_extent_bytes=MIB)]},
        [
            {"files_written": [file(write_bytes=2 * MIB, written_extent_bytes=MIB)]},
            {"files_written": [file(write_bytes=MIB - 1, written_extent_bytes=KIB)]},  # too little
            {"files_written": [file(write_bytes=MIB)]},  # how far it was written is not known
        ],
    ),
    "uneven-bytes": (
        {"shared_files": [file(write_bytes=GIB, busiest_rank_bytes=2 * MIB + 1, mean_rank_bytes=MIB)]},
        [
            {"shared_files": [file(write_bytes=GIB, busiest_rank_bytes=2 * MIB, mean_rank_bytes=MIB)]},
            {"shared_files": [file(write_bytes=GIB - 1, busiest_rank_bytes=GIB - 1, mean_rank_bytes=MIB)]},
            {"shared_files": [file(write_bytes=GIB, busiest_rank_bytes=GIB, mean_rank_bytes=MIB, ranks=1)]},
            {"shared_files": [file(write_bytes=GIB)]},  # not known
        ],
    ),
    "below-stripe": (
        {"striped_files": [file(writes=1000, writes_to_mib=501, writes_to_100_kib=500, stripe_bytes=4 * MIB)]},
        [
            {"striped_files": [file(writes=1000, writes_to_mib=500, stripe_bytes=4 * MIB)]},
            {"striped_files": [file(writes=999, writes_to_mib=999, stripe_bytes=4 * MIB)]},
            {"striped_files": [file(writes=1000, writes_to_mib=1000, stripe_bytes=MIB)]},
            {"striped_files": [file(writes=1000, writes_to_mib=501, writes_to_100_kib=501, stripe_bytes=4 * MIB)]},
        ],
    ),
    "file-per-process": (
        {"strategy": "file_per_process", "metadata_s": 10.0, "io_s": 25.0, "processes": 16, "file_uses": 32},
        [
            {"strategy": "file_per_process", "metadata_s": 10.0, "io_s": 25.1, "processes": 16, "file_uses": 32},
            {"strategy": "file_per_process", "metadata_s": 9.9, "io_s": 9.9, "processes": 16, "file_uses": 32},
            {"strategy": "shared", "metadata_s": 10.0, "io_s": 25.0, "processes": 16, "file_uses": 32},
        ],
    ),
}  # fmt: skip


def noticed(code: str, **inputs: Any) -> Finding:
    (finding,) = evaluate(inputs, codes=[code]).findings
    return finding


def test_every_rule_has_a_case_here() -> None:
    assert sorted(CASES) == rule_codes()


@pytest.mark.parametrize("code", rule_codes())
def test_it_speaks_just_beyond_its_threshold(code: str) -> None:
    (finding,) = evaluate(CASES[code][0], codes=[code]).findings
    assert (finding.code, finding.severity) == (code, get_rule(code).severity)
    assert finding.evidence
    assert "{" not in finding.message
    assert finding.remedy.endswith(".")
    assert finding.estimated_gain is None
    json.dumps(finding.evidence, allow_nan=False)


@pytest.mark.parametrize("code", rule_codes())
def test_it_is_silent_at_its_threshold(code: str) -> None:
    for inputs in CASES[code][1]:
        evaluation = evaluate(inputs, codes=[code])
        assert (evaluation.findings, evaluation.not_evaluated) == ((), ())


@pytest.mark.parametrize("code", rule_codes())
def test_without_an_input_it_is_not_evaluated_and_says_what_is_missing(code: str) -> None:
    for name in get_rule(code).inputs:
        inputs = {**CASES[code][0], name: None}
        evaluation = evaluate(inputs, codes=[code])
        assert evaluation.findings == ()
        (missing,) = evaluation.not_evaluated
        assert (missing.code, missing.missing) == (code, (name,))
        assert INPUTS[name] in missing.reason


def test_with_nothing_known_no_rule_is_passed_over() -> None:
    evaluation = evaluate({})
    assert evaluation.findings == ()
    assert [item.code for item in evaluation.not_evaluated] == rule_codes()


def test_zero_is_known() -> None:
    assert evaluate({"opens": 0, "processes": 4}, codes=["many-opens"]).not_evaluated == ()


def test_both_directions_are_judged_and_the_worst_comes_first() -> None:
    inputs = {"rpc_sizes": rpcs((4 * KIB, 5000, 7000)), "stats_by_node": {"n1": (100_000, 100.0)}}
    evaluation = evaluate(inputs)
    assert [finding.code for finding in evaluation.findings] == ["stat-storm", "small-rpcs", "small-rpcs"]
    assert [finding.evidence.get("direction") for finding in evaluation.findings] == [None, "read", "write"]
    assert evaluation.findings[1].message == "100 % of 5,000 read RPCs are 64 KiB or less"


def test_thresholds_come_from_the_configuration(tmp_path: Path) -> None:
    silent = CASES["many-opens"][1][0]
    assert len(evaluate(silent, {"many-opens": {"opens_per_process": 99}}, ["many-opens"]).findings) == 1
    config = tmp_path / "iolens.toml"
    config.write_text("[findings.many-opens]\nopens_per_process = 7\n")
    done = CliRunner().invoke(iolens, ["findings", "explain", "many-opens", "--config", str(config)])
    assert "more than 7 opens for each process, or more than 10 of a file" in done.output
    assert "opens_per_process = 7 (default 100)" in done.output
    listed = CliRunner().invoke(iolens, ["findings", "list", "--format", "json", "--config", str(config)])
    assert {rule["code"]: rule["thresholds"] for rule in json.loads(listed.output)}["many-opens"] == {
        "opens_per_process": 7,
        "opens_per_file": 10,
    }


@pytest.mark.parametrize(
    ("configured", "message"),
    [
        ({"smal-rpcs": {}}, "unknown section findings.smal-rpcs"),
        ({"many-opens": {"opens": 5}}, "unknown key findings.many-opens.opens; expected one of opens_per_process"),
    ],
)
def test_a_threshold_that_is_not_known_is_refused(configured: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        checked_thresholds(configured, "iolens.toml")


def test_a_threshold_that_is_no_number_is_refused(tmp_path: Path) -> None:
    (tmp_path / "iolens.toml").write_text('[findings.many-opens]\nopens_per_process = "many"\n')
    done = CliRunner().invoke(iolens, ["findings", "list", "--config", str(tmp_path / "iolens.toml")])
    assert isinstance(done.exception, InputError)
    assert "findings.many-opens.opens_per_process = 'many'" in str(done.exception)


def test_every_rule_is_listed() -> None:
    done = CliRunner().invoke(iolens, ["findings", "list"])
    assert [line.split()[0] for line in done.output.splitlines()] == rule_codes()


# What Darshan logs add -----------------------------------------------------------------------------------------------


def test_a_shared_file_opened_once_by_each_process_is_not_opened_often() -> None:
    assert evaluate({"opens": 64, "processes": 64, "file_uses": 64}, codes=["many-opens"]).findings == ()
    finding = noticed("many-opens", opens=11 * 64 + 1, processes=64, file_uses=64)
    assert finding.message == "705 opens by 64 processes, 11 for each file that a process used"


def test_reads_and_writes_are_judged_together_where_neither_alone_is_enough() -> None:
    pooled = noticed("small-accesses", access_sizes=accesses(800, 0, 300, 0))
    assert pooled.message == "100 % of 1,100 reads and writes are 100 KiB or less"
    apart = evaluate({"access_sizes": accesses(1000, 0, 1000, 0)}, codes=["small-accesses"]).findings
    assert [finding.evidence["accesses"] for finding in apart] == ["reads", "writes"]
    jumps = noticed("random-access", posix_ops=ops(600, 600), sequential_ops=ops(10, 20))
    assert jumps.message == "only 2 % of 1,200 reads and writes are sequential"


@pytest.mark.parametrize(
    ("interface", "words"),
    [("hdf5", "H5Pset_dxpl_mpio"), ("mpiio", "romio_cb_write=enable"), ("pnetcdf", "ncmpi_"), ("stdio", "setvbuf")],
)
def test_the_remedy_is_that_of_the_interface(interface: str, words: str) -> None:
    finding = noticed("small-accesses", access_sizes=accesses(1000, 0), interface=interface)
    assert words in finding.remedy
    assert words in get_rule("small-accesses").general_remedy


def test_alignment_of_the_run_is_in_the_remedy() -> None:
    finding = noticed("misaligned", misaligned_ops=1000, posix_ops=ops(0, 1000), alignment_bytes=4 * MIB)
    assert "H5Pset_alignment(fapl, 4194304, 4194304)" in finding.remedy
    assert finding.message == "100 % of 1,000 writes are not aligned to blocks of 4,194,304 bytes"  # nothing was read
    both = noticed("misaligned", misaligned_ops=1000, posix_ops=ops(1, 999))
    assert both.message == "100 % of 1,000 reads and writes are not aligned to the blocks of the file system"


def test_pieces_of_a_block_are_not_advised_to_be_aligned() -> None:
    inputs = {"misaligned_ops": 1000, "posix_ops": ops(0, 1000), "alignment_bytes": MIB}
    assert noticed("misaligned", **inputs, key_access_bytes=MIB).code == "misaligned"
    evaluation = evaluate({**inputs, "key_access_bytes": MIB - 1}, codes=["misaligned"])
    assert evaluation.findings == ()
    (item,) = evaluation.not_evaluated
    assert (item.code, item.missing) == ("misaligned", ())
    assert "1,048,575 bytes, is smaller than a block, 1,048,576 bytes" in item.reason


@pytest.mark.parametrize(
    ("size", "stripes", "sizes"),
    [
        (GIB, 8, "up to 10 GiB"),
        (10 * GIB, 8, "up to 10 GiB"),
        (10 * GIB + 1, 24, "10 to 100 GiB"),
        (100 * GIB + 1, 72, "more than 100 GiB"),
    ],
)
def test_stripes_are_advised_by_size_and_the_advice_says_whose_it_is(size: int, stripes: int, sizes: str) -> None:
    assert stripes_for(size) == stripes
    finding = noticed("stripe", striped_files=[file(extent_bytes=size, write_bytes=size, stripe_count=1)])
    assert f"`lfs setstripe -c {stripes} /scratch/out`" in finding.remedy
    assert f"{stripes} is NERSC's advice for a shared file of {sizes}" in finding.remedy


def test_a_file_that_was_only_read_is_not_advised_how_to_be_written() -> None:
    finding = noticed("stripe", striped_files=[file(extent_bytes=GIB, read_bytes=GIB, stripe_count=1)])
    assert "setstripe" not in finding.remedy
    assert "`lfs migrate -c 8 FILE`" in finding.remedy


@pytest.mark.parametrize(
    ("path", "mount", "why"),
    [
        ("/lus/theta-fs0/972582213", "/lus/theta-fs0", "names are hashed in this log"),
        ("/lus/theta-fs0/out.h5", "/lus/theta-fs0", "the log names only a file at the mount point"),
        ("/scratch/out.h5", None, "the log names only a file at the mount point"),
        ("/out.h5", "/", "the log names only a file at the mount point"),
        ("3701703825", None, "the log does not name it"),
        (None, None, "the log does not name it"),
    ],
)
def test_no_layout_is_advised_for_a_mount_point(path: str | None, mount: str | None, why: str) -> None:
    large = file(path=path, mount=mount, extent_bytes=GIB, write_bytes=GIB, stripe_count=1)
    metadata = {"strategy": "file_per_process", "metadata_s": 10.0, "io_s": 20.0, "processes": 16, "file_uses": 16}
    for finding in (
        noticed("stripe", striped_files=[large]),
        noticed("file-per-process", **metadata, main_output=large),
        noticed("single-writer", written_by=nodes(GIB, 0), main_output=large),
    ):
        assert "lfs setstripe -c 8 DIR`" in finding.remedy
        assert f"For DIR put in the directory that the run writes to: {why}." in finding.remedy


@pytest.mark.parametrize(
    ("path", "directory"),
    [
        ("/scratch/out/a", "/scratch/out"),
        ("/scratch/my dir/a", "'/scratch/my dir'"),
        ("/scratch/$(rm -rf ~)/a", "'/scratch/$(rm -rf ~)'"),
        ("/scratch/a'b/{x}/a", """'/scratch/a'"'"'b/{x}'"""),
        (None, "DIR"),
    ],
)
def test_a_directory_is_quoted_for_the_shell(path: str | None, directory: str) -> None:
    finding = noticed("stripe", striped_files=[file(path=path, extent_bytes=GIB, write_bytes=1, stripe_count=1)])
    assert f"-c 8 {directory}`" in finding.remedy


def test_aggregators_are_as_many_as_stripes_or_nodes() -> None:
    independent = file(independent_ops=100, stripe_count=8)
    assert "'cb_nodes 8'" in noticed("no-collectives", shared_mpiio_files=[independent], nodes=4).remedy
    assert "'cb_nodes 4'" in noticed("no-collectives", shared_mpiio_files=[file(independent_ops=100)], nodes=4).remedy
    assert "cb_nodes" not in noticed("no-collectives", shared_mpiio_files=[file(independent_ops=100)]).remedy
    hdf5 = noticed("no-collectives", shared_mpiio_files=[file(independent_ops=100, interface="hdf5")])
    assert "H5FD_MPIO_COLLECTIVE" in hdf5.remedy


def test_the_worst_file_is_named_and_the_others_are_counted() -> None:
    files = [
        file(path="/s/a", read_bytes=10 * MIB, extent_bytes=MIB, ranks=1),
        file(read_bytes=12 * MIB, extent_bytes=1),
    ]
    finding = noticed("redundant-reads", files_read=[*files, file(path="/s/c", read_bytes=MIB, extent_bytes=MIB)])
    assert finding.evidence["file"] == "/scratch/out/a.h5"
    assert finding.evidence["files"] == 2
    assert "MPI_Bcast" in finding.remedy
    assert "$TMPDIR" in noticed("redundant-reads", files_read=files[:1]).remedy


def test_the_study_gain_needs_the_situation_of_the_study() -> None:
    like = {"strategy": "file_per_process", "metadata_s": 900.0, "io_s": 1000.0, "processes": 1024, "file_uses": 1024}
    finding = noticed("file-per-process", **like)
    assert finding.estimated_gain == pytest.approx(728 / 17)
    assert finding.estimated_gain == pytest.approx(42.8, abs=0.05)  # recomputed from the printed times, not the 41
    assert finding.gain_from == STUDY
    for other in ({"processes": 1023}, {"metadata_s": 899.0}):
        assert noticed("file-per-process", **{**like, **other}).estimated_gain is None


@pytest.mark.parametrize("code", rule_codes())
def test_what_a_rule_reads_is_explained(code: str) -> None:
    rule = get_rule(code)
    assert {*rule.inputs, *rule.also_reads} <= {*INPUTS}
    assert "{" not in rule.general_remedy
    assert rule.general_remedy.endswith(".")


# What a run does already is not advised ------------------------------------------------------------------------------


def test_a_collective_run_is_not_advised_to_become_collective() -> None:
    collective = {"strategy": "collective", "interface": "mpiio"}
    imbalance = {"slowest_rank_s": 90.0, "io_s": 16.0 * 10, "processes": 16}
    for code, inputs in (
        ("single-writer", {"written_by": nodes(GIB, 0)}),
        ("small-accesses", {"access_sizes": accesses(1000, 0)}),
        ("random-access", {"posix_ops": ops(1000, 0), "sequential_ops": ops(0, 0)}),
        ("misaligned", {"posix_ops": ops(1000, 0), "misaligned_ops": 1000}),
        ("rank-imbalance", imbalance),
        ("uneven-bytes", CASES["uneven-bytes"][0]),
    ):
        advised, not_advised = (noticed(code, **inputs, **more).remedy for more in ({}, collective))
        assert advised != not_advised
        for words in ("MPI_File_write_at_all", "MPI_File_read_at_all", "collective MPI-IO", "calls that end in _all"):
            assert words not in not_advised
    assert "by a single aggregator" in noticed("single-writer", written_by=nodes(GIB, 0), **collective).remedy


def test_equal_shares_are_not_advised_where_ranks_moved_equal_bytes() -> None:
    imbalance = {"slowest_rank_s": 90.0, "io_s": 16.0 * 10, "processes": 16, "moved_bytes": 16 * GIB}
    assert noticed("rank-imbalance", **imbalance).remedy.startswith("Give ranks equal shares")
    equal = noticed("rank-imbalance", **imbalance, busiest_rank_bytes=1.1 * GIB)
    assert equal.remedy.startswith("Ranks moved equal bytes already")
    unequal = noticed("rank-imbalance", **imbalance, busiest_rank_bytes=1.2 * GIB)
    assert unequal.remedy.startswith("Give ranks equal shares")


def test_one_shared_file_is_not_advised_to_who_has_it() -> None:
    bound = {"metadata_s": 20.0, "io_s": 40.0, "interface": "posix"}
    assert "One file for all ranks" in noticed("metadata-bound", **bound, strategy="file_per_process").remedy
    assert "One file for all ranks" not in noticed("metadata-bound", **bound, strategy="shared").remedy


# A slow OST ----------------------------------------------------------------------------------------------------------


def test_a_slow_ost_is_named_with_factor_and_run_time_lost() -> None:
    finding = noticed("slow-ost", **osts(467.0), duration_s=780.0)
    assert finding.subject == "OST 14 of /scratch"
    assert finding.message == (
        "files on OST 14 (OST000e of /scratch) took 467 s each, 46.7 times as long as files of as many bytes on 2 other"
        " OSTs (10 s): about 90 s of run time lost"
    )
    assert "obdfilter.*-OST000e.brw_stats" in finding.remedy
    assert (finding.evidence["ost"], finding.io_s) == (14, 500.0)
    assert noticed("slow-ost", **osts(467.0), duration_s=60.0).evidence["lost_s"] == 60.0  # no more than the run took


def test_an_ost_is_named_once_by_what_lost_most() -> None:
    small, large = osts(40.0)["ost_times"][0], osts(467.0)["ost_times"][0]
    less = [replace(times, lost_s=1.0) for times in small]
    for groups in ([less, large], [large, less]):
        assert noticed("slow-ost", ost_times=groups).evidence["lost_s"] == 90.0
