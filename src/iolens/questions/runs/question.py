"""What the application runs of a store did: projects, interfaces, patterns, sizes, files, scaling, variance, coverage.

Each counts the runs that started in the window; tables and figures are those of the study on Intrepid.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from iolens.errors import OptionError
from iolens.question import BYTES, OWN, TOP, WORDS, Option, number, question, whole
from iolens.questions.shared import LIKE_RUNS, RATE_METHOD

if TYPE_CHECKING:
    from iolens.analyses.runs.asked import RunConditions
    from iolens.analyses.runs_coverage import RunCoverage
    from iolens.analyses.runs_files import RunFileCounts
    from iolens.analyses.runs_interfaces import RunInterfaces
    from iolens.analyses.runs_patterns import RunPatterns
    from iolens.analyses.runs_projects import RunProjects
    from iolens.analyses.runs_scaling import RunScaling
    from iolens.analyses.runs_sizes import RunSizes
    from iolens.analyses.runs_variance import RunVariance
    from iolens.questions.asking import Ask

OF_RUNS: Final[dict[str, Any]] = {"about": "runs", "rights": OWN}
LEAST_PROCESSES: Final = Option("min_processes", "Least number of processes of a run", whole(0), 0)
LEAST_BYTES: Final = Option("min_bytes", "Least bytes that a run moved", BYTES, "0")


def _runs(ask: Ask, name: str, like: RunConditions, **options: Any) -> Any:
    from iolens.api.run_analyses import run_analysis

    return run_analysis(ask.store, name, ask.scope, like, **options)


@question(
    "runs projects", "Projects by their runs: bytes, rates, time in I/O, files",
    replace(LEAST_PROCESSES, meaning="Least number of processes of runs in means", default=1024),
    replace(LEAST_BYTES, meaning="Least bytes moved by runs in means", default="500MiB"),
    Option(
        "ceiling_mib_per_s_per_node",
        "MiB/s a node can move; runs above it are listed separately [runs.ceiling_mib_per_s_per_node]",
        number(0, above=True), flag="--ceiling", metavar="MIB",
    ),
    RATE_METHOD, LIKE_RUNS, **OF_RUNS,
    examples=(
        "--from 2026-11-01 --figure top.png --figure performance=boxes.png",
        "--min-processes 16 --min-bytes 1MiB --ceiling 800 --format json",
    ),
)  # fmt: skip
def projects(ask: Ask, like: RunConditions, **limits: Any) -> RunProjects:
    """What each project's runs are like: Table VI, Figs. 4, 11 and 12 of the study on Intrepid.

    Means are unweighted over runs of at least --min-processes and --min-bytes, by default the limits of the study;
    use lower ones for a small centre. Project and nodes of a run are those of its job.
    """
    return _runs(ask, "projects", like, **limits)


@question(
    "runs coverage", "Which jobs and core-hours have a Darshan log, by project", LIKE_RUNS, **OF_RUNS,
    examples=("--from 2026-11-01 --to 2026-12-01",),
)  # fmt: skip
def coverage(ask: Ask, like: RunConditions) -> RunCoverage:
    """How many jobs and core-hours left a log, and which interfaces projects use (Table II).

    A job with at least one log counts once, with all its core-hours. Also shown is the share of the bytes moved by
    the targets of each file system that the runs account for.
    """
    return _runs(ask, "coverage", like)


@question(
    "runs interfaces", "POSIX, STDIO, MPI-IO, HDF5 and PnetCDF by the size of runs", LIKE_RUNS, **OF_RUNS,
    examples=("--from 2026-11-01 --figure interfaces.svg",),
)  # fmt: skip
def interfaces(ask: Ask, like: RunConditions) -> RunInterfaces:
    """Which I/O interfaces runs use, in runs and bytes, by their processes (Fig. 3a).

    A file counts under the highest interface that opened it; a run counts under each interface it uses.
    """
    return _runs(ask, "interfaces", like)


@question(
    "runs patterns", "Unique, shared and partially shared files by the size of runs", LIKE_RUNS, **OF_RUNS,
    examples=("--from 2026-11-01 --figure patterns.svg",),
)  # fmt: skip
def patterns(ask: Ask, like: RunConditions) -> RunPatterns:
    """How runs share files, in runs and bytes, by their processes (Fig. 3b).

    A file opened by one rank is unique (N:N), by all ranks shared (N:1), by some partially shared (N:M). A run counts
    under each pattern it uses.
    """
    return _runs(ask, "patterns", like)


@question(
    "runs sizes", "Sizes of reads and writes, and which project dominates a size",
    Option(
        "without_projects", "Leave out the runs of these projects", WORDS, "", flag="--without", metavar="PROJECTS",
        means="project",
    ),
    LIKE_RUNS, **OF_RUNS,
    examples=("--from 2026-11-01 --figure cdf.png", "--without CombustionPhysics,Turbulence1"),
)  # fmt: skip
def sizes(ask: Ask, like: RunConditions, without_projects: tuple[str, ...]) -> RunSizes:
    """POSIX accesses by size, cumulative (Fig. 10), and the project with most accesses of each size."""
    return _runs(ask, "sizes", like, without_projects=without_projects)


@question(
    "runs files", "Files of runs against their processes, and how many are new", LIKE_RUNS, **OF_RUNS,
    examples=("--from 2026-11-01 --figure files.png",),
)  # fmt: skip
def files(ask: Ask, like: RunConditions) -> RunFileCounts:
    """How many files runs use (Fig. 5), which use none, and how many of the files they wrote are new."""
    return _runs(ask, "files", like)


@question(
    "runs scaling", "Runs of a project or program by nodes: strong, weak scaling",
    LEAST_PROCESSES, LEAST_BYTES, replace(TOP, meaning="Number of runs listed"), RATE_METHOD, LIKE_RUNS, **OF_RUNS,
    examples=(
        "--project CombustionPhysics",
        "--executable 'flash*' --min-bytes 500MiB --figure scaling.png",
    ),
)  # fmt: skip
def scaling(ask: Ask, like: RunConditions, min_processes: int, min_bytes: int, **options: Any) -> RunScaling:
    """How fast runs are on more nodes (Table VIII), with single runs and their key access size (Table VII).

    Strong scaling: total bytes stay the same while processes grow; weak: bytes per process do.
    """
    if not like.projects and not like.executables:
        raise OptionError("name a project or a program with --project or --executable")
    return _runs(ask, "scaling", replace(like, min_processes=min_processes, min_bytes=min_bytes), **options)


@question(
    "runs variance", "How the I/O time of like runs varies",
    Option("min_samples", "Least number of runs in a group", whole(2), 2),
    replace(TOP, meaning="Number of groups shown, by variation", default=100), RATE_METHOD, LIKE_RUNS, **OF_RUNS,
    examples=("--from 2026-11-01 --min-samples 5", "--project climate --format json"),
)  # fmt: skip
def variance(ask: Ask, like: RunConditions, **options: Any) -> RunVariance:
    """Groups of like runs and their I/O times (Table IV): mean, shortest, longest, deviation.

    Like runs have the same user, processes and files, and bytes read and written within 1 %.
    """
    return _runs(ask, "variance", like, **options)
