"""Figures of the house: modules, lines, the share of imports, and how often an option is declared.

    python scripts/house_figures.py               the working tree
    python scripts/house_figures.py 2174c5c HEAD  revisions, side by side

Code is every line that is not blank, a comment or a docstring; imports are its lines that belong to import statements.
"""

from __future__ import annotations

import ast
import io
import re
import statistics
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent
FORMAT = re.compile(r'"--format"')


@dataclass(frozen=True)
class House:
    """What is counted of one revision."""

    modules: int
    median_lines: float
    lines: int
    code: int
    imports: int
    words: int
    functions: int
    formats: int

    @property
    def rows(self) -> list[tuple[str, str]]:
        """Each figure with its name."""
        return [
            ("modules", f"{self.modules:,}"),
            ("median lines of a module", f"{self.median_lines:.0f}"),
            ("lines of src", f"{self.lines:,}"),
            ("imports / code", f"{self.imports / self.code:.1%}"),
            ("docstrings and comments / code", f"{self.words / self.code:.2f}"),
            ("functions", f"{self.functions:,}"),
            ("declarations of --format", f"{self.formats}"),
        ]


def texts_of(revision: str) -> Iterator[tuple[str, str]]:
    """Names and texts of the modules of a revision; "": of the working tree."""
    if not revision:
        for path in sorted((REPOSITORY / "src").rglob("*.py")):
            yield str(path.relative_to(REPOSITORY)), path.read_text("utf-8")
        return
    packed = subprocess.run(["git", "archive", revision, "src"], cwd=REPOSITORY, stdout=-1, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for member in archive:
            if member.name.endswith(".py") and (file := archive.extractfile(member)) is not None:
                yield member.name, file.read().decode()


def counted(revision: str) -> House:
    """The figures of a revision."""
    sizes, code, imports, words, functions, formats = [], 0, 0, 0, 0, 0
    for name, text in texts_of(revision):
        lines = text.splitlines()
        nodes = [*ast.walk(ast.parse(text))]
        docstrings = _docstring_lines(nodes)
        remarks = {number for number, line in enumerate(lines, 1) if line.strip().startswith("#")} - docstrings
        blank = {number for number, line in enumerate(lines, 1) if not line.strip()} - docstrings
        sizes.append(len(lines))
        code += len(lines) - len(docstrings) - len(remarks) - len(blank)
        words += len(docstrings) + len(remarks)
        imports += len(_lines(nodes, ast.Import, ast.ImportFrom))
        functions += sum(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in nodes)
        formats += len(FORMAT.findall(text)) if "/cli/" in name else 0
    return House(len(sizes), statistics.median(sizes), sum(sizes), code, imports, words, functions, formats)


def _docstring_lines(nodes: list[ast.AST]) -> set[int]:
    of = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = [
        node.body[0] for node in nodes if isinstance(node, of) and ast.get_docstring(node, clean=False) is not None
    ]
    return {number for node in docstrings for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)}


def _lines(nodes: list[ast.AST], *kinds: type[ast.stmt]) -> set[int]:
    chosen = [node for node in nodes if isinstance(node, kinds)]
    return {number for node in chosen for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)}


def main() -> None:
    """Print a column for each revision."""
    revisions = sys.argv[1:] or [""]
    houses = [counted(revision) for revision in revisions]
    print(" " * 32, *(f"{revision or 'working tree':>14}" for revision in revisions))
    for place, (name, _) in enumerate(houses[0].rows):
        print(f"{name:32}", *(f"{house.rows[place][1]:>14}" for house in houses))


if __name__ == "__main__":
    main()
