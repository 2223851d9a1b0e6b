"""A group of commands that are questions, or verbs declared beside this module; they are imported only when called.

`@question("utilization", …)` is `iolens utilization`, `@verb("store verify", …)` is `iolens store verify`; where a
question is also declared as a verb, the verb is the command. Declarations are found by their text, and nothing else is
needed; `iolens --help` shows a command under the title that `main.py` names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache, wraps
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
from click.shell_completion import CompletionItem

from iolens import messages
from iolens.errors import OptionError
from iolens.nearest_names import not_among
from iolens.questions import declarations, get_question

FOLDER: Final = Path(__file__).parent
HELP_OPTIONS: Final = ["-h", "--help"]
OPTION_TITLES: Final = {  # by the names of parameters; all others are the verb's own
    "Which data": frozenset((
        "store", "config", "engine", "filesystem", "target", "source", "since", "until", "during", "timezone",
        "resolution", "workers", "fresh", "projects", "users", "executables", "names", "clusters", "states", "cores",
    )),
    "Output": frozenset(("format_", "output", "figures", "table", "wide")),
}  # fmt: skip


_DECLARATION: Final = re.compile(r'^@verb(?:_group)?\(\s*"([a-z -]+)",\s*"([^"]+)"', re.MULTILINE)
_COMMANDS: Final[dict[str, click.Command]] = {}

Declare = Callable[[Any], click.Command]


class Verb(NamedTuple):
    """A command by its words after `iolens`: its line in the help, and the module that declares it; "": a question."""

    words: str
    summary: str
    module: str = ""


def verb(words: str, summary: str, **settings: Any) -> Declare:
    """Declare the command of a function, or a command as it is; `settings` are those of `click.command`."""

    def declare(function: Any) -> click.Command:
        if isinstance(function, click.Command):
            return _declared(words, function)
        made: Declare = click.command(words.rpartition(" ")[2], **settings)
        return _declared(words, made(function))

    return declare


def verb_group(words: str, summary: str, **settings: Any) -> Declare:
    """Declare a group: its commands are those whose words begin with its own."""

    def declare(function: Any) -> click.Command:
        made: Declare = click.group(words.rpartition(" ")[2], **{"cls": LazyVerbs, "under": words, **settings})
        return _declared(words, made(function))

    return declare


def _declared(words: str, command: click.Command) -> click.Command:
    return _COMMANDS.setdefault(words, _with_short_help(command))


def _with_short_help(command: click.Command) -> click.Command:
    """The command; it takes `-h` also where it is not asked through the group above it."""
    command.context_settings.setdefault("help_option_names", HELP_OPTIONS)
    return command


@cache
def verbs() -> dict[str, Verb]:
    """Every command by its words, found without an import."""
    known = {words: Verb(words, declaration.summary) for words, declaration in declarations().items()}
    for path in sorted(FOLDER.glob("*.py")):
        for words, summary in _DECLARATION.findall(path.read_text("utf-8")):
            known[words] = Verb(words, summary, f"{__package__}.{path.stem}")
    return known


def _command(words: str) -> click.Command:
    """The command of these words, imported now."""
    known = verbs()[words]
    if known.module:
        import_module(known.module)
        return _COMMANDS[words]
    from iolens.cli.question_commands import command_of

    return _with_short_help(command_of(get_question(words)))


class LazyVerbs(click.Group):
    """A group whose commands are found by their declarations; help shows the summary of each.

    `under` are the group's own words, "" for `iolens` itself; `aliases` are second names; `titles` say which
    commands help shows together.
    """

    def __init__(
        self,
        *args: Any,
        under: str = "",
        aliases: Mapping[str, str] | None = None,
        titles: Mapping[str, tuple[str, ...]] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(*args, **settings)
        self.prefix = f"{under} " if under else ""
        self.aliases = dict(aliases or {})
        self.titles = dict(titles or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Verbs in alphabetical order."""
        names = (words.removeprefix(self.prefix) for words in verbs() if words.startswith(self.prefix))
        return sorted(name for name in names if " " not in name)  # an inner one is a sub-command's

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The verb's command, imported now."""
        verb = self.aliases.get(name, name)
        if verb not in self.list_commands(ctx):
            return None
        command = _command(f"{self.prefix}{verb}")
        return _with_option_titles(_with_loudness(_showing_usage(command)))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first word names, or an error with the nearest names."""
        known, name = self.list_commands(ctx), args[0]
        if name not in (*known, *self.aliases) and not name.startswith("-") and not ctx.resilient_parsing:
            groups = [group for group in known if f"{group} {name}" in verbs()]
            meant = "; did you mean " + " or ".join(f"`{ctx.command_path} {group} {name}`" for group in groups) + "?"
            ctx.fail(f"No such command {name!r}{meant if groups else not_among(name, [*known, *self.aliases])}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The lists of verbs without importing one."""
        verbs = self.list_commands(ctx)
        titled = {verb for members in self.titles.values() for verb in members}
        others = tuple(verb for verb in verbs if verb not in titled)
        width = max(map(len, verbs))
        for title, members in {**self.titles, "Commands": others}.items():
            if members:
                with formatter.section(title):
                    formatter.write_dl([(verb.ljust(width), self.summary(verb)) for verb in members])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Verbs and options that begin so, without importing a verb."""
        names = [name for name in (*self.list_commands(ctx), *self.aliases) if name.startswith(incomplete)]
        verbs = [CompletionItem(name, help=self.summary(self.aliases.get(name, name))) for name in names]
        return [*verbs, *click.Command.shell_complete(self, ctx, incomplete)]

    def summary(self, verb: str) -> str:
        """What the verb does, in a line, and its second names."""
        second_names = [alias for alias, name in self.aliases.items() if name == verb]
        return verbs()[f"{self.prefix}{verb}"].summary + (f" (alias {', '.join(second_names)})" if second_names else "")


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


def loudness_options(*, hidden: bool) -> list[click.Option]:
    """`--verbose`, `--quiet` and `--debug`; of several the last counts."""

    def choose(_: click.Context, parameter: click.Parameter, is_given: bool) -> None:
        if is_given:
            messages.set_level(messages.LOUDNESS[str(parameter.name)])

    settings: dict[str, Any] = {"is_flag": True, "expose_value": False, "callback": choose, "hidden": hidden}
    return [
        click.Option(["-v", "--verbose"], help="Say also what is read, and how long it takes", **settings),
        click.Option(["--quiet"], help="No progress and no notes, only what is wrong", **settings),
        click.Option(["--debug"], help="Say every file that is read, and where an error arose", **settings),
    ]


def _with_loudness(command: click.Command) -> click.Command:
    """The command; it takes these options too, so that they may stand at the end of a line."""
    if "quiet" not in {parameter.name for parameter in command.params}:
        command.params += loudness_options(hidden=True)
    return command


def _with_option_titles(command: click.Command) -> click.Command:
    """The command; where it answers of a window of a store its help shows the many options under a few titles."""
    if isinstance(command, click.Group):
        return command

    def format_options(ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, records in titled_options(command, ctx).items():
            with formatter.section(title):
                formatter.write_dl(records)

    command.format_options = format_options  # type: ignore[method-assign]
    return command


def titled_options(command: click.Command, ctx: click.Context) -> dict[str, list[tuple[str, str]]]:
    """What help shows of each option, by title: as it is written, and what it means."""
    names = {str(parameter.name) for parameter in command.params}
    has_titles = "since" in names and not names.isdisjoint(OPTION_TITLES["Output"])
    rows: dict[str, list[tuple[str, str]]] = {"Options": [], **{title: [] for title in OPTION_TITLES}}
    for parameter in command.get_params(ctx):
        if (row := parameter.get_help_record(ctx)) is not None:
            titles = (title for title, members in OPTION_TITLES.items() if has_titles and parameter.name in members)
            rows[next(titles, "Options")].append(row)
    return {title: records for title, records in rows.items() if records}
