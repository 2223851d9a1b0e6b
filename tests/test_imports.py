"""One way through the house: every import, wherever it stands, points the way the design allows.

Also that `iolens --help` stays light.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "iolens"
ROOT = ("schema", "units", "errors", "config", "records", "target_names", "visible_text", "nearest_names", "registry")
HEAVY = (
    "numpy",
    "duckdb",
    "deltalake",
    "pyarrow",
    "narwhals",
    "matplotlib",
    "bokeh",
    "rich",
    "pandas",
    "pyspark",
    "textual",
    "h5py",
    "pymysql",
)

# Module or package → what it may import, besides itself. A module of a package is named in full.
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "units": (),
    "visible_text": (),
    "target_names": (),
    "nearest_names": (),
    "errors": ("visible_text",),
    "registry": ("errors",),
    "schema": ("units", "errors"),
    "records": ("units", "errors", "schema", "visible_text"),
    "config": ("units", "errors", "schema", "records"),
    "models": ROOT,
    "sources": ROOT,
    "store": ROOT,
    "scan": (*ROOT, "sources"),
    "agent": (*ROOT, "sources", "store", "models"),
    "analyses": (*ROOT, "models", "store.selection"),
    "plans": (*ROOT, "models", "analyses"),
    "benchmarks": (*ROOT, "sources", "models"),
    "simulator": (*ROOT, "models", "store"),
    "validation": (*ROOT, "models", "sources", "store", "analyses", "plans", "benchmarks", "simulator", "agent"),
    "views": (*ROOT, "analyses", "plans", "models", "validation"),
}
EVERYTHING = ("cli", "api")
DOOR = ("api", "analyses")  # what `import iolens` may reach, and only when asked


class Import(NamedTuple):
    """`importer` imports `imported` (names below iolens, "" for iolens itself) on this line."""

    path: Path
    line: int
    importer: str
    imported: str
    late: bool  # inside a function or under TYPE_CHECKING

    def __str__(self) -> str:
        return f"{self.path.relative_to(PACKAGE.parent)}:{self.line}: {self.importer} imports {self.imported}"


def modules() -> dict[str, Path]:
    """Every module by its name below iolens."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports() -> Iterator[Import]:
    """Every import of ours by ours."""
    known = modules()
    for name, path in known.items():
        tree = ast.parse(path.read_text("utf-8"), str(path))
        late = _late_lines(tree)
        for node in ast.walk(tree):
            for imported in _imported(node, name, path.name == "__init__.py", known):
                yield Import(path, node.lineno, name, imported, node.lineno in late)  # type: ignore[attr-defined]


def _late_lines(tree: ast.Module) -> set[int]:
    """Lines that do not run when the module is imported."""
    late: set[int] = set()
    for node in ast.walk(tree):
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        is_for_types = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if is_function or is_for_types:
            late.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return late


def _imported(node: ast.AST, importer: str, is_package: bool, known: dict[str, Path]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        base = _absolute(node, importer, is_package)
        # `from iolens.store import tables` imports iolens.store.tables; `from iolens import __version__` iolens.
        names = [full if _below(full := f"{base}.{alias.name}") in known else base for alias in node.names]
    elif isinstance(node, ast.Call) and _is_import_call(node):
        names = [_literal_start(node.args[0])]
    else:
        names = []
    yield from (_below(name) for name in names if name == "iolens" or name.startswith("iolens."))


def _absolute(node: ast.ImportFrom, importer: str, is_package: bool) -> str:
    if not node.level:
        return node.module or ""
    parts = ["iolens", *importer.split(".")] if importer else ["iolens"]
    above = parts[: len(parts) - node.level + is_package]
    return ".".join([*above, *([node.module] if node.module else [])])


def _is_import_call(node: ast.Call) -> bool:
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return called in ("import_module", "__import__") and bool(node.args)


def _literal_start(node: ast.expr) -> str:
    """What a dynamic import is sure to import: `iolens.views` of `f"iolens.views.{name}"`."""
    first = node.values[0] if isinstance(node, ast.JoinedStr) else node
    text = first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""
    return text.rstrip(".")


def _below(name: str) -> str:
    return name.removeprefix("iolens").removeprefix(".")


def allowed(one: Import) -> bool:
    """Whether the arrow points the right way."""
    home = one.importer.partition(".")[0]
    if not home:
        return one.imported.partition(".")[0] in DOOR and one.late
    if not one.imported:
        return home in EVERYTHING
    if home in EVERYTHING or one.imported.partition(".")[0] == home:
        return True
    return any(one.imported == name or one.imported.startswith(f"{name}.") for name in MAY_IMPORT[home])


def test_every_arrow_points_the_right_way() -> None:
    wrong = [str(one) for one in imports() if not allowed(one)]
    assert wrong == []


def test_every_package_has_a_place_in_the_design() -> None:
    assert {name.partition(".")[0] for name in modules()} - {""} <= {*MAY_IMPORT, *EVERYTHING}


def test_the_test_sees_imports_wherever_they_stand() -> None:
    seen = {(one.importer, one.imported): one.late for one in imports()}
    assert seen["config", "units"] is False
    assert seen["cli.demo", "api"] is True  # inside a function
    assert seen["views.utilization.tables", "analyses.utilization.analysis"] is True  # under TYPE_CHECKING
    assert seen["", "api"] is True
    assert seen["views.render.formats", "views"] is True  # import_module(f"iolens.views.…")


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("sources.lustre_lctl", "store.tables"),
        ("analyses.utilization", "store.store"),
        ("analyses.utilization", "views.tables"),
        ("models.transaction_time", "analyses"),
        ("store.ingest", "sources"),
        ("views.formats", "store.store"),
        ("units", "errors"),
        ("errors", "units"),
        ("schema", "config"),
        ("store.tables", ""),
    ],
)
def test_arrows_that_point_the_wrong_way_are_noticed(importer: str, imported: str) -> None:
    assert not allowed(Import(PACKAGE, 1, importer, imported, late=True))


def test_help_imports_nothing_heavy() -> None:
    program = (
        "import sys\n"
        "from iolens.cli.main import iolens\n"
        "iolens.main(['--help'], standalone_mode=False)\n"
        "print('HEAVY', *sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "Usage: " in done.stdout
    loaded = done.stderr.partition("HEAVY")[2].split()
    assert "click" in loaded
    assert sorted(set(HEAVY).intersection(loaded)) == []


def test_importing_iolens_imports_nothing_heavy() -> None:
    program = "import sys, iolens; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert sorted({*HEAVY, "click"}.intersection(done.stdout.split())) == []
