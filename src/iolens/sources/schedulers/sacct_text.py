"""Records of jobs in a text, a line each: `sacct --parsable` and `--parsable2`, its columns and cells."""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb
from pathlib import Path
from typing import Final, TypeVar

from iolens.errors import InputError
from iolens.records import Item, Note, Problem
from iolens.sources.reading.batches import within
from iolens.sources.reading.bounded_input import Line, numbered_lines
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.parsed_numbers import WrongNumber, count_or_none, shown
from iolens.sources.reading.saved_text import supplied_identity, zone_name
from iolens.sources.schedulers.job_records import JobClock, JobRecord, JobRows, elapsed_s, fitting_times, scaled_count
from iolens.visible_text import counted

# Records of jobs in a text, a line each -------------------------------------------------------------------------------
# How such a file is opened, and read line by line.

Value = TypeVar("Value")


class JobLines:
    """Reads one text; a line that is not understood costs itself."""

    def __init__(self, place: str, options: ReadOptions, time_format: str | None = None) -> None:
        self.place, self.options = place, options
        self.clock = JobClock(options, place, time_format)
        self.rows = JobRows(place, options, options.settings.get("cluster"))
        self.unknown: list[str] = []  # what a line says that could not be read, and that its job has without it

    def items(self, lines: Iterator[Line | Problem]) -> Iterator[Item]:
        """All jobs, then what was left out on purpose."""
        for line in lines:
            if isinstance(line, Problem):
                yield line
            elif line.text.strip():
                try:
                    yield from self.line(line)
                except ValueError as error:
                    yield Problem(self.place, line.number, f"{error}: line left out")
                yield from (Problem(self.place, line.number, f"{reason}: not used") for reason in self.unknown)
                self.unknown = []
        yield from self.finish()

    def line(self, line: Line) -> Iterator[Item]:
        """What one line says; ValueError says why it cannot be used."""
        raise NotImplementedError

    def finish(self) -> Iterator[Item]:
        """What is left at the end."""
        return self.rows.finish()

    def or_unknown(self, read: Callable[[], Value]) -> Value | None:
        """A value that a job can do without: None where it cannot be read, which is reported."""
        try:
            return read()
        except WrongNumber as error:
            self.unknown.append(str(error))
            return None


@dataclass(frozen=True, slots=True)
class JobFile:
    """One file and how it is read."""

    path: Path
    options: ReadOptions
    identity: str
    reader: Callable[[str, ReadOptions], JobLines]

    def items(self) -> Iterator[Item]:
        """Its jobs."""
        return within(self.reader(str(self.path), self.options).items(numbered_lines(self.path)), self.options)


def job_identity(path: Path, options: ReadOptions, *settings: str) -> str:
    """The content, with everything that changes what it means: these settings, file system, zone and window."""
    return supplied_identity(
        path,
        **{name: options.settings.get(name) for name in settings},
        filesystem=options.filesystem,
        timezone=zone_name(options, options.filesystem),
        since=options.since,
        until=options.until,
    )


# Columns of `sacct` ---------------------------------------------------------------------------------------------------
# What each may hold, and which cell belongs to which where a text holds the separator.
#
# `sacct -P` does not escape a `|` in a job's name or comment. Where a line has more cells than columns, the extra ones
# are given to columns of free text so that every other column holds what it can; where that can be done in several ways
# the line is refused.

DEFAULT_COLUMNS: Final = (
    "JobIDRaw", "JobID", "Cluster", "User", "Account", "Partition", "State", "Submit", "Start", "End", "ElapsedRaw",
    "NNodes", "AllocCPUS", "NodeList", "JobName",
)  # fmt: skip
"""What `slurm://` asks for, and what a file without a header is taken to have: the free text is last."""

FREE_TEXT: Final = frozenset({
    "jobname", "comment", "admincomment", "systemcomment", "workdir", "submitline", "reason", "extra", "wckey",
    "container", "constraints", "licenses", "stdin", "stdout", "stderr", "reservation", "flags",
})  # fmt: skip
_MOST_DIVISIONS: Final = 5000

KNOWN: Final = frozenset({
    "account", "allocgres", "alloccpus", "allocnodes", "alloctres", "associd", "avecpu", "averss", "avevmsize",
    "avediskread", "avediskwrite", "cluster", "consumedenergy", "consumedenergyraw", "cputime", "cputimeraw", "dbindex",
    "derivedexitcode", "elapsed", "elapsedraw", "eligible", "end", "exitcode", "gid", "group", "jobid", "jobidraw",
    "jobname", "layout", "maxdiskread", "maxdiskwrite", "maxrss", "maxrssnode", "maxvmsize", "ncpus", "nnodes",
    "nodelist", "ntasks", "partition", "planned", "priority", "qos", "qosraw", "reqcpus", "reqmem", "reqnodes",
    "reqtres", "reserved", "restarts", "start", "state", "submit", "suspended", "systemcpu", "timelimit",
    "timelimitraw", "totalcpu", "uid", "user", "usercpu", "workdir", *FREE_TEXT,
})  # fmt: skip

RUNNING_STATES: Final = frozenset({"RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "SIGNALING", "STAGE_OUT",
                                   "STOPPED"})  # fmt: skip
WAITING_STATES: Final = frozenset({"PENDING", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD"})
ENDED_STATES: Final = frozenset({
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "LAUNCH_FAILED", "NODE_FAIL", "OUT_OF_MEMORY",
    "PREEMPTED", "RECONFIG_FAIL", "REQUEUED", "RESIZING", "REVOKED", "TIMEOUT",
})  # fmt: skip

JOB_ID: Final = re.compile(
    r"(?P<job>[0-9]++(?:_(?:[0-9]++|\[[^\]|]*+\]))?(?:\+[0-9]++)?)(?:\.(?P<step>\w++)(?:\+[0-9]++)?)?"
)
_STATES: Final = "|".join(sorted(RUNNING_STATES | WAITING_STATES | ENDED_STATES))
STATE: Final = re.compile(rf"(?P<state>{_STATES})(?:\+| by .+)?")
_COUNT = re.compile(r"[0-9]*+(?:\.[0-9]++)?[KMGTP]?")
_NAME = re.compile(r"[^\s|]*+")
_TIME = re.compile(r"|Unknown|None|N/A|[0-9]{9,11}|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]++(?:Z|[+-][0-9:]++)?")
_SPAN = re.compile(r"|INVALID|UNLIMITED|Partition_Limit|(?:[0-9]++-)?(?:[0-9]++:)?[0-9]++:[0-9]{2}(?:\.[0-9]++)?")
_TRES = re.compile(r"|[^=|]++=[^|]*+")

PATTERNS: Final[dict[str, re.Pattern[str]]] = {
    "jobid": JOB_ID, "jobidraw": JOB_ID, "state": STATE,
    **dict.fromkeys(("submit", "start", "end", "eligible"), _TIME),
    **dict.fromkeys(("elapsed", "cputime", "totalcpu", "usercpu", "systemcpu", "timelimit", "planned", "reserved",
                     "suspended", "avecpu"), _SPAN),
    **dict.fromkeys(("elapsedraw", "nnodes", "allocnodes", "alloccpus", "ncpus", "reqcpus", "reqnodes", "ntasks", "uid",
                     "gid", "cputimeraw", "priority", "timelimitraw", "maxrss", "maxvmsize", "averss", "avevmsize",
                     "dbindex", "associd", "restarts"), _COUNT),
    **dict.fromkeys(("user", "account", "partition", "cluster", "group", "qos"), _NAME),
    **dict.fromkeys(("exitcode", "derivedexitcode"), re.compile(r"(?:[0-9]++:[0-9]++)?")),
    **dict.fromkeys(("alloctres", "reqtres"), _TRES),
    "nodelist": re.compile(r"|None assigned|[^\s|]++"),
}  # fmt: skip


def header_of(cells: Sequence[str]) -> tuple[str, ...] | None:
    """The columns that a line names, in lower case; None where it is no header."""
    names = [cell.strip().lower() for cell in cells]
    if names and not names[-1]:
        names.pop()  # --parsable ends each line with a separator
    known = sum(name in KNOWN for name in names)
    is_header = ("jobid" in names or "jobidraw" in names) and known >= 3 and known * 2 > len(names)
    return tuple(names) if is_header and all(name.isidentifier() for name in names) else None


def divided(cells: Sequence[str], columns: Sequence[str]) -> list[str]:
    """The text of each column; ValueError says why the line cannot be divided, or not in one way only."""
    cells = list(cells)
    if len(cells) == len(columns) + 1 and not cells[-1] and not _fits(cells, columns, _shares(columns, 1)):
        cells.pop()
    extra = len(cells) - len(columns)
    if extra == 0:
        return cells
    if extra < 0:
        raise ValueError(f"{len(cells)} of {len(columns)} columns: not a line of sacct, or cut")
    free = [place for place, name in enumerate(columns) if name in FREE_TEXT]
    if not free or comb(len(free) + extra - 1, extra) > _MOST_DIVISIONS:
        raise ValueError(f"{len(cells)} cells for {len(columns)} columns, and no text that the rest could belong to")
    fitting = _fits(cells, columns, _shares(columns, extra))
    if len(fitting) != 1:
        why = "several columns could hold it" if fitting else "no column fits"
        names = ", ".join(columns[place] for place in free)
        raise ValueError(f"a separator inside a text ({names}) cannot be resolved: {why}; put JobName last in --format")
    return fitting[0]


def _shares(columns: Sequence[str], extra: int) -> list[Counter[int]]:
    """All divisions of the extra cells among columns of free text."""
    free = [place for place, name in enumerate(columns) if name in FREE_TEXT]
    return [Counter(choice) for choice in combinations_with_replacement(free, extra)]


def _fits(cells: Sequence[str], columns: Sequence[str], shares: Sequence[Counter[int]]) -> list[list[str]]:
    """Those divisions in which every column holds what it can."""
    fitting = []
    for share in shares:
        texts, begin = [], 0
        for place in range(len(columns)):
            end = begin + 1 + share[place]
            texts.append("|".join(cells[begin:end]))
            begin = end
        if all(_is_possible(name, text) for name, text in zip(columns, texts, strict=True)):
            fitting.append(texts)
    return fitting


def _is_possible(column: str, text: str) -> bool:
    pattern = PATTERNS.get(column)
    return pattern is None or pattern.fullmatch(text) is not None


# `sacct --parsable` and `--parsable2`, line by line -------------------------------------------------------------------
# Jobs become rows, steps are folded into their job.
#
# A job whose own line is missing is put together from its steps: from the first start to the last end.

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
