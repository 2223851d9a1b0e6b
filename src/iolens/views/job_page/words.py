"""What is said of a job first: what it was, what it cost, whether it was slow, what to change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from iolens.views.brief_page.advice import first_advice
from iolens.views.brief_page.numbers import cost_words, hours, moved_words
from iolens.views.brief_page.verdict import SHORT, verdict_in_short
from iolens.views.render.tables import show_seconds
from iolens.visible_text import counted, listed, shown_name

if TYPE_CHECKING:
    from iolens.analyses.job_page import JobPage, JobUse, LayerTotals, PageNeighbour

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
