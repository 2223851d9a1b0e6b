"""The pages that say what each role may do, held against the table that decides."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from iolens.web.access.permissions import may
from iolens.web.access.principal import ROLES, Principal, Role
from iolens.web.questions import QUESTIONS

DOCS = Path(__file__).parent.parent.parent.parent / "docs"


def rows(page: str, head: str) -> list[list[str]]:
    """The cells of the table that begins with this line."""
    text = (DOCS / page).read_text("utf-8")
    table = text[text.index(head) :].partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def permitted(method: str, path: str) -> set[Role]:
    return {role for role in ROLES if may(Principal("ada", role, "ada"), method, path)}


def asked(words: str) -> list[tuple[str, str]]:
    """Methods and paths of the names in backticks: `GET` of a question or a page unless it says otherwise."""
    named = [name.rpartition(" ") for name in re.findall(r"`([^`]+)`", words)]
    return [(method or "GET", path if path[0] == "/" else f"/api/v1/{path}") for method, _, path in named]


ROLE_ROWS = rows("serve-access.md", "| | viewer | user | operator | agent |")


@pytest.mark.parametrize("row", ROLE_ROWS, ids=lambda row: row[0].partition(":")[0])
def test_a_role_may_do_what_the_page_says(row: list[str]) -> None:
    what, *cells = row
    roles = {role for role, cell in zip(("viewer", "user", "operator", "agent"), cells, strict=True) if cell != "no"}
    assert asked(what)
    assert {words: permitted(*words) for words in asked(what)} == dict.fromkeys(asked(what), roles)


def test_every_question_is_in_the_table_of_roles() -> None:
    named = {path.removeprefix("/api/v1/") for row in ROLE_ROWS for _, path in asked(row[0])}
    assert set(QUESTIONS) - named == set()


def test_the_addresses_of_the_hub_are_open_to_the_roles_of_its_page() -> None:
    table = rows("hub.md", "| request | role | answer |")
    assert len(table) == 3
    for request, roles, _ in table:
        methods, _, path = request.strip("`").replace("` or `", " or ").rpartition(" ")
        for method in methods.split(" or "):
            assert permitted(method, path) == set(roles.split(", ")), request
