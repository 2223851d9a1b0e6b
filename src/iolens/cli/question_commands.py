"""Commands that are made of questions: their options, how they are asked, and how the answer is shown."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import click

from iolens.api.listener import Listener
from iolens.cli.options import Asked, Selected, question_options
from iolens.cli.output_options import present, progress
from iolens.cli.value_types import click_type
from iolens.messages import say
from iolens.question import Option, Question

if TYPE_CHECKING:
    from iolens.questions.asking import Ask

NOTHING: Final = (None, "", ())


def command_of(question: Question) -> click.Command:
    """The command of a question; its words end with the command's name."""

    def call(asked: Asked, **values: Any) -> None:
        with asking(asked, question) as ask:
            result = question.answer(ask, **question.keywords(values))
        present(result, asked.format_, asked.output, asked.figures)

    return question_command(question)(question_options(call, question))


def question_command(question: Question) -> Callable[[Callable[..., Any]], click.Command]:
    """`click.command` with the options, the help and the examples of a question."""

    def command(function: Callable[..., Any]) -> click.Command:
        for option in reversed(question.options):
            function = _decorator(option)(function)
        examples = "".join(f"\n  iolens {question.words} {example}".rstrip() for example in question.examples)
        name, epilog = question.words.rpartition(" ")[2], f"\b\nExamples:{examples}\n"
        return click.command(name, help=question.text, epilog=epilog)(function)

    return command


def _decorator(option: Option) -> Callable[..., Any]:
    kind = click_type(option.kind)
    # A default is a value that is there, even None: an option that is needed has none.
    usual: dict[str, Any] = {"required": True} if option.is_needed else {"required": False, "default": option.default}
    if option.is_argument:
        count = {"nargs": -1} if option.many else usual
        return click.argument(option.name, metavar=option.metavar or None, type=kind, **count)
    if option.is_switch:
        return click.option(option.option, option.name, is_flag=True, help=option.meaning)
    return click.option(
        option.option, option.name, type=kind, multiple=option.many, show_default=option.default not in NOTHING,
        metavar=option.metavar or None, help=option.meaning, **usual,
    )  # fmt: skip


@contextmanager
def asking(asked: Selected, question: Question) -> Iterator[Ask]:
    """What a command asks with: progress is shown, and the store is closed at the end."""
    from iolens.questions.asking import Ask

    source, default = click.get_current_context().get_parameter_source, click.core.ParameterSource.DEFAULT
    given = frozenset(option.name for option in question.options if source(option.name) is not default)
    draws = isinstance(asked, Asked) and bool(asked.figures)
    with progress(None, "reading") as step, Ask(
        asked.opened, asked.scope, asked.timezone, Listener(say, step, say), given, draws,
        must_have_data=True, is_named=asked.store is not None, is_lent=False,
        command=shlex.join(["iolens", *sys.argv[1:]]), load_config=asked.load_config,
    ) as ask:  # fmt: skip
        yield ask
