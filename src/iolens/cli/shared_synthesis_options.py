"""Options of `synthesize`: where the model comes from, and how large a load is made of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from iolens.cli.options import Selected, selection_options
from iolens.cli.terminal_output import progress
from iolens.cli.value_types import BYTES, DURATION
from iolens.messages import say

if TYPE_CHECKING:
    from iolens.api.synthesis import Origin
    from iolens.benchmarks.synthetic_fio import TrafficBounds

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
