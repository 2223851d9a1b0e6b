"""h5lmt day files: bytes of every interval, and zero reported from nothing known."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from iolens.errors import InputError
from iolens.records import Item, Problem, Rows
from iolens.sources.lmt.h5lmt import SOURCE
from iolens.sources.reading import hdf5_series as series_module
from iolens.sources.reading.options import ReadOptions
from iolens.store.store import Store

T0 = 1_517_126_400
OSTS = [f"scratch-OST{n:04x}" for n in range(4)]
OPERATIONS = ["open", "close", "iocontrol", "sync", "getattr"]
REAL = "snx11025_2018-01-28.h5lmt"

NOTHING_SAID = ReadOptions()


def day_file(path: Path, steps: int = 6, **changed: Any) -> Path:
    """Four OSTs on two OSSs, rates of 100 × (OST + 1) read and twice that written; column 0 is of the day before."""
    columns = np.arange(steps)
    rates = np.where(columns == 0, 7.0, 100.0 * np.arange(1, 5)[:, None])
    operations = np.where(columns == 0, 9.0, np.array([3.0, 2.0, 1.0, 0.0, 4.0])[:, None])
    content = {
        "FSStepsGroup/FSStepsDataSet": T0 + 5 * columns.astype(np.int32),
        "FSMissingGroup/FSMissingDataSet": np.zeros((2, steps), np.int32),
        "OSTReadGroup/OSTBulkReadDataSet": rates,
        "OSTWriteGroup/OSTBulkWriteDataSet": 2 * rates,
        "OSSCPUGroup/OSSCPUDataSet": np.full((2, steps), 1.5),
        "MDSCPUGroup/MDSCPUDataSet": np.full(steps, 2.5),
        "MDSOpsGroup/MDSOpsDataSet": operations,
    } | changed
    names = {"Bulk": ("OSTNames", OSTS), "OSSCPU": ("OSSNames", ["oss1", "oss2"]), "MDSOps": ("OpNames", OPERATIONS)}
    with h5py.File(path, "w") as file:
        for name, values in content.items():
            if values is None:
                continue
            dataset = file.create_dataset(name, data=values)
            for part, (attribute, called) in names.items():
                if part in name.rpartition("/")[2]:
                    dataset.attrs[attribute] = np.array(called, "S")
    return path


def items(path: Path, options: ReadOptions = NOTHING_SAID) -> list[Item]:
    return [item for capture in SOURCE.captures([path], options) for item in capture.items()]


def rows(results: list[Item], table: str = "target_io", by: str = "target") -> dict[str, Rows]:
    return {item.columns[by]: item for item in results if isinstance(item, Rows) and item.table == table}


def problems(results: list[Item]) -> list[str]:
    return [item.reason for item in results if isinstance(item, Problem)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return day_file(tmp_path / "day.h5lmt")


def test_rates_times_the_step_are_bytes_and_a_column_ends_at_its_step(path: Path) -> None:
    result = rows(items(path))
    assert sorted(result) == OSTS
    item = result[OSTS[2]].columns
    assert item["read_bytes"].tolist() == [1500] * 5
    assert item["write_bytes"].tolist() == [3000] * 5
    assert item["time"].tolist() == [(T0 + 5 * n) * 10**6 for n in range(1, 6)]
    assert item["start"].tolist() == [(T0 + 5 * n) * 10**6 for n in range(5)]
    assert (item["duration_s"].tolist(), item["target_kind"], item["filesystem"]) == ([5.0] * 5, "ost", "scratch")


def test_the_first_column_belongs_to_the_day_before(path: Path) -> None:
    assert all(7 * 5 not in row.columns["read_bytes"] for row in rows(items(path)).values())


def test_bytes_are_rounded_to_whole_ones(tmp_path: Path) -> None:
    rates = np.full((4, 6), 3837.2)
    result = rows(items(day_file(tmp_path / "day.h5lmt", **{"OSTWriteGroup/OSTBulkWriteDataSet": rates})))
    assert result[OSTS[0]].columns["write_bytes"].tolist() == [19186] * 5


def test_operations_of_the_one_mds(path: Path) -> None:
    ops = rows(items(path), "metadata_ops")["scratch-MDT0000"].columns
    assert ops["open"].tolist() == [15] * 5
    assert ops["getattr"].tolist() == [20] * 5
    assert "sync" not in ops  # never more than zero, and LMT does not look at it: not known
    assert problems(items(path)) == []


def test_load_is_of_the_time_of_a_step(path: Path) -> None:
    load = rows(items(path), "host_load", by="host")
    assert sorted(load) == ["oss1", "oss2"]
    assert load["oss1"].columns["time"].tolist() == [(T0 + 5 * n) * 10**6 for n in range(6)]
    named = items(path, ReadOptions(settings={"mds_host": "mds1"}))
    assert rows(named, "host_load", by="host")["mds1"].columns["cpu_pct"].tolist() == [2.5] * 6


def test_a_few_bytes_that_declare_terabytes_are_refused(tmp_path: Path) -> None:
    for name, shape in (("FSStepsGroup/FSStepsDataSet", (10**12,)), ("OSTReadGroup/OSTBulkReadDataSet", (4, 10**12))):
        path = day_file(tmp_path / "day.h5lmt", **{name: None})
        with h5py.File(path, "a") as file:
            file.create_dataset(name, shape, "f8", chunks=(1024,) if len(shape) == 1 else (1, 1024))
            file[name].attrs["OSTNames"] = np.array(OSTS, "S")
        with pytest.raises(InputError, match=r"declares [0-9]+ numbers"):
            items(path)


# --- zero or nothing


def test_an_idle_ost_is_zero(tmp_path: Path) -> None:
    rates = np.zeros((4, 6))
    changed = {"OSTReadGroup/OSTBulkReadDataSet": rates, "OSTWriteGroup/OSTBulkWriteDataSet": rates}
    result = rows(items(day_file(tmp_path / "day.h5lmt", **changed)))
    assert result[OSTS[0]].columns["read_bytes"].tolist() == [0] * 5


def test_a_flag_of_an_oss_makes_the_zeros_of_its_osts_unknown(tmp_path: Path) -> None:
    flags = np.zeros((2, 6), np.int32)
    flags[1, 3] = 1
    read = np.full((4, 6), 100.0)
    write = np.full((4, 6), 200.0)
    read[:, 3] = write[:, 3] = 0.0
    write[3, 3] = 5.0  # a value was loaded after all
    changed = {
        "FSMissingGroup/FSMissingDataSet": flags,
        "OSTReadGroup/OSTBulkReadDataSet": read,
        "OSTWriteGroup/OSTBulkWriteDataSet": write,
    }
    result = rows(items(day_file(tmp_path / "day.h5lmt", **changed)))
    assert [len(result[name]) for name in OSTS] == [5, 5, 4, 5]
    assert result[OSTS[0]].columns["read_bytes"].tolist() == [500, 500, 0, 500, 500]


def test_a_flag_whose_osts_are_not_known_makes_all_zeros_doubtful(tmp_path: Path) -> None:
    flags = np.zeros((3, 6), np.int32)  # four OSTs cannot be divided among three
    flags[0, 3] = 1
    rates = np.full((4, 6), 100.0)
    rates[:, 3] = 0.0
    changed = {
        "FSMissingGroup/FSMissingDataSet": flags,
        "OSTReadGroup/OSTBulkReadDataSet": rates,
        "OSTWriteGroup/OSTBulkWriteDataSet": rates,
    }
    result = rows(items(day_file(tmp_path / "day.h5lmt", **changed)))
    assert [len(result[name]) for name in OSTS] == [4, 4, 4, 4]


def test_steps_into_which_nothing_was_loaded_are_not_idle(tmp_path: Path) -> None:
    """A day file is made for the whole day, full of zeros, and loaded hour by hour."""
    changed: dict[str, Any] = {}
    with h5py.File(day_file(tmp_path / "whole.h5lmt", 12), "r") as whole:
        for group in whole.values():
            for dataset in group.values():
                values = dataset[...]
                if dataset.name != "/FSStepsGroup/FSStepsDataSet":
                    values[..., 8:] = 0
                changed[dataset.name.strip("/")] = values
    result = items(day_file(tmp_path / "day.h5lmt", 12, **changed))
    assert {len(row) for row in rows(result).values()} == {7}
    assert len(rows(result, "metadata_ops")["scratch-MDT0000"]) == 7
    assert {len(row) for row in rows(result, "host_load", by="host").values()} == {8}


def test_a_file_of_a_day_with_23_hours_has_columns_without_a_step(tmp_path: Path) -> None:
    rates = np.zeros((4, 9))
    rates[:, :6] = 100.0
    result = items(day_file(tmp_path / "day.h5lmt", **{"OSTReadGroup/OSTBulkReadDataSet": rates}))
    assert (len(rows(result)[OSTS[0]]), problems(result)) == (5, [])
    rates[0, 8] = 1.0
    result = items(day_file(tmp_path / "day.h5lmt", **{"OSTReadGroup/OSTBulkReadDataSet": rates}))
    assert problems(result) == ["OSTReadGroup/OSTBulkReadDataSet has values after the last step: left out"]


def test_a_file_of_a_day_with_25_hours_has_steps_without_a_column(tmp_path: Path) -> None:
    result = rows(items(day_file(tmp_path / "day.h5lmt", **{"OSTReadGroup/OSTBulkReadDataSet": np.full((4, 4), 1.0)})))
    assert result[OSTS[0]].columns["read_bytes"].tolist() == [5, 5, 5, None, None]


@pytest.mark.parametrize("value", [-3.0, 1e300, np.inf])
def test_what_is_no_rate_is_reported_and_not_known(tmp_path: Path, value: float) -> None:
    rates = np.full((4, 6), 100.0)
    rates[1, 2] = value
    result = items(day_file(tmp_path / "day.h5lmt", **{"OSTReadGroup/OSTBulkReadDataSet": rates}))
    assert problems(result) == ["read_bytes: 1 values are negative or too large to be counts"]
    assert rows(result)[OSTS[1]].columns["read_bytes"].tolist() == [500, None, 500, 500, 500]


# --- disk I/O sizes


def test_sizes_of_the_fsu_authors_files(path: Path) -> None:
    with h5py.File(path, "a") as file:
        for direction, group in (("Read", "OSTReadGroup"), ("Write", "OSTWriteGroup")):
            values = np.full((4, 3, 6), 2.0 if direction == "Read" else 4.0)
            dataset = file.create_dataset(f"{group}/OSTIosize{direction}DataSet", data=values)
            dataset.attrs["bins"] = np.array([4096, 1048576, 3000])
            dataset.attrs["OSTNames"] = np.array(OSTS, "S")
    sizes = rows(items(path), "target_sizes")[OSTS[1]].columns
    assert sizes["read_ios_4096"].tolist() == [10] * 5
    assert sizes["write_ios_1048576"].tolist() == [20] * 5
    assert sizes["write_ios_outside"].tolist() == [20] * 5
    assert "read_ios_8192" not in sizes  # the file has no such bin: not known


def test_sizes_that_were_never_loaded_are_not_zero(path: Path) -> None:
    with h5py.File(path, "a") as file:
        dataset = file.create_dataset("OSTReadGroup/OSTIosizeReadDataSet", data=np.zeros((4, 3, 6)))
        dataset.attrs["bins"] = np.array([4096, 8192, 16384])
        dataset.attrs["OSTNames"] = np.array(OSTS, "S")
    assert rows(items(path), "target_sizes") == {}


# --- names, damage, identity


def test_the_file_system_is_the_files_own_word_or_the_osts(path: Path, tmp_path: Path) -> None:
    with h5py.File(path, "a") as file:
        file["FSStepsGroup/FSStepsDataSet"].attrs["fs"] = "scratch2"
    assert {row.columns["filesystem"] for row in rows(items(path)).values()} == {"scratch2"}
    given = items(path, ReadOptions(filesystem="work"))
    assert {row.columns["filesystem"] for row in rows(given).values()} == {"work"}


def test_a_file_that_names_no_file_system_asks_for_one(path: Path, tmp_path: Path) -> None:
    with h5py.File(path, "a") as file:
        for name in ("OSTReadGroup/OSTBulkReadDataSet", "OSTWriteGroup/OSTBulkWriteDataSet"):
            file[name].attrs["OSTNames"] = np.array(["a", "b", "c", "d"], "S")
    with pytest.raises(InputError, match="expected --filesystem"):
        items(path)
    dated = path.rename(tmp_path / "home_2018-01-28.h5lmt")
    assert {row.columns["filesystem"] for row in rows(items(dated)).values()} == {"home"}


def test_an_operation_or_data_set_nobody_knows_is_reported(path: Path) -> None:
    with h5py.File(path, "a") as file:
        names = [b"open", b"close", b"levitate", b"sync", b"getattr"]
        file["MDSOpsGroup/MDSOpsDataSet"].attrs["OpNames"] = np.array(names)
        file["Extra/Numbers"] = np.zeros(3)
    assert problems(items(path)) == [
        "data set Extra/Numbers is not of h5lmt: left out",
        "operation 'levitate' is of no known version of Lustre",
    ]


@pytest.mark.parametrize("steps", [[T0, T0, T0 + 5], [T0 + 5, T0], [T0], [0, 5, 10]])
def test_steps_that_do_not_rise_are_refused(tmp_path: Path, steps: list[int]) -> None:
    path = day_file(tmp_path / "day.h5lmt", **{"FSStepsGroup/FSStepsDataSet": np.array(steps, np.int32)})
    with pytest.raises(InputError, match="FSStepsDataSet"):
        items(path)


def test_damaged_files_are_refused_by_name(path: Path, tmp_path: Path) -> None:
    content = path.read_bytes()
    for number, part in enumerate(
        (b"", content[:100], content[: len(content) // 2], b"\x89HDF\r\n\x1a\n" + b"\xff" * 3000)
    ):
        damaged = tmp_path / f"damaged{number}.h5lmt"
        damaged.write_bytes(part)
        assert not SOURCE.recognises(damaged, part)
        with pytest.raises(InputError, match=f"damaged{number}"):
            items(damaged)


def test_a_file_without_an_attribute_or_group_says_which(tmp_path: Path) -> None:
    path = day_file(tmp_path / "day.h5lmt")
    with h5py.File(path, "a") as file:
        del file["MDSOpsGroup/MDSOpsDataSet"].attrs["OpNames"]
    with pytest.raises(InputError, match="MDSOpsDataSet does not name its columns; expected attribute OpNames"):
        items(path)
    bare = day_file(tmp_path / "bare.h5lmt", **{"MDSOpsGroup/MDSOpsDataSet": None, "OSSCPUGroup/OSSCPUDataSet": None})
    assert {item.table for item in items(bare) if isinstance(item, Rows)} == {"target_io"}


def test_blocks_do_not_change_the_rows(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = {name: row.columns["read_bytes"].tolist() for name, row in rows(items(path)).items()}
    monkeypatch.setattr(series_module, "BLOCK_CELLS", 7)
    assert {name: row.columns["read_bytes"].tolist() for name, row in rows(items(path)).items()} == whole


def test_settings_nobody_knows_are_refused(path: Path) -> None:
    with pytest.raises(InputError, match=r"sources\.h5lmt\.colour"):
        items(path, ReadOptions(settings={"colour": "red"}))


def test_identity_is_the_content_and_what_was_said(path: Path) -> None:
    (first,) = SOURCE.captures([path], ReadOptions())
    (second,) = SOURCE.captures([path], ReadOptions(filesystem="work"))
    assert first.identity != second.identity
    assert len(list(pickle.loads(pickle.dumps(first)).items())) == len(list(first.items()))


# --- the real thing


def test_the_real_file_against_its_notes(shared_data: Path, tmp_path: Path) -> None:
    path = shared_data / "h5lmt" / REAL
    assert SOURCE.recognises(path, path.read_bytes()[:65536])
    store = Store(tmp_path / "store")
    tally = store.ingest(SOURCE.captures([path], ReadOptions()), "h5lmt")
    assert (tally.refused, tally.noted) == (0, 0)
    assert dict(tally.rows) == {"target_io": 24 * 60, "metadata_ops": 60, "host_load": 24 * 61}
    io = store.select("snx11025").frame("target_io").select("read_bytes", "write_bytes").collect("pyarrow").to_native()
    assert sum(io.column("read_bytes").to_pylist()) == 6_347_173_888
    assert sum(io.column("write_bytes").to_pylist()) == 119_037_925_429
    again = store.ingest(SOURCE.captures([path], ReadOptions()), "h5lmt")
    assert (again.already_present, dict(again.rows)) == (1, {})
