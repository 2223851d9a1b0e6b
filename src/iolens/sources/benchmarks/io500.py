"""Result folders of IO500: the outputs of IOR and mdtest in them, and from its summary what only that says."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from iolens.errors import InputError
from iolens.records import Capture, Item, Note, Problem, Row
from iolens.sources.benchmarks.ior import read_ior_text
from iolens.sources.benchmarks.mdtest import read_mdtest
from iolens.sources.benchmarks.results import ID_LENGTH, ResultFile, finite
from iolens.sources.reading.bounded_input import unpacked, unpacked_head
from iolens.sources.reading.captures import content_identity, read_each
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.parsed_numbers import LARGEST_SMALL, count_or_none, shown
from iolens.sources.reading.saved_text import combined_identity
from iolens.units import GIB

# What IO500 writes of its phases --------------------------------------------------------------------------------------
# The lines of `result_summary.txt`, and the sections of `result.txt`.
#
# A line such as `[RESULT] find 2872.215129 kIOPS : time 24.132 seconds` has [INVALID] at its end where a rule was
# broken, and so has the line of the score. Rates of IOR are in GiB/s, all others in thousand operations per second.

INVALID: Final = "[INVALID]"
MOST_PHASES: Final = 200
MOST_REASONS: Final = 5
MOST_PROBLEMS: Final = 20
UNSCORED: Final = frozenset({"timestamp", "SCORE", "SCOREX", "run"})
_NAME: Final = r"[a-z][A-Za-z0-9-]{0,60}"
_LINE: Final = re.compile(
    rf"\[(RESULT|      )\]\s++({_NAME})\s++(\S++) (GiB/s|kIOPS)\s*+: time\s++(\S++) seconds\s*+(\[INVALID\])?+\s*+"
)
_SCORE: Final = re.compile(
    r"\[SCORE ?\] Bandwidth \S++ GiB/s\s*+: IOPS \S++ kiops\s*+: TOTAL \S++\s*+(\[INVALID\])?+\s*+"
)
_EXTENDED: Final = re.compile(r"\[SCOREX\]\s")  # of phases that are no part of the list
_SECTION: Final = re.compile(rf"\[({_NAME}|SCOREX?)\]\s*+")
_PAIR: Final = re.compile(r"([A-Za-z][\w-]{0,60})\s*+=\s?+(.*+)")
_REASON: Final = re.compile(r"; ERROR INVALID (?:\([^)]*+\) )?+(.*+)")


@dataclass(frozen=True, slots=True)
class Io500Phase:
    """One phase: GiB/s or thousand operations per second, and the seconds it took with all that it prepares."""

    name: str
    line: int
    rate: float
    seconds: float
    is_scored: bool = True
    is_invalid: bool = False
    end: datetime | None = None  # in the zone of the machine
    tasks: int | None = None
    operations: int | None = None  # of find: files looked at


@dataclass(slots=True)
class Io500Results:
    """All phases of a run by name, and whether IO500 calls the run as a whole invalid."""

    phases: dict[str, Io500Phase] = field(default_factory=dict)
    tasks: int | None = None
    has_score: bool = False
    is_invalid: bool = False
    reasons: list[str] = field(default_factory=list)

    def is_complete(self, name: str) -> bool:
        """Whether IO500 finds nothing wrong with the phase, nor with the run."""
        phase = self.phases.get(name)
        return not self.is_invalid and not (phase is not None and phase.is_invalid)


def read_summary(file: ResultFile, results: Io500Results) -> Iterator[Item]:
    """The phases of `result_summary.txt`; what `result.txt` says of them beside is kept."""
    text, trouble = file.text()
    seen: set[str] = set()
    problems: list[Problem] = []
    for number, content in enumerate(text.split("\n"), 1):
        match = _LINE.fullmatch(content)
        rate, seconds = (finite(match[3]), finite(match[5])) if match else (None, None)
        if match and rate is not None and seconds is not None and match[2] not in seen and len(seen) < MOST_PHASES:
            seen.add(match[2])
            _take_line(results, number, match, rate, seconds)
        elif match and match[2] in seen:
            problems.append(Problem(file.place, number, f"{match[2]} for the second time: the first counts"))
        elif score := _SCORE.fullmatch(content):
            results.has_score = True
            results.is_invalid |= score[1] is not None
        elif content.startswith("[") and not _EXTENDED.match(content):
            problems.append(Problem(file.place, number, f"line not understood: {shown(content)}"))
    yield from problems[:MOST_PROBLEMS]
    if trouble:
        yield Problem(file.place, None, trouble)


def _take_line(results: Io500Results, number: int, match: re.Match[str], rate: float, seconds: float) -> None:
    name = match[2]
    if name in UNSCORED:
        return
    known = results.phases.get(name, Io500Phase(name, number, rate, seconds))
    results.phases[name] = replace(
        known,
        line=number,
        rate=rate,
        seconds=seconds,
        is_scored=match[1] == "RESULT",
        is_invalid=known.is_invalid or match[6] is not None,
    )


def read_results(file: ResultFile, results: Io500Results) -> Iterator[Item]:
    """The sections of `result.txt`: times, tasks, what find counted, and why a run is invalid."""
    text, trouble = file.text()
    sections: dict[str, tuple[int, dict[str, str]]] = {"run": (1, {})}
    name, invalid = "run", set[str]()
    for number, content in enumerate(text.split("\n"), 1):
        if section := _SECTION.fullmatch(content):
            name = section[1]
            if name in sections and name != "run":
                yield Problem(file.place, number, f"[{name}] for the second time: the first counts")
                name = f"{name} again"
            if len(sections) < MOST_PHASES:
                sections.setdefault(name, (number, {}))
        elif reason := _REASON.match(content):
            invalid.add(name)
            if len(results.reasons) < MOST_REASONS:
                results.reasons.append(reason[1].strip() if name == "run" else f"{name}: {reason[1].strip()}")
        elif (pair := _PAIR.fullmatch(content)) and name in sections:
            sections[name][1].setdefault(pair[1], pair[2].strip())
    results.tasks = count_or_none(sections["run"][1].get("procs", ""), LARGEST_SMALL)
    results.is_invalid |= "run" in invalid
    for name, (line, pairs) in sections.items():
        yield from _take_section(file, results, name, line, pairs, name in invalid)
    if trouble:
        yield Problem(file.place, None, trouble)


def _take_section(
    file: ResultFile, results: Io500Results, name: str, line: int, pairs: dict[str, str], is_invalid: bool
) -> Iterator[Item]:
    if name == "SCORE" and "SCORE" in pairs:
        results.has_score = True
        results.is_invalid |= INVALID in pairs["SCORE"]
    if name in UNSCORED or name.endswith(" again") or "score" not in pairs:
        return
    rate, seconds = finite(pairs["score"]), finite(pairs.get("t_delta", "0"))
    if rate is None or seconds is None:
        yield Problem(file.place, line, f"[{name}]: score {shown(pairs['score'])} is not a number: left out")
        return
    results.phases[name] = Io500Phase(
        name,
        line,
        rate,
        seconds,
        is_invalid=is_invalid,
        end=_local_time(pairs.get("t_end", "")),
        tasks=count_or_none(pairs.get("nproc", ""), LARGEST_SMALL),
        operations=count_or_none(pairs.get("total-files", "")),
    )


def _local_time(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, "%Y-%m-%d %H:%M:%S")  # the zone is the user's to tell
    except ValueError:
        return None


# Result folders of IO500 ----------------------------------------------------------------------------------------------
# The outputs of IOR and mdtest in them, and from its summary what has no output.
#
# `result_summary.txt` has one line per phase and the score, `result.txt` the same as sections with times and messages.
# Every phase is one result: from its own output if there is one, by the source of that program, else from the summary.

TOOL: Final = "io500"
SUMMARY: Final = "result_summary.txt"
RESULT: Final = "result.txt"
MOST_FILES: Final = 1000  # of a folder; IO500 writes about forty
SAME: Final = 0.02  # rates of a summary and of an output that differ by less mean the same
MDTEST: Final = {
    "write": "file_creation", "stat": "file_stat", "read": "file_read", "delete": "file_removal",
}  # fmt: skip
_OUTPUT: Final = re.compile(r"((?:ior|mdtest)-[A-Za-z0-9-]{1,60})\.txt")
_SUMMARY_HEAD: Final = re.compile(
    rb"^(?:IO500 version \S|\[RESULT\]\s++\S++\s++[\d.]++ (?:GiB/s|kIOPS)\s*+: time )", re.MULTILINE
)
_RESULT_HEAD: Final = re.compile(rb"^config-hash\s*+=.*+\n(?:.*+\n){0,8}?result-dir\s*+=", re.MULTILINE)


class Io500:
    """Result folders of the IO500 benchmark."""

    name = TOOL
    summary = "result folders of IO500: its phases by IOR and mdtest, and find"
    whole_directories = True

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether it is a result folder, a folder of nothing but such, or the summary of one."""
        return bool(_folders_in(path)) if path.is_dir() else _is_summary(head)

    def captures(self, paths: Sequence[Path], options: ReadOptions) -> Iterator[Capture]:
        """One capture per folder; of a summary that is named alone, the phases that have no output beside it."""
        folders = [folder for path in paths for folder in (_folders_in(path) if path.is_dir() else []) or [path]]
        opened, refused = read_each(folders, partial(_opened, options=options))
        yield from refused
        for run, identity in opened:
            yield Capture(str(run.path), identity, partial(_items, run))


SOURCE: Final = Io500()


@dataclass(frozen=True, slots=True)
class _Io500Run:
    """The files of one run that are read. `beside`: phases whose outputs are read by their own sources, not here."""

    path: Path
    summary: ResultFile | None
    result: ResultFile | None
    outputs: Mapping[str, ResultFile]  # by phase
    beside: frozenset[str] = frozenset()
    problems: tuple[Problem, ...] = ()  # of files that cannot be read


def _is_summary(head: bytes) -> bool:
    text = unpacked(head)
    return bool(
        ((b"[RESULT]" in text or b"IO500 version" in text) and _SUMMARY_HEAD.search(text))
        or (b"config-hash" in text and _RESULT_HEAD.search(text))
    )


def _is_result_folder(path: Path) -> bool:
    return any(_has_summary(path / name) for name in (SUMMARY, RESULT))


def _has_summary(path: Path) -> bool:
    try:
        return path.is_file() and _is_summary(unpacked_head(path))
    except (InputError, OSError):
        return False


def _folders_in(path: Path) -> list[Path]:
    """The folder itself, or all folders in one that has nothing but results, as IO500 leaves them; else none."""
    if _is_result_folder(path):
        return [path]
    try:
        with os.scandir(path) as entries:
            names = [entry.name for entry in islice(entries, MOST_FILES + 1) if not entry.name.startswith(".")]
    except OSError:
        return []
    folders = [path / name for name in sorted(names)]
    if len(names) > MOST_FILES or not all(folder.is_dir() and _is_result_folder(folder) for folder in folders):
        return []
    return folders


def _opened(path: Path, options: ReadOptions) -> tuple[_Io500Run, str]:
    """A run and its identity; InputError where there is no summary of it."""
    run = _folder_run(path, options) if path.is_dir() else _summary_alone(path, options)
    supplied = {"filesystem": options.filesystem, "timezone": options.timezone, "at": options.at}
    files = [file for file in (run.summary, run.result, *run.outputs.values()) if file is not None]
    return run, combined_identity([f"{file.path.name}/{file.content}" for file in files], **supplied)


def _folder_run(folder: Path, options: ReadOptions) -> _Io500Run:
    files: dict[str, ResultFile] = {}
    problems: list[Problem] = []
    outputs = _outputs_in(folder)
    for name, path in {SUMMARY: folder / SUMMARY, RESULT: folder / RESULT, **outputs}.items():
        try:
            files[name] = _result_file(path, options)
        except FileNotFoundError:
            continue
        except OSError as error:
            problems.append(Problem(str(path), None, f"cannot be read: {error.strerror or error}"))
    summary, result = files.pop(SUMMARY, None), files.pop(RESULT, None)
    if summary is None and result is None:
        raise InputError(str(folder), "no summary of IO500 that can be read", f"{SUMMARY} or {RESULT}")
    return _Io500Run(folder, summary, result, files, problems=tuple(problems))


def _summary_alone(path: Path, options: ReadOptions) -> _Io500Run:
    """Which of the two it is, its content tells, whatever its name."""
    file = _result_file(path, options)
    beside = frozenset(_outputs_in(path.parent))
    if _RESULT_HEAD.search(unpacked_head(path)):
        return _Io500Run(path, None, file, {}, beside)
    return _Io500Run(path, file, None, {}, beside)


def _result_file(path: Path, options: ReadOptions) -> ResultFile:
    return ResultFile(path, options, content_identity(path).removeprefix("file/")[:ID_LENGTH])


def _outputs_in(folder: Path) -> dict[str, Path]:
    """Outputs of IOR and mdtest by phase."""
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in islice(entries, MOST_FILES))
    return {match[1]: folder / name for name in names if (match := _OUTPUT.fullmatch(name))}


def _items(run: _Io500Run) -> Iterator[Item]:
    yield from run.problems
    place = str(run.path)
    if not run.path.is_dir() and run.result is not None and (run.path.parent / SUMMARY).is_file():
        yield Note(place, None, f"the results of {SUMMARY} beside it: read there")
        return
    results = Io500Results()
    if run.result is not None:
        yield from read_results(run.result, results)
    if run.summary is not None:
        yield from read_summary(run.summary, results)
    yield from _verdict(place, results)
    names = [*results.phases, *(name for name in run.outputs if name not in results.phases)]
    for name in names:
        if name not in run.beside:
            yield from _phase_items(run, results, name)
    if left := [name for name in names if name in run.beside]:
        yield Note(place, None, f"left to the outputs beside it: {', '.join(left)}")


def _verdict(place: str, results: Io500Results) -> Iterator[Item]:
    """What IO500 itself says of the run."""
    if not results.phases:
        yield Problem(place, None, "no result of a phase of IO500")
    elif not results.has_score:
        yield Problem(place, None, f"the run was cut off: {len(results.phases)} phases, no score")
    marked = [phase.name for phase in results.phases.values() if phase.is_invalid]
    if results.is_invalid or marked:
        what = "the run" if results.is_invalid else ", ".join(marked)
        phases = f" ({', '.join(marked)})" if results.is_invalid and marked else ""
        why = "; ".join(dict.fromkeys(results.reasons))
        reason = f": {shown(why)}" if why else ""
        yield Note(place, None, f"IO500 calls {what} invalid{phases}, kept as not complete{reason}")


def _phase_items(run: _Io500Run, results: Io500Results, name: str) -> Iterator[Item]:
    """The result of a phase, once: of its output, else of the summary."""
    phase, output, summary = results.phases.get(name), run.outputs.get(name), run.summary or run.result
    is_measured = False
    if output is not None:
        for item in _output_items(name, output):
            if not isinstance(item, Row):
                yield item
            elif (done := item.values["direction"]) == _direction(name) or str(done).startswith("tree"):
                is_measured |= done == _direction(name)
                yield Row(item.table, {**item.values, "complete": results.is_complete(name)})
                yield from _check(output, phase, item)
        if not is_measured:
            yield Problem(output.place, None, f"no {_direction(name)} in it, which is what {name} measures")
    if not is_measured and phase is not None and summary is not None:
        yield from _summary_rows(replace(summary, content=f"{summary.content}/{name}"), results, phase)


def _output_items(name: str, output: ResultFile) -> Iterator[Item]:
    file = replace(output, content=f"{output.content}/{name}")
    if name.startswith("mdtest"):
        yield from read_mdtest(file)
        return
    text, trouble = file.text()
    yield from read_ior_text(file, text, has_summary=False)
    if trouble:
        yield Problem(file.place, None, trouble)


def _direction(name: str) -> str:
    """What a phase does, in the words of `benchmark_runs`."""
    last = name.rpartition("-")[2]
    if name.startswith("mdtest"):
        return MDTEST.get(last, last)
    return last if name.startswith("ior") else name


def _check(output: ResultFile, phase: Io500Phase | None, row: Row) -> Iterator[Item]:
    """The summary must be of the same run as the outputs."""
    if phase is None or row.values["direction"] != _direction(phase.name):
        return
    is_ior = phase.name.startswith("ior")
    column, unit, word = ("reported_bytes_per_s", GIB, "GiB/s") if is_ior else ("reported_ops_per_s", 1000, "kIOPS")
    rate = row.values.get(column)
    if isinstance(rate, float) and abs(rate - phase.rate * unit) > SAME * rate:
        said = f"the summary says {phase.rate:g} {word} for {phase.name}, its output {rate / unit:.6g}"
        yield Problem(output.place, None, said)


def _summary_rows(file: ResultFile, results: Io500Results, phase: Io500Phase) -> Iterator[Item]:
    """What the summary alone tells: a rate, and the seconds of the whole phase."""
    if not phase.rate:
        if phase.is_scored:
            yield Note(file.place, phase.line, f"{phase.name} has no rate: left out")
        return
    tool = phase.name.partition("-")[0]
    is_ior = tool == "ior"
    rate = phase.rate * (GIB if is_ior else 1000)
    yield from file.rows(
        tool if tool in ("ior", "mdtest") else TOOL,
        phase.line,
        run_id=file.run_id(0),
        time=file.time_us(phase.end),
        direction=_direction(phase.name),
        tasks=phase.tasks or results.tasks,
        duration_s=phase.operations / rate if phase.operations else phase.seconds or None,
        operations=phase.operations,
        reported_bytes_per_s=rate if is_ior else None,
        reported_ops_per_s=None if is_ior else rate,
        complete=results.is_complete(phase.name),
    )
