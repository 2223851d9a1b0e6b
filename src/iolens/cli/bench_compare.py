"""Two studies side by side."""

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
    "bench compare",
    "Two studies side by side",
    epilog="""\b
Examples:
  iolens bench compare before/ after/
  iolens bench compare sequential-20251118T093000-1a2b3c sequential-20261118T093000-4d5e6f --store centre
""",
)
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@store_options
@result_options
def bench_compare(
    before: str,
    after: str,
    store: str | None,
    config: str | None,
    format_: str,
    output: Path | None,
    figures: tuple[str, ...],
) -> None:
    """Two studies side by side, folders or names in the store: what changed from A to B, and whether beyond noise."""
    from iolens.analyses.bench_compare import study_comparison
    from iolens.api.studies import named_rows
    from iolens.cli.opened_store import opened_store

    def opened() -> Store:
        return opened_store(store, config)

    first, second = (named_rows(name, opened) for name in (before, after))
    present(study_comparison(before, first, after, second), format_, output, figures)
