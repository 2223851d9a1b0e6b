"""Views show results: of analyses, plans, models and checks they import types and constants, never functions."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import iolens

PACKAGE = Path(iolens.__file__).parent
COMPUTING = ("analyses", "plans", "models", "validation")


def test_views_import_types_and_constants_only() -> None:
    result = {
        str(path.relative_to(PACKAGE)): computing_imports(path.read_text("utf-8"))
        for path in (PACKAGE / "views").rglob("*.py")
    }
    assert {path: names for path, names in result.items() if names} == {}


@pytest.mark.parametrize(
    ("line", "allowed"),
    [
        ("from iolens.analyses.utilization.analysis import Utilization", True),
        ("from iolens.analyses.utilization.targets import FAR", True),
        ("from iolens.analyses.intervals.tick_matrix import Floats", True),
        ("from iolens.analyses.utilization.targets import target_outliers", False),
        ("def show() -> None:\n    from iolens.models.transaction_time import fsu_pct", False),
        ("from iolens.analyses.utilization import outliers", False),
        ("import iolens.models.heavy_tail", False),
        ("if TYPE_CHECKING:\n    from iolens.analyses.utilization.targets import target_outliers", True),
    ],
)
def test_the_test_tells_functions_from_types(line: str, allowed: bool) -> None:
    assert (computing_imports(line) == []) is allowed


def computing_imports(text: str) -> list[str]:
    """What a module imports that could compute: functions, and modules as a whole."""
    tree = ast.parse(text)
    for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    imports = [node for node in ast.walk(tree) if id(node) not in for_types]
    whole = [alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names]
    named = [
        (node.module, alias.name)
        for node in imports
        if isinstance(node, ast.ImportFrom) and node.module is not None
        for alias in node.names
    ]
    return [name for name in whole if _computes(name)] + [
        f"{module}.{name}" for module, name in named if _computes(module) and not _is_type_or_constant(module, name)
    ]


def _computes(module: str) -> bool:
    return module.split(".")[:2] in [["iolens", package] for package in COMPUTING]


def _is_type_or_constant(module: str, name: str) -> bool:
    path = PACKAGE.joinpath(*module.split(".")[1:])
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    for node in ast.parse(source.read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return True
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            assigned = [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]
            if name in assigned and not isinstance(node.value, ast.Lambda):
                return True
        if isinstance(node, ast.ImportFrom) and any(alias.name == name for alias in node.names):
            return _is_type_or_constant(node.module or "", name)
    return False
