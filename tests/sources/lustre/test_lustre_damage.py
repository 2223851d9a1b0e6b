"""Whatever bytes a server or a bad disk gives: problems, never an exception, never another target's numbers."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from hypothesis import assume, example, given
from hypothesis import strategies as st

from iolens.records import Item, Problem, Sample
from iolens.sources.lustre.capacity import parse_count, parse_recovery, parse_version
from iolens.sources.lustre.histograms import parse_brw_stats, parse_io_latency
from iolens.sources.lustre.job_stats import parse_job_stats
from iolens.sources.lustre.lustre_lctl import SOURCE
from iolens.sources.lustre.stats import Stats, metadata_counters, parse_stats, target_io_counters
from iolens.sources.reading.options import ReadOptions

CAPTURE = b"""version=2.15.4
osd-ldiskfs.fs-OST0000.kbytestotal=100
osd-ldiskfs.fs-OST0000.kbytesfree=40
obdfilter.fs-OST0000.recovery_status=
status: COMPLETE
recovery_start: 1600000000
obdfilter.fs-OST0000.stats=
snapshot_time             1600000000.000000000 secs.nsecs
write_bytes               12 samples [bytes] 1 1 144
obdfilter.fs-OST0000.job_stats=
job_stats:
- job_id:          a.1
  snapshot_time:   1600000000
  write_bytes:     { samples: 1, unit: bytes, min: 1, max: 1, sum: 144 }
osd-ldiskfs.fs-OST0000.brw_stats=
snapshot_time:            1600000000.000000000 secs.nsecs

                           read      |     write
disk I/O size          ios   % cum % |  ios         % cum %
1M:                      0   0   0   | 12 100 100
osd-ldiskfs.fs-OST0000.io_latency_stats=
io_latency_by_size:
snapshot_time:  1600000000.000000000
wr_1024K: { 1024us: 12, }
mdt.fs-MDT0000.md_stats=
snapshot_time             1600000000.000000000 secs.nsecs
open                      10 samples [reqs]
"""

COUNTERS = {
    b"obdfilter.fs-OST0000.stats": {"write_bytes": 144, "write_ops": 12},
    b"obdfilter.fs-OST0000.job_stats": {"write_bytes": 144, "write_ops": 1},
    b"osd-ldiskfs.fs-OST0000.brw_stats": {"write_ios_1048576": 12},
    b"osd-ldiskfs.fs-OST0000.io_latency_stats": {"write:2097152": 12},
    b"mdt.fs-MDT0000.md_stats": {"open": 10},
}
GZIP = b"\x1f\x8b"
NAME = re.compile(rb"\n[a-z-]+\.[^\n=]+=")
NUMBER = re.compile(rb"[0-9]{1,20}")


class Parameter(NamedTuple):
    """A parameter's place in the capture, from the line end before its name to the `=` of the next one's."""

    name: bytes
    begin: int
    end: int


def parameters() -> Iterator[Parameter]:
    names = list(NAME.finditer(CAPTURE))
    for here, following in zip_longest(names, names[1:]):
        yield Parameter(here[0][1:-1], here.start(), following.end() if following else len(CAPTURE))


texts = st.binary(max_size=80) | st.text("snapshot_time: 0123456789.[]{}|%-\n\r\tKM", max_size=120).map(str.encode)


@given(texts)
@example(b"snapshot_time " + b"9" * 5000 + b"\n")
@example(b"read_bytes " + b"9" * 5000 + b" samples [bytes]\n")
@example(b"1: 1 1 1 | 1 1 1\n")
@example(b"\x1c")  # white space to str, not to bytes
@example(b"start_time 1600000000\n")
def test_no_reader_fails_on_any_bytes(data: bytes) -> None:
    """Numbers that are in the text, or a problem that says where; never a number that nobody printed."""
    printed = sum(map(int, NUMBER.findall(data)))
    stats = parse_stats(data, "stats")
    for counters in (target_io_counters(stats), metadata_counters(stats)):
        assert all(0 <= count <= printed for count in counters.values())
        assert stats.whole or counters.keys() <= {"read_bytes", "read_ops", "write_bytes", "write_ops"} | named(stats)
    assert stats.problems or stats.snapshot_us is not None or stats.counts
    assert {problem.place for problem in stats.problems} <= {"stats"}

    brw = parse_brw_stats(data, "brw_stats")
    assert brw.problems or brw.sizes is not None or brw.sets
    assert {problem.place for problem in brw.problems} <= {"brw_stats"}
    for counters in (brw.sizes or {}, *brw.sets.values()):
        assert all(0 <= count <= printed for count in counters.values())

    latency = parse_io_latency(data, "io_latency_stats")
    assert latency.problems or latency.sets
    assert {problem.place for problem in latency.problems} <= {"io_latency_stats"}
    assert all(0 <= count <= printed for counters in latency.sets.values() for count in counters.values())

    jobs = parse_job_stats(b"job_stats:\n- job_id: 1\n" + data, "job_stats")
    assert jobs.jobs or jobs.problems
    assert {problem.place for problem in jobs.problems} <= {"job_stats"}
    assert all(0 <= count <= printed for job in jobs.jobs.values() for count in job.counters.values())

    recovery = parse_recovery(data)
    assert recovery if isinstance(recovery, str) else recovery["recovery_status"]
    assert parse_version(data) != ""
    count = parse_count(data)
    assert count is None or count == int(data)


def named(stats: Stats) -> set[str]:
    """Counters that may come of the lines that were understood."""
    operations = {name.removeprefix("mds_").removeprefix("obd_").removesuffix("_async") for name in stats.counts}
    return {f"{name}{ending}" for name in operations for ending in ("", "_us", "_wait_us")}


def items(data: bytes) -> list[Item]:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "lctl.txt"
        path.write_bytes(data)
        return [
            item for capture in SOURCE.captures([path], ReadOptions("fs", "fs-OST0000")) for item in capture.items()
        ]


def counters_of(results: list[Item]) -> list[dict[str, int]]:
    """The raw counters of each sample, those that counted."""
    samples = [item for item in results if isinstance(item, Sample)]
    sets = [{name: n for name, n in entry.counters.items() if n} for item in samples for entry in item.sets.values()]
    return [counters for counters in sets if counters]


def test_the_capture_is_whole() -> None:
    result = items(CAPTURE)
    assert not [item for item in result if isinstance(item, Problem)]
    assert sorted(sorted(counter.items()) for counter in counters_of(result)) == sorted(
        sorted(item.items()) for item in COUNTERS.values()
    )
    assert COUNTERS.keys() <= {parameter.name for parameter in parameters()}


@given(st.integers(0, len(CAPTURE)), st.binary(max_size=4), st.integers(0, 40))
def test_damage_to_a_capture_is_survived(at: int, instead: bytes, length: int) -> None:
    """What the damage did not touch comes out as before; it never makes a number that is not in the text."""
    damaged = CAPTURE[:at] + instead + CAPTURE[at + length :]
    assume(not damaged.startswith(GZIP))
    result = items(damaged)
    untouched = [parameter.name for parameter in parameters() if parameter.end <= at or at + length <= parameter.begin]
    assert [name for name in untouched if name in COUNTERS and COUNTERS[name] not in counters_of(result)] == []
    printed = sum(map(int, NUMBER.findall(damaged)))
    assert all(0 <= count <= printed for counters in counters_of(result) for count in counters.values())
    assert all(problem.reason and "lctl.txt" in problem.place for problem in result if isinstance(problem, Problem))


@given(st.integers(CAPTURE.index(b"recovery_status"), CAPTURE.index(b"mdt.fs") - 2), st.binary(max_size=4))
def test_damage_to_one_target_leaves_the_other(at: int, instead: bytes) -> None:
    damaged = CAPTURE[:at] + instead.replace(b"\n", b"x") + CAPTURE[at + 1 :]
    metadata = [item for item in items(damaged) if isinstance(item, Sample) and item.table == "metadata_ops"]
    assert [sample.sets[""].counters["open"] for sample in metadata] == [10]
