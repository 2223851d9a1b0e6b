"""Questions over many application runs of a store: which runs, what the configuration knows, and the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any, Final

from iolens.analyses.runs.asked import RunConditions
from iolens.analyses.runs_applications import ReportedRuns
from iolens.analyses.runs_coverage import runs_coverage
from iolens.analyses.runs_files import runs_files
from iolens.analyses.runs_interfaces import runs_interfaces
from iolens.analyses.runs_patterns import runs_patterns
from iolens.analyses.runs_projects import runs_projects
from iolens.analyses.runs_scaling import runs_scaling
from iolens.analyses.runs_sizes import runs_sizes
from iolens.analyses.runs_variance import runs_variance
from iolens.api.store_analyses import StoreAnalyses
from iolens.config import Config
from iolens.errors import OptionError, UsageError
from iolens.nearest_names import not_among
from iolens.store.scope import Scope
from iolens.store.selection import StoreSelection

QUESTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "coverage": runs_coverage, "files": runs_files, "interfaces": runs_interfaces, "patterns": runs_patterns,
    "projects": runs_projects, "scaling": runs_scaling, "sizes": runs_sizes, "variance": runs_variance,
}  # fmt: skip
NAMES: Final = tuple(QUESTIONS)
REPORTED_SAMPLES: Final = 5  # of a group of like runs in a report


def run_analysis(
    opened: StoreAnalyses, name: str, scope: Scope | None = None, like: RunConditions | None = None, **options: Any
) -> Any:
    """One of `NAMES` over the runs that started in the scope's window and are as `like` says.

    An error where there is no such run, unless jobs tell something all the same.
    """
    asked = scope or Scope()
    if asked.targets:
        raise OptionError("--target does not go with runs: a log does not say which targets a run used")
    if asked.rollup is not None:
        raise OptionError("--resolution does not go with runs: a run is one row")
    chosen = like or RunConditions()
    return opened.ask_all(lambda selection: _answer(opened, name, selection, chosen, options), asked)


def _answer(
    opened: StoreAnalyses, name: str, selection: StoreSelection, like: RunConditions, options: dict[str, Any]
) -> Any:
    _check_runs(opened, selection)
    question = QUESTIONS[name]
    result = question(selection, like, **_configured(opened.config, question, options))
    if not result.runs and like != RunConditions():
        raise UsageError(f"{opened.store.url} has no application run of that kind in the window")
    return result


def _configured(config: Config, question: Callable[..., Any], options: dict[str, Any]) -> dict[str, Any]:
    """The options, and what the configuration knows where an option was not given."""
    known = {"ceiling_mib_per_s_per_node": config.runs.ceiling_mib_per_s_per_node}
    given = {name: value for name, value in options.items() if value is not None}
    return {name: value for name, value in known.items() if name in signature(question).parameters} | given


def _check_runs(opened: StoreAnalyses, selection: StoreSelection) -> None:
    """Whether the window has any run, and of the file system asked for; an error says what there is instead."""
    if selection.holds("runs"):
        return
    if selection.filesystem:
        known = opened.store.select_all(Scope(None, *selection.window)).frame("runs").select("filesystem").unique()
        names = known.collect(backend="pyarrow").to_native().column("filesystem").to_pylist()
        if names:
            named = [name for name in names if name is not None]
            raise UsageError(
                f"no run used file system {selection.filesystem!r}{not_among(selection.filesystem, named)}"
            )
    whole = opened.store.select_all(Scope())
    where = " in this window" if whole.holds("runs") else "; load Darshan logs with `iolens ingest darshan`"
    raise UsageError(f"{opened.store.url} holds no application run{where}")


def reported_runs(opened: StoreAnalyses, scope: Scope) -> ReportedRuns | None:
    """The runs of a window as a report shows them, whichever file system they used; None: there are none."""
    window = Scope(None, scope.since, scope.until)
    if not opened.store.select_all(window).holds("runs"):
        return None
    projects = run_analysis(opened, "projects", window)
    return ReportedRuns(
        filesystem=None,
        window_start=projects.window_start,
        window_end=projects.window_end,
        projects=projects,
        coverage=run_analysis(opened, "coverage", window),
        interfaces=run_analysis(opened, "interfaces", window),
        patterns=run_analysis(opened, "patterns", window),
        variance=run_analysis(opened, "variance", window, min_samples=REPORTED_SAMPLES),
    )
