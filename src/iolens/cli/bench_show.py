"""The result of a study in a folder or a store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.shared_bench_options import result_options
from iolens.cli.shared_store_options import store_options
from iolens.cli.terminal_output import present

if TYPE_CHECKING:
    from iolens.store.store import Store


@verb(
    "bench show",
    "The result of a study in a folder or a store",
    epilog="Example: iolens bench show sequential-20261118T093000-1a2b3c --figure blocks=blocks.png",
)
@click.argument("study", metavar="FOLDER|STUDY")
@store_options
@result_options
def bench_show(
    study: str, store: str | None, config: str | None, format_: str, output: Path | None, figures: tuple[str, ...]
) -> None:
    """The result of a study: a folder, or a name in the store (`bench list` names them)."""
    from iolens.api.studies import named_rows, study_result
    from iolens.cli.opened_store import opened_store

    def opened() -> Store:
        return opened_store(store, config)

    present(study_result(named_rows(study, opened)), format_, output, figures)
