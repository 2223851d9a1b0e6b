"""On which OSTs the files of runs lie, by Darshan's Lustre module."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import narwhals as nw
import pyarrow as pa

from iolens.store.selection import StoreSelection
from iolens.target_names import kind_by_name
from iolens.units import from_epoch_us

_INDEX: Final = re.compile(r"[0-9a-f]+$", re.IGNORECASE)


def targets_of_runs(
    selection: StoreSelection, starts_us: Mapping[str, int], known: Collection[str]
) -> dict[str, frozenset[str]]:
    """OSTs by run id, of runs whose log names any; `known` are the targets of the file system."""
    names = ost_names(known)
    if not starts_us or not names:
        return {}
    days = {from_epoch_us(start_us).date() for start_us in starts_us.values()}
    wanted = selection.beside(pa.table({"wanted": pa.array(list(starts_us), pa.string())}))
    rows = selection.rows_of_days("run_files", days).filter(~nw.col("osts").is_null()).select("run_id", "osts")
    by_run: dict[str, set[str]] = {}
    for line in _lines(rows.join(wanted, left_on="run_id", right_on="wanted", how="semi").unique()):
        by_run.setdefault(line["run_id"], set()).update(_named(line["osts"], names))
    return {run_id: frozenset(targets) for run_id, targets in by_run.items() if targets}


def ost_names(targets: Collection[str]) -> dict[int, str]:
    """Names of OSTs by their index, as Lustre writes it at the end of the name."""
    osts = [target for target in targets if kind_by_name(target) == "ost"]
    return {int(match[0], 16): target for target in osts if (match := _INDEX.search(target))}


def _named(text: str, names: Mapping[int, str]) -> Sequence[str]:
    indices = [int(word) for word in text.split(",") if word.strip().isdigit()]
    return [names[index] for index in indices if index in names]


def _lines(frame: nw.LazyFrame[Any]) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = frame.collect(backend="pyarrow").to_native().to_pylist()
    return lines
