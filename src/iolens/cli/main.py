"""The `iolens` command: finds its verbs by the modules beside this one and loads only the one that is called."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any, Final, NoReturn

import click

from iolens import __version__
from iolens.errors import IolensError

ALIASES: Final = {"fsu": "utilization"}
NOT_VERBS: Final = {"__init__", "main", "options"}
FOLDER: Final = Path(__file__).parent


class LazyVerbs(click.Group):
    """A group whose sub-commands are modules; help shows the first line of each module's docstring."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Verbs in alphabetical order."""
        return sorted(path.stem.rstrip("_") for path in FOLDER.glob("*.py") if path.stem not in NOT_VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The verb's command, imported now."""
        verb = ALIASES.get(name, name)
        if verb not in self.list_commands(ctx):
            return None
        command: click.Command = importlib.import_module(f"iolens.cli.{verb}").COMMAND
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of verbs without importing one."""
        names = {alias: f"{name} (alias {alias})" for alias, name in ALIASES.items()}
        rows = [(verb, _first_line(FOLDER / f"{verb}.py")) for verb in self.list_commands(ctx)]
        shown = [
            (next((text for alias, text in names.items() if ALIASES[alias] == verb), verb), line) for verb, line in rows
        ]
        with formatter.section("Commands"):
            formatter.write_dl(shown)


def _first_line(path: Path) -> str:
    with path.open(encoding="utf-8") as stream:
        return stream.readline().strip().strip('"').rstrip(".")


@click.group(
    cls=LazyVerbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Example:
  iolens ingest lustre-lctl capture-*.txt --store centre
  iolens utilization --store centre --filesystem scratch
""",
)
@click.version_option(__version__, prog_name="iolens")
def iolens() -> None:
    """Measure, characterise, model and plan HPC storage."""


def main() -> NoReturn:
    """Run the command line; every error is one clear message on standard error."""
    code = _run()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            code = code or 141
    # The engines' C++ bindings report harmless leaks while the interpreter is torn down; leave before that.
    os._exit(code)


def _run() -> int:
    try:
        result: Any = iolens.main(standalone_mode=False)
    except click.exceptions.Abort:
        return _say("interrupted", 130)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except IolensError as error:
        return _say(str(error), error.exit_code)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        return _say(f"{place}{error.strerror or error}", 1)
    return result if isinstance(result, int) else 0


def _say(message: str, code: int) -> int:
    click.echo(f"iolens: {message}", err=True)
    return code


if __name__ == "__main__":
    main()
