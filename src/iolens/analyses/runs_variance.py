"""How much the I/O time of like runs varies (SPEC D8, Table IV).

I/O time is that of the slowest rank, as in MiB/s/CN; the standard deviation is with n − 1, the coefficient of variation
in per cent of the mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iolens.analyses.runs.asked import OverRuns, RunConditions, asked_runs, window_of
from iolens.analyses.runs.like_runs import like_groups
from iolens.analyses.runs.measures import is_short
from iolens.arrays import Floats, Integers
from iolens.run_tables import RateMethod
from iolens.store.selection import StoreSelection

MIN_SAMPLES: Final = 2
MOST_GROUPS: Final = 100
_WHOLE: Final = ("processes", "files", "read_bytes", "write_bytes")


@dataclass(frozen=True, slots=True)
class LikeRuns:
    """A group of like runs. Bytes are means of the group, seconds the I/O time of the slowest rank.

    `executable` and `project` are those of most of its runs; `executables` is how many there are.
    """

    project: str | None
    user: str
    executable: str | None
    executables: int
    samples: int
    nprocs: int
    files: int
    read_bytes: float
    write_bytes: float
    mean_s: float
    min_s: float
    max_s: float
    stddev_s: float
    cv_pct: float | None  # None: no time in I/O


@dataclass(frozen=True, slots=True, kw_only=True)
class RunVariance(OverRuns):
    """Groups with the largest variation first."""

    min_samples: int
    method: RateMethod  # of the I/O time
    runs_grouped: int
    runs_without_user: int  # in no group: neither name nor number of the owner is known
    runs_without_time: int  # in no group: the I/O time, processes, files or bytes are not known
    runs_short: int  # so little I/O time that it says little
    runs_without_rate: int  # of those without: loaded by an iolens that kept no times of MPI-IO and DFS
    groups_known: int
    groups_left_out: int  # that vary less than those listed
    groups: list[LikeRuns]


def runs_variance(
    selection: StoreSelection,
    like: RunConditions | None = None,
    *,
    min_samples: int = MIN_SAMPLES,
    method: RateMethod = "layers",
    top: int = MOST_GROUPS,
) -> RunVariance:
    """Group like runs of at least `min_samples`; at most `top` groups are listed."""
    runs = asked_runs(selection, like or RunConditions(), method)
    owner = nw.coalesce(nw.col("user"), nw.col("uid").cast(nw.String)).alias("owner")
    columns = (*_WHOLE, "rate_s", "project", "executable", "is_rate_lost")
    table: pa.Table = runs.select(owner, *columns, is_short().alias("is_short")).collect(backend="pyarrow").to_native()
    timed = table
    for name in (*_WHOLE, "rate_s"):
        timed = timed.filter(pc.is_valid(timed.column(name)))
    owned = timed.filter(pc.is_valid(timed.column("owner")))
    groups = _groups(owned, min_samples) if len(owned) else []
    groups.sort(key=lambda group: (-(group.cv_pct if group.cv_pct is not None else -1.0), -group.samples, group.user,
                                   group.nprocs, group.files, group.read_bytes, group.write_bytes))  # fmt: skip
    return RunVariance(
        **window_of(selection),
        runs=len(table),
        min_samples=min_samples,
        method=method,
        runs_grouped=sum(group.samples for group in groups),
        runs_without_user=len(timed) - len(owned),
        runs_without_time=len(table) - len(timed),
        runs_short=_count(table, "is_short"),
        runs_without_rate=_count(table, "is_rate_lost"),
        groups_known=len(groups),
        groups_left_out=max(len(groups) - top, 0),
        groups=groups[:top],
    )


def _count(table: pa.Table, name: str) -> int:
    """How many rows fulfil a condition."""
    return int(pc.sum(table.column(name)).as_py() or 0)


def _groups(table: pa.Table, min_samples: int) -> list[LikeRuns]:
    """All groups of at least so many runs."""
    owners = _dictionary(table, "owner")
    whole = {name: _array(table, name).astype(np.int64) for name in _WHOLE}
    same = (_codes(owners), whole["processes"], whole["files"])
    numbers = like_groups(same, (whole["read_bytes"], whole["write_bytes"]))
    sizes = np.bincount(numbers)
    kept = np.flatnonzero(sizes[numbers] >= min_samples)
    if not kept.size:
        return []
    order = kept[np.argsort(numbers[kept], kind="stable")]
    firsts = np.flatnonzero(np.append(True, numbers[order][1:] != numbers[order][:-1]))
    counts = np.diff(np.append(firsts, order.size))
    seconds = _array(table, "rate_s").astype(float)[order]
    mean_s, stddev_s = _spread(seconds, firsts, counts)
    low_s, high_s = np.minimum.reduceat(seconds, firsts), np.maximum.reduceat(seconds, firsts)
    bytes_mean = [np.add.reduceat(whole[name][order].astype(float), firsts) / counts
                  for name in ("read_bytes", "write_bytes")]  # fmt: skip
    names = {name: _dictionary(table, name) for name in ("project", "executable")}
    texts = {name: (values.dictionary.to_pylist(), _codes(values)[order]) for name, values in names.items()}
    result = []
    for place, first in enumerate(firsts):
        members = slice(first, first + counts[place])
        project, _ = _most(*texts["project"], members)
        executable, executables = _most(*texts["executable"], members)
        chosen, mean, stddev = int(order[first]), float(mean_s[place]), float(stddev_s[place])
        group = LikeRuns(
            project=project,
            user=owners[chosen].as_py(),
            executable=executable,
            executables=executables,
            samples=int(counts[place]),
            nprocs=int(whole["processes"][chosen]),
            files=int(whole["files"][chosen]),
            read_bytes=float(bytes_mean[0][place]),
            write_bytes=float(bytes_mean[1][place]),
            mean_s=mean,
            min_s=float(low_s[place]),
            max_s=float(high_s[place]),
            stddev_s=stddev,
            cv_pct=100.0 * stddev / mean if mean > 0 else None,
        )
        result.append(group)
    return result


def _spread(seconds: Floats, firsts: Integers, counts: Integers) -> tuple[Floats, Floats]:
    """Mean and standard deviation (n − 1) of each group; of one run there is no deviation."""
    mean = np.add.reduceat(seconds, firsts) / counts
    squares = np.add.reduceat((seconds - np.repeat(mean, counts)) ** 2, firsts)
    return mean, np.sqrt(squares / np.maximum(counts - 1, 1))


def _most(names: list[str], codes: Integers, members: slice) -> tuple[str | None, int]:
    """The most frequent text of a group, of several the first by name, and how many there are."""
    values, counts = np.unique(codes[members], return_counts=True)
    ranked = sorted((-int(count), "" if code < 0 else names[code], int(code))
                    for code, count in zip(values, counts, strict=True))  # fmt: skip
    code = ranked[0][2]
    return None if code < 0 else names[code], int((values >= 0).sum())


def _dictionary(table: pa.Table, name: str) -> Any:
    return table.column(name).combine_chunks().cast(pa.string()).dictionary_encode()


def _codes(values: Any) -> Integers:
    return np.asarray(pc.fill_null(values.indices, -1)).astype(np.int64)


def _array(table: pa.Table, name: str) -> Any:
    return table.column(name).to_numpy()
