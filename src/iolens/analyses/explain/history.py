"""The runs that one run is compared with, on which OSTs their files lie, and who else used these."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import narwhals as nw
import numpy as np
import pyarrow as pa

from iolens.analyses.attribution.whose import JobIdParts
from iolens.analyses.blame import Basis, Blame
from iolens.analyses.explain.results import SYSTEM, ExplainedFactor, LikeHistory, RunNeighbour, ShareOf
from iolens.analyses.runs.like_runs import like_groups
from iolens.analyses.runs.matching import joined_runs
from iolens.analyses.runs.measures import ACCESS_COLUMNS as ACCESS_COLUMNS
from iolens.analyses.runs.used_files import OVER_MPIIO, RunColumns
from iolens.arrays import Booleans, Floats, Integers
from iolens.run_tables import PATTERNS
from iolens.store.selection import StoreSelection
from iolens.target_names import kind_by_name
from iolens.units import MIB, SECOND_US, from_epoch_us

# On which OSTs the files of runs lie, by Darshan's Lustre module ------------------------------------------------------

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


# Who else used what the verdict names in a run's time, out of what blame says of it (B1, B9) --------------------------

MOST: Final = 10
DISK: Final[Basis] = "disk"


@dataclass(frozen=True, slots=True)
class NamedResource:
    """What neighbours share with the run: disks of these OSTs (none: all of the run's), or the metadata servers."""

    basis: Basis
    targets: tuple[str, ...] = ()


def named_resources(evidence: Sequence[ExplainedFactor]) -> list[NamedResource]:
    """What the named factors of the system are about, in their order; the run's OSTs where none is named."""
    named = [line for line in evidence if line.factor in SYSTEM]
    bases = [*dict.fromkeys(_basis(line) for line in named)] or [DISK]
    on_disks = [line for line in named if _basis(line) == "disk"]
    is_of_single_osts = all(line.target is not None for line in on_disks)
    osts = dict.fromkeys(line.target for line in on_disks if line.target is not None) if is_of_single_osts else {}
    return [NamedResource(basis, tuple(osts) if basis == "disk" else ()) for basis in bases]


def neighbours_of(blame: Blame, job_id: str | None, parts_of: Callable[[str], JobIdParts]) -> list[RunNeighbour]:
    """Other jobs by their share of what the targets did, the largest first."""
    others = [line for line in blame.who if job_id is None or job_id not in (line.name, parts_of(line.name).job_id)]
    used = [line for line in others if line.share_pct > 0]
    share_of = _share_of(blame)
    return [RunNeighbour(line.name, line.share_pct, line.user, line.executable, share_of) for line in used[:MOST]]


def _share_of(blame: Blame) -> ShareOf:
    if blame.basis == "disk":
        return "disk_seconds"
    return "metadata_operations" if blame.disk_seconds is None else "metadata_seconds"


def _basis(line: ExplainedFactor) -> Basis:
    return "metadata" if line.factor == "mdt_ops_per_s" else "disk"


# The runs that one run is compared with (DEFINITIONS: Was it me, Like jobs) -------------------------------------------
# And how fast they were.

FEWEST: Final = 5  # like runs that say anything
MOST_COMPARED: Final = 1000  # like runs that the state of the file system is looked up for, the nearest in time
MOST_HOURS: Final = 5000  # of their run times added up …
LEAST_TAKEN: Final = 50  # … unless there would be fewer than this
HOUR_US: Final = 3600 * SECOND_US
PER_NODE: Final = "MiB/s/CN"
IN_ALL: Final = "MiB/s"

_WHOLE: Final = ("processes", "files", "read_bytes", "write_bytes")
_DIRECTIONS: Final = ("read", "write")
_TIMES: Final = (*_DIRECTIONS, "metadata")
_COLUMNS: Final = (
    "run_id", "job_id", "matched_job_id", "user", "project", "executable", "filesystem", "log", *_WHOLE, "start_us",
    "epoch_us", "rate_bytes", "rate_s", "read_s", "write_s", "metadata_s", "nodes",
    "cores", "opens", "reads", "writes", "posix_reads", "posix_writes",
    "sequential_reads", "sequential_writes", *ACCESS_COLUMNS, "io_ranks", "busiest_rank_bytes", "independent_ops",
    "collective_ops", *(f"{name}_{direction}_bytes" for name in (*PATTERNS, *OVER_MPIIO) for direction in _DIRECTIONS),
    "unique_files",
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class RunAndHistory:
    """Runs of one user with one number of processes, and which of them one of them is compared with.

    Row `place` is the run; `like` are the rows of its history and `program` those of the same program, both without the
    run itself and as far as their performance is known.
    """

    runs: RunColumns
    place: int
    like: Integers
    program: Integers
    performance: Floats  # of every row, NaN where it is not known
    unit: str
    history: LikeHistory

    @property
    def itself(self) -> int:
        """The place of the run among the runs of its history in the order of time."""
        return int(np.searchsorted(self.like, self.place))

    @property
    def is_enough(self) -> bool:
        """Whether the history says anything."""
        return self.history.runs >= FEWEST

    @property
    def metadata_time_pct(self) -> float:
        """Share of metadata operations in the I/O time of the run; NaN: not known."""
        read_s, write_s, metadata_s = (self.runs.numbers(f"{kind}_s")[self.place] for kind in _TIMES)
        whole_s = read_s + write_s + metadata_s
        return float(100 * metadata_s / whole_s) if whole_s > 0 else np.nan

    def value(self, name: str) -> Any:
        """Of the run itself; None is NULL."""
        column = self.runs.values[name]
        value = column[self.place]
        value = value.item() if isinstance(value, np.generic) else value
        return None if isinstance(value, float) and np.isnan(value) else value


def compared_runs(selection: StoreSelection, run_id: str) -> RunAndHistory:
    """The run of that id among runs of its user, with as many processes, on its file system as far as that is known."""
    owner = nw.coalesce(nw.col("user"), nw.col("uid").cast(nw.String))
    joined = joined_runs(selection).with_columns(owner.alias("owner"))
    itself = _table(joined.filter(nw.col("run_id") == run_id).select("owner", *_COLUMNS))
    known = itself.to_pylist()[0]
    rows = itself
    if known["owner"] is not None and known["processes"] is not None:
        alike = joined.filter(
            nw.col("run_id") != run_id, nw.col("owner") == known["owner"], nw.col("processes") == known["processes"]
        )
        if known["filesystem"] is not None:
            alike = alike.filter(nw.col("filesystem").is_null() | (nw.col("filesystem") == known["filesystem"]))
        rows = pa.concat_tables([itself, _table(alike.select("owner", *_COLUMNS)).cast(itself.schema)])
    return _compared(_columns(rows.sort_by([("start_us", "ascending"), ("run_id", "ascending")])), run_id)


def _compared(runs: RunColumns, run_id: str) -> RunAndHistory:
    place = int(np.flatnonzero(runs.texts("run_id") == run_id)[0])
    performance, unit = performances(runs)
    is_other = ~np.isnan(performance)
    is_other[place] = False
    executables = runs.texts("executable")
    is_program = is_other & (executables == executables[place]) if executables[place] is not None else is_other & False
    is_like = is_other & _like(runs, place)
    start_us = runs.numbers("start_us")
    came_before = start_us < start_us[place]
    relaxed = int(is_like.sum()) < FEWEST
    chosen = is_program if relaxed else is_like
    if (chosen & came_before).sum() >= FEWEST:
        chosen, is_program, is_like = (some & came_before for some in (chosen, is_program, is_like))
    like, left_out = _nearest(runs, place, chosen)
    program = np.flatnonzero(is_program if is_program.sum() >= len(like) else is_like)
    after = len(like) - int(came_before[like].sum())
    history = LikeHistory(len(like), relaxed, int(is_program.sum()), left_out, after)
    return RunAndHistory(runs, place, like, program, performance, unit, history)


def performances(runs: RunColumns) -> tuple[Floats, str]:
    """MiB/s/CN (D4), or MiB/s where the nodes of a run are not known; NaN: not known."""
    seconds, nodes = runs.numbers("rate_s"), runs.numbers("nodes")
    moved = runs.numbers("rate_bytes")
    rates = np.full(len(moved), np.nan)
    np.divide(moved / MIB, seconds, out=rates, where=(seconds > 0) & (moved > 0))
    if (nodes > 0).all():
        return rates / nodes, PER_NODE
    return rates, IN_ALL


def _like(runs: RunColumns, place: int) -> Booleans:
    """Runs of the same files and bytes within 1 %; their user and processes are the same already."""
    columns = [runs.numbers(name) for name in ("files", "read_bytes", "write_bytes")]
    is_known = ~np.isnan(np.sum(columns, axis=0))
    is_like = np.zeros(len(is_known), np.bool_)
    if is_known[place]:
        files, read, written = (values[is_known].astype(np.int64) for values in columns)
        groups = np.full(len(is_known), -1)
        groups[is_known] = like_groups((files,), (read, written))
        is_like = groups == groups[place]
    return is_like


def _nearest(runs: RunColumns, place: int, chosen: Booleans) -> tuple[Integers, int]:
    """Of the chosen runs those nearest in time, in their order; and how many that leaves out.

    At most `MOST_COMPARED`, not much more than `MOST_HOURS` of runs, because rows of their time are joined with each.
    """
    places = np.flatnonzero(chosen)
    start_us, end_us = (runs.numbers(name) for name in ("start_us", "epoch_us"))
    by_distance = places[np.argsort(np.abs(start_us[places] - start_us[place]), kind="stable")]
    hours = np.cumsum(end_us[by_distance] - start_us[by_distance]) / HOUR_US
    count = min(max(int((hours <= MOST_HOURS).sum()), LEAST_TAKEN), MOST_COMPARED, len(places))
    return np.sort(by_distance[:count]), len(places) - count


def _columns(table: pa.Table) -> RunColumns:
    columns = {name: table.column(name).to_numpy(zero_copy_only=False) for name in table.column_names}
    return RunColumns(len(table), columns)


def _table(frame: nw.LazyFrame[Any]) -> pa.Table:
    table: pa.Table = frame.collect(backend="pyarrow").to_native()
    return table
