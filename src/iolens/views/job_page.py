"""What is said of a job first: what it was, what it cost, whether it was slow, what to change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from iolens.units import format_bytes_si
from iolens.views.brief_page import (
    ASSOCIATED,
    DISK_TIME,
    SHORT,
    advice_sections,
    bytes_words,
    cost_words,
    first_advice,
    hours,
    missing_chapter,
    moved_words,
    plain_hours,
    verdict_in_short,
    verdict_parts,
)
from iolens.views.render import tables as t
from iolens.views.render.section import Fact, Facts, Part, ReportSection
from iolens.views.render.shown_times import shown_in, time_with_zone, window_with_zone
from iolens.views.render.tables import show_seconds
from iolens.views.report.page import ReportChapter, ReportInfo, page_html
from iolens.visible_text import counted, listed, shown_name

if TYPE_CHECKING:
    from iolens.analyses.job_page import JobCompany, JobPage, JobUse, LayerTotals, PageNeighbour
    from iolens.views.render.tables import TableView


WHILE: Final = "while it ran"
LAYERS: Final = {
    "log": "asked for by the program (Darshan log)",
    "nodes": "counted by its nodes (Lustre clients)",
    "servers": "counted by the servers (job_stats)",
}
PROGRAMS_NAMED: Final = 3
RUN_TIMES: Final = ("record", "log")  # what tells when it began and ended


def title(page: JobPage) -> str:
    """`Job 1234: climate`."""
    name = program(page)
    return f"Job {page.job_id}: {name}" if name else f"Job {page.job_id}"


def program(page: JobPage) -> str | None:
    """Its programs by the logs, else what the scheduler calls it."""
    names = [shown_name(name) for name in page.programs]
    return listed(names, PROGRAMS_NAMED) if names else page.name and shown_name(page.name)


def answer(page: JobPage) -> Iterator[str]:
    """Two to four short paragraphs."""
    yield f"{_what(page)} {' '.join(_costs(page))}"
    if page.explanation is not None and page.explanation.verdict in SHORT:
        yield verdict_in_short(page.explanation)
    yield first_advice(page.advice, page.is_judged, page.runs)


def best_layer(use: JobUse) -> LayerTotals | None:
    """The numbers of a file system that are quoted: those nearest to the program."""
    order = list(LAYERS)
    return min(use.layers, key=lambda layer: order.index(layer.layer), default=None)


def neighbour_name(neighbour: PageNeighbour) -> str:
    """Another job, by name only where the result has one."""
    if neighbour.job_id is None:
        return "a job whose user is not known" if neighbour.is_of_same_user is None else "another user's job"
    about = f" ({shown_name(neighbour.executable)})" if neighbour.executable else ""
    user = "the same user" if neighbour.is_of_same_user else neighbour.user and shown_name(neighbour.user)
    return f"job {shown_name(neighbour.job_id)}{f' of {user}' if user else ''}{about}"


def _what(page: JobPage) -> str:
    name = program(page)
    about = f" ({name})" if name else ""
    whose = f" of {shown_name(page.user)}" if page.user else ""
    verb = "ran" if page.times_from in RUN_TIMES else "was seen for"
    ran = f"{verb} {show_seconds((page.end - page.start).total_seconds())}" if page.end else "was still running"
    where = f" on {counted(page.nodes, 'node')}" if page.nodes else ""
    cost = f" ({hours(page.core_hours)})" if page.core_hours else ""
    return f"Job {shown_name(page.job_id)}{about}{whose} {ran}{where}{cost}{_moved(page)}."


def _moved(page: JobPage) -> str:
    layers = [layer for use in page.uses if (layer := best_layer(use)) is not None]
    sums = [_sum([getattr(layer, name) for layer in layers]) for name in ("read_bytes", "write_bytes")]
    words = moved_words(*sums)
    return f"; it {words}" if words else "; what it moved is not known"


def _sum(values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _costs(page: JobPage) -> Iterator[str]:
    known = [use for use in page.uses if use.cost is not None]
    for use in known:
        if use.cost is not None:
            yield cost_words("It", shown_name(str(use.filesystem)), use.cost, WHILE)
    if not known:
        yield "How much disk time it took is not known."


# The page of a job ----------------------------------------------------------------------------------------------------
# The answer first, then numbers, neighbours, advice, and what is not known.

TARGETS_NAMED: Final = 8
LAYERS_DIFFER: Final = (
    "The lines differ if caches on the nodes serve reads, or if writes reach the servers in other sizes than those of"
    " the program."
)


def job_page_html(page: JobPage, about: ReportInfo) -> str:
    """The whole page; the time zone is that of `about`."""
    with shown_in(about.timezone):
        made = ("Made", f"{time_with_zone(about.generated)} by iolens {about.version}")
        return page_html(title(page), about, [*_about(page), made], chapters(page), brief=True)


def _about(page: JobPage) -> list[tuple[str, str]]:
    known = {
        "User": page.user,
        "Project": page.project,
        "Program": program(page),
        "Cluster": page.cluster,
        "Ran" if page.times_from in RUN_TIMES else "Seen": _ran(page),
        "On": _size(page),
        "State": page.state,
    }
    return [(name, value) for name, value in known.items() if value]


def _ran(page: JobPage) -> str:
    if page.end is None:
        return f"from {time_with_zone(page.start)}, still running when it was last seen"
    return f"{window_with_zone(page.start, page.end)} ({show_seconds((page.end - page.start).total_seconds())})"


def _size(page: JobPage) -> str:
    sizes = ((page.nodes, "node"), (page.cores, "core"), (page.processes, "process"))
    return ", ".join(counted(number, word) for number, word in sizes if number is not None)


def chapters(page: JobPage) -> Iterator[ReportChapter]:
    """The answer, what it rests on, and what is not known."""
    yield ReportChapter("In short", "answer", [ReportSection("", (*answer(page), *_facts(page)))])
    if page.uses:
        several = len(page.uses) > 1
        uses = [ReportSection(_name(use) if several else "", tuple(_use(use))) for use in page.uses]
        yield ReportChapter("What it moved, and what that cost", "part", uses)
    yield ReportChapter("What to change", "part", advice_sections(page.advice, page.is_judged, page.runs))
    if page.explanation is not None:
        parts = verdict_parts(page.explanation)
        yield ReportChapter("Was it me or the system?", "part", [ReportSection("", parts)])
    yield from missing_chapter(page.missing, page.notes)


def _name(use: JobUse) -> str:
    return use.filesystem or "A file system that the log does not name"


def _facts(page: JobPage) -> list[Part]:
    facts: list[Fact] = []
    for use in page.uses:
        if use.cost is not None:
            facts.append(Fact(f"{t.show_percent(use.cost.share_pct)} %", f"of the disk time of {_name(use)}", WHILE))
    layers = [layer for use in page.uses if (layer := best_layer(use)) is not None]
    for name, label in (("read_bytes", "read"), ("write_bytes", "written")):
        values = [value for layer in layers if (value := getattr(layer, name)) is not None]
        facts += [Fact(format_bytes_si(sum(values)), label)] if values else []
    opens = [layer.opens for layer in layers if layer.opens is not None]
    facts += [Fact(f"{sum(opens):,}", "files opened")] if opens else []
    if page.core_hours:
        spent = None if page.io_core_hours is None else t.show_percent(100 * page.io_core_hours / page.core_hours)
        facts.append(
            Fact(plain_hours(page.core_hours), "core-hours", f"{spent} % of them in I/O calls" if spent else "")
        )
    return [Facts(tuple(facts))] if facts else []


def _use(use: JobUse) -> Iterator[Part]:
    yield _moved_table(use)
    name = shown_name(_name(use))
    if use.cost is None:
        yield f"Its share of the disk time of {name} is not known."
        return
    if words := bytes_words(use.cost):
        yield words
    if use.cost.method in ASSOCIATED:
        yield ASSOCIATED[use.cost.method]
    if use.company is not None:
        yield _company_table(use, use.company)


def _moved_table(use: JobUse) -> TableView:
    columns = (
        t.text("layer", "Bytes as"), t.volume("read_bytes", "Read"), t.volume("write_bytes", "Written"),
        t.count("opens", "Files opened"), t.count("metadata_operations", "Metadata operations"),
        t.count("requests", "Requests for data"),
    )  # fmt: skip
    rows = [t.row_of(layer, columns, {"layer": LAYERS[layer.layer]}) for layer in use.layers]
    note = LAYERS_DIFFER if len(rows) > 1 else "" if rows else "Nothing counted what it moved there."
    return t.TableView(f"Moved on {_name(use)}", columns, rows, note)


def _company_table(use: JobUse, company: JobCompany) -> TableView:
    columns = (t.text("who", "Who"), t.percent("share_pct", "Share of the disk time"))
    rows: list[t.Row] = [("this job", company.own_pct)]
    rows += [(neighbour_name(neighbour), neighbour.share_pct) for neighbour in company.neighbours]
    rows += [(counted(company.more_jobs, "further job"), company.more_pct)] if company.more_jobs else []
    rows.append(("no job that is known", company.unattributed_pct))
    return t.TableView(f"Whose I/O the disks did {WHILE}", columns, rows, "\n".join(_company_notes(use, company)))


def _company_notes(use: JobUse, company: JobCompany) -> Sequence[str]:
    if not company.targets:
        where = (
            f"Of all {counted(company.targets_in_all, 'target')} of {_name(use)}: which of them it used is not known."
        )
    else:
        where = f"Of the targets that it used: {listed(list(company.targets), TARGETS_NAMED)}."
    return [where, DISK_TIME]
