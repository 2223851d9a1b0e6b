"""Build `iolens-agent.pyz`: `iolens.light` and the modules it needs, in one file that any Python from 3.9 on runs.

`make agent` writes `dist/iolens-agent.pyz`. The modules are those of the package: what they import is followed from
`iolens.light`, and anything outside of the standard library is an error. Their syntax is brought down to Python
3.9 on the way, with the standard library's `ast`, so that there is one source for both. `agent_start.py` is what runs
first: it has the modules compiled once, not at every start.
"""

from __future__ import annotations

import ast
import hashlib
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src"
START = Path(__file__).parent / "agent_start.py"
NO_SOURCES = 'SOURCES = ""'
OUTPUT = Path(__file__).parent.parent / "dist" / "iolens-agent.pyz"
ENTRY = "iolens.light.__main__"
FOUND_BY_FILE = ("iolens.findings.rules",)  # packages whose modules the registry looks for
SYSTEM_MODULES = {"pcp", "cpmapi", "cpmda"}  # PCP's own, of the system's Python
OLDEST = (3, 9)
MOST_BYTES = 1_000_000
NEW_IN_TYPING = {"Self", "Unpack", "TypeAlias", "ParamSpec", "assert_never", "Never", "NotRequired", "Required"}
LATER = {("datetime", "UTC"), ("itertools", "pairwise"), ("enum", "StrEnum")}
LATER_MODULE = "names_of_later_versions"
LATER_TEXT = """
from datetime import timezone
from enum import Enum
from itertools import tee

UTC = timezone.utc


def pairwise(values):
    first, second = tee(values)
    next(second, None)
    return zip(first, second)


class StrEnum(str, Enum):
    def __str__(self):
        return self.value
"""
FIXED_TIME = (2020, 1, 1, 0, 0, 0)  # the same sources give the same file
_POSSESSIVE = re.compile(r"(?<!\\)([*+?}])\+")


def main() -> None:
    """Write the file, and say how large it is."""
    modules = needed_modules()
    texts = {f"{LATER_MODULE}.py": LATER_TEXT}
    for name in sorted(modules):
        path = path_of(name)
        texts[str(path.relative_to(SOURCE))] = for_old_python(path.read_text("utf-8"))
    OUTPUT.parent.mkdir(exist_ok=True)
    with OUTPUT.open("wb") as stream:
        stream.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            _add(archive, "__main__.py", start_of(texts))
            for name, text in texts.items():
                _add(archive, name, text)
    OUTPUT.chmod(0o755)
    size = OUTPUT.stat().st_size
    print(f"{OUTPUT.name}: {len(modules)} modules, {size:,} bytes")
    if size > MOST_BYTES:
        sys.exit(f"larger than {MOST_BYTES:,} bytes")


def start_of(texts: Mapping[str, str]) -> str:
    """The program that runs first; it knows by their hash which modules it was built with."""
    text = START.read_text("utf-8")
    if NO_SOURCES not in text:
        sys.exit(f"{START.name}: no line {NO_SOURCES!r}")
    digest = hashlib.sha256("\0".join([*texts, *texts.values()]).encode()).hexdigest()[:16]
    return for_old_python(text.replace(NO_SOURCES, f'SOURCES = "{digest}"'))


def needed_modules() -> set[str]:
    """What the entry module imports, now or later, and what that imports when it is loaded."""
    modules: set[str] = set()
    _follow(ENTRY, modules)
    for name in imports_of(ENTRY, late=True):
        _follow(name, modules)
    for package in FOUND_BY_FILE:
        for path in path_of(package).parent.glob("*.py"):
            _follow(f"{package}.{path.stem}" if path.stem != "__init__" else package, modules)
    looked_at: set[str] = set()
    while left := sorted(modules - looked_at):  # what a function imports comes along where it needs no package
        looked_at |= modules
        for later in sorted({later for name in left for later in imports_of(name, late=True)}):
            extra: set[str] = set()
            if _is_plain(later, extra):
                modules |= extra
    return modules


def _follow(name: str, modules: set[str]) -> None:
    if not _is_plain(name, modules):
        sys.exit(f"{name} imports a package outside of the standard library")


def _is_plain(name: str, modules: set[str]) -> bool:
    """Whether a module and all it loads are ours or the standard library's; ours are added."""
    top = name.partition(".")[0]
    if top != "iolens":
        return top in sys.stdlib_module_names or top in SYSTEM_MODULES
    if name in modules:
        return True
    modules.add(name)
    parents = [name.rsplit(".", count)[0] for count in range(1, name.count(".") + 1)]
    return all(_is_plain(other, modules) for other in (*parents, *imports_of(name, late=False)))


def imports_of(name: str, *, late: bool) -> set[str]:
    """Modules that a module imports when it is loaded, or (late) inside its functions."""
    return set(_imports(_parsed(path_of(name)), inside=False, late=late))


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def _imports(node: ast.AST, *, inside: bool, late: bool) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.Import) and inside == late:
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and inside == late and child.module:
            for alias in child.names:
                whole = f"{child.module}.{alias.name}"
                yield whole if child.module.startswith("iolens") and _exists(whole) else child.module
        is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        yield from _imports(child, inside=inside or is_function, late=late)


def path_of(name: str) -> Path:
    """The file of a module of ours."""
    path = SOURCE.joinpath(*name.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _exists(name: str) -> bool:
    return path_of(name).is_file()


def for_old_python(text: str) -> str:
    """The same program in the words of Python 3.9; one that it does not know is an error now, not on a node."""
    old = ast.unparse(ast.fix_missing_locations(_OldWords().visit(ast.parse(text))))
    ast.parse(old, feature_version=OLDEST)
    return old + "\n"


class _OldWords(ast.NodeTransformer):
    """Unions as tuples or typing.Union, no slots, no strict zips, no possessive quantifiers, older names."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name in ("isinstance", "issubclass") and isinstance(node.args[1], ast.BinOp):
            node.args[1] = ast.Tuple(list(_members(node.args[1])), ast.Load())
        self.generic_visit(node)
        if name in ("dataclass", "zip"):
            node.keywords = [word for word in node.keywords if word.arg not in ("slots", "strict")]
        if name == "compile":
            node.args = [_Backtracking().visit(argument) for argument in node.args]
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """A union of types that is evaluated: an alias, or the parameter of one."""
        members = list(_members(node))
        self.generic_visit(node)
        if len(members) < 2 or not all(_is_type(member) for member in members):
            return node
        union = ast.parse("__import__('typing').Union").body[0]
        assert isinstance(union, ast.Expr)
        return ast.Subscript(union.value, ast.Tuple([self.visit(member) for member in members], ast.Load()), ast.Load())

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | list[ast.stmt]:
        """Names that are only read by type checkers go; others come from `LATER`."""
        unknown = NEW_IN_TYPING if node.module == "typing" else set()
        later = [alias for alias in node.names if (node.module, alias.name) in LATER]
        node.names = [alias for alias in node.names if alias.name not in unknown and alias not in later]
        statements: list[ast.stmt] = [node] if node.names else []
        statements += [ast.ImportFrom(LATER_MODULE, [alias], 0) for alias in later]
        return statements or ast.Pass()


class _Backtracking(ast.NodeTransformer):
    """Expressions without possessive quantifiers, new in 3.11: ours match the same, and are slower where they fail."""

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, str):
            return ast.Constant(_POSSESSIVE.sub(r"\1", node.value))
        if isinstance(node.value, bytes):
            return ast.Constant(_POSSESSIVE.sub(r"\1", node.value.decode("latin-1")).encode("latin-1"))
        return node


def _members(union: ast.expr) -> Iterator[ast.expr]:
    if isinstance(union, ast.BinOp) and isinstance(union.op, ast.BitOr):
        yield from _members(union.left)
        yield from _members(union.right)
    else:
        yield union


def _is_type(member: ast.expr) -> bool:
    """A class, by how names of classes are written; flags such as os.O_CREAT and constants are not."""
    if isinstance(member, ast.Constant):
        return member.value is None
    base = member.value if isinstance(member, ast.Subscript) else member
    name = getattr(base, "id", "")
    return name in ("int", "str", "float", "bytes", "bool", "dict", "list", "tuple") or (
        name[:1].isupper() and not name.isupper()
    )


def _add(archive: zipfile.ZipFile, name: str, text: str) -> None:
    info = zipfile.ZipInfo(name, FIXED_TIME)
    info.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(info, text)


if __name__ == "__main__":
    main()
