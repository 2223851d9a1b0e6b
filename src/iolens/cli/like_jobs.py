"""Options that say which jobs are alike."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

import click

from iolens.cli.options import WORDS, QuantityType

if TYPE_CHECKING:
    from iolens.store.jobs import JobFilter


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split(",") if word.strip())


NUMBERS: Final = QuantityType("list of numbers", _numbers)
OPTIONS: Final = (
    ("names", "--name", WORDS, "Only jobs of these names; * and ? stand for anything"),
    ("users", "--user", WORDS, "Only jobs of these users"),
    ("projects", "--project", WORDS, "Only jobs of these accounts or projects"),
    ("clusters", "--cluster", WORDS, "Only jobs of these clusters"),
    ("states", "--state", WORDS, "Only jobs with this final state, such as COMPLETED"),
    ("cores", "--cores", NUMBERS, "Only jobs with these numbers of cores"),
)


def like_jobs_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--name`, `--user` and others; the function takes them as `like`, a `JobFilter`."""

    @wraps(function)
    def ask(*args: Any, **values: Any) -> Any:
        like = _like(**{name: values.pop(name) for name, *_ in OPTIONS})
        return function(*args, like=like, **values)

    command = ask
    for name, option, kind, words in reversed(OPTIONS):
        command = click.option(option, name, type=kind, default="", metavar="LIST", help=words)(command)
    return command


def _like(**parts: Any) -> JobFilter:
    from iolens.store.jobs import JobFilter

    return JobFilter(**parts)
