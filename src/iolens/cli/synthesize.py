"""A workload model of a store or a file, made into telemetry, fio jobs, IOR scripts or a test suite."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from iolens.cli.options import WORDS
from iolens.cli.shared_time_options import TIME, timezone_option
from iolens.cli.synthesis_emission import emission_options, emit
from iolens.cli.terminal_output import present, progress, table_options
from iolens.store.scope import Scope
from iolens.units import from_epoch_us, iso, parse_time

if TYPE_CHECKING:
    from iolens.api.synthesis import Origin
    from iolens.simulator.synthetic_telemetry import SyntheticOrder

START: Final = "2012-10-22"


@click.command(
    "synthesize",
    epilog="""\b
Examples:
  iolens synthesize --from centre -f scratch -o scratch-model.toml
  iolens synthesize --model scratch-model.toml --targets 96 --days 30 --store larger
  iolens synthesize --model spider --targets 8 --days 2 --store spider --verify
  iolens synthesize --from centre -f scratch --verify --format json
  iolens synthesize --model spider --emit-fio jobs --acceptance suite
""",
)
@click.option("--from", "from_store", metavar="STORE", help="Fit the model to the telemetry of this store")
@click.option("--model", "model_name", metavar="FILE", help="Take the model of this file, or a shipped one: spider")
@click.option("--targets", type=click.IntRange(1, 65535), help="Number of targets  [the model's]")
@click.option("--days", type=click.FloatRange(0, 36525, min_open=True), help="Length  [the original's; 1 of a file]")
@click.option("--start", type=TIME, metavar="TIME", help=f"First time  [the original's; {START} of a file]")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Same seed, same numbers")
@click.option("--as", "name", metavar="NAME", help="Name of the synthetic file system  [the model's]")
@click.option("--output", "-o", type=click.Path(path_type=Path, dir_okay=False), help="Write the model here, as TOML")
@click.option("--store", metavar="URL", help="Write telemetry into this store")
@click.option("--verify", is_flag=True, help="Characterise the telemetry and set it beside the original")
@click.option(
    "--format", "format_", type=click.Choice(["table", "json", "csv", "markdown"]), default="table", show_default=True,
    help="Of --verify",
)  # fmt: skip
@click.option("--filesystem", "-f", metavar="NAME", help="With --from: file system, if the store holds several")
@click.option("--target", type=WORDS, default="", metavar="NAMES", help="With --from: only these targets")
@click.option("--source", metavar="NAME", help="With --from: only rows of this source")
@click.option("--since", type=TIME, metavar="TIME", help="With --from: start of the window")
@click.option("--until", type=TIME, metavar="TIME", help="With --from: end of the window, not included")
@timezone_option("With --from: zone of the rhythm, and of times without one")
@click.option("--without-maintenance", is_flag=True, help="With --from: leave out maintenance windows")
@click.option("--engine", metavar="NAME", help="duckdb, local-spark, spark://HOST:PORT or sc://HOST:PORT")
@click.option("--config", metavar="FILE", help="Configuration file [$IOLENS_CONFIG, ./iolens.toml, /etc/iolens.toml]")
@emission_options
@table_options
def COMMAND(
    from_store: str | None,
    model_name: str | None,
    targets: int | None,
    days: float | None,
    start: datetime | None,
    seed: int,
    name: str | None,
    output: Path | None,
    store: str | None,
    verify: bool,
    format_: str,
    **given: Any,
) -> None:
    """Make a workload again, of any size: as telemetry, as fio job files, as IOR scripts.

    The model is fitted to a store's telemetry (--from) or read from a file (--model): bandwidth, arrivals and idle
    times of reads and writes, request sizes, mix, rhythm, and how far targets go together. With nowhere to write it, it
    is printed. --verify puts what comes out beside what went in, and flags what is too far off.
    """
    from iolens.api import OpenStore
    from iolens.api.synthesis import model_of_file, synthetic_match, synthetic_order

    if (from_store is None) == (model_name is None):
        raise click.UsageError("a model comes from --from STORE or from --model FILE: give one of them")
    origin = _fitted(from_store, given) if from_store is not None else model_of_file(str(model_name))
    shape = replace(origin.model, filesystem=name or origin.model.filesystem, targets=targets or origin.model.targets)
    origin = origin._replace(model=shape)
    emitted = emit(shape, given)
    _write_model(origin, output, is_printed=store is None and not verify and not emitted)
    for path in emitted:
        click.echo(f"written: {path}", err=True)
    if store is None and not verify:
        return
    with _somewhere(store) as url:
        order = synthetic_order(origin, url, days=days, start=start, otherwise=parse_time(START), seed=seed)
        _make(order)
        if verify:
            with OpenStore(order.store, engine=given["engine"], config=given["config"]) as opened:
                match = synthetic_match(origin, order, opened)
            present(match, format_, None, ())


def _fitted(store: str, given: dict[str, Any]) -> Origin:
    from iolens.api import OpenStore
    from iolens.api.synthesis import fitted_model

    zone = given["timezone"]
    window = given["since"], given["until"]
    scope = Scope(given["filesystem"], *window, given["target"], given["source"])
    with OpenStore(store, engine=given["engine"], config=given["config"]) as opened, progress(None, "reading") as step:
        without = given["without_maintenance"]
        return fitted_model(opened, store, scope, timezone=zone, without_maintenance=without, step=step)


def _write_model(origin: Origin, output: Path | None, *, is_printed: bool) -> None:
    from iolens.views.render import atomic

    if output is not None:
        atomic.write(output, origin.text())
        click.echo(f"written: {output}", err=True)
    elif is_printed:
        click.echo(origin.text(), nl=False)


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
    with progress(order.blocks, "synthesising") as step:
        done = synthesize_telemetry(order, step)
    seconds, rows = time.monotonic() - began, sum(done.rows.values())
    start, end = (iso(from_epoch_us(time_us)) for time_us in order.window_us)
    click.echo(
        f"{order.model.filesystem}: {order.targets} targets, {start} to {end}, seed {order.seed}:"
        f" {rows} rows in {seconds:.1f} s, {rows / seconds:.0f} a second",
        err=True,
    )
