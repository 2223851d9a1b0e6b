"""Names that a reader meets mean one thing."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

from plain_words import refused

PACKAGE = Path(__file__).parent.parent / "src" / "iolens"


def test_no_two_classes_share_a_name() -> None:
    homes: dict[str, list[str]] = defaultdict(list)
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(str(path.relative_to(PACKAGE)))
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}


def test_words_that_only_this_project_understands_are_gone() -> None:
    assert refused() == []
