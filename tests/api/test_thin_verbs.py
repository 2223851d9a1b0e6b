"""Verbs are thin: options, a call, what is shown; and nobody asks a verb, an analysis or a plan for its name."""

from __future__ import annotations

import ast
from pathlib import Path

import iolens
from iolens.analyses import analysis_names
from iolens.cli.lazy_verbs import FOLDER, verbs
from iolens.questions import declarations

LONGEST = 125  # lines with its options and its help
PACKAGE = Path(iolens.__file__).parent
VERBS = {words.rpartition(" ")[2] for words in verbs()}
PLANS = {words.removeprefix("plan ") for words in declarations() if words.startswith("plan ")}
MODULES = [
    path for package in ("cli", "api", "plans", "questions") for path in sorted((PACKAGE / package).rglob("*.py"))
]


def test_a_verb_is_short() -> None:
    lines = {}
    for path in sorted(FOLDER.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and any(
                ast.unparse(item).startswith("verb") for item in node.decorator_list
            ):
                first = min(item.lineno for item in node.decorator_list)
                lines[node.name] = (node.end_lineno or first) - first + 1
    assert len(lines) > 60
    assert {name: count for name, count in lines.items() if count > LONGEST} == {}


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
