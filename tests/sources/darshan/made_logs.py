"""Made-up logs: records of any module, with the counters that a test states, in a real log's frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from iolens.simulator.darshan_logs import record_id
from iolens.sources.darshan.library import MODULES
from iolens.sources.darshan.log import layout_of
from tests.sources.darshan import LOGS
from tests.sources.darshan.log_copies import JOB, PROCESSES, SplitLog

VERSIONS: Final = {"POSIX": 4, "MPI-IO": 3, "H5F": 3, "H5D": 2, "STDIO": 2, "DFS": 1, "DAOS": 1}
DATASET_BYTES: Final = 904  # of a dataset's record in version 1 of its module, which did not name the file


@dataclass(frozen=True)
class Record:
    """One record; `rank` −1 is shared by all. Counters and times have the library's names without the prefix."""

    name: str
    rank: int = -1
    counters: Mapping[str, int] = field(default_factory=dict)
    times: Mapping[str, float] = field(default_factory=dict)
    file: str | None = None  # of a dataset


def moved(
    name: str, rank: int = -1, read: int = 0, written: int = 0, seconds: float = 0.0, begin_s: float = 1.0, **more: int
) -> Record:
    """A file that some rank, or all, moved bytes of; `seconds` of the slowest rank, all of them writing."""
    counters = {"OPENS": 1, "BYTES_READ": read, "BYTES_WRITTEN": written, **more}
    times = {
        "WRITE_TIME": seconds, "OPEN_START_TIMESTAMP": begin_s, "WRITE_START_TIMESTAMP": begin_s,
        "WRITE_END_TIMESTAMP": begin_s + seconds, "CLOSE_END_TIMESTAMP": begin_s + seconds,
    }  # fmt: skip
    if rank < 0:
        times["SLOWEST_RANK_TIME"] = seconds
    return Record(name, rank, counters, times)


def made_log(path: Path, modules: Mapping[str, Sequence[Record]], processes: int = 4, **versions: int) -> Path:
    """A log with these records; `versions` of modules where not the current ones."""
    frame = SplitLog.of((LOGS / "n1-write.darshan").read_bytes())
    numbers = list(JOB.unpack_from(frame.job))
    numbers[PROCESSES] = processes
    known = {MODULES.index(module): versions.get(module, VERSIONS[module]) for module in modules}
    stored = np.frombuffer(frame.versions, "<u4").copy()
    stored[list(known)] = list(known.values())
    names = {record.name for records in modules.values() for record in records}
    regions = {0: b"".join(record_id(name).to_bytes(8, "little") + name.encode() + b"\0" for name in sorted(names))}
    for module, records in modules.items():
        packed = b"".join(_packed(module, record, known[MODULES.index(module)]) for record in records)
        regions[MODULES.index(module) + 1] = packed
    job = JOB.pack(*numbers) + frame.job[JOB.size :]
    path.write_bytes(replace(frame, job=job, versions=stored.tobytes()).rewritten(regions))
    return path


def _packed(module: str, record: Record, version: int) -> bytes:
    layout = layout_of(module)
    values: Any = np.zeros(1, layout.dtype)
    values["id"], values["rank"] = record_id(record.name), record.rank
    if record.file is not None:
        values["file_id"] = record_id(record.file)
    for name, count in record.counters.items():
        if name in layout.counters:
            values["counters"][0, layout.counters[name]] = count
    for name, seconds in record.times.items():
        values["times"][0, layout.times[name]] = seconds
    packed: bytes = values.tobytes()
    return packed[:16] + packed[24:] if module == "H5D" and version == 1 else packed
