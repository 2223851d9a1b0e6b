"""Options that many verbs share, and how they are read."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import click

from iolens.cli.output_options import figure_option, format_option, output_option, output_options, table_options
from iolens.cli.shared_store_options import store_options as store_options
from iolens.cli.value_types import TIME, WORDS, ZONE, KindType
from iolens.question import Kind
from iolens.store.scope import Scope
from iolens.times import FORMS, utc_period

if TYPE_CHECKING:
    from iolens.agent.sampling.hub_client import HubAddress
    from iolens.api import OpenStore
    from iolens.config import AgentConfig, Config
    from iolens.question import About, Question


# `--from`, `--to`, `--during` and `--timezone`, and how times are read on the command line ----------------------------

PERIOD = KindType(Kind("period", utc_period))

FROM_HELP = f"Start of the window: {FORMS}; of a period its start"
DURING_HELP = "A whole day, week or month as the window: yesterday, 2026-W03, last month"


def timezone_option(
    text: str = "Zone of days, of times shown and of those given without one, such as Europe/Berlin [UTC]",
) -> Callable[..., Any]:
    """`--timezone`, read before all times; until the verb ends, times are shown in that zone."""
    return click.option("--timezone", type=ZONE, is_eager=True, metavar="ZONE", callback=_show_in, help=text)


def _show_in(ctx: click.Context, _: click.Parameter, zone: str | None) -> str | None:
    if zone is not None:
        from iolens.views.render.shown_times import shown_in

        ctx.with_resource(shown_in(zone))
    return zone


def window_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """What the function takes as `since` and `until`, in UTC, and `--timezone`."""

    @wraps(function)
    def ask(*args: Any, during: tuple[datetime, datetime] | None, **values: Any) -> Any:
        if during is not None:
            if values["since"] is not None or values["until"] is not None:
                raise click.UsageError("--during is a whole window: leave out --from and --to")
            values["since"], values["until"] = during
        return function(*args, **values)

    since = click.option("--from", "since", type=TIME, metavar="TIME", help=FROM_HELP)
    until = click.option("--to", "until", type=TIME, metavar="TIME", help="End of the window, not included")
    during = click.option("--during", type=PERIOD, metavar="PERIOD", help=DURING_HELP)
    asked: Callable[..., Any] = since(until(during(timezone_option()(ask))))
    return asked


OF_NO_ROWS: Final[Mapping[About, tuple[Callable[..., Any], ...]]] = {"times": (window_options,), "store": ()}


@dataclass(frozen=True, slots=True)
class Selected:
    """Which part of which store is looked at, as `selection_options` say."""

    store: str | None = None
    config: str | None = None
    engine: str | None = None
    filesystem: str | None = None
    target: tuple[str, ...] = ()
    source: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    timezone: str | None = None
    resolution: str | None = None
    workers: int | None = None
    fresh: bool = False

    def opened(self) -> OpenStore:
        """The store, open."""
        from iolens.api import OpenStore

        return OpenStore(self.store, config=self.config, **self._how)

    def load_config(self) -> Config:
        """The configuration, without the store."""
        from iolens.config import load_config

        return load_config(self.config)

    @property
    def _how(self) -> dict[str, Any]:
        return {"engine": self.engine, "workers": self.workers, "fresh": self.fresh}

    @property
    def scope(self) -> Scope:
        """File system and window, in UTC, and what else narrows the rows."""
        return Scope(self.filesystem, self.since, self.until, self.target, self.source, self.resolution)


@dataclass(frozen=True, slots=True)
class Asked(Selected):
    """What every analysis verb is asked with, as `analysis_options` say."""

    format_: str = "table"
    output: Path | None = None
    figures: tuple[str, ...] = ()


def selection_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """What part of the store is looked at; the function takes it as its first argument, `Selected`."""
    return _with_selection(_gathered(Selected, function))


def _gathered(kind: type[Selected], function: Callable[..., Any], own: Container[str] = ()) -> Callable[..., Any]:
    """The function with one object in place of the options that are its fields, but for the function's `own`."""
    names = [field.name for field in fields(kind) if field.name not in own]

    @wraps(function)
    def ask(*args: Any, **values: Any) -> Any:
        taken = {name: values.pop(name) for name in names if name in values}
        return function(kind(**taken), *args, **values)

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


def analysis_options(function: Callable[..., Any], view: str, *, figures: bool = True) -> Callable[..., Any]:
    """What every analysis verb takes; the function takes it as its first argument, `Asked`.

    Figures are those of the `view`.
    """
    checked = _checked(function, view)
    return _with_selection(output_options(_gathered(Asked, checked), figures=figures))


def question_options(function: Callable[..., Any], question: Question) -> Callable[..., Any]:
    """What the command of a question takes, as its first argument `Asked`: all that analysis verbs take, or, where it
    is about no rows, only store, output and perhaps window.
    """
    view, narrowing = question.shown_by, OF_NO_ROWS.get(question.about)
    if narrowing is None:
        return analysis_options(function, view, figures=question.has_figures)
    figures = (figure_option(),) if question.has_figures else ()
    function = _gathered(Asked, _checked(function, view), {option.name for option in question.options})
    for option in (table_options, store_options, *narrowing, *figures, output_option(), format_option()):
        function = option(function)
    return function


def _checked(function: Callable[..., Any], view: str) -> Callable[..., Any]:
    """The verb, once its figures and its output are known to be possible: nothing is computed for a slip of the pen."""

    @wraps(function)
    def ask(asked: Asked, *args: Any, **values: Any) -> Any:
        from iolens.views.render.formats import check_figures, check_output

        check_output(cast("Any", asked.format_), asked.output)
        if asked.figures:
            check_figures(view, asked.figures)
        return function(asked, *args, **values)

    return ask


# Options of verbs that push to a hub ----------------------------------------------------------------------------------
# Its address, the file of the token, and the certificates to trust.


def hub_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --hub, --hub-token-file and --hub-ca."""
    options = (
        click.option(
            "--hub", metavar="URL", show_default="[agent] hub of the configuration",
            help="Push segments to this `iolens serve` instead of the store",
        ),
        click.option(
            "--hub-token-file", type=click.Path(path_type=Path), metavar="FILE", show_default="$IOLENS_HUB_TOKEN",
            help="Holds the token for the hub; readable by its owner only",
        ),
        click.option(
            "--hub-ca", type=click.Path(path_type=Path), metavar="FILE", show_default="the system's",
            help="Certificates (PEM) to trust for the hub",
        ),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def known_hub(config: AgentConfig, url: str | None, token_file: Path | None, ca_file: Path | None) -> HubAddress | None:
    """The hub as the options say, else the configuration; None where neither names one."""
    from iolens.agent.sampling.hub_client import HubAddress

    if (chosen := url or config.hub) is None:
        return None
    return HubAddress.of(chosen, token_file or config.hub_token_file, ca_file or config.hub_ca)
