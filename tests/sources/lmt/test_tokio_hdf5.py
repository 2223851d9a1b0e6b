"""TOKIO time series: amounts and rates, minus zero, and the same rows as LMT's own database and h5lmt give."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from iolens.errors import InputError
from iolens.records import Item, Problem, Rows
from iolens.sources import get_source
from iolens.sources.lmt.tokio_hdf5 import SOURCE
from iolens.sources.reading import hdf5_series as series_module
from iolens.sources.reading.options import ReadOptions
from iolens.store.readers import guarded
from iolens.store.store import Store

T0 = 1_513_152_000
OSTS = ["scratch-OST0000", "scratch-OST0001"]
LMT, COLLECTD = "snx11025_2018-01-28.hdf5", "sample_tokiots.hdf5"

NOTHING_SAID = ReadOptions()


def series_file(
    path: Path, datasets: dict[str, tuple[Any, list[str], str]], source: str = "lmt", step: int = 10
) -> Path:
    """Data sets as (values of step × column, columns, units); times of each group are ten seconds apart."""
    with h5py.File(path, "w") as file:
        file.attrs["version"] = "1"
        for name, (values, columns, units) in datasets.items():
            grid = np.asarray(values, float)
            group = file.require_group(name.partition("/")[0])
            group.attrs["source"] = source
            if "timestamps" not in group:
                group["timestamps"] = T0 + step * np.arange(len(grid))
            dataset = file.create_dataset(name, data=grid)
            dataset.attrs["columns"] = np.array(columns, "S")
            dataset.attrs["units"] = units
    return path


def items(path: Path, options: ReadOptions = NOTHING_SAID) -> list[Item]:
    return [item for capture in SOURCE.captures([path], options) for item in capture.items()]


def rows(results: list[Item], table: str = "target_io", by: str = "target") -> dict[str, Rows]:
    return {item.columns[by]: item for item in results if isinstance(item, Rows) and item.table == table}


def problems(results: list[Item]) -> list[str]:
    return [item.reason for item in results if isinstance(item, Problem)]


def test_amounts_are_per_step_whatever_their_units_say(tmp_path: Path) -> None:
    """Files written by pytokio call them bytes/sec."""
    values = [[1, 2], [3, 4], [5, 6]]
    path = series_file(tmp_path / "a.hdf5", {"datatargets/readbytes": (values, OSTS, "bytes/sec")})
    item = rows(items(path))[OSTS[1]].columns
    assert item["read_bytes"].tolist() == [2, 4, 6]
    assert item["start"].tolist() == [(T0 + 10 * n) * 10**6 for n in range(3)]
    assert item["time"].tolist() == [(T0 + 10 * n) * 10**6 for n in range(1, 4)]
    assert item["duration_s"].tolist() == [10.0] * 3
    assert (item["filesystem"], item["target_kind"]) == ("scratch", "ost")
    assert "write_bytes" not in item


def test_rates_are_per_second(tmp_path: Path) -> None:
    datasets = {
        "datatargets/readrates": ([[1.25], [2.0]], OSTS[:1], "bytes/sec"),
        "datatargets/writeoprates": ([[0.5], [0.25]], OSTS[:1], "ops/sec"),
    }
    item = rows(items(series_file(tmp_path / "a.hdf5", datasets)))[OSTS[0]].columns
    assert item["read_bytes"].tolist() == [12, 20]  # 12.5 rounds to even
    assert item["write_ops"].tolist() == [5, 2]


def test_minus_zero_and_nan_are_missing_and_zero_is_zero(tmp_path: Path) -> None:
    datasets = {
        "datatargets/readbytes": ([[0.0], [-0.0], [np.nan], [7], [-0.0]], OSTS[:1], "bytes"),
        "datatargets/writebytes": ([[1], [-0.0], [0.0], [-0.0], [-0.0]], OSTS[:1], "bytes"),
    }
    item = rows(items(series_file(tmp_path / "a.hdf5", datasets)))[OSTS[0]].columns
    assert item["time"].tolist() == [(T0 + 10 * n) * 10**6 for n in (1, 3, 4)]
    assert item["read_bytes"].tolist() == [0, None, 7]
    assert item["write_bytes"].tolist() == [1, 0, None]


def test_columns_are_found_by_name(tmp_path: Path) -> None:
    datasets = {
        "datatargets/readbytes": ([[1, 2], [1, 2]], OSTS, "bytes"),
        "datatargets/writebytes": ([[20, 10], [20, 10]], OSTS[::-1], "bytes"),
    }
    result = rows(items(series_file(tmp_path / "a.hdf5", datasets)))
    assert result[OSTS[0]].columns["write_bytes"].tolist() == [10, 10]
    assert result[OSTS[1]].columns["write_bytes"].tolist() == [20, 20]


def test_metadata_operations_of_the_only_server_are_the_first_mdts(tmp_path: Path) -> None:
    datasets = {
        "datatargets/readbytes": ([[1], [1]], OSTS[:1], "bytes"),
        "mdtargets/opens": ([[4], [5]], ["mds1"], "ops"),
        "mdtargets/statfss": ([[0], [1]], ["mds1"], "ops"),
        "mdtargets/getattrrates": ([[0.5], [0.7]], ["mds1"], "ops/sec"),
    }
    result = items(series_file(tmp_path / "a.hdf5", datasets))
    ops = rows(result, "metadata_ops")["scratch-MDT0000"].columns
    assert (ops["open"].tolist(), ops["statfs"].tolist(), ops["getattr"].tolist()) == ([4, 5], [0, 1], [5, 7])
    assert problems(result) == []


def test_several_metadata_servers_keep_their_names(tmp_path: Path) -> None:
    datasets = {"mdtargets/opens": ([[4, 1], [5, 1]], ["mds1", "mds2"], "ops")}
    result = rows(items(series_file(tmp_path / "scratch_2017-12-13.hdf5", datasets)), "metadata_ops")
    assert sorted(result) == ["mds1", "mds2"]


def test_fullness_by_its_unit(tmp_path: Path) -> None:
    datasets = {
        "fullness/bytes": ([[10, -0.0], [11, 5]], OSTS, "KiB"),
        "fullness/bytestotal": ([[100, -0.0], [100, 100]], OSTS, "KiB"),
        "fullness/inodes": ([[3, -0.0], [4, 4]], OSTS, "inodes"),
    }
    result = rows(items(series_file(tmp_path / "a.hdf5", datasets)), "target_capacity")
    item = result[OSTS[0]].columns
    assert item["used_bytes"].tolist() == [10240, 11264]
    assert item["free_bytes"].tolist() == [92160, 91136]
    assert (item["time"][0], item["used_inodes"].tolist()) == (T0 * 10**6, [3, 4])
    assert "total_inodes" not in item
    assert len(result[OSTS[1]]) == 1


def test_fullness_in_a_unit_nobody_knows_is_left_out(tmp_path: Path) -> None:
    path = series_file(tmp_path / "a.hdf5", {"fullness/bytes": ([[10], [11]], OSTS[:1], "blocks")})
    result = items(path)
    assert problems(result) == ["fullness/bytes is in no known unit: left out"]
    assert rows(result, "target_capacity") == {}


@pytest.mark.parametrize(
    ("datasets", "cpu", "memory"),
    [
        ({"cpuload": (5.0, "%"), "memused": (91.0, "%")}, 5.0, 91.0),
        (
            {"cpuuser": (5.0, "%"), "cpusys": (2.0, "%"), "memfree": (25.0, "bytes"), "memtotal": (100.0, "bytes")},
            7.0,
            75.0,
        ),
        ({"cpuload": (5.0, "%"), "memused": (4e9, "bytes")}, 5.0, None),
        ({"memused": (30.0, "bytes"), "memtotal": (120.0, "bytes")}, None, 25.0),
    ],
)
def test_load_of_servers(
    tmp_path: Path, datasets: dict[str, tuple[float, str]], cpu: float | None, memory: float | None
) -> None:
    content = {f"dataservers/{name}": ([[value]] * 2, ["oss1"], unit) for name, (value, unit) in datasets.items()}
    path = series_file(tmp_path / "scratch_2017-12-13.hdf5", content)
    load = rows(items(path), "host_load", by="host")["oss1"].columns
    for name, expected in (("cpu_pct", cpu), ("memory_pct", memory)):
        assert np.array_equal(load[name], [np.nan if expected is None else expected] * 2, equal_nan=True)
    assert problems(items(path)) == []


@pytest.mark.parametrize(("source", "kind"), [("collectd_disk", "device"), ("mmperfmon", "lun"), ("other", "device")])
def test_a_target_is_what_the_tool_measures(tmp_path: Path, source: str, kind: str) -> None:
    datasets = {"datatargets/readrates": ([[1.0], [1.0]], ["bb1:nvme0n1"], "bytes/sec")}
    result = items(series_file(tmp_path / "a.hdf5", datasets, source), ReadOptions(filesystem="bb"))
    assert rows(result)["bb1:nvme0n1"].columns["target_kind"] == kind


def test_without_a_name_the_file_system_is_asked_for(tmp_path: Path) -> None:
    datasets = {"datatargets/readrates": ([[1.0], [1.0]], ["bb1:nvme0n1"], "bytes/sec")}
    with pytest.raises(InputError, match="nothing here tells the file system; expected --filesystem"):
        items(series_file(tmp_path / "a.hdf5", datasets))


def test_known_data_sets_of_no_table_are_silent_and_strangers_are_reported(tmp_path: Path) -> None:
    datasets = {
        "datatargets/readbytes": ([[1], [1]], OSTS[:1], "bytes"),
        "dataservers/netinbytes": ([[1], [1]], ["oss1"], "bytes"),
        "failover/datatargets": ([[1], [1]], OSTS[:1], ""),
        "datatargets/temperature": ([[1], [1]], OSTS[:1], "C"),
    }
    result = items(series_file(tmp_path / "a.hdf5", datasets))
    assert problems(result) == ["data set datatargets/temperature is of no known TOKIO series: left out"]


def test_negative_amounts_are_reported(tmp_path: Path) -> None:
    path = series_file(tmp_path / "a.hdf5", {"datatargets/readbytes": ([[1], [-5], [2]], OSTS[:1], "bytes")})
    result = items(path)
    assert problems(result) == ["datatargets/read_bytes: 1 values are negative or too large to be counts"]
    assert rows(result)[OSTS[0]].columns["read_bytes"].tolist() == [1, 2]


def test_a_version_nobody_knows_is_refused(tmp_path: Path) -> None:
    path = series_file(tmp_path / "a.hdf5", {"datatargets/readbytes": ([[1], [1]], OSTS[:1], "bytes")})
    with h5py.File(path, "a") as file:
        file.attrs["version"] = "17"
    with pytest.raises(InputError, match="TOKIO schema version '17' is not known"):
        items(path)


def test_times_that_do_not_rise_cost_their_group_only(tmp_path: Path) -> None:
    datasets = {
        "datatargets/readbytes": ([[1], [1]], OSTS[:1], "bytes"),
        "fullness/bytes": ([[1], [1]], OSTS[:1], "KiB"),
    }
    path = series_file(tmp_path / "a.hdf5", datasets)
    with h5py.File(path, "a") as file:
        file["datatargets/timestamps"][...] = [T0, T0]
    result = items(path)
    assert problems(result) == ["the times in datatargets/timestamps do not rise: the rest of datatargets left out"]
    assert list(rows(result, "target_capacity")) == OSTS[:1]


def test_a_few_bytes_that_declare_terabytes_are_refused_and_cost_their_group_only(tmp_path: Path) -> None:
    datasets = {
        "datatargets/readbytes": ([[1], [1]], OSTS[:1], "bytes"),
        "fullness/bytes": ([[1], [1]], OSTS[:1], "KiB"),
    }
    path = series_file(tmp_path / "a.hdf5", datasets)
    with h5py.File(path, "a") as file:
        huge = file["datatargets"].create_dataset("writebytes", (2, 10**12), "f8", chunks=(1, 1024))
        huge.attrs["columns"] = np.array(OSTS[:1], "S")
    assert path.stat().st_size < 100_000
    result = items(path)
    assert problems(result) == [
        "/datatargets/writebytes declares 2000000000000 numbers: the rest of datatargets left out"
    ]
    assert list(rows(result, "target_capacity")) == OSTS[:1]


@pytest.mark.parametrize("times", [["a", "b"], [1e300, 2e300], [[T0], [T0 + 10]], []])
def test_times_that_are_none_are_refused(tmp_path: Path, times: Any) -> None:
    path = series_file(tmp_path / "a.hdf5", {"datatargets/readbytes": ([[1], [1]], OSTS[:1], "bytes")})
    with h5py.File(path, "a") as file:
        del file["datatargets/timestamps"]
        file["datatargets/timestamps"] = np.array(times, "S" if times and isinstance(times[0], str) else "f8")
    refused = [item for capture in SOURCE.captures([path], NOTHING_SAID) for item in guarded(capture)]
    assert refused
    assert all(isinstance(item, Problem) and "please report" not in item.reason for item in refused)


def test_groups_within_groups_have_an_end(tmp_path: Path) -> None:
    path = series_file(tmp_path / "a.hdf5", {"datatargets/readbytes": ([[1], [1]], OSTS[:1], "bytes")})
    with h5py.File(path, "a") as file:
        group = file
        for _ in range(3000):  # a walk down them in C overflows its stack
            group = group.create_group("g")
        group["x"] = [1]
        file["datatargets/again"] = h5py.SoftLink("/datatargets")
    assert list(rows(items(path))) == OSTS[:1]


def test_damaged_files_are_refused_by_name(tmp_path: Path) -> None:
    whole = series_file(tmp_path / "a.hdf5", {"datatargets/readbytes": (np.ones((500, 2)), OSTS, "bytes")})
    assert SOURCE.recognises(whole, whole.read_bytes())
    content = whole.read_bytes()
    for number, part in enumerate(
        (b"", content[:100], content[: len(content) // 2], b"\x89HDF\r\n\x1a\n" + b"\xff" * 3000)
    ):
        damaged = tmp_path / f"damaged{number}.hdf5"
        damaged.write_bytes(part)
        assert not SOURCE.recognises(damaged, part)
        with pytest.raises(InputError, match=f"damaged{number}"):
            items(damaged)


READ_IT = """
import sys
from pathlib import Path
from iolens.sources.reading.options import ReadOptions
from iolens.sources import get_source
from iolens.store.readers import guarded
(capture,) = get_source("tokio-hdf5").captures([Path(sys.argv[1])], ReadOptions())
print(*guarded(capture))
"""


def test_a_heap_over_which_the_library_never_comes_back_is_refused(tmp_path: Path) -> None:
    """Free space of no bytes among the strings: without the check it is read for ever, so another process reads it."""
    path = series_file(tmp_path / "a.hdf5", {"datatargets/readbytes": ([[1], [1]], OSTS[:1], "bytes")})
    content = bytearray(path.read_bytes())
    first = content.index(b"GCOL\x01") + 16
    content[first : first + 16] = bytes(16)
    path.write_bytes(content)
    done = subprocess.run(
        [sys.executable, "-c", READ_IT, path], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.strip() == f"{path}: HDF5: a damaged heap at byte {first - 16}; expected a whole HDF5 file"


def test_a_link_to_nothing_costs_itself(tmp_path: Path) -> None:
    path = series_file(tmp_path / "a.hdf5", {"datatargets/readbytes": ([[1], [1]], OSTS[:1], "bytes")})
    with h5py.File(path, "a") as file:
        file["datatargets/writebytes"] = h5py.SoftLink("/nowhere")
    result = items(path)
    assert list(rows(result, "target_io")) == OSTS[:1]
    assert problems(result) == ["data set datatargets/writebytes is a link to nothing: left out"]


def test_another_hdf5_file_is_not_recognised(tmp_path: Path) -> None:
    path = tmp_path / "other.hdf5"
    with h5py.File(path, "w") as file:
        file["a/b"] = np.zeros(10)
    assert not SOURCE.recognises(path, path.read_bytes())
    with pytest.raises(InputError, match="no group of a TOKIO time series"):
        items(path)


def test_blocks_do_not_change_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.arange(40.0).reshape(20, 2)
    path = series_file(tmp_path / "a.hdf5", {"datatargets/readbytes": (values, OSTS, "bytes")})
    monkeypatch.setattr(series_module, "BLOCK_CELLS", 6)
    pieces = [item for item in items(path) if isinstance(item, Rows) and item.columns["target"] == OSTS[1]]
    assert [len(piece) for piece in pieces] == [3, 3, 3, 3, 3, 3, 2]
    assert [value for piece in pieces for value in piece.columns["read_bytes"].tolist()] == values[:, 1].tolist()
    durations = {value for piece in pieces for value in piece.columns["duration_s"].tolist()}
    assert durations == {10.0}


def test_a_capture_travels_to_another_process(tmp_path: Path) -> None:
    path = series_file(tmp_path / "a.hdf5", {"datatargets/readbytes": ([[1], [1]], OSTS[:1], "bytes")})
    (capture,) = pickle.loads(pickle.dumps(list(SOURCE.captures([path], ReadOptions()))))
    assert len(list(capture.items())) == 1


# --- the real things


def stored(store: Store, filesystem: str, source: str, table: str, *columns: str) -> dict[tuple, tuple]:
    frame = store.select(filesystem, source=source).frame(table).select("target", "epoch_us", *columns)
    native = frame.collect("pyarrow").to_native().to_pylist()
    return {(row["target"], row["epoch_us"]): tuple(row[name] for name in columns) for row in native}


def test_the_collectd_series(shared_data: Path, tmp_path: Path) -> None:
    """16,002 of 23,040 samples are missing; what is left adds up to ten seconds times the rates."""
    store = Store(tmp_path / "store")
    path = shared_data / "h5lmt" / COLLECTD
    tally = store.ingest(SOURCE.captures([path], ReadOptions(filesystem="bb")), "tokio-hdf5")
    assert (tally.rows["target_io"], tally.refused) == (360 * 64 - 16_002, 0)
    result = stored(store, "bb", "tokio-hdf5", "target_io", "read_bytes", "write_bytes")
    assert sum(row[0] for row in result.values()) == pytest.approx(16_595_150_113, abs=len(result))
    assert sum(row[1] for row in result.values()) == pytest.approx(64_094_869_268, abs=len(result))


def test_three_sources_of_the_same_hours_agree(shared_data: Path, tmp_path: Path) -> None:
    """The database, its h5lmt and its TOKIO series: the same targets, the same intervals, within 0.1 %: exactly."""
    store = Store(tmp_path / "store")
    inputs = {
        "lmt-db": (shared_data / "lmt-db" / "snx11025_2018-01-28.sqlite3", ReadOptions(timezone="America/Los_Angeles")),
        "h5lmt": (shared_data / "h5lmt" / "snx11025_2018-01-28.h5lmt", ReadOptions()),
        "tokio-hdf5": (shared_data / "h5lmt" / LMT, ReadOptions()),
    }
    for name, (path, options) in inputs.items():
        assert store.ingest(get_source(name).captures([path], options), name).refused == 0
    operations = ("open", "close", "mknod", "unlink", "rename", "getattr", "setattr", "getxattr", "statfs", "mkdir")
    bytes_ = [
        stored(store, "snx11025", name, "target_io", "read_bytes", "write_bytes", "duration_s") for name in inputs
    ]
    ops = [stored(store, "snx11025", name, "metadata_ops", *operations) for name in inputs]
    assert len(bytes_[0]) == 24 * 60
    assert len(ops[0]) == 60
    assert bytes_[0] == bytes_[1] == bytes_[2]
    assert ops[0] == ops[1] == ops[2]
    capacity = ("used_bytes", "total_bytes", "used_inodes", "total_inodes")
    database, series = (
        stored(store, "snx11025", name, "target_capacity", *capacity) for name in ("lmt-db", "tokio-hdf5")
    )
    assert len(series) == 24 * 60
    assert series.items() <= database.items()


def test_the_versions_file_is_not_a_series(shared_data: Path) -> None:
    path = shared_data / "h5lmt" / "versions_test.hdf5"
    assert not SOURCE.recognises(path, path.read_bytes())
    with pytest.raises(InputError, match="version 'global' is not known"):
        items(path)
