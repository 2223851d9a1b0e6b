"""Options that say which application runs are looked at."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

import click

from iolens.cli.options import WORDS

if TYPE_CHECKING:
    from iolens.analyses.runs.run_conditions import RunConditions

OPTIONS: Final = (
    ("projects", "--project", "Only runs of these projects; * and ? stand for anything"),
    ("users", "--user", "Only runs of these users"),
    ("executables", "--executable", "Only runs of these programs, without their directory"),
)


def like_runs_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--project`, `--user` and `--executable`; the function takes them as `like`, a `RunConditions`."""

    @wraps(function)
    def ask(*args: Any, **values: Any) -> Any:
        like = _like(**{name: values.pop(name) for name, *_ in OPTIONS})
        return function(*args, like=like, **values)

    command = ask
    for name, option, words in reversed(OPTIONS):
        command = click.option(option, name, type=WORDS, default="", metavar="LIST", help=words)(command)
    return command


def rate_method_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--method`: what rates and I/O times are of; the function takes it as `method`."""
    return click.option(
        "--method", type=click.Choice(["layers", "paper"]), default="layers", show_default=True,
        help="Rates and times of each file at its highest layer, or of POSIX and STDIO alone, as in the study",
    )(function)  # fmt: skip


def _like(**parts: Any) -> RunConditions:
    from iolens.analyses.runs.run_conditions import RunConditions

    return RunConditions(**parts)
