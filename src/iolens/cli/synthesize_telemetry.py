"""Write telemetry of a model into a store, and check it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.output_options import format_option
from iolens.cli.shared_store_options import PATH
from iolens.cli.shared_synthesis_options import AskedModel, model_options
from iolens.cli.terminal_output import present, progress, table_options
from iolens.cli.value_types import TIME
from iolens.messages import say
from iolens.units import from_epoch_us, iso, parse_time

if TYPE_CHECKING:
    from iolens.simulator.synthetic_telemetry import SyntheticOrder

START: Final = "2012-10-22"


@verb(
    "synthesize telemetry",
    "Write telemetry of a model into a store, and check it",
    epilog="""\b
Examples:
  iolens synthesize telemetry --model scratch-model.toml --targets 96 --days 30 --into larger
  iolens synthesize telemetry --model spider --targets 8 --days 2 --into spider --verify
  iolens synthesize telemetry --store centre -f scratch --verify --format json
""",
)
@click.option("--into", metavar="URL", type=PATH, help="Write telemetry into this store")
@click.option("--verify", is_flag=True, help="Characterise the telemetry and set it beside the original")
@click.option("--days", type=click.FloatRange(0, 36525, min_open=True), help="Length  [the original's; 1 of a file]")
@click.option("--start", type=TIME, metavar="TIME", help=f"First time  [the original's; {START} of a file]")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Same seed, same numbers")
@format_option("table", "json", "csv", "markdown", words="Of --verify")
@model_options
@table_options
def synthesize_telemetry(
    asked: AskedModel,
    into: str | None,
    verify: bool,
    days: float | None,
    start: datetime | None,
    seed: int,
    format_: str,
) -> None:
    """Write telemetry of a model, of any length and number of targets, into the store --into.

    --verify puts what comes out beside what went in, and flags what is too far off; without --into the telemetry is
    made in a temporary store for that.
    """
    from iolens.api import OpenStore
    from iolens.api.synthesis import synthetic_match, synthetic_order

    if into is None and not verify:
        raise click.UsageError("nothing to do: name a store with --into, or --verify")
    origin = asked.origin()
    with _somewhere(into) as url:
        order = synthetic_order(origin, url, days=days, start=start, otherwise=parse_time(START), seed=seed)
        _make(order)
        if verify:
            with OpenStore(order.store, engine=asked.selected.engine, config=asked.selected.config) as opened:
                match = synthetic_match(origin, order, opened)
            present(match, format_, None, ())


@contextmanager
def _somewhere(store: str | None) -> Iterator[str]:
    """The store that was named, or one that is gone afterwards."""
    if store is not None:
        yield store
        return
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="iolens-synthesis-") as folder:
        yield str(Path(folder) / "store")


def _make(order: SyntheticOrder) -> None:
    from iolens.simulator.synthetic_telemetry import synthesize_telemetry

    began = time.monotonic()
    with progress(order.blocks, "synthesizing") as step:
        done = synthesize_telemetry(order, step)
    seconds, rows = time.monotonic() - began, sum(done.rows.values())
    start, end = (iso(from_epoch_us(time_us)) for time_us in order.window_us)
    say(
        f"{order.model.filesystem}: {order.targets} targets, {start} to {end}, seed {order.seed}:"
        f" {rows} rows in {seconds:.1f} s, {rows / seconds:.0f} a second"
    )
