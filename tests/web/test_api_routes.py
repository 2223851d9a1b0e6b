"""The API of a running server against the command line: the same JSON, the same CSV, and what OpenAPI says of it."""

from __future__ import annotations

import html
import re
import shlex
from typing import Any

import pytest

from iolens.web.questions import QUESTIONS
from tests.cli.command import Finished, iolens
from tests.web.inquiries import INQUIRIES, NO_JSON, Values
from tests.web.served_centre import ServedCentre

ASKED = [(name, values) for name, every in INQUIRIES.items() for values in every]
WITH_JSON = [(name, values) for name, values in ASKED if name not in NO_JSON]


def named(value: Any) -> str | None:
    return value if isinstance(value, str) else " ".join(f"{key}={text}" for key, text in value.items())


def shown_command(centre: ServedCentre, name: str, values: Values) -> list[str]:
    """Its words without `iolens`, as a block shows it."""
    block = centre.get(f"/blocks/{name}", params=values)
    command = re.search(r"<code>(iolens .*?)</code>", block.text)
    assert command is not None, block.text
    return shlex.split(html.unescape(command[1]))[1:]


def printed(centre: ServedCentre, words: list[str], *more: str) -> Finished:
    """The server reads with one process for each answer: sums of several differ in the last digit."""
    workers = () if words[0] in ("store", "alerts") else ("--workers", "1")
    return iolens(*words, *workers, *more, IOLENS_STORE=str(centre.store), IOLENS_STATE=str(centre.state))


def test_every_question_is_asked_with_every_parameter() -> None:
    assert set(INQUIRIES) == set(QUESTIONS)
    given = {name: {key for values in every for key in values} for name, every in INQUIRIES.items()}
    windows = {"from", "to", "during", "last", "timezone", "target", "source", "resolution"}
    missing = {name: set(QUESTIONS[name].known) - windows - keys for name, keys in given.items()}
    assert {name: keys for name, keys in missing.items() if keys} == {}
    assert windows <= set().union(*given.values())


@pytest.mark.parametrize(("name", "values"), WITH_JSON, ids=named)
def test_json_is_that_of_the_command_shown(centre: ServedCentre, name: str, values: Values) -> None:
    answer = centre.get(f"/api/v1/{name}", params=values)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    done = printed(centre, shown_command(centre, name, values), "--format", "json")
    assert done.code == 0, done.err
    assert answer.text == done.out
