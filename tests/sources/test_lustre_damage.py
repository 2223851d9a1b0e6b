"""Whatever bytes a server or a bad disk gives: problems, never an exception, never another target's numbers."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from iolens.records import Problem, Row, Sample
from iolens.sources import ReadOptions
from iolens.sources.lustre_capacity import parse_count, parse_recovery, parse_version
from iolens.sources.lustre_histograms import parse_brw_stats
from iolens.sources.lustre_job_stats import parse_job_stats
from iolens.sources.lustre_lctl import SOURCE
from iolens.sources.lustre_stats import metadata_counters, parse_stats, target_io_counters

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
mdt.fs-MDT0000.md_stats=
snapshot_time             1600000000.000000000 secs.nsecs
open                      10 samples [reqs]
"""

texts = st.binary(max_size=80) | st.text("snapshot_time: 0123456789.[]{}|%-\n\r\tKM", max_size=120).map(str.encode)


@given(texts)
@example(b"snapshot_time " + b"9" * 5000 + b"\n")
@example(b"read_bytes " + b"9" * 5000 + b" samples [bytes]\n")
@example(b"1: 1 1 1 | 1 1 1\n")
def test_no_reader_fails_on_any_bytes(data: bytes) -> None:
    stats = parse_stats(data, "stats")
    target_io_counters(stats)
    metadata_counters(stats)
    parse_brw_stats(data, "brw_stats")
    parse_job_stats(b"job_stats:\n- job_id: 1\n" + data, "job_stats")
    parse_recovery(data)
    parse_version(data)
    parse_count(data)


def items(data: bytes) -> list[Sample | Row | Problem]:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "lctl.txt"
        path.write_bytes(data)
        return [
            item for capture in SOURCE.captures([path], ReadOptions("fs", "fs-OST0000")) for item in capture.items()
        ]


def test_the_capture_is_whole() -> None:
    assert not [item for item in items(CAPTURE) if isinstance(item, Problem)]


@given(st.integers(0, len(CAPTURE)), st.binary(max_size=4), st.integers(0, 40))
def test_damage_to_a_capture_is_survived(at: int, instead: bytes, length: int) -> None:
    items(CAPTURE[:at] + instead + CAPTURE[at + length :])


@given(st.integers(CAPTURE.index(b"recovery_status"), CAPTURE.index(b"mdt.fs") - 2), st.binary(max_size=4))
def test_damage_to_one_target_leaves_the_other(at: int, instead: bytes) -> None:
    damaged = CAPTURE[:at] + instead.replace(b"\n", b"x") + CAPTURE[at + 1 :]
    metadata = [item for item in items(damaged) if isinstance(item, Sample) and item.table == "metadata_ops"]
    assert [sample.sets[""].counters["open"] for sample in metadata] == [10]
