"""Where a store is says nothing about what is in it: odd paths mean the same to every library, or are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolens.errors import UsageError
from iolens.store import spark_engine
from iolens.store.durable import make_directory
from iolens.store.maintenance import compact_store, export_table, vacuum_store, verify_store
from iolens.store.rollup import roll_up
from iolens.store.store import Store
from iolens.store.tables import Tables
from tests.soak import IS_SOAK
from tests.store.samples import capture, io_sample

DAY_S = 86_400
FIRST, SECOND = "2020-09-13", "2020-09-14"


def fill(place: str | Path) -> None:
    """Two days of one target that reads 100 bytes in every interval, in several files."""
    for number in range(4):
        second = 5 * number + DAY_S * (number // 2)
        Store(place).ingest([capture([io_sample(second, 100 * number, 7 * number)], f"{number}")], "test")


def rows(place: str | Path, resolution: str | None = None) -> list[tuple[object, ...]]:
    names = ("date", "target", "read_bytes", "write_bytes", "epoch_us")
    frame = Store(place).select("scratch", resolution=resolution).frame("target_io").sort("epoch_us").select(*names)
    result = frame.collect(backend="pyarrow").to_native().to_pylist()
    return [(str(row["date"]), *(row[name] for name in names[1:4])) for row in result]


EXPECTED = [(day, "scratch-OST0000", 100, 7) for day in (FIRST, FIRST, SECOND)]  # an interval has the day it starts in


# Names that look like partitions, patterns or options; and names of odd characters, in each other's folders.
ALONE = (
    "read_bytes=7", "date=1999-01-01", f"date={SECOND}", "target=x/time=5", "=", "a=b=c", "{a,b}", "s3:", "~", "-x",
)  # fmt: skip
ODD = (
    "our centre's \"store\"", "a b", " a ", "100%", "%zz", "a+b&c;d,e", "a#b@c!d$e", "a:b", "(a)<b>", "ä é", "日本",
    "🙂", ".hidden",
)  # fmt: skip


@pytest.mark.parametrize("name", [*ALONE, *(ODD if IS_SOAK else ("/".join(ODD[:7]), "/".join(ODD[7:])))])
def test_a_store_with_an_odd_path_holds_what_was_put_in(name: str, tmp_path: Path) -> None:
    place = tmp_path / name
    fill(place)
    assert rows(place) == EXPECTED
    store = Store(place)
    compact_store(store)
    assert rows(place) == EXPECTED
    roll_up(store)
    assert sum(int(str(row[2])) for row in rows(place, "60s")) == 300
    vacuum_store(store, 0, force=True)
    assert rows(place) == EXPECTED
    assert export_table(store, "target_io", tmp_path / "out.csv") == 3
    checked = verify_store(store)
    assert (checked.faults, checked.unchecked) == ([], [])
    assert {path.name for path in tmp_path.iterdir()} == {Path(name).parts[0], "out.csv"}


@pytest.mark.parametrize("name", ["~", "~root/store", "x=1", "a:b", "s3:x", "-x", "./a/"])
def test_a_relative_path_is_one_below_the_present_directory(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    fill(name)
    assert rows(name) == EXPECTED
    assert rows(tmp_path / name) == EXPECTED


def test_a_file_address_is_a_path(tmp_path: Path) -> None:
    fill(f"file://{tmp_path}/a%20b")
    assert rows(tmp_path / "a b") == EXPECTED


@pytest.mark.parametrize(
    "name",
    [
        "a%20b",
        "a%2Fb",
        "%00",
        "a%25b",
        "a?b",
        "a*b",
        "a[b]",
        "a^b",
        "a|b",
        "a\\b",
        "a\nb",
        "a\tb",
        "a\x7fb",
        "_delta_log",
    ],
)
def test_a_path_that_libraries_read_differently_is_refused_at_once(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the path of a store cannot contain"):
        Store(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_is_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="must be text in UTF-8"):
        Store(f"{tmp_path}/a\udcffb")


@pytest.mark.parametrize("name", ["a%20b", "a?b=c", "a#b"])
def test_an_address_that_libraries_read_differently_is_refused_at_once(name: str) -> None:
    with pytest.raises(UsageError, match="the address of a store cannot contain"):
        Tables(f"s3://bucket/{name}")


def test_spark_would_take_braces_for_a_pattern(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"Spark takes \{ \} in a path for a pattern"):
        spark_engine._address(Tables(f"{tmp_path}/{{a,b}}"), "target_io")


def test_a_directory_that_another_writer_makes_meanwhile_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "store" / "target_io"
    looked = []

    def not_yet(path: Path) -> bool:
        looked.append(path)
        Path.mkdir(folder, parents=True, exist_ok=True)  # the other one is faster
        return False

    with monkeypatch.context() as patch:
        patch.setattr(Path, "is_dir", lambda path: not_yet(path) if path == folder and not looked else path.exists())
        make_directory(folder)
    assert (looked, folder.is_dir()) == ([folder], True)
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        make_directory(tmp_path / "file")
