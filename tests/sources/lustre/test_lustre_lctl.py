"""Saved `lctl get_param` text: names, snapshots, times, and real captures."""

from __future__ import annotations

import gzip
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from iolens.errors import InputError
from iolens.records import Item, Note, Problem, Row, Sample
from iolens.schema import DIRECTIONS, size_column
from iolens.sources import recognise
from iolens.sources.lustre.lustre_lctl import SOURCE
from iolens.sources.reading.options import ReadOptions

S = 1_000_000
T0 = 1_600_000_000


def stats(name: str, time: float, written: int) -> str:
    return (
        f"obdfilter.{name}.stats=\n"
        f"snapshot_time             {time:.9f} secs.nsecs\n"
        f"write_bytes               {written} samples [bytes] 1 1 {written}\n"
    )


def brw(parameter: str, time: float, writes: int) -> str:
    return (
        f"{parameter}.brw_stats=\n"
        f"snapshot_time:            {time:.9f} secs.nsecs\n\n"
        "                           read      |     write\n"
        "disk I/O size          ios   % cum % |  ios         % cum %\n"
        f"1M:                      0   0   0   | {writes} 100 100\n"
    )


def jobs(name: str, time: int, written: int) -> str:
    return (
        f"obdfilter.{name}.job_stats=\njob_stats:\n- job_id:          a.1\n  snapshot_time:   {time}\n"
        f"  write_bytes:     {{ samples: 1, unit: bytes, min: 1, max: 1, sum: {written} }}\n"
    )


@pytest.fixture
def read(tmp_path: Path) -> Reader:
    return Reader(tmp_path)


class Reader:
    """Writes texts to files and reads them back as items, file by file in the order of the captures."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def __call__(self, *texts: str | bytes, options: ReadOptions | None = None) -> list[Item]:
        paths = []
        for number, text in enumerate(texts):
            path = self.directory / f"capture{number}.txt"
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
            paths.append(path)
        return items(paths, options or ReadOptions())


def items(paths: Sequence[Path], options: ReadOptions) -> list[Item]:
    return [item for capture in SOURCE.captures(paths, options) for item in capture.items()]


def problems(result: Sequence[Item]) -> list[Problem]:
    """What was not understood; what is left out by rule is no problem."""
    return [item for item in result if isinstance(item, Problem) and not isinstance(item, Note)]


def notes(result: Sequence[Item]) -> list[str]:
    return [item.reason for item in result if isinstance(item, Note)]


def samples(result: Sequence[Item], table: str) -> list[Sample]:
    assert problems(result) == []
    return [item for item in result if isinstance(item, Sample) and item.table == table]


def rows(result: Sequence[Item], table: str) -> list[Row]:
    return [item for item in result if isinstance(item, Row) and item.table == table]


def test_a_parameter_names_file_system_target_and_kind(read: Reader) -> None:
    (sample,) = samples(read(stats("ai400-OST0000", T0, 7)), "target_io")
    assert (sample.filesystem, sample.target, sample.labels) == ("ai400", "ai400-OST0000", {"target_kind": "ost"})
    assert sample.sets[""].counters["write_bytes"] == 7


def test_the_first_line_of_a_value_may_follow_the_equals_sign(read: Reader) -> None:
    (sample,) = samples(read(stats("fs-OST0000", T0, 7).replace("=\n", "=")), "target_io")
    assert (sample.snapshot_us, sample.sets[""].counters["write_ops"]) == (T0 * S, 7)


def test_what_is_not_kept_is_named_once(read: Reader) -> None:
    others = (
        "memused=5969573401\nhealth_check=device lustre-OST0012 reported unhealthy\nNOT HEALTHY\n"
        "mgs.MGS.live.params\nmdt.fs-MDT0000.exports.0@lo.uuid=\n52cb8dca-ba5c\n"
        f"obdfilter.fs-OST0000.exports.10.0.0.1@tcp.stats=\nsnapshot_time {T0 - 99}.5 secs.usecs\n"
        f"ost.OSS.ost_io.stats=snapshot_time {T0 - 9}.5 secs.usecs\nreq_waittime 1 samples [usecs] 1 1 1 1\n"
        f"osd-ldiskfs.fs-OST0000.stats=\nsnapshot_time {T0 - 9}.5 secs.usecs\n"
        f"osd-ldiskfs.MGS.kbytesfree=5\nldlm.services.ldlm_cbd.stats=\nsnapshot_time {T0 - 9}.5 secs.usecs\n"
    )
    result = read(others + stats("fs-OST0000", T0, 7) + others)
    assert [(item.time_us, item.snapshot_us) for item in samples(result, "target_io")] == [(T0 * S, T0 * S)]
    (service,) = samples(result, "server_ops")
    assert (service.target, service.sets[""].counters) == (
        "fs-OST0000:ost_io",
        {"req_waittime": 1, "req_waittime:us": 1},
    )
    assert notes(result) == [
        "left out, not kept by iolens: {health_check, memused}, mdt.*.exports.*.uuid, obdfilter.*.exports.*.stats,"
        " osd-ldiskfs.MGS.kbytesfree"
    ]
    assert len(result) == 3


def test_junk_is_reported_once_with_its_line_and_does_no_harm(read: Reader) -> None:
    result = read("what is this\nand this\n" + stats("fs-OST0000", T0, 7))
    assert [problem.line for problem in problems(result)] == [1]
    assert len(result) == 2


def test_an_unknown_family_is_reported_once(read: Reader) -> None:
    result = read("warp.fs-OST0000.a=1\nwarp.fs-OST0000.b=2\n" + stats("fs-OST0000", T0, 7))
    assert [problem.line for problem in problems(result)] == [1]


def test_an_error_of_lctl_is_reported_and_does_not_spoil_its_neighbours(read: Reader) -> None:
    error = "error: get_param: param_path 'obdfilter/*/brw_stats': No such file or directory\n"
    result = read(stats("fs-OST0000", T0, 7) + error + stats("fs-OST0001", T0, 8))
    assert [problem.line for problem in problems(result)] == [4]
    assert len(result) == 3


def test_a_damaged_target_does_not_stop_the_others(read: Reader) -> None:
    result = read(stats("fs-OST0000", T0, 7).replace("samples", "sam") + stats("fs-OST0001", T0, 8))
    assert [problem.line for problem in problems(result)] == [3]
    good = [item for item in result if isinstance(item, Sample) and item.target == "fs-OST0001"]
    assert good[0].sets[""].counters["write_bytes"] == 8
    bad = [item for item in result if isinstance(item, Sample) and item.target == "fs-OST0000"]
    assert bad == []


def test_several_snapshots_in_one_file(read: Reader) -> None:
    result = read("".join(stats("fs-OST0000", T0 + 5 * k + k / 64, k) for k in range(4)))
    assert [sample.time_us for sample in samples(result, "target_io")] == [(T0 + 5 * k) * S for k in range(4)]
    assert [sample.snapshot_us for sample in samples(result, "target_io")] == [
        (T0 + 5 * k) * S + k * 15_625 for k in range(4)
    ]


def test_one_snapshot_per_file_in_any_order(read: Reader) -> None:
    result = read(*(stats("fs-OST0000", T0 + 10 * k + 0.1, k) for k in (2, 0, 1)))
    assert [sample.time_us for sample in samples(result, "target_io")] == [(T0 + 10 * k) * S for k in range(3)]


def test_files_of_two_servers_share_their_ticks(read: Reader) -> None:
    texts = [stats(f"fs-OST000{server}", T0 + 5 * k + server * 0.3, k) for k in range(3) for server in range(2)]
    result = samples(read(*texts), "target_io")
    assert [sample.time_us for sample in result] == [(T0 + 5 * (k // 2)) * S for k in range(6)]


def test_a_file_printed_twice_in_one_capture_is_one_sample(read: Reader) -> None:
    # 2.14.0_ddn133_exports.txt
    result = read(brw("osd-ldiskfs.fs-OST0000", T0, 5) + brw("osd-ldiskfs.fs-OST0000", T0 + 0.004, 5))
    assert len(samples(result, "target_sizes")) == 1


def test_brw_stats_at_two_places_is_read_once_from_the_osd(read: Reader) -> None:
    result = read(brw("obdfilter.fs-OST0000", T0, 4) + brw("osd-ldiskfs.fs-OST0000", T0, 5))
    (sample,) = samples(result, "target_sizes")
    assert sample.sets[""].counters["write_ios_1048576"] == 5


def test_what_has_no_time_belongs_to_the_snapshot_that_follows_its_repetition(read: Reader) -> None:
    def time(k: int) -> str:
        return f"osd-zfs.fs-OST0000.kbytesfree={k}\nosd-zfs.fs-OST0000.kbytestotal=9\n" + stats(
            "fs-OST0000", T0 + 5 * k, k
        )

    result = read("".join(time(k) for k in range(3)))
    assert [(row.values["time"], row.values["free_bytes"]) for row in rows(result, "target_capacity")] == [
        ((T0 + 5 * k) * S, 1024 * k) for k in range(3)
    ]


def test_markers_give_the_time_of_what_follows(read: Reader) -> None:
    text = (
        f"BEGIN {T0}\nosd-zfs.fs-OST0000.kbytesfree=1\n"
        f"BEGIN {T0 + 50}\nosd-zfs.fs-OST0000.kbytesfree=2\n"
        "2020-09-13T12:28:20Z\nosd-zfs.fs-OST0000.kbytesfree=3\n"
    )
    assert [row.values["time"] for row in rows(read(text), "target_capacity")] == [(T0 + k) * S for k in (0, 50, 100)]


def test_a_marker_without_zone_is_in_the_zone_given(read: Reader) -> None:
    text = "2020-09-13 05:26:40\nosd-zfs.fs-OST0000.kbytesfree=3\n"
    result = read(text, options=ReadOptions(timezone="America/Los_Angeles"))
    assert [row.values["time"] for row in rows(result, "target_capacity")] == [T0 * S]


def test_job_stats_take_the_time_of_the_sample_not_of_the_last_activity(read: Reader) -> None:
    result = read(jobs("fs-OST0000", T0 - 300, 5) + stats("fs-OST0000", T0, 7))
    (sample,) = samples(result, "job_io")
    assert (sample.time_us, sample.snapshot_us) == (T0 * S, T0 * S)


def test_alone_they_take_the_latest_activity(read: Reader) -> None:
    result = read(jobs("fs-OST0000", T0, 5) + jobs("fs-OST0001", T0 + 3, 5) + jobs("fs-OST0000", T0 + 9, 6))
    assert [(s.target, s.snapshot_us) for s in samples(result, "job_io")] == [
        ("fs-OST0000", (T0 + 3) * S),
        ("fs-OST0001", (T0 + 3) * S),
        ("fs-OST0000", (T0 + 9) * S),
    ]


def test_without_any_time_the_user_must_supply_it(read: Reader) -> None:
    text = "osd-zfs.fs-OST0000.kbytesfree=1\n"
    assert "--at" in problems(read(text))[0].reason
    result = read(text, options=ReadOptions(at=datetime.fromtimestamp(T0, UTC)))
    assert [row.values["time"] for row in rows(result, "target_capacity")] == [T0 * S]


def test_a_number_cut_by_the_end_of_the_file_is_not_believed(read: Reader) -> None:
    result = read(stats("fs-OST0000", T0, 7) + "osd-zfs.fs-OST0000.kbytesfree=1514")
    assert rows(result, "target_capacity") == []
    assert [problem.line for problem in problems(result)] == [4]


def test_a_target_without_file_system_needs_one(read: Reader) -> None:
    assert "--filesystem" in problems(read(stats("OST0001", T0, 7)))[0].reason
    (sample,) = samples(read(stats("OST0001", T0, 7), options=ReadOptions(filesystem="work")), "target_io")
    assert (sample.filesystem, sample.target) == ("work", "OST0001")


def test_an_mdt_has_disk_ios_and_capacity_too(read: Reader) -> None:
    result = read(brw("osd-ldiskfs.fs-MDT0000", T0, 5) + "osd-ldiskfs.fs-MDT0000.kbytesfree=1\n")
    assert samples(result, "target_sizes")[0].labels == {"target_kind": "mdt"}
    assert rows(result, "target_capacity")[0].values["target_kind"] == "mdt"


def test_the_version_is_part_of_the_state(read: Reader) -> None:
    result = read("version=2.15.4\n" + stats("fs-OST0000", T0, 7) + "obdfilter.fs-OST0000.num_exports=3\n")
    assert [(row.values["version"], row.values["exports"]) for row in rows(result, "target_state")] == [("2.15.4", 3)]


def test_gzip_is_read_and_a_damaged_end_is_reported(read: Reader) -> None:
    packed = gzip.compress("".join(stats("fs-OST0000", T0 + 5 * k, k) for k in range(500)).encode())
    assert len(samples(read(packed), "target_io")) == 500
    assert problems(read(packed[:-40]))


def test_the_same_items_come_again(read: Reader, tmp_path: Path) -> None:
    path = tmp_path / "lctl.txt"
    path.write_text("".join(stats("fs-OST0000", T0 + 5 * k, k) for k in range(3)))
    (capture,) = SOURCE.captures([path], ReadOptions())
    assert list(capture.items()) == list(capture.items())


def test_a_bare_text_needs_file_system_and_target(read: Reader) -> None:
    bare = "".join(stats("x", T0 + 5 * k, k).partition("\n")[2] for k in range(3))
    with pytest.raises(InputError, match="--filesystem and --target"):
        read(bare)
    result = read(bare, options=ReadOptions(filesystem="fs", target="fs-OST0003"))
    assert [(s.target, s.time_us) for s in samples(result, "target_io")] == [
        ("fs-OST0003", (T0 + 5 * k) * S) for k in range(3)
    ]


@pytest.mark.parametrize(
    "text",
    [
        f"snapshot_time {T0}.0 secs.usecs\n",
        f"snapshot_time {T0}.0 secs.usecs\nfrobnicate 5 samples [reqs]\n",
        f"snapshot_time {T0} and then a letter to the editor\nwith a second line\n",
    ],
)
@pytest.mark.parametrize("target", ["fs-OST0000", "fs-MDT0000"])
def test_a_nameless_text_without_a_known_counter_is_no_baseline_of_zeros(read: Reader, text: str, target: str) -> None:
    result = read(text, options=ReadOptions("fs", target))
    assert result
    assert all(isinstance(item, Problem) for item in result)
    named = read(f"obdfilter.fs-OST0000.stats=\nsnapshot_time {T0}.0 secs.usecs\n")
    assert samples(named, "target_io")[0].sets[""].counters["write_bytes"] == 0  # named, it is an idle target


def test_a_capture_padded_with_zeros_says_the_same(read: Reader) -> None:
    text = (stats("fs-OST0000", T0, 7) + "obdfilter.fs-OST0000.kbytesfree=40\n").encode()
    assert read(text.ljust(8192, b"\0")) == read(text)


def test_a_line_longer_than_any_costs_its_parameter_alone(read: Reader) -> None:
    text = stats("fs-OST0000", T0, 7) + "ldlm" + "x" * (2 << 20) + "\n" + stats("fs-OST0001", T0, 8)
    result = read(text)
    assert [item.target for item in result if isinstance(item, Sample)] == ["fs-OST0001"]
    assert [(problem.line, problem.reason.split(":")[0]) for problem in problems(result)] == [
        (4, f"a line of {(2 << 20) + 5} bytes")
    ]


def test_what_the_user_had_to_supply_is_part_of_the_identity(tmp_path: Path) -> None:
    path = tmp_path / "stats"
    path.write_text(stats("x", T0, 1).partition("\n")[2])
    identities = {
        capture.identity
        for target in ("fs-OST0000", "fs-OST0001")
        for capture in SOURCE.captures([path], ReadOptions("fs", target))
    }
    assert len(identities) == 2


def test_empty_and_foreign_files_are_reported(read: Reader) -> None:
    assert "empty" in problems(read(""))[0].reason
    assert "no parameter" in problems(read("memused=1\nversion=2.15\n"))[0].reason


def test_it_is_recognised(tmp_path: Path) -> None:
    path = tmp_path / "lctl"
    path.write_text(stats("fs-OST0000", T0, 1))
    assert recognise(path).name == "lustre-lctl"
    path.write_bytes(gzip.compress(stats("fs-OST0000", T0, 1).encode()))
    assert recognise(path).name == "lustre-lctl"


# Real captures, against a crude sum over the raw text.

WITH_TARGETS = [
    "2.14.0_ddn133_exports", "2.14.0_ddn145_stats", "2.14.0_ddn194", "ex8761-lctl", "osd-13229", "osd", "valid",
    "valid_mds", "valid_no_newline", "valid_unhealthy_host",
]  # fmt: skip
_PARAMETER = re.compile(r"^([\w-]+\.[^\s=]+)=", re.MULTILINE)


def raw_values(text: str, pattern: str) -> dict[str, str]:
    """The first value of each parameter whose name matches, by target."""
    parts = _PARAMETER.split(text)
    names: dict[str, str] = {}
    for name, value in zip(parts[1::2], parts[2::2], strict=True):
        if re.fullmatch(pattern, name) and ".MGS." not in name:
            names.setdefault(name.split(".")[1], value)
    return names


@pytest.mark.parametrize("name", WITH_TARGETS)
def test_real_captures_agree_with_a_crude_sum(shared_data: Path, name: str) -> None:
    path = shared_data / "lustre-lctl/get_param" / f"{name}.txt"
    result = items([path], ReadOptions())
    assert [p.line for p in problems(result)] == ([375] if name == "2.14.0_ddn194" else [])  # an overflowed sum
    assert len({item.time_us for item in result if isinstance(item, Sample)}) == 1
    text = path.read_text()
    for direction in DIRECTIONS:
        crude_bytes = {
            target: int(match[1]) if (match := re.search(rf"^{direction}_bytes .*\] \d+ \d+ (\d+)", value, re.M)) else 0
            for target, value in raw_values(text, r"obdfilter\.[^.]+\.stats").items()
        }
        ours = {
            s.target: s.sets[""].counters[f"{direction}_bytes"]
            for s in result
            if isinstance(s, Sample) and s.table == "target_io"
        }
        assert ours == crude_bytes


@pytest.mark.parametrize("name", WITH_TARGETS)
def test_real_histograms_agree_with_a_crude_sum(shared_data: Path, name: str) -> None:
    path = shared_data / "lustre-lctl/get_param" / f"{name}.txt"
    crude = {
        target: [
            sum(map(int, column))
            for column in zip(*re.findall(r"^\d+\w?:\s+(\d+) .*\| +(\d+)", value, re.M), strict=True)
        ]
        for target, value in raw_values(path.read_text(), r"osd-\w+\.[^.]+\.brw_stats").items()
    }
    ours: dict[str, list[int]] = {target: [0, 0] for target in crude}
    for item in items([path], ReadOptions()):
        if isinstance(item, Sample) and item.table in ("target_sizes", "target_histograms"):
            for counters in item.sets.values():
                for counter, count in counters.counters.items():
                    ours[item.target][counter.startswith("write")] += count
    assert ours == {target: sums or [0, 0] for target, sums in crude.items()}


@pytest.mark.parametrize("name", ["mdd", "mgs-fs", "osp"])  # llite_client is read: test_lustre_client_proc
def test_real_captures_of_something_else_say_so(shared_data: Path, name: str) -> None:
    result = items([shared_data / "lustre-lctl/get_param" / f"{name}.txt"], ReadOptions())
    assert ["no parameter" in str(item) for item in problems(result)] == [True]


def test_a_capture_stitched_from_two_days_is_one_sample(shared_data: Path) -> None:
    result = items([shared_data / "lustre-lctl/get_param/valid.txt"], ReadOptions())
    assert {item.time_us for item in result if isinstance(item, Sample)} == {1688603043 * S}


def test_real_recovery(shared_data: Path) -> None:
    result = items(
        [shared_data / "lustre-lctl/recovery/recovery-waiting-for-clients.txt"],
        ReadOptions(at=datetime.fromtimestamp(T0, UTC)),
    )
    states = {row.values["target"]: row.values for row in rows(result, "target_state")}
    assert len(states) == 5
    assert states["fs-OST0004"]["recovery_status"] == states["fs-MDT0002"]["recovery_status"] == "WAITING_FOR_CLIENTS"
    assert states["fs-MDT0000"]["completed_clients"] == 3


def test_real_job_stats(shared_data: Path) -> None:
    path = shared_data / "lustre-lctl/job_stats/lctl_get_param_job_stats_mdt.txt"
    result = samples(items([path], ReadOptions()), "job_io")
    ours = sum(counters.counters["statfs"] for sample in result for counters in sample.sets.values())
    assert ours == sum(map(int, re.findall(r"statfs: +\{ samples: +(\d+)", path.read_text())))
    assert sum(len(sample.sets) for sample in result) == 12


def bare(shared_data: Path, name: str, target: str) -> list[Item]:
    return items([shared_data / name], ReadOptions("fs", target, at=datetime.fromtimestamp(T0, UTC)))


def test_real_texts_without_names_of_2_16(shared_data: Path) -> None:
    (sample,) = samples(
        bare(shared_data, "lustre-lctl/datadog-2.16/oss_obdfilter_stats.txt", "fs-OST0000"), "target_io"
    )
    assert sample.sets[""].counters == {
        "read_bytes": 4096,
        "read_ops": 1,
        "write_bytes": 32854,
        "write_ops": 6,
        "read_wait_us": 660,
        "write_wait_us": 181,
    }
    assert sample.sets[""].start_us == 1749563992_192278
    (sample,) = samples(bare(shared_data, "lustre-lctl/datadog-2.16/oss_jobstats.txt", "fs-OST0000"), "job_io")
    assert sample.sets["vim.0"].counters["write_bytes"] == 69957
    (sample,) = samples(
        bare(shared_data, "lustre-lctl/datadog-2.16/mds_mdt_export_stats.txt", "fs-MDT0000"), "metadata_ops"
    )
    assert (sample.sets[""].counters["open"], sample.sets[""].counters["open_us"]) == (45, 8231)
    assert sample.sets[""].counters["parallel_rename_file"] == 8


def test_statistics_of_a_service_are_not_taken_for_a_targets(shared_data: Path) -> None:
    result = bare(shared_data, "lustre-lctl/datadog-2.16/oss_ost_stats.txt", "fs-OST0000")
    assert ["service" in str(item) for item in result] == [True]


def test_real_brw_stats_without_names(shared_data: Path) -> None:
    (sample,) = samples(
        bare(shared_data, "lustre-lctl/brw_stats/brw_stats_with_data.txt", "fs-OST0000"), "target_histograms"
    )
    assert sample.sets["pages_per_bulk"].counters == {"read:256": 1, "write:32": 1, "write:1024": 8}
    assert sample.sets["block_maps_ms"].counters == {"read:1": 12689}
    (sample,) = samples(
        bare(shared_data, "lustre-lctl/brw_stats/brw_stats_empty.txt", "fs-OST0000"), "target_histograms"
    )
    assert len(sample.sets) == 7


EDGE = "lustre-server-proc/SYNTHETIC-edge"


def test_edge_dos_line_ends(shared_data: Path) -> None:
    (sample,) = samples(bare(shared_data, f"{EDGE}/brw_stats_crlf", "OST0000"), "target_sizes")
    assert sample.sets[""].counters[size_column("read", 1 << 20)] == 43866371
    assert sample.sets[""].counters["write_ios_outside"] == 327301


def test_edge_cut_and_empty(shared_data: Path) -> None:
    result = bare(shared_data, f"{EDGE}/brw_stats_truncated_midline", "OST0000")
    assert [problem.line for problem in problems(result)] == [13]
    assert [list(item.sets) for item in result if isinstance(item, Sample)] == [["pages_per_bulk"]]
    assert len(problems(bare(shared_data, f"{EDGE}/brw_stats_zero_length", "OST0000"))) == 1
    assert [s.sets for s in samples(bare(shared_data, f"{EDGE}/job_stats_empty", "OST0000"), "job_io")] == [{}]


def test_edge_numbers_and_newlines(shared_data: Path) -> None:
    (sample,) = samples(bare(shared_data, f"{EDGE}/stats_counter_wrap_max_u64", "OST0000"), "target_io")
    assert sample.sets[""].counters["read_bytes"] == 18446744073709551615
    (sample,) = samples(bare(shared_data, f"{EDGE}/stats_no_trailing_newline", "OST0000"), "target_io")
    assert sample.sets[""].counters == {"read_bytes": 5242880, "read_ops": 10}


def test_edge_job_ids(shared_data: Path) -> None:
    (sample,) = samples(bare(shared_data, f"{EDGE}/job_stats_weird_ids", "OST0000"), "job_io")
    assert list(sample.sets) == ["cp.0", "bash: line 1.1000", "@nodehost:0"]
    (sample,) = samples(bare(shared_data, f"{EDGE}/job_stats_nonutf8_id", "OST0000"), "job_io")
    assert list(sample.sets) == ["caf\\xe9_run.1001"]


def test_twelve_files_of_one_target(shared_data: Path) -> None:
    paths = sorted((shared_data / "lustre-server-proc/SYNTHETIC-counter-reset").iterdir(), reverse=True)
    result = samples(items(paths, ReadOptions("fs", "fs-OST0000")), "target_io")
    assert [sample.time_us for sample in result] == [(T0 + 5 * k) * S for k in range(12)]
    assert [sample.sets[""].counters["write_ops"] for sample in result[6:8]] == [14120, 92]
