"""Every question, declared once: options, rights, answer. A package per noun; `question.py` in it declares.

Declarations are found by their text: `@question("runs interfaces", "summary"` at the beginning of a line. Nothing is
imported before it is asked for.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Final, NamedTuple

from iolens.question import Question, declared

FOLDER: Final = Path(__file__).parent
_DECLARATION: Final = re.compile(r'^@question\(\s*"([a-z -]+)",\s*"([^"]+)"', re.MULTILINE)


class Declaration(NamedTuple):
    """Where a question is declared, and its summary."""

    words: str
    summary: str
    module: str


@cache
def declarations() -> dict[str, Declaration]:
    """Every declaration by its words, found without an import."""
    by_words = {}
    for path in sorted(FOLDER.glob("*/question.py")):
        module = f"{__name__}.{path.parent.name}.question"
        for words, summary in _DECLARATION.findall(path.read_text("utf-8")):
            by_words[words] = Declaration(words, summary, module)
    return by_words


def get_question(words: str) -> Question:
    """The question of these words, imported now."""
    import_module(declarations()[words].module)
    return declared(words)


def all_questions() -> list[Question]:
    """Every question, in the order of their words."""
    return [get_question(words) for words in sorted(declarations())]
