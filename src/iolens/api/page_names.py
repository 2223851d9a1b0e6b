"""Names that the store knows, for a question about one that it does not."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from iolens.api.access.store_analyses import StoreAnalyses
from iolens.errors import InputError, UsageError
from iolens.nearest_names import not_among
from iolens.store.scope import Scope

MOST_COMPARED: Final = 20_000  # names; of more, those that begin alike
ALIKE: Final = 3  # characters


def unknown_name(opened: StoreAnalyses, kind: str, name: str, known: Iterable[str]) -> InputError:
    """One line that names what is nearest."""
    names = set(known)
    if len(names) > MOST_COMPARED:
        names = {other for other in names if other[:ALIKE] == name[:ALIKE]} or set(sorted(names)[:MOST_COMPARED])
    return InputError(opened.store.url, f"no {kind} {name!r}{not_among(name, names)}")


def names_in(opened: StoreAnalyses, table: str, column: str) -> set[str]:
    """Values of a column, of runs or jobs."""
    selection = opened.store.select_all(Scope())
    if not selection.holds(table):
        return set()
    values = selection.frame(table).select(column).unique().collect(backend="pyarrow").to_native()
    return {str(value) for value in values.column(column).to_pylist() if value is not None}


def check_filesystems(opened: StoreAnalyses, given: Collection[str]) -> None:
    """Whether the store knows them, by servers or logs."""
    if not given:
        return
    names = {*opened.store.targets_by_filesystem(), *names_in(opened, "runs", "filesystem")}
    for name in given:
        if name not in names:
            raise UsageError(f"no file system is called {name!r}{not_among(name, names)}")
