"""Every question, declared once: options, rights, answer. A package per noun; `question.py` in it declares.

Declarations are found by their text: `@question("runs interfaces", "summary"` at the beginning of a line. Nothing is
imported before it is asked for. Another package names its module in its `pyproject.toml`:

    [project.entry-points."iolens.questions"]
    quiet = "my_package.quiet"
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from iolens.errors import UsageError
from iolens.registry import registered

if TYPE_CHECKING:
    from iolens.question import Question

GROUP: Final = "iolens.questions"
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
    for module, path in (*_modules_of_others(), *_own_modules()):  # a package cannot replace one of ours
        for words, summary in _DECLARATION.findall(path.read_text("utf-8")):
            by_words[words] = Declaration(words, summary, module)
    return by_words


def _own_modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(FOLDER.glob("*/question.py")):
        yield f"{__name__}.{path.parent.name}.question", path


def _modules_of_others() -> Iterator[tuple[str, Path]]:
    for entry in registered(GROUP, "").values():
        module = entry.value.partition(":")[0]
        spec = find_spec(module)
        if spec is None or spec.origin is None:
            raise UsageError(f"{GROUP} {entry.name!r}: there is no module {module}")
        yield module, Path(spec.origin)


def get_question(words: str) -> Question:
    """The question of these words, imported now."""
    from iolens.question import declared

    import_module(declarations()[words].module)
    return declared(words)


def all_questions() -> list[Question]:
    """Every question, in the order of their words."""
    return [get_question(words) for words in sorted(declarations())]
