"""Options that several questions share."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from iolens.question import DURATION, TOP, WORDS, Gathered, Option, choice, several, whole

if TYPE_CHECKING:
    from iolens.analyses.runs.asked import RunConditions
    from iolens.store.jobs import JobFilter

CALIBRATION: Final = Option(
    "calibration", "Stored, configured or shipped calibration (shipped: grace-2012)", metavar="NAME"
)
SHOWN_NAMES: Final = replace(TOP, meaning="Number of names shown")
EVERY: Final = Option("every", "Width of a time bucket, such as 1h [by the window]", DURATION, metavar="TIME")


def listed(name: str, flag: str, meaning: str, **settings: Any) -> Option:
    """A condition that takes a list."""
    return Option(name, meaning, **{"kind": WORDS, "default": "", "flag": flag, "metavar": "LIST", **settings})


def _run_conditions(**parts: Any) -> RunConditions:
    from iolens.analyses.runs.asked import RunConditions

    return RunConditions(**parts)


def _job_filter(**parts: Any) -> JobFilter:
    from iolens.store.jobs import JobFilter

    return JobFilter(**parts)


NUMBERS: Final = several(whole(0), "list of numbers", may_be_none=True)

LIKE_RUNS: Final = Gathered("like", _run_conditions, (
    listed("projects", "--project", "Only runs of these projects; * and ? stand for anything", means="project"),
    listed("users", "--user", "Only runs of these users", means="person"),
    listed("executables", "--executable", "Only runs of these programs, without their directory"),
))  # fmt: skip

LIKE_JOBS: Final = Gathered("like", _job_filter, (
    listed("names", "--name", "Only jobs of these names; * and ? stand for anything"),
    listed("users", "--user", "Only jobs of these users", means="person"),
    listed("projects", "--project", "Only jobs of these accounts or projects", means="project"),
    listed("clusters", "--cluster", "Only jobs of these clusters"),
    listed("states", "--state", "Only jobs with this final state, such as COMPLETED"),
    listed("cores", "--cores", "Only jobs with these numbers of cores", kind=NUMBERS),
))  # fmt: skip

RATE_METHOD: Final = Option(
    "method", "Rates and times of each file at its highest layer, or of POSIX and STDIO alone, as in the study",
    choice("layers", "paper"), "layers",
)  # fmt: skip
