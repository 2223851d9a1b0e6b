"""A group of commands whose sub-commands are modules beside this one, imported only when called.

`cli/utilization.py` is `iolens utilization`; `cli/plan_capacity.py` is `iolens plan capacity`. A new module is all a
new command needs.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import wraps
from pathlib import Path
from typing import Any, Final

import click

from iolens.errors import OptionError

NOT_VERBS: Final = {"__init__", "main", "options", "lazy_verbs"}
FOLDER: Final = Path(__file__).parent


class LazyVerbs(click.Group):
    """A group whose sub-commands are modules; help shows the first line of each module's docstring.

    `under` is the group's own module name, "" for `iolens` itself; `aliases` are second names.
    """

    def __init__(self, *args: Any, under: str = "", aliases: Mapping[str, str] | None = None, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.prefix = f"{under}_" if under else ""
        self.aliases = dict(aliases or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Verbs in alphabetical order."""
        stems = (path.stem for path in FOLDER.glob(f"{self.prefix}*.py") if path.stem not in NOT_VERBS)
        names = (stem.removeprefix(self.prefix).rstrip("_") for stem in stems)
        return sorted(name for name in names if "_" not in name)  # an inner one is a sub-command's

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The verb's command, imported now."""
        verb = self.aliases.get(name, name)
        if verb not in self.list_commands(ctx):
            return None
        command: click.Command = importlib.import_module(f"iolens.cli.{self.prefix}{verb}").COMMAND
        return _showing_usage(command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of verbs without importing one."""
        names = {name: f"{name} (alias {alias})" for alias, name in self.aliases.items()}
        rows = [(names.get(verb, verb), self._first_line(verb)) for verb in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def _first_line(self, verb: str) -> str:
        with (FOLDER / f"{self.prefix}{verb}.py").open(encoding="utf-8") as stream:
            return stream.readline().strip().strip('"').rstrip(".")


def _showing_usage(command: click.Command) -> click.Command:
    """The command; an error of its options is shown with its usage, wherever it is noticed."""
    called = command.callback
    if called is None or hasattr(called, "__wrapped_once__"):
        return command

    @wraps(called)
    def call(*args: Any, **values: Any) -> Any:
        try:
            return called(*args, **values)
        except OptionError as error:
            raise click.UsageError(str(error)) from error

    call.__wrapped_once__ = True  # type: ignore[attr-defined]
    command.callback = call
    return command
