"""The whole design on a few pages, each number with its origin."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.options import Selected, selection_options
from iolens.cli.output_options import output_option
from iolens.cli.question_commands import asking, question_command
from iolens.messages import say
from iolens.questions import get_question

PARTLY_DONE: Final = 3
QUESTION: Final = get_question("plan rationale")


@verb("plan rationale", "The whole design on a few pages, each number with its origin")
@question_command(QUESTION)
@output_option("Write here, by the suffix as .md, .html, .pdf or .json [Markdown to standard output]", metavar="FILE")
@selection_options
def plan_rationale(asked: Selected, output: Path | None, **options: Any) -> int:
    """The answer is a document, so it is written as one: neither `--format` nor `--figure` are for it."""
    from iolens.api.plans.rationale import check_suffix, rationale_markdown, write_rationale

    if output is not None:
        check_suffix(output)
    with asking(asked, QUESTION) as ask:
        result = QUESTION.answer(ask, **QUESTION.keywords(options))
    if output is None:
        click.echo(rationale_markdown(result).encode(), nl=False)  # UTF-8, whatever the terminal's locale
    else:
        for path in write_rationale(result, output):
            say(f"written: {path}")
    for missing in result.missing:
        click.echo(f"iolens: {missing.part} is not answered: {missing.reason}", err=True)
    return PARTLY_DONE if result.missing else 0
