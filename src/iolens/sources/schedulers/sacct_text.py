"""`sacct --parsable` and `--parsable2`, line by line: jobs become rows, steps are folded into their job.

A job whose own line is missing is put together from its steps: from the first start to the last end.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from iolens.errors import InputError
from iolens.records import Item, Note, Problem
from iolens.sources.reading.bounded_input import Line
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.parsed_numbers import count_or_none, shown
from iolens.sources.schedulers.job_lines import JobLines
from iolens.sources.schedulers.job_records import JobRecord, elapsed_s, fitting_times, scaled_count
from iolens.sources.schedulers.sacct_columns import (
    DEFAULT_COLUMNS,
    ENDED_STATES,
    JOB_ID,
    STATE,
    WAITING_STATES,
    divided,
    header_of,
)
from iolens.visible_text import counted

Value = TypeVar("Value")

MOST_HELD: Final = 100_000  # jobs that are remembered for the steps that may follow them
_NO_NODES: Final = "none assigned"
_COMPONENT: Final = re.compile(r"([0-9]++)\+([0-9]{1,9})(?:\..*)?")


class SacctText(JobLines):
    """Reads one output of `sacct`."""

    def __init__(self, place: str, options: ReadOptions) -> None:
        super().__init__(place, options)
        self.separator = str(options.settings.get("delimiter", "|"))
        self.columns: tuple[str, ...] | None = None
        self.recent: OrderedDict[str, None] = OrderedDict()  # jobs that have their own line
        self.orphans: OrderedDict[str, JobRecord] = OrderedDict()  # steps without it, as far as they are known
        self.steps = self.made_of_steps = self.arrays = 0

    def finish(self) -> Iterator[Item]:
        """Jobs that are known by their steps alone, and what was left out on purpose."""
        while self.orphans:
            yield from self._release_orphan()
        yield from self.rows.finish()
        yield from self._notes()

    def _notes(self) -> Iterator[Item]:
        if self.columns is None:
            yield Problem(self.place, None, "no header and no record of sacct in it: expected `sacct -P` or `--json`")
        if self.steps:
            yield Note(self.place, None, f"{counted(self.steps, 'step')} inside of jobs: only jobs have rows")
        if self.made_of_steps:
            jobs = counted(self.made_of_steps, "job")
            reason = f"{jobs} put together from steps, without a line of the job itself: no user"
            yield Note(self.place, None, reason)
        if self.arrays:
            jobs = counted(self.arrays, "job")
            reason = f"{jobs} of arrays: add JobIDRaw, the id that job_stats shows"
            yield Note(self.place, None, reason)

    def line(self, line: Line) -> Iterator[Item]:
        """A header, a job or a step."""
        cells = line.text.split(self.separator)
        header = header_of(cells) if "jobid" in line.text.lower() else None
        if header is not None:
            self.columns = header
            return
        if self.columns is None:
            self.columns = self._columns_without_header(cells, line)
        texts = dict(zip(self.columns, divided(cells, self.columns), strict=True))
        named = (texts.get("jobidraw") or texts.get("jobid") or "").strip()
        match = JOB_ID.fullmatch(named)
        if match is None:
            raise ValueError(f"{shown(named)} is not the id of a job")
        if match["step"] is not None:
            yield from self._step(match["job"], texts)
        else:
            yield from self._job(match["job"], texts, line.number)

    def _columns_without_header(self, cells: Sequence[str], line: Line) -> tuple[str, ...]:
        given = self.options.settings.get("columns")
        columns = tuple(name.strip().lower() for name in given or DEFAULT_COLUMNS)
        if "jobid" not in columns and "jobidraw" not in columns:
            raise InputError(self.place, "sources.slurm.columns names no job", "JobID or JobIDRaw among them")
        if given or _looks_like(cells, columns):
            return columns
        if len(cells) > 2 and is_record(cells):
            expected = f"columns = [...] in [sources.slurm], or the default: {','.join(DEFAULT_COLUMNS)}"
            raise InputError(self.place, f"no header, and {len(cells)} columns", expected, line.number)
        raise ValueError(f"neither a header nor a record of sacct: {shown(line.text)}")

    def _job(self, job_id: str, texts: Mapping[str, str], line: int) -> Iterator[Item]:
        job = self._read(job_id, texts)
        self.orphans.pop(job_id, None)
        self.recent[job_id] = None
        if len(self.recent) > MOST_HELD:
            self.recent.popitem(last=False)
        if not job.job_id.isdigit():
            self.arrays += job.start_us is not None
        yield from self.rows.add(job, line)

    def _step(self, job_id: str, texts: Mapping[str, str]) -> Iterator[Item]:
        self.steps += 1
        if job_id in self.recent:
            return
        step = self._read(job_id, texts)
        known = self.orphans.setdefault(job_id, JobRecord(step.job_id, None, None, None, component=step.component))
        known.start_us = _either(min, known.start_us, step.start_us)
        known.end_us = _either(max, known.end_us, step.end_us)
        known.nodes = _either(max, known.nodes, step.nodes)
        known.cores = _either(max, known.cores, step.cores)
        if step.nodes == known.nodes and "node_list" in step.texts:
            known.texts["node_list"] = step.texts["node_list"]
        known.texts.setdefault("cluster", step.texts.get("cluster"))
        known.texts.setdefault("project", step.texts.get("project"))
        if len(self.orphans) > MOST_HELD:
            yield from self._release_orphan()

    def _release_orphan(self) -> Iterator[Item]:
        _, job = self.orphans.popitem(last=False)
        self.made_of_steps += job.start_us is not None
        yield from self.rows.add(job, None)

    def _read(self, job_id: str, texts: Mapping[str, str]) -> JobRecord:
        """What the columns say; ValueError names the one that is not what it should be."""
        elapsed = elapsed_s(texts.get("elapsedraw", ""), "ElapsedRaw")
        if elapsed is None:
            elapsed = elapsed_s(texts.get("elapsed", ""), "Elapsed")
        start_us, end_us = fitting_times(
            self.clock.times_us(texts.get("start", ""), "Start"),
            self.clock.times_us(texts.get("end", ""), "End"),
            elapsed,
        )
        submit = self.or_unknown(lambda: self.clock.times_us(texts.get("submit", ""), "Submit"))
        state = _state(texts.get("state", ""))
        has_nodes = texts.get("nodelist", "").strip().lower() != _NO_NODES
        has_started = state not in WAITING_STATES and (has_nodes or bool(elapsed))
        ended = state in ENDED_STATES if state is not None else end_us is not None
        resources = _resources(texts.get("alloctres", ""))
        part = _COMPONENT.fullmatch((texts.get("jobid") or job_id).strip())
        return JobRecord(
            part[1] if part else job_id,
            start_us if has_started else None,
            end_us if ended else None,
            ended,
            elapsed,
            submit[0] if submit else None,
            {
                "user": texts.get("user"),
                "project": texts.get("account"),
                "name": texts.get("jobname"),
                "cluster": texts.get("cluster"),
                "state": state,
                "node_list": texts.get("nodelist") if has_nodes else None,
            },
            self.or_unknown(lambda: _first_count(texts, ("nnodes", "allocnodes"), resources.get("node"))),
            self.or_unknown(lambda: _first_count(texts, ("alloccpus", "ncpus"), resources.get("cpu"))),
            int(part[2]) if part else None,
        )


def is_record(cells: Sequence[str]) -> bool:
    """Whether a line without a header looks like one of sacct: the id of a job first, and a state somewhere."""
    return JOB_ID.fullmatch(cells[0]) is not None and any(STATE.fullmatch(cell) for cell in cells[1:])


def _looks_like(cells: Sequence[str], columns: Sequence[str]) -> bool:
    try:
        texts = dict(zip(columns, divided(cells, columns), strict=True))
    except ValueError:
        return False
    return JOB_ID.fullmatch(texts["jobidraw"]) is not None and STATE.fullmatch(texts["state"]) is not None


def _state(text: str) -> str | None:
    """The state without who cancelled it; a state of a Slurm newer than this is kept as it is."""
    match = STATE.fullmatch(text.strip())
    return match["state"] if match else text.strip() or None


def _resources(text: str) -> dict[str, int | None]:
    """Counts out of `billing=512,cpu=512,mem=1968G,node=8`."""
    pairs = (part.partition("=") for part in text.split(","))
    return {name: count_or_none(value) for name, _, value in pairs if name in ("cpu", "node")}


def _first_count(texts: Mapping[str, str], names: Sequence[str], other: int | None) -> int | None:
    for name in names:
        if (number := scaled_count(texts.get(name, ""), name)) is not None:
            return number
    return other


def _either(choose: Callable[[list[int]], int], first: int | None, second: int | None) -> int | None:
    known = [value for value in (first, second) if value is not None]
    return choose(known) if known else None
