"""What is too small a part of a run is not worth a word, and what explains another finding stands before it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.findings.test_rules import CASES, GIB, accesses, file, nodes, noticed, ops, osts

from iolens.findings import SEVERITIES, evaluate, get_rule, rule_codes
from iolens.findings.importance import EXPLAINS, ORDER

WHOLE: dict[str, Any] = {"io_s": 1000.0, "moved_bytes": 1000 * GIB}


def codes(**inputs: Any) -> list[str]:
    return [finding.code for finding in evaluate(inputs).findings]


def test_every_rule_has_its_place() -> None:
    assert sorted(ORDER) == rule_codes()


def test_what_explains_stands_before_what_it_explains() -> None:
    for code, explained in EXPLAINS.items():
        for other in explained:
            assert ORDER.index(code) < ORDER.index(other)
            assert SEVERITIES.index(get_rule(code).severity) <= SEVERITIES.index(get_rule(other).severity)


@pytest.mark.parametrize(
    ("code", "too_little", "enough"),
    [
        ("redundant-reads", {"read_bytes": 10 * GIB - 1}, {"read_bytes": 10 * GIB}),
        ("redundant-reads", {"read_s": 9.99}, {"read_s": 10.0}),
        ("redundant-reads", {"reads": 99}, {"reads": 100}),
    ],
)
def test_less_than_a_hundredth_or_than_a_hundred_accesses_is_not_worth_a_word(
    code: str, too_little: dict[str, Any], enough: dict[str, Any]
) -> None:
    usual = {"read_bytes": 100 * GIB, "extent_bytes": GIB, "reads": 1000, "read_s": 100.0}
    silent = evaluate({**WHOLE, "files_read": [file(**{**usual, **too_little})]}, codes=[code])
    assert (silent.findings, silent.not_evaluated) == ((), ())
    (finding,) = evaluate({**WHOLE, "files_read": [file(**{**usual, **enough})]}, codes=[code]).findings
    assert finding.code == code


def test_808_bytes_read_by_each_rank_of_a_run_that_wrote_550_gb() -> None:
    small = file(read_bytes=2048 * 808, extent_bytes=808, ranks=2048, reads=2048, read_s=23.0)
    assert codes(files_read=[small], io_s=70_000.0, moved_bytes=550 * 10**9) == []
    assert codes(files_read=[small]) == ["redundant-reads"]  # the same where nothing larger is known


@pytest.mark.parametrize("seconds", [(5.0, 995.0), (995.0, 5.0)])
def test_accesses_of_a_direction_without_time_are_not_worth_a_word(seconds: tuple[float, float]) -> None:
    read_s, write_s = seconds
    known = {"io_kinds_s": {"read": read_s, "write": write_s, "metadata": 0.0}, "io_s": 1000.0}
    seen = evaluate({"access_sizes": accesses(5000, 0, 5000, 0), **known}).findings
    assert [finding.evidence["accesses"] for finding in seen] == ["reads" if read_s > write_s else "writes"]
    assert seen[0].io_s == 995.0


def test_what_all_ranks_wait_for_is_measured_by_the_slowest_of_them() -> None:
    """264 s of one rank: less than a hundredth of the 35,547 s of 65,536 ranks, and all the time that the I/O took."""
    kinds = {"read": 0.0, "write": 264.0, "metadata": 35283.0}
    run = {"io_s": 35547.0, "io_kinds_s": kinds, "written_by": nodes(40 * GIB, 0)}
    assert "single-writer" in codes(**run, slowest_rank_s=264.2)
    assert "single-writer" not in codes(**run, slowest_rank_s=26401.0)
    slow = {**osts(467.0), "io_s": 1e6}  # 500 s on one of very many OSTs, 90 s lost
    assert codes(**slow, slowest_rank_s=467.0) == ["slow-ost"]
    assert codes(**slow, slowest_rank_s=9001.0) == []


def test_a_finding_is_never_about_more_time_than_the_run_spent() -> None:
    finding = noticed("rank-imbalance", slowest_rank_s=730.5, io_s=6600.0, processes=496)
    assert finding.io_s == 6600.0  # all ranks together wait 98.8 hours for the slowest, which is no I/O time
    files = file(read_bytes=GIB, extent_bytes=1, read_s=7000.0)
    assert noticed("redundant-reads", files_read=[files], io_s=6600.0).io_s == 6600.0


def test_small_stands_before_misaligned_and_before_stripe() -> None:
    inputs = {
        "access_sizes": accesses(0, 0, 90_000, 0), "posix_ops": ops(0, 90_000), "misaligned_ops": 90_000,
        "striped_files": [file(extent_bytes=GIB, write_bytes=GIB, stripe_count=1)],
    }  # fmt: skip
    assert codes(**inputs) == ["small-accesses", "misaligned", "stripe"]
    seen = {finding.code: finding.explained_by for finding in evaluate(inputs).findings}
    assert seen == {"small-accesses": (), "misaligned": ("small-accesses",), "stripe": ()}


def test_random_stands_before_small_where_the_device_is_a_disk() -> None:
    inputs = {
        "access_sizes": accesses(0, 0, 90_000, 0), "posix_ops": ops(0, 90_000), "sequential_ops": ops(0, 10),
    }  # fmt: skip
    assert codes(**inputs, device="disk") == ["random-access", "small-accesses"]
    assert codes(**inputs, device="flash") == codes(**inputs) == ["small-accesses", "random-access"]
    assert evaluate({**inputs, "device": "disk"}).findings[1].explained_by == ("random-access",)


def test_a_single_writer_stands_before_the_stripe_and_the_slow_rank() -> None:
    seen = codes(
        written_by=nodes(40 * GIB, 0),
        striped_files=[file(extent_bytes=40 * GIB, write_bytes=40 * GIB, stripe_count=1)],
        slowest_rank_s=900.0,
        io_s=960.0,
        processes=16,
    )
    assert seen == ["single-writer", "rank-imbalance", "stripe"]


def test_a_slow_ost_stands_before_the_ranks_that_wait_for_it() -> None:
    seen = evaluate({**osts(467.0), "slowest_rank_s": 467.0, "io_s": 16 * 40.0, "processes": 16}).findings
    assert [(finding.code, finding.explained_by) for finding in seen] == [
        ("slow-ost", ()),
        ("rank-imbalance", ("slow-ost",)),
    ]


@pytest.mark.parametrize("code", ["stdio", "redundant-writes", "uneven-bytes", "no-collectives", "stripe"])
def test_what_files_cost_is_what_the_finding_is_about(code: str) -> None:
    (name, (first,)) = next((name, files) for name, files in CASES[code][0].items() if isinstance(files, list))
    timed = type(first)(**{**vars(first), "io_s": 7.0, "write_s": 7.0, "writes": 500})
    finding = noticed(code, **{**CASES[code][0], name: [timed]}, io_s=100.0)
    assert finding.io_s == 7.0
    assert evaluate({**CASES[code][0], name: [timed], "io_s": 701.0}, codes=[code]).findings == ()
    assert finding.evidence["files_bytes"] == first.read_bytes + first.write_bytes
