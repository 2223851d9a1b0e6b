"""What a store holds: its file systems, what brought data, what was refused, and each batch that was ingested."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from iolens.question import EVERYBODY, TIME, TOP, Option, question

if TYPE_CHECKING:
    from datetime import datetime

    from iolens.analyses.centre_state import CentreState
    from iolens.analyses.ingest_log import IngestLog
    from iolens.analyses.source_list import SourceList
    from iolens.questions.asking import Ask


def _without_place(state: CentreState) -> CentreState:
    """Where the store is is nobody's business."""
    return replace(state, store="the store")


@question(
    "store filesystems", "File systems: targets, time of the data, fullness, and more",
    url="filesystems", about="store", rights=EVERYBODY, has_figures=False, published=_without_place,
    examples=("--store centre",),
)  # fmt: skip
def filesystems(ask: Ask) -> CentreState:
    """File systems of the store: targets, servers, time of the data, fullness, and what else is stored of each."""
    from iolens.api.store_state import centre_state

    return centre_state(ask.store)


@question(
    "store sources", "What brought data and when, what was refused, days to roll up",
    replace(TOP, meaning="How many origins, refused inputs", default=50),
    url="sources", about="times", has_figures=False,
    examples=("--store centre", "--from -7d --table refused_inputs"),
)  # fmt: skip
def sources(ask: Ask, top: int) -> SourceList:
    """What brought data into the store and when, what was refused and why, agents, and days to roll up.

    A batch is in the window if its data overlap it; if it has no time of data, if it was ingested then.
    """
    from iolens.api.store_state import source_list

    return source_list(ask.store, ask.scope.since, ask.scope.until, top)


@question(
    "store log", "What was ingested, batch by batch, and what was taken back",
    Option("source", "Only batches of this source", metavar="NAME"),
    Option("since", "Only batches that were ingested since then", TIME, metavar="TIME"),
    replace(TOP, meaning="How many, newest first", default=50),
    about="store", has_figures=False,
    examples=("--store centre", "--source slurm --since -2d"),
)  # fmt: skip
def log(ask: Ask, source: str | None, since: datetime | None, top: int) -> IngestLog:
    """List what was ingested, newest first: id, time, source, origin, rows by table, refused places, when taken back.

    The id of a batch is what `iolens store undo` takes.
    """
    from iolens.api.store_state import ingest_log

    return ingest_log(ask.store, source, since, top)
