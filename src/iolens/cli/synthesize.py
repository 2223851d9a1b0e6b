"""`iolens synthesize model` and `telemetry`: a workload as a model, and as telemetry."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from iolens.cli.lazy_verbs import LazyVerbs, verb, verb_group
from iolens.cli.options import Selected, selection_options
from iolens.cli.output_options import format_option, output_option, present, progress, table_options
from iolens.cli.shared_store_options import PATH
from iolens.cli.value_types import BYTES, DURATION, TIME
from iolens.messages import say
from iolens.units import from_epoch_us, iso, parse_time

if TYPE_CHECKING:
    from iolens.api.synthesis import Origin
    from iolens.benchmarks.synthetic_fio import TrafficBounds
    from iolens.simulator.synthetic_telemetry import SyntheticOrder


# A workload model, and telemetry, load or a suite made of it ----------------------------------------------------------

EARLIER: Final = {  # options of the command before it had sub-commands, and what does the same now
    "--emit-fio": "synthesize fio -o DIR",
    "--emit-ior": "synthesize ior -o DIR",
    "--acceptance": "synthesize acceptance -o DIR",
    "--verify": "synthesize telemetry --verify",
    "--days": "synthesize telemetry --into STORE",
    "--store": "synthesize telemetry --into STORE",
    "--from": "synthesize model --store STORE",
    "--model": "synthesize model --model FILE",
}


class Synthesize(LazyVerbs):
    """The group; a command as it was written before is answered with how it is written now."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As always, but for options that only sub-commands have."""
        options = {word.partition("=")[0] for word in args}
        if args[:1] and args[0].partition("=")[0] in EARLIER:
            meant = next(now for option, now in EARLIER.items() if option in options)
            ctx.fail(f"say what to make: `iolens {meant}`; the store to fit is --store, its window --from and --to")
        return super().parse_args(ctx, args)


@verb_group(
    "synthesize",
    "A workload model, and telemetry, load or a suite made of it",
    cls=Synthesize,
    under="synthesize",
    epilog="""\b
Examples:
  iolens synthesize model --store centre -f scratch -o scratch-model.toml
  iolens synthesize telemetry --model scratch-model.toml --targets 96 --days 30 --into larger
  iolens synthesize telemetry --store centre -f scratch --verify
  iolens synthesize fio --model spider -o jobs
  iolens synthesize acceptance --model spider -o suite
""",
)
def synthesize() -> None:
    """Make a workload again, of any size: as a model, as telemetry, as load for a new system.

    The model is fitted to a store's telemetry (--store, --filesystem, --from, --to, as everywhere) or read from a file
    (--model): bandwidth, arrivals and idle times of reads and writes, request sizes, mix, rhythm, and how far targets
    go together.
    """


# Options of `synthesize` ----------------------------------------------------------------------------------------------
# Where the model comes from, and how large a load is made of it.

Function = Callable[..., Any]
OF_A_STORE = ("store", "filesystem", "target", "source", "since", "until", "timezone", "without_maintenance")


@dataclass(frozen=True, slots=True)
class AskedModel:
    """Which model, as `model_options` say."""

    selected: Selected
    model: str | None
    without_maintenance: bool
    targets: int | None
    name: str | None

    def origin(self) -> Origin:
        """The model, of a file or fitted now."""
        origin = self._of_file(self.model) if self.model is not None else self._fitted()
        shape = origin.model
        shape = replace(shape, filesystem=self.name or shape.filesystem, targets=self.targets or shape.targets)
        return origin._replace(model=shape)

    def _of_file(self, name: str) -> Origin:
        from iolens.api.synthesis import model_of_file

        source, default = click.get_current_context().get_parameter_source, click.core.ParameterSource.DEFAULT
        given = [option for option in OF_A_STORE if source(option) is not default]
        if given:
            option = {"since": "from", "until": "to"}.get(given[0], given[0].replace("_", "-"))
            raise click.UsageError(f"--{option} chooses telemetry of a store to fit; --model takes a model as it is")
        return model_of_file(name)

    def _fitted(self) -> Origin:
        from iolens.api.synthesis import fitted_model

        if self.selected.resolution not in (None, "raw"):
            raise click.UsageError("a model is fitted to raw rows; --resolution has no other choice here")
        with self.selected.opened() as opened, progress(None, "reading") as step:
            return fitted_model(
                opened,
                self.selected.store or opened.store.url,
                self.selected.scope,
                timezone=self.selected.timezone,
                without_maintenance=self.without_maintenance,
                step=step,
            )


def model_options(function: Function) -> Function:
    """`--model`, or the part of a store to fit it to; the function takes it as its first argument, `AskedModel`."""

    @wraps(function)
    def ask(
        selected: Selected,
        model_name: str | None,
        without_maintenance: bool,
        targets: int | None,
        name: str | None,
        **others: Any,
    ) -> Any:
        return function(AskedModel(selected, model_name, without_maintenance, targets, name), **others)

    options = [
        click.option("--model", "model_name", metavar="FILE", help="A file, or a shipped model: spider  [fit one]"),
        click.option("--without-maintenance", is_flag=True, help="Fit without maintenance windows"),
        click.option("--targets", type=click.IntRange(1, 65535), help="Number of targets  [the model's]"),
        click.option("--as", "name", metavar="NAME", help="Name of the synthetic file system  [the model's]"),
    ]  # fmt: skip
    return _decorated(selection_options(ask), options)


def load_options(function: Function) -> Function:
    """How large the load may be, and where it is written: `bounds` and `output`; the files are named when it is."""

    @wraps(function)
    def ask(
        asked: AskedModel,
        scale: float | None,
        max_bytes: int,
        max_s: float,
        jobs: int,
        ssi: float,
        queue_depth: int = 16,
        log_requests: bool = False,
        **others: Any,
    ) -> None:
        from iolens.benchmarks.synthetic_fio import TrafficBounds

        bounds: TrafficBounds = TrafficBounds(
            share=scale, ssi=ssi, max_bytes=max_bytes, max_s=max_s, jobs=jobs, queue_depth=queue_depth, log=log_requests
        )
        for path in function(asked, bounds=bounds, **others):
            say(f"written: {path}")

    folder = click.Path(path_type=Path, file_okay=False)
    options = [
        click.option("--output", "-o", type=folder, required=True, metavar="DIR", help="Write the files here"),
        click.option("--scale", type=float, metavar="SHARE", help="Share of the traffic, 1: all [that of one target]"),
        click.option("--max-size", "max_bytes", type=BYTES, default="1GiB", show_default=True, help="Space it takes"),
        click.option("--max-time", "max_s", type=DURATION, default="60s", show_default=True, help="Time of the load"),
        click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Processes, or MPI tasks"),
        click.option("--ssi", type=float, default=1.0, show_default=True, help="How many times the work to make"),
    ]  # fmt: skip
    return _decorated(ask, options)


def fio_options(function: Function) -> Function:
    """What only fio takes."""
    options = [
        click.option(
            "--queue-depth", type=click.IntRange(1), default=16, show_default=True, help="Requests in flight of each"
        ),
        click.option("--log-requests", is_flag=True, help="Have fio log every request"),
    ]  # fmt: skip
    return _decorated(function, options)


def _decorated(function: Function, options: Sequence[Callable[[Function], Function]]) -> Function:
    for option in reversed(options):
        function = option(function)
    return function


# Fit a workload model to a store and write it as a file ---------------------------------------------------------------


@verb(
    "synthesize model",
    "Fit a workload model to a store and write it as a file",
    epilog="""\b
Examples:
  iolens synthesize model --store centre -f scratch --from 2026-10-01 --to 2026-11-01 -o scratch-model.toml
  iolens synthesize model --model spider --targets 96
""",
)
@output_option()
@model_options
def synthesize_model(asked: AskedModel, output: Path | None) -> None:
    """Fit a model to a store's telemetry, or take one of a file and change it; write it as TOML."""
    from iolens.views.render import atomic

    text = asked.origin().text()
    if output is None:
        click.echo(text, nl=False)
    else:
        atomic.write(output, text)
        say(f"written: {output}")


# Write telemetry of a model into a store, and check it ----------------------------------------------------------------

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
