"""Logs on their way into a store: each once, however they are gathered, and on from where a load broke off."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from iolens.api.ingest import ingest_places
from iolens.config import Config, FileSystemConfig
from iolens.records import Capture, Rows
from iolens.sources import ReadOptions, get_source
from iolens.store import ingest as gathering
from iolens.store.ingest import Tally
from iolens.store.ingest import ingest as load
from iolens.store.store import Store
from iolens.store.tables import Tables
from iolens.units import parse_time
from tests.sources.darshan import LOGS
from tests.sources.darshan.log_copies import END_S, JOB_ID, START_S, SplitLog

START = 1_793_491_200  # 2026-11-01
DAY = 86_400


def grow(folder: Path, count: int) -> list[Path]:
    """A tree of year, month and day with so many distinct logs."""
    sources = [SplitLog.of(path.read_bytes()) for path in sorted(LOGS.glob("*.darshan"))]
    paths = []
    for number in range(count):
        day = number * 3 // count
        begin = START + day * DAY + number
        path = folder / f"2026/11/{day + 1}" / f"ann_ior_id{number}-1_11-1-{number}-7_1.darshan"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(sources[number % len(sources)].copy({JOB_ID: number, START_S: begin, END_S: begin + 9}))
        paths.append(path)
    return paths


def ingest(store: Path, *places: Path, options: ReadOptions = ReadOptions(), config: Config = Config()) -> Tally:  # noqa: B008
    return ingest_places(
        Store(str(store)), config, [str(place) for place in places], options, source="darshan", workers=1
    )


def rows(store: Path, table: str) -> list[dict[str, object]]:
    handle = Tables(str(store)).load(table)
    assert handle is not None
    listed: list[dict[str, object]] = handle.to_pyarrow_table().to_pylist()
    return listed


def counts(store: Path) -> Counter[str]:
    return Counter({name: len(rows(store, name)) for name in ("runs", "run_files", "run_ranks", "run_series")})


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("logs")
    grow(folder, 40)
    return folder


@pytest.fixture(scope="module")
def store(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All logs, loaded once."""
    folder = tmp_path_factory.mktemp("loaded") / "store"
    tally = ingest(folder, tree)
    assert (tally.captures, tally.already_present, tally.rows["runs"]) == (40, 0, 40)
    assert tally.rows == counts(folder)
    return folder


def test_a_tree_is_loaded_with_every_run_on_its_day(store: Path) -> None:
    runs = rows(store, "runs")
    assert sorted(int(str(run["job_id"])) for run in runs) == list(range(40))
    assert Counter(str(run["date"]) for run in runs) == {"2026-11-01": 14, "2026-11-02": 13, "2026-11-03": 13}
    assert {run["source"] for run in runs} == {"darshan"}
    assert {run["user"] for run in runs} == {"ann"}
    (batch,) = rows(store, "batches")
    assert batch["rows"] == sum(counts(store).values())
    assert str(batch["origin"]).endswith("ann_ior_id0-1_11-1-0-7_1.darshan and 39 more files")


def test_the_same_logs_again_add_nothing(store: Path, tree: Path) -> None:
    before = counts(store)
    tally = ingest(store, tree)
    assert (tally.captures, tally.already_present, sum(tally.rows.values())) == (40, 40, 0)
    assert counts(store) == before


def test_a_copy_of_a_log_under_another_name_adds_nothing(store: Path, tree: Path, tmp_path: Path) -> None:
    first = next(tree.rglob("*.darshan"))
    for name in ("copy.darshan", "again.darshan"):
        (tmp_path / name).write_bytes(first.read_bytes())
    before = counts(store)
    assert ingest(store, tmp_path).already_present == 2
    assert counts(store) == before


def test_new_logs_among_old_ones_are_loaded_however_they_are_gathered(
    tree: Path, tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathering, "MOST", 7)
    paths = sorted(tree.rglob("*.darshan"))
    folder = tmp_path / "store"
    assert ingest(folder, *paths[::2]).rows["runs"] == 20
    tally = ingest(folder, tree)
    assert (tally.already_present, tally.rows["runs"]) == (20, 20)
    assert counts(folder) == counts(store)


def test_a_log_twice_in_one_call_is_loaded_once(tree: Path, tmp_path: Path) -> None:
    path = next(tree.rglob("*.darshan"))
    tally = ingest(tmp_path / "store", path, path)
    assert (tally.captures, tally.already_present, tally.rows["runs"]) == (2, 1, 1)


def test_refused_logs_are_named_and_the_others_loaded(tmp_path: Path, tree: Path) -> None:
    logs = tmp_path / "logs"
    paths = grow(logs, 4)
    paths[1].write_bytes(b"")
    paths[2].write_bytes(paths[2].read_bytes()[:300])
    tally = ingest(tmp_path / "store", logs)
    assert (tally.rows["runs"], tally.refused) == (2, 2)
    assert [(Path(problem.place).name, problem.reason.partition(":")[0]) for problem in tally.problems] == [
        (paths[1].name, "empty file; expected a Darshan log"),
        (paths[2].name, "cut off or damaged"),
    ]


def test_a_load_that_broke_off_is_completed(
    tmp_path: Path, tree: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after any table: `runs` comes last, so what lacks its run is loaded again, and no row comes twice."""
    folder = tmp_path / "store"
    append = Tables.commit

    for table in ("run_ranks", "run_series", "runs", "batches"):

        def breaks_off(self: Tables, handle: object, name: str, *more: object, at: str = table) -> object:
            if name == at:
                raise KeyboardInterrupt
            return append(self, handle, name, *more)  # type: ignore[arg-type]

        monkeypatch.setattr(Tables, "commit", breaks_off)
        with pytest.raises(KeyboardInterrupt):
            ingest(folder, tree)
        monkeypatch.setattr(Tables, "commit", append)
        if table == "batches":
            break
    assert ingest(folder, tree).captures == 40
    assert counts(folder) == counts(store)


def test_only_runs_of_a_window(tree: Path, tmp_path: Path) -> None:
    options = ReadOptions(since=parse_time("2026-11-02T00:00:00Z"), until=parse_time("2026-11-03T00:00:00Z"))
    tally = ingest(tmp_path / "store", tree, options=options)
    assert tally.rows["runs"] == 13


def test_configured_mounts_and_paths(tmp_path: Path) -> None:
    config = Config(filesystems={"lake": FileSystemConfig(mounts=("/scratch",))}, sources={"darshan": {"paths": False}})
    ingest(tmp_path / "store", LOGS / "n1-write.darshan", config=config)
    (run,) = rows(tmp_path / "store", "runs")
    assert run["filesystem"] == "lake"
    files = rows(tmp_path / "store", "run_files")
    assert {row["path"] for row in files if row["module"] == "POSIX"} == {None}
    assert {row["filesystem"] for row in files if row["module"] == "POSIX"} == {"lake"}


def test_workers_load_what_one_process_does(
    tree: Path, tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathering, "MOST", 10)
    monkeypatch.setattr("iolens.store.readers.FEWEST", 2)
    captures = get_source("darshan").captures(sorted(tree.rglob("*.darshan")), ReadOptions())
    heard: list[str] = []
    tally = load(
        Tables(str(tmp_path / "store")), captures, "darshan", workers=2, progress=lambda item: heard.append(item.origin)
    )
    assert (tally.captures, tally.rows["runs"]) == (40, 40)
    assert heard == [str(path) for path in sorted(tree.rglob("*.darshan"))]
    assert counts(tmp_path / "store") == counts(store)


def test_small_captures_are_gathered_and_large_ones_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "LARGEST_BYTES", 100)
    monkeypatch.setattr(gathering, "MOST_BYTES", 150)

    def together(captures: object) -> Iterator[Rows]:
        return iter(())

    paths = []
    for number, size in enumerate((60, 60, 60, 200, 60, 60)):
        paths.append(tmp_path / str(number))
        paths[-1].write_bytes(b"x" * size)
    captures = [Capture(str(path), path.name, iter, together=together) for path in paths]  # type: ignore[arg-type]
    unwanted: list[str] = []
    done = list(
        gathering.gathered(captures, lambda item: item.identity != "4", lambda item: unwanted.append(item.identity))
    )
    assert [[member.identity for member in item.members] or item.identity for item in done] == [
        ["0", "1"], ["2"], "3", ["5"]]  # fmt: skip
    assert unwanted == ["4"]
