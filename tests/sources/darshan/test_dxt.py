"""Traces of single accesses: all of them, in chunks of bounded length, from every version and byte order."""

from __future__ import annotations

import struct
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iolens.errors import InputError
from iolens.sources.darshan import traces
from iolens.sources.darshan.log import trace_chunks
from iolens.sources.darshan.traces import segments
from tests.sources.darshan import LOGS
from tests.sources.darshan.conftest import SHARED
from tests.sources.darshan.log_copies import SplitLog
from tests.sources.darshan.test_pydarshan import needs_captures

DXT_POSIX = 11  # the region, by the number of the module and one
RECORD = struct.Struct("<Qqq64sqq")
SEGMENT = struct.Struct("<qqddQ")
TRACED = sorted(path for path in (SHARED / "darshan").rglob("*.darshan") if "SYNTHETIC" not in path.name)


def traced_log(path: Path, records: list[tuple[int, int, int, int]], version: int = 1) -> Path:
    """A real log with a made-up trace: record id, rank, writes and reads of each record; offsets count up."""
    log = SplitLog.of((LOGS / "n1-write.darshan").read_bytes())
    parts = []
    for record_id, rank, writes, reads in records:
        parts.append(RECORD.pack(record_id, rank, 0, f"node{rank}".encode(), writes, reads))
        for number in range(writes + reads):
            segment = SEGMENT.pack(number * 100, 100, number * 0.5, number * 0.5 + 0.25, 7)
            parts.append(segment if version > 1 else segment[:-8])
    versions = bytearray(log.versions)
    versions[4 * (DXT_POSIX - 1)] = version
    changed = SplitLog(log.head, log.maps, bytes(versions), log.job, log.rest)
    path.write_bytes(changed.rewritten({**log.regions(), DXT_POSIX: b"".join(parts)}))
    return path


def test_every_segment_in_its_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "SEGMENTS_PER_CHUNK", 4)
    path = traced_log(tmp_path / "traced.darshan", [(11, 0, 6, 0), (12, 1, 0, 0), (11, 2, 1, 9)])
    chunks = list(trace_chunks(path, str(path)))
    assert [(chunk.record_id, chunk.rank, chunk.hostname, chunk.direction, len(chunk)) for chunk in chunks] == [
        (11, 0, "node0", "write", 4), (11, 0, "node0", "write", 2), (11, 2, "node2", "write", 1),
        (11, 2, "node2", "read", 4), (11, 2, "node2", "read", 4), (11, 2, "node2", "read", 1),
    ]  # fmt: skip
    assert chunks[1].offset.tolist() == [400, 500]
    assert chunks[3].start_s.tolist() == [0.5, 1.0, 1.5, 2.0]
    assert np.all(chunks[5].end_s - chunks[5].start_s == 0.25)
    assert {chunk.module for chunk in chunks} == {"POSIX"}


def test_a_child_streams_them(tmp_path: Path) -> None:
    path = traced_log(tmp_path / "traced.darshan", [(11, 0, 3, 2)])
    assert [len(chunk) for chunk in segments(path)] == [3, 2]
    assert list(segments(LOGS / "n1-write.darshan")) == []


def test_a_cut_trace_is_refused_after_what_is_whole(tmp_path: Path) -> None:
    whole = traced_log(tmp_path / "whole.darshan", [(11, 0, 3, 0), (12, 0, 5, 0)])
    log = SplitLog.of(whole.read_bytes())
    regions = log.regions()
    cut = tmp_path / "cut.darshan"
    cut.write_bytes(log.rewritten({**regions, DXT_POSIX: regions[DXT_POSIX][:-100]}))
    read = trace_chunks(cut, str(cut))
    assert [len(next(read)), len(next(read))] == [3, 1]
    with pytest.raises(InputError, match=r"cut\.darshan: cut off within its DXT_POSIX records"):
        next(read)


def test_a_trace_of_a_newer_version_is_refused_by_its_number(tmp_path: Path) -> None:
    path = traced_log(tmp_path / "newer.darshan", [(11, 0, 3, 0)], version=9)
    with pytest.raises(InputError, match=r"its DXT_POSIX records, of version 9, cannot be unpacked"):
        list(trace_chunks(path, str(path)))


@needs_captures
@pytest.mark.parametrize("path", TRACED, ids=[path.name[:40] for path in TRACED])
def test_accesses_and_bytes_are_pydarshans(path: Path, pydarshan: dict[str, Any]) -> None:
    totals: dict[str, Counter[str]] = {}
    for chunk in trace_chunks(path, str(path)):
        name = {"POSIX": "DXT_POSIX", "MPI-IO": "DXT_MPIIO"}[chunk.module]
        totals.setdefault(name, Counter(read=0, write=0, bytes=0)).update(
            {chunk.direction: len(chunk), "bytes": int(chunk.length.sum())}
        )
    expected = pydarshan[str(path)]["segments"]
    assert totals.keys() == expected.keys()
    for name, counted in expected.items():
        assert dict(totals[name]) == counted


@needs_captures
def test_the_trace_is_the_one_darshan_dxt_parser_printed() -> None:
    """The first write of rank 0: ` X_POSIX 0 write 0 0 16777216 0.1332 0.1398 …` and so on."""
    path = next((SHARED / "darshan" / "dxt").glob("treddy_mpi-io-test*"))
    text = (SHARED / "darshan" / "parser-text" / "mpi-io-test.dxt.txt").read_text()
    lines = [line.split() for line in text.splitlines() if line.startswith((" X_POSIX", " X_MPIIO"))]
    printed = Counter((line[0][2:], int(line[1]), line[2], int(line[5])) for line in lines)
    ours: Counter[tuple[str, int, str, int]] = Counter()
    for chunk in trace_chunks(path, str(path)):
        module = chunk.module.replace("MPI-IO", "MPIIO")
        ours.update((module, chunk.rank, chunk.direction, length) for length in chunk.length.tolist())
    assert ours == printed
