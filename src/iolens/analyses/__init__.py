"""A selection of the store in, a typed result out; pure functions. One module per analysis.

A module that defines `ANALYSIS` is an analysis, and so is what another package registers under `iolens.analyses`; the
command line, the Python API and the test that compares the engines find it by that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from iolens.errors import UsageError
from iolens.registry import RegisteredObject, load, registered

if TYPE_CHECKING:
    from iolens.config import Config
    from iolens.part_form import PartForm

Options = dict[str, Any]
Records = list[dict[str, object]]


@dataclass(frozen=True, slots=True)
class StoreKnowledge:
    """What a store and the configuration know beside rows, for the defaults of an analysis."""

    config: Config
    calibrations: Callable[[], Records]  # all that are stored
    benchmark_runs: Callable[[str], Records]  # stored results of one benchmark


@dataclass(frozen=True, slots=True)
class Analysis:
    """One analysis: its name, what it says of itself, and the function that runs it on a `Selection`.

    `defaults` turns the options of a user into those of `run`, with what is known of the file system beside them.
    `kept_of` lists how the parts are made that are kept of days whose raw rows are dropped: first those without which
    there is no answer, whose form has the name of the analysis. `makers` lists those of `TickParts` that `run` will ask
    for with such options, so that several analyses can be made of one reading. `answer` is the form of its results,
    where they are remembered; a change of what they say is a new version.
    """

    name: str
    summary: str
    run: Callable[..., Any]
    defaults: Callable[[StoreKnowledge, Any, Options], Options] = lambda known, selection, options: options
    kept_of: Callable[[StoreKnowledge, Any], Iterable[Any]] | None = None
    makers: Callable[[Any, Options], Iterable[Any]] | None = None
    answer: Callable[[], PartForm] | None = None


def analysis_names() -> list[str]:
    """Names of all analyses."""
    return list(_registered())


def get_analysis(name: str) -> Analysis:
    """The analysis of that name."""
    if name not in _registered():
        raise UsageError(f"no analysis is called {name!r}; there are: {', '.join(analysis_names())}")
    analysis: Analysis = load(_registered()[name])
    return analysis


def _registered() -> dict[str, RegisteredObject]:
    return registered("iolens.analyses", "ANALYSIS", "iolens.analyses")
