"""Verbs are thin: options, a call, what is shown; and nobody asks a verb, an analysis or a plan for its name."""

from __future__ import annotations

import ast
from pathlib import Path

import iolens
from iolens.analyses import analysis_names
from iolens.cli.lazy_verbs import FOLDER
from iolens.questions import declarations

LONGEST = 155
PACKAGE = Path(iolens.__file__).parent
VERBS = {path.stem.rpartition("_")[2] for path in FOLDER.glob("*.py") if "\ndef COMMAND(" in path.read_text("utf-8")}
VERBS |= {words.rpartition(" ")[2] for words in declarations()}
PLANS = {words.removeprefix("plan ") for words in declarations() if words.startswith("plan ")}
MODULES = [
    path for package in ("cli", "api", "plans", "questions") for path in sorted((PACKAGE / package).rglob("*.py"))
]


def test_a_verb_is_short() -> None:
    texts = {path.stem: path.read_text("utf-8") for path in sorted(FOLDER.glob("*.py"))}
    verbs = {name: len(text.splitlines()) for name, text in texts.items() if "\ndef COMMAND(" in text}
    assert {name: lines for name, lines in verbs.items() if lines > LONGEST} == {}


def compared_names(tree: ast.Module) -> list[str]:
    """Texts that something is compared with, as `name == "capacity"` and `name in ("capacity", …)`."""
    texts = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            for operator, right in zip(node.ops, node.comparators, strict=True):
                sides = [node.left, right] if isinstance(operator, ast.Eq | ast.NotEq) else [right]
                members = [part for side in sides for part in getattr(side, "elts", [side])]
                texts += [part.value for part in members if isinstance(part, ast.Constant)]
    return [text for text in texts if isinstance(text, str)]


def test_no_verb_analysis_or_plan_is_asked_for_its_name() -> None:
    names = {*analysis_names(), *PLANS, *VERBS, *(f"plan_{name}" for name in PLANS)}
    compared = {path: names.intersection(compared_names(ast.parse(path.read_text("utf-8")))) for path in MODULES}
    assert {str(path.relative_to(PACKAGE)): asked for path, asked in compared.items() if asked} == {}


def test_a_name_test_is_noticed() -> None:
    tree = ast.parse('if above == "plan" or name in ("capacity", "growth"): pass')
    assert compared_names(tree) == ["plan", "capacity", "growth"]
    assert {"plan", "scan", "utilization", "interfaces"} <= VERBS
