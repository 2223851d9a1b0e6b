"""A selection of the store in, a typed result out; pure functions. One module per analysis.

A module that defines `ANALYSIS` is an analysis; the command line, the Python API and the test that compares the
engines find it by that.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iolens.errors import UsageError


@dataclass(frozen=True, slots=True)
class Analysis:
    """One analysis: its name, what it says of itself, and the function that runs it on a `Selection`."""

    name: str
    summary: str
    run: Callable[..., Any]


def analysis_names() -> list[str]:
    """Names of all analyses, by looking at the modules beside this one."""
    folder = Path(__path__[0])
    modules = (module.name for module in pkgutil.iter_modules(__path__))
    return sorted(name for name in modules if "\nANALYSIS" in (folder / f"{name}.py").read_text("utf-8"))


def get_analysis(name: str) -> Analysis:
    """The analysis of that name."""
    if name not in analysis_names():
        raise UsageError(f"no analysis is called {name!r}; there are: {', '.join(analysis_names())}")
    analysis: Analysis = importlib.import_module(f"{__name__}.{name}").ANALYSIS
    return analysis
