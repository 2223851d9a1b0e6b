"""Studies of a store for people."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from iolens.views.render import tables as t

if TYPE_CHECKING:
    from iolens.analyses.bench_list import StudyList
    from iolens.views.render.figures import Figure
    from iolens.views.render.tables import TableView


def figures(result: StudyList) -> dict[str, Callable[[], Figure]]:
    """None: a list is a table."""
    return {}


def tables(result: StudyList) -> list[TableView]:
    """A line each."""
    columns = (
        t.text("name", "Study"), t.text("kind", "Kind"), t.text("places", "Places"), t.text("hosts", "Machines"),
        t.count("runs", "Runs"), t.time("began", "Began"), t.time("ended", "Ended"),
    )  # fmt: skip
    rows = [
        (study.name, study.kind, ", ".join(study.places), ", ".join(study.hosts), study.runs, study.began, study.ended)
        for study in result.studies
    ]
    note = "" if rows else "There is none; `iolens bench sequential DIR --store …` makes one."
    return [t.TableView("Studies", columns, rows, note, name="studies")]
