"""File systems of made-up stores against the rows they were made of, and against `iolens capacity`."""

from __future__ import annotations

import json
import random
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from iolens.analyses.centre_state import CentreState, FileSystemState, LastReading, LatestFullness, latest_fullness
from iolens.api import OpenStore
from iolens.api.store_state import centre_state
from iolens.errors import StoreError
from iolens.schema import TABLES
from iolens.store.maintenance import compact_store
from iolens.store.rollup import roll_up
from iolens.store.rows import to_arrow
from iolens.store.store import Store
from iolens.units import DAY_US
from tests.analyses.capacity_rows import T0_US
from tests.analyses.run_rows import job_row, run_row
from tests.cli.command import iolens
from tests.views.documented import undocumented

NAMES = ("alpha", "beta", "gamma")
HOSTILE = '<b>"x"\x1b[2J\u202e'
BESIDE = {
    "has_sizes": ("target_sizes",),
    "has_metadata": ("metadata_ops",),
    "has_job_stats": ("job_io",),
    "has_client_counters": ("client_io", "client_rpcs", "client_metadata"),
    "has_contents": ("contents",),
    "has_drives": ("drives",),
}

Rows = dict[str, list[dict[str, Any]]]


def state_of(folder: Path, config: Path | None = None) -> CentreState:
    with OpenStore(str(folder), config=None if config is None else str(config)) as opened:
        return centre_state(opened)


def row(table: str, filesystem: str, time_us: int, **more: Any) -> dict[str, Any]:
    """A row of any table with what it must have."""
    columns = {column.name for column in TABLES[table].columns}
    usual = {
        "time": time_us, "start": time_us - 5_000_000, "date": (time_us - 5_000_000) // DAY_US, "duration_s": 5.0,
        "filesystem": filesystem, "source": "made-up", "target": "OST0000", "target_kind": "ost", "node": "n1",
        "job_id": "7", "direction": "read", "pages": 1, "rpcs": 1, "operation": "open", "count": 1, "serial": "s1",
        "after_reset": False,
    }  # fmt: skip
    return {name: value for name, value in {**usual, **more}.items() if name in columns}


def stored(folder: Path, rows: Rows, shuffled: random.Random | None = None) -> Store:
    """Rows in one append per table, or in several with any mixture of file systems."""
    store = Store(folder)
    for table, every in rows.items():
        pieces = [every]
        if shuffled is not None:
            every = shuffled.sample(every, len(every))
            cut = shuffled.randint(0, len(every))
            pieces = [piece for piece in (every[:cut], every[cut:]) if piece]
        for piece in pieces:
            store.append(table, to_arrow(TABLES[table], piece))
    return store


def random_rows(numbers: random.Random) -> Rows:
    """Some tables of each file system over two days, and readings of capacity of single targets."""
    rows: Rows = {"target_io": [row("target_io", name, T0_US, write_bytes=1) for name in NAMES]}
    for name in NAMES:
        for table in (table for tables in BESIDE.values() for table in tables):
            if numbers.random() < 0.5:
                times = [T0_US + numbers.randrange(2 * 86_400) * 1_000_000 for _ in range(3)]
                rows.setdefault(table, []).extend(row(table, name, time_us) for time_us in sorted(set(times)))
        for place in range(numbers.randint(0, 3)):
            target = {"target": f"{name}-OST{place:04x}", "target_kind": "ost"}
            for minute in range(numbers.randint(1, 4)):
                time_us = T0_US + DAY_US + minute * 60_000_000
                sizes = {"total_bytes": numbers.choice((None, 1000)), "used_bytes": numbers.randint(0, 1000)}
                rows.setdefault("target_capacity", []).append(
                    row("target_capacity", name, time_us, date=time_us // DAY_US, **target, **sizes)
                )
    return rows


def expected_fullness(rows: Rows, name: str) -> tuple[int | None, int | None]:
    """Capacity and usage by the plainest loop: the last of each target, a total that was not read taken from before."""
    totals: dict[str, int | None] = {}
    used: dict[str, int] = {}
    for reading in sorted(rows.get("target_capacity", []), key=lambda item: item["time"]):
        if reading["filesystem"] == name:
            used[reading["target"]] = reading["used_bytes"]
            totals[reading["target"]] = reading["total_bytes"] or totals.get(reading["target"])
    known = [total for total in totals.values() if total is not None]
    return (sum(known) if used and len(known) == len(used) else None), (sum(used.values()) if used else None)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_stored_of_each_file_system_is_what_was_written(tmp_path: Path, seed: int) -> None:
    numbers = random.Random(seed)
    rows = random_rows(numbers)
    store = stored(tmp_path, rows, numbers)
    if seed % 2:
        compact_store(store)
    for state in state_of(tmp_path).filesystems:
        mine = {table for table, every in rows.items() if any(item["filesystem"] == state.filesystem for item in every)}
        assert {name for name in BESIDE if getattr(state, name)} == {
            name for name, tables in BESIDE.items() if mine.intersection(tables)
        }
        assert (state.capacity_bytes, state.used_bytes) == expected_fullness(rows, state.filesystem)


def test_times_and_kinds_and_rollups(tmp_path: Path) -> None:
    rows = [row("target_io", "alpha", T0_US + day * DAY_US + 60_000_000, target="alpha-OST0001") for day in range(3)]
    store = stored(tmp_path, {"target_io": rows})
    disks = [row("target_io", "beta", T0_US + 5_000_000, target=name, target_kind="device") for name in ("sda", "sdb")]
    stored(tmp_path, {"target_io": disks, "metadata_ops": [row("metadata_ops", "beta", T0_US, target="beta-MDT0000")]})
    roll_up(store)
    alpha, beta = state_of(tmp_path).filesystems
    assert (alpha.first_time, alpha.last_time) == (
        datetime(2020, 9, 14, 0, 0, 55, tzinfo=UTC),
        datetime(2020, 9, 16, 0, 1, tzinfo=UTC),
    )
    assert (alpha.targets, alpha.targets_by_kind) == (1, {"ost": 1})
    assert [(span.resolution, span.first_day, span.last_day) for span in alpha.rollups] == [
        (resolution, date(2020, 9, 14), date(2020, 9, 16)) for resolution in ("60s", "1h")
    ]
    assert (beta.targets, beta.targets_by_kind) == (3, {"device": 2, "mdt": 1})
    assert beta.servers is None


def test_fullness_is_that_of_the_capacity_analysis(tmp_path: Path) -> None:
    done = iolens("simulate", "telemetry", "--store", tmp_path / "s", "--workload", "scratch", "--osts", 3, "--days", 1)
    assert done.code == 0, done.err
    with OpenStore(str(tmp_path / "s")) as opened:
        (state,) = centre_state(opened).filesystems
        capacity = opened.analyse("capacity", "scratch")
        servers = opened.ask(lambda selection: selection.target_servers().servers, "scratch")
    assert capacity.used_bytes is not None
    assert (state.capacity_bytes, state.used_bytes, state.fullness_pct) == (
        capacity.capacity_bytes,
        capacity.used_bytes,
        capacity.fullness_pct,
    )
    assert state.servers == (servers or None)


def test_a_target_that_left_and_a_sum_of_the_whole_are_not_added() -> None:
    gone, here = LastReading("ost", 0, 10, 5), LastReading("ost", 2 * DAY_US, 20, 8)
    sums = [LastReading("filesystem", time_us, 100, 50 + time_us) for time_us in (7, 9)]
    assert latest_fullness([gone, here, *sums]) == LatestFullness(2 * DAY_US, 20, 8)
    assert latest_fullness([LastReading("mdt", 1, 1, 1), *sums]) == LatestFullness(9, 100, 59)
    assert latest_fullness([here, LastReading("ost", 2 * DAY_US, None, 1)]) == LatestFullness(2 * DAY_US, None, 9)
    assert latest_fullness([LastReading(None, 1, 1, 1)]) is None


def test_the_peak_is_that_of_the_configuration(tmp_path: Path) -> None:
    stored(tmp_path / "s", {"target_io": [row("target_io", "alpha", T0_US)]})
    (tmp_path / "iolens.toml").write_text('[filesystems.alpha]\npeak = "35GB/s"\n', "utf-8")
    (state,) = state_of(tmp_path / "s", tmp_path / "iolens.toml").filesystems
    assert state.peak_bytes_per_s == 35e9


def test_records_without_telemetry(tmp_path: Path) -> None:
    stored(tmp_path, {"jobs": [job_row("1")], "runs": [run_row("a" * 64)]})
    state = state_of(tmp_path)
    assert (state.has_jobs, state.has_runs, state.filesystems) == (True, True, [])


def test_what_is_not_known_is_none(tmp_path: Path) -> None:
    stored(tmp_path, {"drives": [row("drives", "alpha", T0_US)]})
    Store(tmp_path).append("target_io", to_arrow(TABLES["target_io"], [row("target_io", "beta", T0_US)]))
    with OpenStore(str(tmp_path)) as opened:
        names = [state.filesystem for state in centre_state(opened).filesystems]
        beta = centre_state(opened).filesystems[-1]
    assert names[-1] == "beta"
    unknown = ("servers", "capacity_time", "capacity_bytes", "used_bytes", "fullness_pct", "peak_bytes_per_s")
    assert [getattr(beta, name) for name in unknown] == [None] * len(unknown)


def test_no_store_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="holds no data yet"):
        state_of(tmp_path / "nothing")


def test_the_command_prints_the_same_in_every_format(tmp_path: Path) -> None:
    stored(tmp_path, {"target_io": [row("target_io", HOSTILE, T0_US, target="OST0001")]})
    answer = json.loads(iolens("store", "filesystems", "--store", tmp_path, "--format", "json").out)
    (line,) = answer["filesystems"]
    assert set(line) == set(FileSystemState.__dataclass_fields__)
    assert (line["filesystem"], line["targets_by_kind"]) == (HOSTILE, {"ost": 1})
    for format_ in ("table", "markdown"):
        shown = iolens("store", "filesystems", "--store", tmp_path, "--format", format_)
        assert shown.code == 0
        assert not {"\x1b", "\u202e"}.intersection(shown.out)
    assert "1 file system in" in iolens("store", "filesystems", "--store", tmp_path).out
    assert iolens("store", "filesystems", "--store", tmp_path, "--format", "csv").out.startswith("filesystem,")


def test_every_key_is_documented() -> None:
    assert undocumented(CentreState, "store.md") == []
