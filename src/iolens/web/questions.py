"""The questions that the server answers: each is a command of the command line, with the same options and JSON keys.

A question stands at `/api/v1/NAME` (JSON), `/api/v1/NAME.csv` and `/blocks/NAME` (HTML); pages are made of them.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from iolens.units import parse_bytes, parse_duration
from iolens.web.parameters import (
    FILESYSTEM,
    ONLY,
    PROJECT,
    RESOLUTION,
    TIMEZONE,
    TOP,
    USER,
    WINDOW,
    UrlParameter,
    by_name,
    choice,
    names,
    scope_words,
    switch,
    whole,
)

if TYPE_CHECKING:
    from iolens.api import OpenStore
    from iolens.store.scope import Scope

ScopeKind = Literal["rows", "raw", "jobs", "window", "none"]
SHARED: Final[Mapping[ScopeKind, tuple[UrlParameter, ...]]] = {
    "rows": (FILESYSTEM, *WINDOW, *ONLY, RESOLUTION, TIMEZONE),  # of targets of one file system
    "raw": (FILESYSTEM, *WINDOW, *ONLY, TIMEZONE),  # the same, of rows that have no rollup
    "jobs": (FILESYSTEM, *WINDOW, TIMEZONE),  # of one file system, or of the whole centre
    "window": (*WINDOW, TIMEZONE),  # of the whole centre
    "none": (),
}
Ask = Callable[["OpenStore", "Scope", dict[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class Question:
    """A question: what answers it, its own parameters, and how people with the role `user` may ask it.

    `scope` says which parameters it shares with others, `command` are the words after `iolens`. `own` is the parameter
    that is set to the login name of a `user`; a question without it is open to that role only where it is `public`.
    `owner` tells whose a result is that concerns one person, `without_others` takes the names of others out of it.
    """

    name: str
    summary: str
    command: tuple[str, ...]
    ask: Ask
    parameters: tuple[UrlParameter, ...] = ()
    own: str = ""
    public: bool = False
    owner: Callable[[Any], str | None] | None = None
    owner_in: str = ""  # the parameter that names the owner: others need not be asked about
    without_others: Callable[[Any], Any] | None = None
    scope: ScopeKind = "rows"
    has_figures: bool = True
    lasts_s: float = math.inf  # how long an answer holds while the store is unchanged
    known: Mapping[str, UrlParameter] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "known", by_name((*SHARED[self.scope], *self.parameters)))

    @property
    def is_open_to_users(self) -> bool:
        """Whether the role `user` may ask it, for the own jobs or as it is."""
        return self.public or bool(self.own) or self.owner is not None


def _analysis(name: str, **usual: Any) -> Ask:
    """An analysis, with what the command gives it where nobody says otherwise."""

    def ask(opened: OpenStore, scope: Scope, options: dict[str, Any]) -> Any:
        from inspect import signature

        from iolens.analyses import get_analysis

        taken = signature(get_analysis(name).run).parameters
        return opened.analyse(name, scope, **usual, **{key: value for key, value in options.items() if key in taken})

    return ask


def _blame(opened: OpenStore, scope: Scope, options: dict[str, Any]) -> Any:
    return opened.blame(scope, **{key: value for key, value in options.items() if key != "timezone"})


def _jobs(opened: OpenStore, scope: Scope, options: dict[str, Any]) -> Any:
    from iolens.api.job_search import JobSearchOptions, search_jobs

    names = [field.name for field in fields(JobSearchOptions)]
    return search_jobs(opened, scope, JobSearchOptions(**_taken(options, *names)))


def _counted_jobs(opened: OpenStore, scope: Scope, options: dict[str, Any]) -> Any:
    from iolens.api.job_list import listed_jobs
    from iolens.store.jobs import JobFilter

    like = JobFilter(**_taken(options, "names", "users", "projects"))
    return listed_jobs(opened, scope, like, options.get("sort", "bytes"), **_taken(options, "top"))


def _job(opened: OpenStore, scope: Scope, options: dict[str, Any]) -> Any:
    from iolens.api.job_page import JobPageOptions, job_page

    chosen = JobPageOptions(cluster=options.get("cluster"), names=options.get("names", False))
    return job_page(opened, options["id"], scope.only("since", "until"), chosen)


def _explain(opened: OpenStore, scope: Scope, options: dict[str, Any]) -> Any:
    return opened.explain(options["id"], scope, load=True)


def _user(opened: OpenStore, scope: Scope, options: dict[str, Any]) -> Any:
    from iolens.api.user_page import user_page

    return user_page(opened, options["name"], scope.only("since", "until"), timezone=options.get("timezone"))


def _lost(opened: OpenStore, scope: Scope, options: dict[str, Any]) -> Any:
    return opened.lost(scope.only("since", "until"), like=_run_conditions(options), **_taken(options, "top"))


def _applications(opened: OpenStore, scope: Scope, options: dict[str, Any]) -> Any:
    from iolens.api.job_applications import applications_of
    from iolens.store.jobs import JobFilter

    like = JobFilter(**_taken(options, "users", "projects"))
    return applications_of(opened, scope, like, **_taken(options, "by", "top"))


def _runs(name: str) -> Ask:
    def ask(opened: OpenStore, scope: Scope, options: dict[str, Any]) -> Any:
        from iolens.api.run_analyses import run_analysis

        chosen = _taken(options, "min_processes", "min_samples")
        return run_analysis(opened, name, scope.only("since", "until"), _run_conditions(options), **chosen)

    return ask


def _run_conditions(options: dict[str, Any]) -> Any:
    from iolens.analyses.runs.run_conditions import RunConditions

    return RunConditions(**_taken(options, "users", "projects", "executables"))


def _plan(name: str) -> Ask:
    def ask(opened: OpenStore, scope: Scope, options: dict[str, Any]) -> Any:
        zone = options.pop("timezone", None)
        return opened.plan(name, scope, timezone=zone, **options)

    return ask


def _rationale(opened: OpenStore, scope: Scope, options: dict[str, Any]) -> Any:
    """The document says how to make it again; where the store is is nobody's business here."""
    known = QUESTIONS["plan/rationale"].known
    given = [word for name, value in options.items() if name in known for word in _words(known[name], value)]
    made = _plan("rationale")(opened, scope, options)
    command = shlex.join(["iolens", "plan", "rationale", *given, *scope_words(scope)])
    return replace(made, about=replace(made.about, store=None, command=command))


def _words(parameter: UrlParameter, value: Any) -> list[str]:
    """An option as given, on the command line."""
    return parameter.words(str(int(value)) if parameter.is_switch else str(value))


def _filesystems(opened: OpenStore, scope: Scope, options: dict[str, Any]) -> Any:
    from iolens.api.centre_state import centre_state

    return replace(centre_state(opened), store="the store")  # its place is nobody's business here


def _sources(opened: OpenStore, scope: Scope, options: dict[str, Any]) -> Any:
    from iolens.api.source_list import source_list

    return source_list(opened, scope.since, scope.until)


def _alerts(opened: OpenStore, scope: Scope, options: dict[str, Any]) -> Any:
    from iolens.api.alerts import alert_list

    return alert_list(opened.config, opened.config.state_path(), **options)


def _agents(opened: OpenStore, scope: Scope, options: dict[str, Any]) -> Any:
    from datetime import UTC, datetime

    from iolens.hub.hub_state import hub_state

    return hub_state(opened.config.state_path(), datetime.now(UTC))


def _taken(options: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: options[key] for key in keys if key in options}


STATE_LASTS_S: Final = 2.0  # what is not in the store changes at any time
RESAMPLES: Final = 100  # of `iolens workload --bootstrap`
CALIBRATION: Final = UrlParameter("calibration", "Stored, configured or shipped calibration")
EXECUTABLE: Final = UrlParameter("executable", "Only runs of these programs, comma-separated", names, "executables")
JOB_NAME: Final = UrlParameter("name", "Only jobs of these names; * and ? stand for anything", names, "names")
JOB_SORTS: Final = ("start", "duration", "core-hours", "disk", "bytes", "read", "written")
SORTS: Final = ("bytes", "read", "written", "operations", "opens", "rpcs", "disk", "start")
KINDS: Final = ("job", "user", "project", "executable", "node")
SSI: Final = UrlParameter("ssi", "Speed of the new system over the old: 3, a list 3,4 or a range 3..4")
SMALLER: Final = UrlParameter("smaller", "1: a system smaller than what is used today is meant", switch, is_switch=True)
JOB: Final = UrlParameter("id", "Id of the job, or of a run", flag="--job", is_needed=True)
LIKE_RUNS: Final = (USER, PROJECT, EXECUTABLE)

_ALL: Final = (
    Question("filesystems", "File systems of the store, and the time their data span", ("store", "filesystems"),
             _filesystems, scope="none", has_figures=False, public=True),
    Question("utilization", "Utilization and bandwidth", ("utilization",), _analysis("utilization"),
             (CALIBRATION,), public=True),
    Question("workload", "How the file system is used", ("workload",), _analysis("workload", resamples=RESAMPLES)),
    Question("imbalance", "How unevenly its targets are loaded", ("imbalance",), _analysis("imbalance"), public=True),
    Question("latency", "Latency of its targets", ("latency",), _analysis("latency"), public=True),
    Question("metadata", "Load of its metadata targets", ("metadata",), _analysis("metadata"), public=True),
    Question("capacity", "Fullness and when it will be full", ("capacity",), _analysis("capacity"), public=True),
    Question("contents", "What it contains, how old, and whose", ("contents",), _analysis("contents")),
    Question("drives", "Wear of its drives", ("drives",), _analysis("drives")),
    Question("blame", "Who made it busy", ("blame",), _blame, (
        UrlParameter("by", f"{', '.join(KINDS)} [job]", choice(*KINDS)),
        UrlParameter("metadata", "1: time of the metadata servers instead of the disks", switch, is_switch=True),
        TOP, UrlParameter("busiest", "Only the busiest part of this length, such as 1h", parse_duration), CALIBRATION,
    ), scope="raw"),
    Question("jobs", "All jobs of a window that anything is known of", ("job", "search"), _jobs, (
        UrlParameter("text", "Begin of an id, or a part of a user, project, program or name", is_argument=True),
        UrlParameter("sort", f"{', '.join(JOB_SORTS)} [start]", choice(*JOB_SORTS)),
        UrlParameter("reverse", "1: oldest or smallest first", switch, is_switch=True),
        TOP, UrlParameter("skip", "After how many", whole(0, 10**8)), USER, PROJECT, JOB_NAME,
    ), own="user", scope="jobs", has_figures=False),
    Question("jobs/list", "Jobs whose nodes were sampled, those that did most first", ("job", "list"), _counted_jobs, (
        UrlParameter("sort", f"{', '.join(SORTS)} [bytes]", choice(*SORTS)), TOP, USER, PROJECT, JOB_NAME,
    ), own="user", has_figures=False),
    Question("job", "The page of one job", ("report",), _job, (
        JOB, UrlParameter("cluster", "Cluster of the job, where several have such an id"),
        UrlParameter("names", "1: name users and programs of its neighbours", switch, is_switch=True),
    ), owner=lambda page: page.user, scope="window", has_figures=False),
    Question("explain", "Why a run was slow", ("explain",), _explain, (
        UrlParameter("id", "Id of a job or run", is_argument=True, is_needed=True),
    ), owner=lambda run: run.user, without_others=lambda run: replace(run, neighbours=[]), scope="window"),
    Question("user", "The page of one user", ("report",), _user, (
        UrlParameter("name", "Login name", flag="--user", is_needed=True),
    ), owner=lambda page: page.user, owner_in="name", scope="window", has_figures=False),
    Question("lost", "Core-hours lost to slow I/O", ("lost",), _lost, (TOP, *LIKE_RUNS), own="user", scope="window"),
    Question("applications", "Applications side by side", ("job", "applications"), _applications, (
        UrlParameter("by", "name or cores [name]", choice("name", "cores")), TOP, USER, PROJECT,
    ), own="user"),
    *(
        Question(f"runs/{name}", summary, ("runs", name), _runs(name), (
            *LIKE_RUNS, UrlParameter("min_processes", "Least number of processes of runs in means", whole(0, 10**8)),
        ) if name == "projects" else LIKE_RUNS, own="user", scope="window")
        for name, summary in (
            ("projects", "Projects by their runs"), ("coverage", "Jobs and bytes that runs explain"),
            ("interfaces", "Interfaces of runs, by job size"), ("patterns", "Access patterns of runs, by job size"),
            ("variance", "How much like runs differ"), ("sizes", "Access sizes of runs"),
        )
    ),
    Question("plan/capacity", "Capacity of the next system", ("plan", "capacity"), _plan("capacity"), (
        SSI, UrlParameter("purge_days", "Days after which files may go"),
        UrlParameter("purge_fraction", "Share of capacity a purge reclaims"),
        UrlParameter("daily_growth", "Bytes gained per day, such as 133TB [from the store]"),
        UrlParameter("method", "How growth is found in the store: strict or paper", choice("strict", "paper")),
        SMALLER,
    )),
    Question("plan/endurance", "Endurance of its drives", ("plan", "endurance"), _plan("endurance"), (
        SSI, UrlParameter("layout", "Data and parity blocks of a stripe, such as 8+2"),
        UrlParameter("waf", "Write amplification [from the store]"),
        UrlParameter("fswpd", "File-system writes per day [from the store]"),
        UrlParameter("classes", "DWPD on offer, such as 0.3,1,3,10"),
    )),
    Question("plan/metadata", "Capacity of its metadata targets", ("plan", "metadata"), _plan("metadata"), (
        UrlParameter("capacity", "Capacity of the new system, such as 30PB", is_needed=True),
        UrlParameter("dom", "Thresholds of Data-on-MDT, such as 64KiB,1MiB"),
        UrlParameter("inode_size", "Bytes of an inode, such as 4KiB", parse_bytes), SMALLER,
    )),
    Question("plan/performance", "Bandwidth and operations per second", ("plan", "performance"), _plan("performance"), (
        SSI, UrlParameter("percentile", "50, 95, 99, 100 of ticks"),
    )),
    Question("plan/rationale", "The design as a document", ("plan", "rationale"), _rationale, (
        SSI, *(UrlParameter(name, meaning) for name, meaning in (
            ("purge_days", "As in plan/capacity"), ("purge_fraction", "As in plan/capacity"),
            ("daily_growth", "As in plan/capacity"), ("layout", "As in plan/endurance"),
            ("waf", "As in plan/endurance"), ("fswpd", "As in plan/endurance"), ("capacity", "As in plan/metadata"),
            ("dom", "As in plan/metadata"), ("parts", "Parts of the document, comma-separated"),
        )), SMALLER,
    )),
    Question("sources", "What brought data, when, and what was refused", ("store", "sources"), _sources,
             scope="window", has_figures=False),
    Question("alerts", "Alerts now and of the last day, silences, what was not delivered", ("alerts", "list"), _alerts,
             (UrlParameter("filesystem", "Only alerts of this file system", flag="-f"),), scope="none",
             has_figures=False, lasts_s=STATE_LASTS_S),
    Question("agents", "Agents that push to this server, and the writer", (), _agents, scope="none",
             has_figures=False, lasts_s=STATE_LASTS_S),
)  # fmt: skip
QUESTIONS: Final[Mapping[str, Question]] = {question.name: question for question in _ALL}
