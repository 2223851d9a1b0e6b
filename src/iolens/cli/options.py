"""Options that many verbs share, and how they are read."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from iolens.api.access.listener import Listener
from iolens.cli.shared_store_options import store_options as store_options
from iolens.cli.shared_time_options import window_options
from iolens.cli.terminal_output import present, progress, table_options
from iolens.errors import NotKnownError
from iolens.messages import say
from iolens.store.scope import Scope
from iolens.units import parse_bytes, parse_capacity, parse_duration, parse_rate

if TYPE_CHECKING:
    from iolens.api import OpenStore


class QuantityType(click.ParamType[Any]):
    """A parameter written with its unit."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self.parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The plain number or time, or a usage error that shows how to write it."""
        if not isinstance(value, str):
            return value
        try:
            return self.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _sizes(text: str) -> tuple[int, ...]:
    """Sizes of transfers, each once, the smallest first."""
    sizes = tuple(sorted({parse_bytes(word) for word in text.split(",") if word.strip()}))
    if not sizes or any(size < 512 or size % 512 for size in sizes):
        raise ValueError(f"{text!r}: sizes are multiples of 512 bytes, such as 4KiB,64KiB,1MiB")
    return sizes


RATE = QuantityType("rate", parse_rate)
BYTES = QuantityType("bytes", parse_bytes)
CAPACITY = QuantityType("capacity", parse_capacity)
DURATION = QuantityType("duration", parse_duration)
WORDS = QuantityType("list", _words)
SIZES = QuantityType("sizes", _sizes)
FORMAT = click.Choice(["table", "json", "csv", "parquet", "markdown"])


@dataclass(frozen=True, slots=True)
class Selected:
    """Which part of which store is looked at, as `selection_options` say."""

    store: str | None
    config: str | None
    engine: str | None
    filesystem: str | None
    target: tuple[str, ...]
    source: str | None
    since: datetime | None
    until: datetime | None
    timezone: str | None
    resolution: str | None
    workers: int | None
    fresh: bool

    def opened(self) -> OpenStore:
        """The store, open."""
        from iolens.api import OpenStore

        return OpenStore(self.store, config=self.config, **self._how)

    @property
    def _how(self) -> dict[str, Any]:
        return {"engine": self.engine, "workers": self.workers, "fresh": self.fresh}

    @property
    def scope(self) -> Scope:
        """File system and window, in UTC, and what else narrows the rows."""
        return Scope(self.filesystem, self.since, self.until, self.target, self.source, self.resolution)

    def plan(self, name: str, options: Mapping[str, Any]) -> Any:
        """The plan of that name; options that nobody gave are left to its defaults."""
        from iolens.api.plans.making import make_plan
        from iolens.api.plans.reference_system import StoreAccess

        source, default = click.get_current_context().get_parameter_source, click.core.ParameterSource.DEFAULT
        given = {name: value for name, value in options.items() if source(name) is not default}
        command = shlex.join(["iolens", *sys.argv[1:]])
        access = StoreAccess.to(self.store, self.config, **self._how)
        with progress(None, "reading") as step:
            listener = Listener(say, step)
            return make_plan(
                name, access, self.scope, given, timezone=self.timezone, listener=listener, command=command
            )


@dataclass(frozen=True, slots=True)
class Asked(Selected):
    """What every analysis verb is asked with, as `analysis_options` say."""

    format_: str
    output: Path | None
    figures: tuple[str, ...]

    def analyse(self, name: str, *filesystems: str, **options: Any) -> Any:
        """The result of an analysis; with further file systems a list, that of the selected one first."""
        from inspect import signature

        from iolens.analyses import get_analysis
        from iolens.analyses.results import has_data
        from iolens.api.stored_extent import nothing_stored, stored_words
        from iolens.views.render.doubts import warnings

        known = signature(get_analysis(name).run).parameters
        with self.opened() as opened, progress(None, "reading") as step:
            usual: dict[str, Any] = {"progress": lambda day: step(str(day)), "timezone": self.timezone}
            more = {key: value for key, value in usual.items() if key in known and value is not None}
            scopes = [self.scope, *(replace(self.scope, filesystem=other) for other in filesystems)]
            try:
                results = [opened.analyse(name, scope, **{**more, **options}) for scope in scopes]
            except NotKnownError as error:
                stored = stored_words(opened, name, self.filesystem) if self.since or self.until else ""
                raise NotKnownError("; ".join(filter(None, [str(error), stored]))) from error
            if not any(map(has_data, results)):
                said = [nothing_stored(opened, name, results[0].filesystem), *warnings(results[0])]
                raise NotKnownError("; ".join(said))
        return results if filesystems else results[0]

    def show(self, result: object) -> None:
        """Print or write a result and draw the figures that were asked for."""
        present(result, self.format_, self.output, self.figures)


def selection_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """What part of the store is looked at; the function takes it as its first argument, `Selected`."""
    return _with_selection(_gathered(Selected, function))


def _gathered(kind: type[Selected], function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with one object in place of the options that are its fields."""
    names = [field.name for field in fields(kind)]

    @wraps(function)
    def ask(*args: Any, **values: Any) -> Any:
        return function(kind(**{name: values.pop(name) for name in names}), *args, **values)

    return ask


def _with_selection(function: Callable[..., Any]) -> Callable[..., Any]:
    resolutions = click.Choice(["raw", "60s", "1h"])
    options: list[Callable[..., Any]] = [
        click.option("--engine", metavar="NAME", help="duckdb, local-spark, spark://HOST:PORT or sc://HOST:PORT"),
        click.option("--filesystem", "-f", metavar="NAME", help="File system; not needed if the store has only one"),
        click.option("--target", type=WORDS, default="", metavar="NAMES", help="Only these targets, comma-separated"),
        click.option("--source", metavar="NAME", help="Only rows of this source"),
        window_options,
        click.option("--resolution", type=resolutions, help="Raw rows or a rollup [raw; a rollup if none are left]"),
    ]  # fmt: skip
    function = reading_options(function)
    for option in reversed(options):
        function = option(function)
    return store_options(function)


def reading_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--workers` and `--fresh`."""
    workers = click.option(
        "--workers", type=click.IntRange(1), metavar="N", help="Processes that read rows [one per core]"
    )
    fresh = click.option("--fresh", is_flag=True, help="Read all rows, even if parts of the result are remembered")
    return workers(fresh(function))


def analysis_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """What every analysis verb takes; the function takes it as its first argument, `Asked`."""
    function = table_options(_gathered(Asked, _checked(function)))
    file = click.Path(path_type=Path, dir_okay=False)
    options = [
        click.option("--format", "format_", type=FORMAT, default="table", show_default=True),
        click.option("--output", "-o", type=file, help="Write here instead of standard output"),
        click.option(
            "--figure", "figures", multiple=True, metavar="[NAME=]FILE",
            help="Draw a figure (.svg .png .pdf .html); repeatable; `--figure list` names them",
        ),
    ]  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return _with_selection(function)


def _checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """The verb, once its figures and its output are known to be possible: nothing is computed for a slip of the pen."""

    @wraps(function)
    def ask(asked: Asked, *args: Any, **values: Any) -> Any:
        from iolens.views.render.formats import check_figures, check_output

        check_output(cast("Any", asked.format_), asked.output)
        if asked.figures:
            check_figures(
                function.__module__.rpartition(".")[2], asked.figures
            )  # the view is called as the verb's module
        return function(asked, *args, **values)

    return ask
