"""Every regular expression of the sources, how it is used, and texts that make one that backtracks take long."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from re import _constants as sre  # type: ignore[attr-defined] # the only way to see the parts of an expression
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, Final, NamedTuple

import iolens.sources
from iolens import units

PIECES: Final = (
    " ", "\n", "\t", "0", "a", "A", ".", ",", ":", ";", "-", "_", "[", "{", '"', "'", "/", "=", "%", "|", "*", "\\",
    "a ", " a", "0 ", "0.", "a\n", "\n ", " \n", ", ", '":', "a-", "a:", "0:", "a.", ";0", "A a", "{\n", "~a",
)  # fmt: skip
TAILS: Final = ("\x01", "\n\x01")
_SEARCHING: Final = frozenset({"search", "finditer", "findall", "sub", "split"})
_UNBOUNDED: Final = 64
_WORD: Final = re.compile(r'[\w,:;=" -]{2,24}')


class Expression(NamedTuple):
    """One expression, and whether it is looked for anywhere in a text rather than at its beginning."""

    module: str
    name: str
    pattern: re.Pattern[Any]
    is_searched: bool

    def run(self, text: str) -> None:
        """Use it as the sources do."""
        subject = text.encode() if isinstance(self.pattern.pattern, bytes) else text
        self.pattern.match(subject)
        self.pattern.fullmatch(subject)
        if self.is_searched:
            for _ in self.pattern.finditer(subject):
                pass

    def attacks(self, length: int) -> Iterator[str]:
        """For each place at which it may repeat something: what leads there, and then one thing again and again."""
        pieces = (*PIECES, *_literals(self.pattern))
        for lead in sorted(_leads(self.pattern)):
            for piece in pieces:
                for tail in TAILS:
                    yield lead + piece * (length // len(piece)) + tail


def expressions() -> list[Expression]:
    """All of `sources/`, and those of `units` that sources use."""
    modules = [
        importlib.import_module(walk_package.name)
        for walk_package in pkgutil.walk_packages(iolens.sources.__path__, "iolens.sources.")
    ]
    searched = _searched_names()
    by_name: dict[int, Expression] = {}
    for module in [*modules, units]:
        for name, value in vars(module).items():
            for number, pattern in enumerate(_patterns(value)):
                label = name if number == 0 else f"{name}[{number}]"
                is_searched = (module.__name__, name) in searched
                known = by_name.get(id(pattern))
                if known is None or is_searched:
                    by_name[id(pattern)] = Expression(module.__name__, label, pattern, is_searched)
    return list(by_name.values())


def _patterns(value: object) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _patterns(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _patterns(item)


def _searched_names() -> set[tuple[str, str]]:
    """Module and name of expressions on which a searching method is called, in their own module or in another."""
    pairs: set[tuple[str, str]] = set()
    folder = Path(iolens.sources.__path__[0])
    for path in folder.rglob("*.py"):
        module = ".".join((iolens.sources.__name__, *path.relative_to(folder).with_suffix("").parts))
        nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
        home = {
            name.asname or name.name: (node.module or "", name.name)
            for node in nodes
            if isinstance(node, ast.ImportFrom)
            for name in node.names
        }
        for node in nodes:
            if isinstance(node, ast.Attribute) and node.attr in _SEARCHING and isinstance(node.value, ast.Name):
                own = (module, node.value.id)
                pairs.add(home.get(node.value.id, own))
    return pairs


def _leads(pattern: re.Pattern[Any]) -> set[str]:
    """Short texts that match what stands before each unbounded repetition; the empty text among them."""
    leads = {""}

    def walk(nodes: Any, before: str) -> str:
        for kind, value in nodes:
            before = step(kind, value, before)
        return before

    def step(kind: Any, value: Any, before: str) -> str:
        if kind in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            least, most, body = value
            if most >= _UNBOUNDED:
                leads.add(before)
            after = walk(body, before)
            return before + (after[len(before) :]) * max(least, 1 if most >= _UNBOUNDED else least)
        if kind is sre.SUBPATTERN:
            return walk(value[3], before)
        if kind is sre.ATOMIC_GROUP:
            return walk(value, before)
        if kind is sre.BRANCH:
            return next(iter([walk(branch, before) for branch in value[1]]))  # every branch is walked
        return before + _case(kind, value)

    walk(parser.parse(pattern.pattern, pattern.flags & ~re.LOCALE), "")
    return leads


def _literals(pattern: re.Pattern[Any]) -> set[str]:
    """Words that stand in it, of several letters: repeated, they let it begin again and again."""
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    return {word for word in _WORD.findall(text) if len(word) > 1}


def _case(kind: Any, value: Any) -> str:
    """A character that such a part matches."""
    if kind is sre.LITERAL:
        return chr(value)
    if kind is sre.NOT_LITERAL:
        return "b" if chr(value) == "a" else "a"
    if kind is sre.ANY:
        return "a"
    if kind is sre.IN:
        return _of_class(value)
    return ""  # an anchor or an assertion


def _of_class(value: Any) -> str:
    if value[0][0] is sre.NEGATE:
        forbidden = {chr(code) for kind, code in value[1:] if kind is sre.LITERAL}
        return next(item for item in "a0x,b" if item not in forbidden)
    kind, code = value[0]
    if kind is sre.LITERAL:
        return chr(code)
    if kind is sre.RANGE:
        return chr(code[0])
    return {sre.CATEGORY_DIGIT: "0", sre.CATEGORY_SPACE: " ", sre.CATEGORY_WORD: "a"}.get(code, "a")
