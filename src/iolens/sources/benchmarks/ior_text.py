"""The text IOR prints for people, its command line, and one result with the test it belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from iolens.records import Item, Problem
from iolens.sources.benchmarks.results import ResultFile, bytes_in_words, date_in_words, finite, whole
from iolens.sources.reading.parsed_numbers import LARGEST_SMALL, count_or_none, real_or_none, shown
from iolens.units import MIB

# One IOR result and the test it belongs to, whatever format they were printed in, as a row of -------------------------
# `benchmark_runs`.
#
# IOR prints bandwidth and seconds rounded, each to another number of digits; a completed test moved a number of bytes
# that is known exactly. So the more precise of the two, with the exact bytes, gives the other.

TOOL: Final = "ior"
DIRECTIONS: Final = ("write", "read")
SAME: Final = 0.02  # rounded numbers that differ by less mean the same


@dataclass(frozen=True, slots=True)
class IorTest:
    """The options of one test; None where the format does not tell."""

    number: int = 0
    time_us: int | None = None
    api: str | None = None
    tasks: int | None = None
    nodes: int | None = None
    segments: int | None = None
    repetitions: int | None = None
    block_bytes: int | None = None
    transfer_bytes: int | None = None
    access: str | None = None
    file_per_process: bool | None = None
    direct: bool | None = None
    fullness_pct: float | None = None
    collective: bool | None = None
    fsync: bool | None = None  # after the writes, within their time
    stripe_count: int | None = None
    stripe_bytes: int | None = None

    @property
    def block_of_all_bytes(self) -> int | None:
        """One segment of all tasks."""
        return self.block_bytes * self.tasks if self.block_bytes and self.tasks else None


class IorResult(NamedTuple):
    """One line of results as printed: numbers are texts, because their digits tell how exact they are."""

    access: str
    mib_per_s: str
    ops_per_s: str
    total_s: str
    iteration: str
    line: int | None
    moved_bytes: int | None = None  # as IOR counted them, where it prints them
    file_bytes: int | None = None  # of all files afterwards, likewise


def is_collective(api: str | None, asked: bool | None) -> bool | None:
    """Whether MPI-IO was collective; POSIX has no such thing, whatever was asked for."""
    return asked if asked is None else asked and api != "POSIX"


def result_row(file: ResultFile, run: int, test: IorTest, result: IorResult) -> Iterator[Item]:
    """The row of a result, or why there is none."""
    if result.access not in DIRECTIONS:
        return
    mib_per_s, total_s, ops_per_s = (finite(text) for text in (result.mib_per_s, result.total_s, result.ops_per_s))
    if not mib_per_s or not total_s:
        yield Problem(file.place, result.line, f"a {result.access} without bandwidth or time: left out")
        return
    moved = _moved_bytes(test, result, mib_per_s * MIB * total_s)
    exact = digits(result.mib_per_s) > digits(result.total_s) and moved is not None
    seconds = moved / (mib_per_s * MIB) if moved is not None and exact else total_s
    volume = moved if moved is not None else whole(mib_per_s * MIB * total_s)
    iteration = whole(finite(result.iteration))
    yield from file.rows(
        TOOL,
        result.line,
        run_id=file.run_id(run, test.number, "" if iteration is None else iteration),
        time=test.time_us if test.time_us is not None else file.time_us(None),
        direction=result.access,
        api=test.api,
        transfer_bytes=test.transfer_bytes,
        block_bytes=test.block_bytes,
        tasks=test.tasks,
        queue_depth=test.tasks,  # each task waits for its transfer before the next
        duration_s=seconds,
        bytes=volume,
        operations=None if not volume or not test.transfer_bytes else volume // test.transfer_bytes,
        iteration=iteration,
        repetitions=test.repetitions,
        access=test.access,
        mixed=False,
        file_per_process=test.file_per_process,
        direct=test.direct,
        segments=test.segments,
        nodes=test.nodes,
        aggregate_bytes=result.file_bytes or _aggregate(test, volume),
        fullness_pct=test.fullness_pct,
        reported_bytes_per_s=mib_per_s * MIB,
        reported_ops_per_s=ops_per_s,
        complete=True,
        collective=test.collective,
        fsync=test.fsync if result.access == "write" else None,
        stripe_count=test.stripe_count,
        stripe_bytes=test.stripe_bytes,
    )


def _moved_bytes(test: IorTest, result: IorResult, rounded: float) -> int | None:
    """The exact bytes: as counted by IOR, else those of a test that ran to its end; None where neither is known."""
    counted = result.moved_bytes
    if counted is not None and abs(rounded - counted) <= SAME * counted:
        return counted
    once = test.block_of_all_bytes
    if once is None:
        return None
    segments = test.segments or max(round(rounded / once), 1)
    exact = once * segments
    return exact if abs(rounded - exact) <= SAME * exact else None


def _aggregate(test: IorTest, volume: int | None) -> int | None:
    once = test.block_of_all_bytes
    return once * test.segments if once and test.segments else volume


def digits(text: str) -> int:
    """Significant digits of a printed number."""
    return len(text.strip().lower().partition("e")[0].replace(".", "").lstrip("-0"))


# What the command line of an IOR run tells beyond the options that IOR prints -----------------------------------------
# O_DIRECT, fsync, Lustre stripes.
#
# None where the command line is not there or a script (-f) may have said otherwise.

_DIRECT: Final = re.compile(r"--posix\.odirect\b|\s-B\b|useO_DIRECT\s*+=\s*+1")
# Options without a value may be one word (-wek). -e: one fsync after all writes; -Y: one after each.
_FSYNC: Final = re.compile(
    r"\s-[BcCEFgHhIkKlmnpPqrRuvVwWxzZ]*+[eY][BcCeEFgHhIkKlmnpPqrRuvVwWxYzZ]*+\s|(?i:\bfsync(?:perwrite)?+\s*+=\s*+1\b)"
)
# `--posix.lustre.stripecount=4` of IOR 4, `-O lustreStripeCount=4` before.
_STRIPE: Final = r"(?i:(?:--posix\.lustre\.|\blustre)stripe{0}(?:\s*+=\s*+|\s++)(\d++)([kmgt]?+)\b)"
_STRIPE_COUNT: Final = re.compile(_STRIPE.format("count"))
_STRIPE_SIZE: Final = re.compile(_STRIPE.format("size"))
_SCRIPT: Final = re.compile(r"\s-f\s")
_SHIFTS: Final = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


def is_direct(command: str | None) -> bool | None:
    """Whether it asks for O_DIRECT."""
    return _asks(_DIRECT, command)


def has_fsync(command: str | None) -> bool | None:
    """Whether it asks for an fsync, which IOR counts to the time of the writes."""
    return _asks(_FSYNC, command)


def stripe_count(command: str | None) -> int | None:
    """Targets that files are striped over, where it names them; 0 is the file system's default, which is not known."""
    return _size(_STRIPE_COUNT, command)


def stripe_bytes(command: str | None) -> int | None:
    """Size of a stripe, where it names one."""
    return _size(_STRIPE_SIZE, command)


def _asks(pattern: re.Pattern[str], command: str | None) -> bool | None:
    if command is None:
        return None
    if pattern.search(f" {command} "):
        return True
    return None if _SCRIPT.search(f" {command} ") else False


def _size(pattern: re.Pattern[str], command: str | None) -> int | None:
    match = pattern.search(f" {command or ''} ")
    number = None if match is None else count_or_none(match[1])
    if match is None or not number:
        return None
    return number << _SHIFTS[match[2].lower()]


# The text IOR prints for people ---------------------------------------------------------------------------------------
# Options, a table of results per test, a summary at the end.

BANNER: Final = re.compile(rb"^IOR-[\w.+-]+: MPI Coordinated Test of Parallel I/O", re.MULTILINE)
FAILURE: Final = re.compile(
    rb"^ERROR: .*?\((?:[^\s()/]*+/)*+(?:ior|aiori[\w-]*+|parse_options|utilities|option)\.c:\d++\)", re.MULTILINE
)
_OPTION: Final = re.compile(r"\s*+([A-Za-z][A-Za-z \t]*+)[:=]\s(.*+)")
_USED: Final = re.compile(r"Used FS:\s*+([\d.]++)%")
_COUNTED: Final = re.compile(
    r"WARNING: (Using actual aggregate bytes moved|Stat\(\) of aggregate file size)\s*+= (\d++)"
)
_MOVED: Final = "Using actual aggregate bytes moved"
_FILE_SIZE: Final = "Stat() of aggregate file size"
_CLIENTS: Final = re.compile(r"(\d++) \((\d++) per node\)")  # IOR 3.0
_MOST_MESSAGES: Final = 3
_LONGEST_MESSAGE: Final = 160


@dataclass(slots=True)
class _IorRun:
    """One invocation of IOR as it is read."""

    number: int
    line: int
    command: str | None = None
    finished: bool = False
    tests: int = 0
    options: dict[str, str] = field(default_factory=dict)
    columns: list[str] = field(default_factory=list)
    results: list[tuple[IorTest, IorResult]] = field(default_factory=list)
    summary: list[str] = field(default_factory=list)  # column names
    summaries: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    errors: list[tuple[int, str]] = field(default_factory=list)
    counted: dict[str, int | None] = field(default_factory=dict)  # bytes of the result that comes next


def read_text(file: ResultFile, text: str, *, has_summary: bool = True) -> Iterator[Item]:
    """Every result of every run in a text; without a summary, a run is complete when its results are there."""
    run = _IorRun(0, 1)
    seen = False
    for line, content in enumerate(text.split("\n"), 1):
        if BANNER.match(content.encode("utf-8", "replace")):
            if seen:
                yield from _finish(file, run, has_summary)
                run = _IorRun(run.number + 1, line)
            seen = True
        else:
            yield from _take(file, run, line, content)
    yield from _finish(file, run, has_summary)


def _take(file: ResultFile, run: _IorRun, line: int, content: str) -> Iterator[Item]:
    words = content.split()
    if not words:
        return
    if content.startswith("ERROR"):
        run.errors.append((line, content))
    elif words[0] == "access" and any(word.startswith("bw(") for word in words):
        run.columns, run.summary = words, []
    elif words[0] == "Operation" and "Max(MiB)" in words:
        run.summary, run.columns = words, []
    elif words[0] in (*DIRECTIONS, "remove") and run.summary and len(words) == len(run.summary):
        run.summaries.append((line, dict(zip(run.summary, words, strict=True))))
    elif words[0] in DIRECTIONS and run.columns:
        if len(words) != len(run.columns):
            yield Problem(file.place, line, f"result not understood: {shown(content)}")
        else:
            cells = dict(zip(run.columns, words, strict=True))
            run.results.append((_test(file, run), _result(cells, line, run.counted)))
        run.counted = {}
    elif match := _COUNTED.match(content):
        run.counted[match[1]] = count_or_none(match[2])
    else:
        _take_option(run, content)


def _take_option(run: _IorRun, content: str) -> None:
    match = _OPTION.fullmatch(content)
    if match is None:
        return
    name, value = match[1].strip(), match[2].strip()
    if name == "Command line" or name == "Command line used":
        run.command = value
    elif name == "Finished":
        run.finished = True
        run.options["Finished"] = value
    elif name == "TestID":
        run.tests += 1
        run.options, run.columns = {"TestID": value}, []
    else:
        run.options[name] = value


def _result(cells: dict[str, str], line: int, counted: dict[str, int | None]) -> IorResult:
    return IorResult(
        cells["access"],
        cells.get("bw(MiB/s)", ""),
        cells.get("IOPS", ""),
        cells.get("total(s)", ""),
        cells.get("iter", ""),
        line,
        counted.get(_MOVED),
        counted.get(_FILE_SIZE),
    )


def _test(file: ResultFile, run: _IorRun) -> IorTest:
    said = run.options
    clients = _CLIENTS.match(said.get("clients", ""))
    ordering, access, kind = said.get("ordering in a file"), said.get("access"), said.get("type")
    used = _USED.search(said.get("FS", ""))
    all_clients, per_node = (_number(clients[1]), _number(clients[2])) if clients else (None, None)
    tasks = _number(said.get("tasks")) or all_clients
    return IorTest(
        number=_number(said.get("TestID")) or 0,
        time_us=file.time_us(date_in_words(said.get("StartTime", said.get("Began", "")))),
        api=said.get("api"),
        tasks=tasks,
        nodes=_number(said.get("nodes")) or (all_clients // per_node if all_clients and per_node else None),
        segments=_number(said.get("segments")) or _implied_segments(said, tasks),
        repetitions=_number(said.get("repetitions")),
        block_bytes=bytes_in_words(said.get("blocksize", "")),
        transfer_bytes=bytes_in_words(said.get("xfersize", "")),
        access=None if ordering is None else "random" if ordering.startswith("random") else "sequential",
        file_per_process=None if access is None else access == "file-per-process",
        direct=is_direct(run.command),
        fullness_pct=real_or_none(used[1], largest=100.0) if used else None,
        collective=is_collective(said.get("api"), None if kind is None else kind == "collective"),
        fsync=has_fsync(run.command),
        stripe_count=bytes_in_words(said.get("stripe count", "")) or stripe_count(run.command),
        stripe_bytes=bytes_in_words(said.get("Lustre stripe size", "")) or stripe_bytes(run.command),
    )


def _implied_segments(said: dict[str, str], tasks: int | None) -> int | None:
    """IOR 3.0 does not print the number of segments, but the size of all of them."""
    aggregate, block = bytes_in_words(said.get("aggregate filesize", "")), bytes_in_words(said.get("blocksize", ""))
    if not aggregate or not block or not tasks or aggregate % (block * tasks):
        return None
    return aggregate // (block * tasks)


def _number(text: str | None) -> int | None:
    return None if text is None else count_or_none(text, LARGEST_SMALL)


def _finish(file: ResultFile, run: _IorRun, has_summary: bool) -> Iterator[Item]:
    for test, result in run.results:
        yield from result_row(file, run.number, test, _as_exact_as_summary(run, test, result))
    distinct = {message: line for line, message in reversed(run.errors)}  # every rank says the same
    for message, line in sorted(distinct.items(), key=lambda pair: pair[1])[:_MOST_MESSAGES]:
        yield Problem(file.place, line, f"IOR failed: {message.removeprefix('ERROR: ')[:_LONGEST_MESSAGE]}")
    expected = _number(run.options.get("repetitions"))
    is_whole = run.finished or (not has_summary and len(run.results) >= (expected or 1))
    if not is_whole and not run.errors:
        of = f" of {expected} repetitions" if expected else ""
        yield Problem(file.place, run.line, f"the run was cut off: {len(run.results)} results{of}, no summary")
    yield from _check_summary(file, run)


def _as_exact_as_summary(run: _IorRun, test: IorTest, result: IorResult) -> IorResult:
    """The summary of a single iteration prints the same bandwidth and seconds with more digits."""
    same = [other for of, other in run.results if (of.number, other.access) == (test.number, result.access)]
    asked = (result.access, str(test.number))
    summaries = [cells for _, cells in run.summaries if (cells["Operation"], cells.get("Test#", "0")) == asked]
    if len(same) != 1 or len(summaries) != 1:
        return result
    rate, seconds = summaries[0].get("Mean(MiB)", ""), summaries[0].get("Mean(s)", "")
    return result._replace(mib_per_s=_finer(result.mib_per_s, rate), total_s=_finer(result.total_s, seconds))


def _finer(printed: str, summary: str) -> str:
    """The summary's number where it has more digits and, rounded like the printed one, is the same."""
    known, exact = finite(printed), finite(summary)
    if known is None or exact is None or digits(summary) <= digits(printed):
        return printed
    return summary if float(f"{exact:.{digits(printed)}g}") == known else printed


def _check_summary(file: ResultFile, run: _IorRun) -> Iterator[Item]:
    """The summary's mean bandwidth must be that of the results."""
    values: dict[tuple[str, str], list[float]] = {}
    for test, result in run.results:
        if (rate := finite(result.mib_per_s)) is not None:
            values.setdefault((result.access, str(test.number)), []).append(rate)
    for line, cells in run.summaries:
        rates = values.get((cells["Operation"], cells.get("Test#", "0")), [])
        said = finite(cells.get("Mean(MiB)"))
        if cells["Operation"] not in DIRECTIONS or said is None:
            continue
        mean = sum(rates) / len(rates) if rates else 0.0
        if abs(mean - said) > SAME * said:
            yield Problem(
                file.place, line, f"the summary says {said:g} MiB/s for {cells['Operation']}, its results {mean:.5g}"
            )
