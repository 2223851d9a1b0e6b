"""Running an acceptance suite: every step in a directory of its own on the tested file system, removed afterwards.

Results are read by the sources `fio` and `ior`, as those of any other run; what the tools printed is kept.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from iolens.benchmarks.acceptance import Suite, SuiteStep, read_suite
from iolens.benchmarks.device_counters import LATENCIES, RequestLog, largest_deviation_points, read_logs
from iolens.benchmarks.light_probe import check_plan, memory_warning
from iolens.benchmarks.programs import found_program, run_program
from iolens.benchmarks.sweep import Plan
from iolens.benchmarks.synthetic_fio import LAYOUT
from iolens.errors import IolensError, UsageError
from iolens.models.acceptance import (
    Acceptance,
    LimitCheck,
    StepResult,
    bandwidth_score,
    operations_score,
    total_score,
)
from iolens.records import Note, Problem, Row
from iolens.sources import ReadOptions
from iolens.sources.benchmarks.fio import read_fio_text
from iolens.sources.benchmarks.ior import read_ior_text
from iolens.sources.benchmarks.results import ResultFile

DIRECTIONS: Final = ("read", "write")
READERS: Final = {"fio": read_fio_text, "ior": read_ior_text}

Say = Callable[[str], None]
Values = dict[str, Any]


def run_acceptance(directory: Path, place: Path, results: Path, say: Say = lambda text: None) -> Acceptance:
    """Run the suite of `directory` on `place`; outputs and logs of the tools are left in `results`."""
    suite = read_suite(directory)
    notes = _checked(suite, place)
    program = found_program("fio")
    results.mkdir(parents=True, exist_ok=True)
    if any(results.iterdir()):
        raise UsageError(f"{results} is not empty: name a new folder for the results")
    with _workplace(place) as folder:
        say("laying out files")
        _fio(program, directory / LAYOUT, folder, results)
        steps = []
        for step in suite.steps:
            say(step.name)
            steps.append(_run_step(step, directory, folder, results, suite.jobs))
    return outcome(suite, str(directory), str(place), steps, notes)


def outcome(suite: Suite, directory: str, place: str, steps: list[StepResult], notes: list[str]) -> Acceptance:
    """Limits held against what was measured."""
    measured = {step.name: step for step in steps}
    checks = [
        LimitCheck.of(step.name, limit, measured[step.name].value(limit.measure))
        for step in suite.steps
        for limit in step.limits
    ]
    bandwidth, operations = bandwidth_score(steps), operations_score(steps)
    return Acceptance(
        filesystem=suite.filesystem,
        suite=directory,
        place=place,
        ssi=suite.ssi,
        share=suite.share,
        percentile=suite.percentile,
        passed=bool(checks) and all(check.verdict == "pass" for check in checks),
        score=total_score(bandwidth, operations),
        bandwidth_gib_per_s=bandwidth,
        thousand_ops_per_s=operations,
        checks=checks,
        steps=steps,
        notes=[*notes, *(f"{step.name}: {step.trouble}" for step in steps if step.trouble)],
    )


def _checked(suite: Suite, place: Path) -> list[str]:
    """Refuse what would harm or mislead, as before a calibration; returns what the user should know."""
    if not place.is_dir():
        raise UsageError(f"{place}: no such directory; an acceptance suite runs on files")
    size = suite.file_bytes * suite.jobs
    check_plan(Plan(place, size, (512,), direct=suite.direct), destroy_data=False)
    notes = [] if suite.direct else ["buffered I/O: this machine's memory is measured as much as the system"]
    return [*notes, *([why] if (why := memory_warning(size)) is not None else [])]


@contextmanager
def _workplace(place: Path) -> Iterator[Path]:
    """A new directory that goes again, whatever happens."""
    folder = place.absolute() / f"iolens-acceptance-{uuid.uuid4().hex[:8]}"
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _run_step(step: SuiteStep, directory: Path, folder: Path, results: Path, tasks: int) -> StepResult:
    """A step that fails is a result, too: its limits are then not measured."""
    job = directory / step.job
    own = results / step.name
    own.mkdir()
    empty = StepResult(step.name, step.kind, step.tool)
    try:
        if step.tool == "ior":
            if shutil.which("ior") is None:
                return replace(empty, trouble="ior is not on PATH: left out")
            for file in folder.iterdir():  # of fio: the space is for one of the two
                file.unlink()
            text = run_program(["sh", str(job.absolute())], cwd=own, variables={"DIR": str(folder)})
            (own / "output.txt").write_text(text, "utf-8")
        else:
            text = _fio(found_program("fio"), job, folder, own)
        return measured(step, text, read_logs(sorted(own.glob(LATENCIES))), job, tasks)
    except IolensError as error:
        return replace(empty, trouble=str(error))


def _fio(program: str, job: Path, folder: Path, results: Path) -> str:
    command = [program, "--output-format=json", "--eta=never", str(job.absolute())]
    escaped = str(folder).replace(":", "\\:")  # fio takes a colon for a list of directories
    text = run_program(command, cwd=results, variables={"DIR": escaped})
    (results / f"{job.stem}.json").write_text(text, "utf-8")
    return text


def measured(step: SuiteStep, text: str, log: RequestLog, job: Path, tasks: int) -> StepResult:
    """What the tool's output and its log of requests say."""
    rows = _rows(step, text, job, tasks)
    sums = {direction: _sums([row for row in rows if row.get("direction") == direction]) for direction in DIRECTIONS}
    step_result = StepResult(
        step.name,
        step.kind,
        step.tool,
        read_bytes_per_s=sums["read"][0],
        write_bytes_per_s=sums["write"][0],
        read_ops_per_s=sums["read"][1],
        write_ops_per_s=sums["write"][1],
    )
    if step.requests is None or step.sizes is None:
        return step_result
    served = sum(min(log.count(direction), count) for direction, count in step.requests.items())
    return replace(
        step_result,
        read_p99_s=log.latency_percentile_s("read", 99.0),
        write_p99_s=log.latency_percentile_s("write", 99.0),
        served_pct=100.0 * served / sum(step.requests.values()),
        read_requests_pct=log.read_requests_pct,
        size_deviation_points=max(
            largest_deviation_points(step.sizes[direction], log.size_shares(direction))
            for direction in DIRECTIONS
            if log.count(direction)
        )
        if len(log.direction)
        else None,
    )


def _rows(step: SuiteStep, text: str, job: Path, tasks: int) -> list[Values]:
    file = ResultFile(job, ReadOptions(), step.name)
    items = list(READERS[step.tool](file, text))
    problems = [item for item in items if isinstance(item, Problem) and not isinstance(item, Note)]
    if problems:
        raise IolensError(f"{step.tool}: {problems[0].reason}")
    rows = [dict(item.values) for item in items if isinstance(item, Row)]
    if step.tool == "ior" and (ran := {row.get("tasks") for row in rows}) - {tasks}:
        counts = ", ".join(sorted(str(count) for count in ran))
        raise IolensError(f"ior ran with {counts} tasks, not {tasks}: the launcher does not start its MPI tasks")
    return rows


def _sums(rows: list[Values]) -> tuple[float | None, float | None]:
    """Bytes and operations per second over the seconds of all runs, which came one after the other."""
    seconds = sum(row["duration_s"] for row in rows)
    if not seconds:
        return None, None
    return sum(row["bytes"] for row in rows) / seconds, sum(row.get("operations") or 0 for row in rows) / seconds
