"""Studies in the store."""

from __future__ import annotations

from pathlib import Path

from iolens.cli.lazy_verbs import verb
from iolens.cli.shared_bench_options import result_options
from iolens.cli.shared_store_options import store_options
from iolens.cli.terminal_output import present


@verb("bench list", "Studies in the store", epilog="Example: iolens bench list --store centre")
@store_options
@result_options
def bench_list(
    store: str | None, config: str | None, format_: str, output: Path | None, figures: tuple[str, ...]
) -> None:
    """Studies in the store, the newest first: kind, places, machines, runs."""
    from iolens.analyses.bench_list import StudyList
    from iolens.api.studies import stored_studies
    from iolens.cli.opened_store import opened_store

    present(StudyList(stored_studies(opened_store(store, config))), format_, output, figures)
