"""What a source's captures become in a store: loaded as the command does, read back as plain rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from iolens.records import Item, Problem, Rows, Sample, Samples
from iolens.sources import get_source
from iolens.sources.reading.options import ReadOptions
from iolens.store.ingest import Tally
from iolens.store.store import Store


def items_of(source: str, paths: Sequence[Path] | Path, options: ReadOptions | None = None) -> list[Item]:
    files = [paths] if isinstance(paths, Path) else paths
    captures = get_source(source).captures(files, options or ReadOptions())
    return [item for capture in captures for item in capture.items()]


def problems_of(items: Sequence[Item]) -> list[str]:
    return [item.reason for item in items if isinstance(item, Problem)]


def rows_of(items: Sequence[Item], table: str) -> list[dict[str, Any]]:
    """Finished rows as dictionaries, None where NULL."""
    records: list[dict[str, Any]] = []
    for item in items:
        if isinstance(item, Rows) and item.table == table:
            columns = {name: _listed(values, item.count) for name, values in item.columns.items()}
            records += [{name: values[place] for name, values in columns.items()} for place in range(item.count)]
    return records


def samples_of(items: Sequence[Item], table: str) -> list[tuple[str, int, dict[str, int]]]:
    """Raw counters as (target, snapshot, counters)."""
    result = []
    for item in items:
        if isinstance(item, Samples) and item.table == table:
            columns = {name: _listed(values, len(item)) for name, values in item.counters.items()}
            for place in range(len(item)):
                counters = {name: values[place] for name, values in columns.items() if values[place] is not None}
                result.append((item.target, int(item.snapshot_us[place]), counters))
        elif isinstance(item, Sample) and item.table == table:
            result.append(
                (
                    item.target,
                    item.snapshot_us,
                    {k: v for entry in item.sets.values() for k, v in entry.counters.items()},
                )
            )
    return result


def _listed(values: object, count: int) -> list[Any]:
    plain = values.tolist() if hasattr(values, "tolist") else values
    if not isinstance(plain, list):
        return [plain] * count
    return [None if isinstance(item, float) and item != item else item for item in plain]


def ingest(store: Path, source: str, paths: Sequence[Path], options: ReadOptions) -> Tally:
    return Store(store).ingest(get_source(source).captures(paths, options), source)


def stored(store: Path, filesystem: str, table: str, *columns: str) -> list[tuple[Any, ...]]:
    frame = Store(store).select(filesystem).frame(table).select(*columns).collect("pyarrow").to_native()
    return sorted(zip(*(frame.column(name).to_pylist() for name in columns), strict=True))
