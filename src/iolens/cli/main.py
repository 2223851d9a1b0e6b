"""The `iolens` command: finds its verbs by the modules beside this one and loads only the one that is called."""

from __future__ import annotations

import gc
import os
import signal
import sys
from typing import Any, Final, NoReturn

import click

from iolens import __version__, messages
from iolens.cli.lazy_verbs import HELP_OPTIONS, LazyVerbs, loudness_options
from iolens.cli.visible_streams import guard_streams
from iolens.errors import IolensError

ALIASES: Final = {"fsu": "utilization"}
TITLES: Final = {  # of `iolens --help`; a test asserts that each verb is under one of them
    "Collect": ("collect", "doctor", "export", "ingest", "scan"),
    "Look": (
        "alerts", "blame", "contents", "drives", "explain", "findings", "imbalance", "job", "latency", "lost",
        "metadata", "report", "runs", "serve", "top", "utilization", "workload",
    ),
    "Plan": ("capacity", "plan"),
    "Measure": ("bench", "calibrate"),
    "Simulate and test": ("acceptance", "demo", "simulate", "synthesize", "validate"),
    "Store and set-up": ("completion", "config", "man", "store"),
}  # fmt: skip
INTERRUPTED, CLOSED_PIPE = 130, 141  # as a shell reports SIGINT and SIGPIPE
OBJECTS_PER_COLLECTION: Final = 10_000  # modules are many objects that stay: looking through them takes 20 ms
_interrupts: list[int] = []


@click.group(
    cls=LazyVerbs,
    aliases=ALIASES,
    titles=TITLES,
    params=loudness_options(hidden=False),
    context_settings={"help_option_names": HELP_OPTIONS, "max_content_width": 100},
    epilog="""\b
Example:
  iolens ingest lustre-lctl capture-*.txt --store centre
  iolens utilization --store centre --filesystem scratch
""",
)
@click.version_option(__version__, prog_name="iolens")
def iolens() -> None:
    """Measure, characterise, model and plan HPC storage.

    --verbose, --quiet and --debug may also stand after the command.
    """


def main() -> NoReturn:
    """Run the command line; every error is one clear message on standard error."""
    _occupy_closed_descriptors()
    guard_streams()
    signal.signal(signal.SIGINT, _note_interrupt)
    gc.set_threshold(OBJECTS_PER_COLLECTION)
    code = _run()
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except BrokenPipeError:
            code = code or CLOSED_PIPE
    # The engines' C++ bindings report harmless leaks while the interpreter is torn down; leave before that.
    os._exit(code)


def _occupy_closed_descriptors() -> None:
    """A data file that got the number of a closed standard output would be printed into."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number


def _note_interrupt(*_: object) -> NoReturn:
    """Engines make errors of their own of an interrupt that reaches them."""
    _interrupts.append(1)
    raise KeyboardInterrupt


def _run() -> int:
    messages.set_level()
    messages.set_log(False)
    try:
        result: Any = iolens.main(prog_name="iolens", standalone_mode=False)
    except SystemExit as error:  # click's way to end after a closed pipe
        return CLOSED_PIPE if error.code == 1 else int(error.code or 0)
    except (Exception, KeyboardInterrupt) as error:
        if _interrupts or isinstance(error, KeyboardInterrupt | click.exceptions.Abort):
            return _say("interrupted", INTERRUPTED)
        return _explained(error)
    return result if isinstance(result, int) else 0


def _explained(error: BaseException) -> int:
    if isinstance(error, click.ClickException):
        error.show()
        return error.exit_code
    if messages.is_shown(messages.DEBUG):
        import traceback

        traceback.print_exception(error)
    if isinstance(error, IolensError):
        return _say(str(error), error.exit_code)
    if isinstance(error, BrokenPipeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        return _say(f"{place}{error.strerror or error}", 1)
    return _say(f"unexpected {type(error).__name__}: {error}; --debug shows where it arose", 1)


def _say(message: str, code: int) -> int:
    """One message; further lines of it are set in, so that none looks like a message of its own."""
    click.echo("iolens: " + message.replace("\n", "\n        "), err=True)
    return code


if __name__ == "__main__":
    main()
