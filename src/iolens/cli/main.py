"""The `iolens` command: finds its verbs by the modules beside this one and loads only the one that is called."""

from __future__ import annotations

import os
import sys
from typing import Any, Final, NoReturn

import click

from iolens import __version__
from iolens.cli.lazy_verbs import LazyVerbs
from iolens.cli.visible_streams import guard_streams
from iolens.errors import IolensError

ALIASES: Final = {"fsu": "utilization"}


@click.group(
    cls=LazyVerbs,
    aliases=ALIASES,
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
    guard_streams()
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
    """One message; further lines of it are set in, so that none looks like a message of its own."""
    click.echo("iolens: " + message.replace("\n", "\n        "), err=True)
    return code


if __name__ == "__main__":
    main()
