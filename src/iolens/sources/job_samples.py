"""Samples of a node at the begin and the end of a job, as lines of a file (`job_files.py`) or of a spool segment.

A sample is one line of plain JSON, which says whose it is and how many lines follow, and those lines, which are those
of a spool segment (`spool.py`). Standard library only: `job begin` imports this and little else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from iolens.records import Item, Problem
from iolens.sources.reading.parsed_numbers import count_in_json
from iolens.sources.spool import (
    LATEST_US,
    SegmentLine,
    Tick,
    compact_json,
    decode_tick,
    encode_tick,
    encoded_line,
    in_lines,
    lines,
)

FORMAT: Final = "iolens-job"
VERSION: Final = 1
SUFFIX: Final = ".job"
BEGIN, END = "begin", "end"
_TEXTS: Final = ("cluster", "user", "name", "boot_id")


@dataclass(frozen=True)
class JobSample:
    """Everything that one node counted at one time, and for which job. `job_nodes` are all nodes of the job."""

    point: str  # BEGIN or END
    job_id: str
    node: str
    time_us: int  # by the node's clock
    cluster: str | None = None
    user: str | None = None
    name: str | None = None
    job_nodes: Sequence[str] = ()
    processes: int | None = None
    boot_id: str | None = None  # another one after a reboot
    uptime_us: int | None = None  # since the boot: no one sets this clock
    other_jobs: Sequence[str] = ()  # that were on the node at some time since the begin
    items: Sequence[Item] = ()

    def encoded(self) -> bytes:
        """The sample as lines of its file."""
        ticks = [encode_tick(Tick(self.time_us, part)) for part in in_lines(self.items)]
        about = {name: value for name, value in vars(self).items() if name != "items" and value not in (None, ())}
        head = {"format": FORMAT, "version": VERSION, "lines": len(ticks), **about}
        return b"".join([encoded_line(compact_json(head)), *ticks])


def job_samples(path: Path, problems: list[Problem]) -> Iterator[JobSample]:
    """The whole samples of a file; what is damaged or cut becomes a problem."""
    pending: tuple[dict[str, Any], SegmentLine] | None = None
    ticks: list[Tick] = []
    for line in lines(path):
        if line.payload is None:
            problems.append(
                Problem(str(path), line.number, f"byte {line.offset}: damaged line, {line.length} bytes skipped")
            )
            continue
        try:
            if line.payload.startswith(b"{"):
                if pending is not None:
                    problems.append(_cut(path, pending[1]))
                pending, ticks = (_head(line.payload), line), []
            else:
                ticks.append(decode_tick(line.payload))
        except ValueError as error:
            problems.append(Problem(str(path), line.number, f"byte {line.offset}: {error}"))
            continue
        if pending is not None and len(ticks) == pending[0]["lines"]:
            yield _sample(pending[0], (item for tick in ticks for item in tick.items))
            pending = None
    if pending is not None:
        problems.append(_cut(path, pending[1]))


def _cut(path: Path, line: SegmentLine) -> Problem:
    return Problem(str(path), line.number, f"byte {line.offset}: the sample is not whole and is left out")


def _head(payload: bytes) -> dict[str, Any]:
    """The line that says whose sample it is; ValueError where it does not."""
    try:
        plain = json.loads(payload)
    except RecursionError as error:
        raise ValueError("not the sample of a job") from error
    if not isinstance(plain, dict) or plain.get("format") != FORMAT or plain.get("version") != VERSION:
        raise ValueError(f"not a sample of a job in format {VERSION}")
    whole = (
        plain.get("point") in (BEGIN, END)
        and all(isinstance(plain.get(name), str) and plain[name] for name in ("job_id", "node"))
        and all(plain.get(name) is None or isinstance(plain[name], str) for name in _TEXTS)
        and all(_is_texts(plain.get(name, [])) for name in ("job_nodes", "other_jobs"))
        and count_in_json(plain.get("time_us"), LATEST_US) is not None
        and all(
            plain.get(name) is None or count_in_json(plain[name]) is not None for name in ("processes", "uptime_us")
        )
        and count_in_json(plain.get("lines")) is not None
    )
    if not whole:
        raise ValueError("the sample of a job without a job id, a node or a time")
    return plain


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _sample(plain: Mapping[str, Any], items: Iterable[Item]) -> JobSample:
    known = JobSample.__dataclass_fields__
    about: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in plain.items() if name in known
    }
    return JobSample(**about, items=tuple(items))
