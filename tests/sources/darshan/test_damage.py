"""Whatever a log holds, the process that loads it survives, and the log is loaded or refused by name."""

from __future__ import annotations

import os
import random
import resource
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from iolens.errors import InputError
from iolens.records import Rows
from iolens.sources.darshan.isolated import DarshanReader
from iolens.sources.darshan.messages import LogRequest, RefusedLog, RowOptions
from tests.fuzz.mutations import mutated
from tests.soak import IS_SOAK
from tests.sources.darshan import LOGS
from tests.sources.darshan.log_copies import SplitLog, damaged_inside

MUTATIONS = 10_000 if IS_SOAK else 300
PER_REQUEST = 50
WHOLE = LOGS / "n1-write.darshan"
POSIX, STDIO, HEATMAP = 2, 10, 16  # regions, by the number of the module and one
POSIX_AT = SplitLog.of(WHOLE.read_bytes()).maps[2 * POSIX] + 10


def written(folder: Path, name: str, content: bytes) -> Path:
    path = folder / f"{name}.darshan"
    path.write_bytes(content)
    return path


@pytest.fixture(scope="module")
def reader() -> Iterator[DarshanReader]:
    """One child for all tests that do not need their own."""
    reader = DarshanReader(standstill_s=20)
    yield reader
    reader.close()


def tables(reader: DarshanReader, path: Path) -> dict[str, dict[str, Any]]:
    """Columns of a log by table; its refusal raised."""
    (request,) = requests([path])
    read: dict[str, dict[str, Any]] = {}
    for item in list(reader.read([request], RowOptions())):
        if isinstance(item, RefusedLog):
            raise item.error
        read[item.table] = dict(item.columns)
    return read


def requests(paths: list[Path]) -> list[LogRequest]:
    return [LogRequest(str(path), str(path)) for path in paths]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty file"),
        (b"3.41\0\0\0\0", "not a Darshan log: its magic number is missing"),
        (b"what is this? " * 100, "not a Darshan log: its magic number is missing"),
        (WHOLE.read_bytes()[:400], "cut off or damaged: 400 bytes without a whole header"),
        (WHOLE.read_bytes()[:1400], "cut off: its job record should end at byte 1562"),
        (WHOLE.read_bytes()[:POSIX_AT], "cut off or damaged: no records of POSIX, STDIO, HEATMAP can be read"),
        (b"9.99" + WHOLE.read_bytes()[4:], "Darshan log of format '9.99', which is not known"),
        (WHOLE.read_bytes()[:16] + b"\x01" + WHOLE.read_bytes()[17:], "bzip2"),
        (SplitLog.of(WHOLE.read_bytes()).copy({1: -5}), "damaged: 4 processes, start -5 s"),
        (SplitLog.of(WHOLE.read_bytes()).copy({5: 0}), "damaged: 0 processes"),
    ],
    ids=["empty", "version only", "text", "cut in the header", "cut in the job", "cut in the modules", "unknown format",
         "bzip2", "no start", "no processes"],
)  # fmt: skip
def test_what_is_no_log_is_refused_with_the_reason(
    tmp_path: Path, reader: DarshanReader, content: bytes, reason: str
) -> None:
    path = written(tmp_path, "damaged", content)
    with pytest.raises(InputError) as refused:
        tables(reader, path)
    assert refused.value.place == str(path)
    assert reason in refused.value.problem


def flipped(path: Path, region: int) -> bytes:
    """A log with one byte changed in the middle of a packed part."""
    content = bytearray(path.read_bytes())
    offset, length = SplitLog.of(bytes(content)).maps[2 * region : 2 * region + 2]
    content[offset + length // 2] ^= 0xFF
    return bytes(content)


def test_a_damaged_module_is_named_and_the_others_are_kept(tmp_path: Path, reader: DarshanReader) -> None:
    whole = tables(reader, WHOLE)["runs"]
    damaged = tables(reader, written(tmp_path, "damaged", flipped(WHOLE, STDIO)))["runs"]
    assert (whole["incomplete_modules"], whole["partial"]) == ([None], [False])
    assert (damaged["incomplete_modules"], damaged["partial"]) == (["STDIO"], [True])
    assert damaged["posix_writes"].tolist() == whole["posix_writes"].tolist() == [1024]


def test_posix_figures_are_unknown_and_not_zero_when_its_records_are_damaged(
    tmp_path: Path, reader: DarshanReader
) -> None:
    run = tables(reader, written(tmp_path, "damaged", flipped(WHOLE, POSIX)))["runs"]
    assert run["incomplete_modules"] == ["POSIX"]
    for name in ("read_bytes", "write_bytes", "posix_writes", "opens"):
        assert run[name].tolist() == [None], name


def test_damaged_names_leave_the_records(tmp_path: Path, reader: DarshanReader) -> None:
    read = tables(reader, written(tmp_path, "damaged", flipped(WHOLE, 0)))
    assert read["runs"]["incomplete_modules"] == ["names"]
    assert set(read["run_files"]["path"]) == {None}
    assert read["runs"]["posix_writes"].tolist() == [1024]


def test_a_cut_record_leaves_the_whole_ones(tmp_path: Path, reader: DarshanReader) -> None:
    path = LOGS / "nn-write.darshan"
    log = SplitLog.of(path.read_bytes())
    regions = log.regions()
    cut = tables(reader, written(tmp_path, "cut", log.rewritten({**regions, POSIX: regions[POSIX][:-100]})))
    assert cut["runs"]["incomplete_modules"] == ["POSIX"]
    assert cut["run_files"]["module"].count("POSIX") == tables(reader, path)["run_files"]["module"].count("POSIX") - 1


def test_a_module_that_crashes_the_library_is_left_out(tmp_path: Path, reader: DarshanReader) -> None:
    """The library takes the low 32 bits of a length, and aborts where they are zero."""
    log = SplitLog.of(WHOLE.read_bytes())
    maps = list(log.maps)
    maps[2 * STDIO + 1] = 1 << 32
    path = written(tmp_path, "crashing", replace(log, maps=tuple(maps)).copy({}))
    items = list(reader.read(requests([WHOLE, path, LOGS / "nn-write.darshan"]), RowOptions()))
    (runs,) = (item for item in items if isinstance(item, Rows) and item.table == "runs")
    assert runs.columns["log"] == ["n1-write.darshan", "crashing.darshan", "nn-write.darshan"]
    assert runs.columns["incomplete_modules"] == [None, "STDIO", None]


def test_a_log_that_crashes_the_library_in_every_module_is_refused(tmp_path: Path, reader: DarshanReader) -> None:
    log = SplitLog.of(WHOLE.read_bytes())
    maps = [1 << 32 if place % 2 and place > 1 and value else value for place, value in enumerate(log.maps)]
    path = written(tmp_path, "crashing", replace(log, maps=tuple(maps)).copy({}))
    with pytest.raises(InputError, match=r"no records of POSIX, STDIO, HEATMAP can be read"):
        tables(reader, path)


def test_a_child_that_stands_still_is_ended() -> None:
    reader = DarshanReader(standstill_s=0.3)
    try:
        list(reader.read(requests([WHOLE]), RowOptions()))
        process = reader.process._process
        assert process is not None
        os.kill(process.pid, signal.SIGSTOP)
        (refused,) = reader.read(requests([WHOLE]), RowOptions())
        assert isinstance(refused, RefusedLog)
        assert "did not end within 0.3 s" in refused.error.problem
        assert process.poll() == -signal.SIGKILL
        assert {item.table for item in reader.read(requests([WHOLE]), RowOptions()) if isinstance(item, Rows)} >= {
            "runs"
        }
    finally:
        reader.close()


def test_mutated_logs_are_read_or_refused(tmp_path: Path, reader: DarshanReader) -> None:
    """Every log has its row or its refusal, whole ones among them have their row, and this process stays small."""
    originals = sorted(LOGS.glob("*.darshan"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcomes: Counter[str] = Counter()
    for first in range(0, MUTATIONS, PER_REQUEST):
        paths = [WHOLE]
        for number in range(first, first + PER_REQUEST):
            chance = random.Random(f"darshan {number}")
            content = chance.choice(originals).read_bytes()
            damaged = damaged_inside(content, chance) if number % 2 else mutated(content, chance).content
            paths.append(written(tmp_path, str(number), damaged))
        items = list(reader.read(requests(paths), RowOptions()))
        runs = [item for item in items if isinstance(item, Rows) and item.table == "runs"]
        refused = {item.number for item in items if isinstance(item, RefusedLog)}
        assert sum(map(len, runs)) + len(refused) == len(paths), f"mutations from {first}"
        assert 0 not in refused
        outcomes.update(read=sum(map(len, runs)), refused=len(refused))
        for path in paths[1:]:
            path.unlink()
    assert outcomes["read"] > MUTATIONS // 5
    assert outcomes["refused"] > MUTATIONS // 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10, "KiB"
