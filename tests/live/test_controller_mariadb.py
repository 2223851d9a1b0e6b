"""A controller export in a real MariaDB gives the same rows as the same content in CSV; its password is never shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from iolens.sources import ReadOptions, get_source
from iolens.sources.reading.sql_database import PASSWORD_VARIABLE
from iolens.store.store import Store
from tests.live.mariadb import HOST, MariaDb

pytestmark = pytest.mark.live

SETTINGS: dict[str, Any] = {
    "time": "sampled",
    "controller": "couplet",
    "timezone": "America/New_York",
    "table": "couplet_io",
    "columns": {
        "read_bytes": {"column": "rd_mbs", "unit": "MB/s"},
        "write_bytes": {"column": "wr_mbs", "unit": "MB/s"},
        "background_bytes": {"column": "rebuild_mbs", "unit": "MB/s"},
    },
    "sizes": {"table": "couplet_sizes", "size": "kib", "direction": "op", "count": "n"},
}
IO = [
    (
        f"2010-06-01 08:{second // 60:02d}:{second % 60:02d}",
        f"ddn{unit:02d}",
        unit * 1.25,
        second / 8,
        None if unit else 7,
    )
    for second in range(0, 120, 2)
    for unit in range(3)
]
SIZES = [
    (f"2010-06-01 08:{minute:02d}:00", f"ddn{unit:02d}", kib, op, 1000 * minute + kib)
    for minute in range(4)
    for unit in range(2)
    for kib in (16, 512, 4096)
    for op in ("read", "write")
]


@pytest.fixture(scope="module")
def url(mariadb: MariaDb) -> str:
    mariadb.run("CREATE DATABASE spider")
    io = "sampled DATETIME, couplet VARCHAR(16), rd_mbs DECIMAL(10,3), wr_mbs DOUBLE, rebuild_mbs DOUBLE"
    sizes = "sampled DATETIME, couplet VARCHAR(16), kib INT, op VARCHAR(8), n BIGINT UNSIGNED"
    mariadb.run(f"CREATE TABLE couplet_io ({io})", database="spider")
    mariadb.run(f"CREATE TABLE couplet_sizes ({sizes})", database="spider")
    mariadb.run("INSERT INTO couplet_io VALUES (%s, %s, %s, %s, %s)", IO, "spider")
    mariadb.run("INSERT INTO couplet_sizes VALUES (%s, %s, %s, %s, %s)", SIZES, "spider")
    mariadb.run(f"GRANT SELECT ON spider.* TO {mariadb.reader}@'{HOST}'")
    return mariadb.url("spider")


def csv_files(folder: Path) -> list[Path]:
    paths = [folder / "io.csv", folder / "sizes.csv"]
    heads = ("sampled,couplet,rd_mbs,wr_mbs,rebuild_mbs", "sampled,couplet,kib,op,n")
    for path, head, rows in zip(paths, heads, (IO, SIZES), strict=True):
        lines = [",".join("" if cell is None else str(cell) for cell in row) for row in rows]
        path.write_text("\n".join([head, *lines]) + "\n")
    return paths


def contents(store: Store, table: str) -> list[tuple[Any, ...]]:
    names = {
        "target_io": ("target", "epoch_us", "duration_s", "read_bytes", "write_bytes", "background_bytes"),
        "target_histograms": ("target", "epoch_us", "direction", "bin", "count"),
    }[table]
    frame = store.select("spider").frame(table).select(*names).collect("pyarrow").to_native()
    return sorted(zip(*(frame.column(name).to_pylist() for name in names), strict=True), key=str)


def test_the_database_and_the_csv_files_say_the_same(
    url: str, mariadb: MariaDb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSWORD_VARIABLE, mariadb.password)
    source, options = get_source("controller"), ReadOptions(filesystem="spider", settings=SETTINGS)
    live, plain = Store(tmp_path / "live"), Store(tmp_path / "plain")
    captures = list(source.url_captures([url], options))  # type: ignore[attr-defined]
    assert all(mariadb.password not in repr(capture) for capture in captures)
    assert live.ingest(captures, "controller").refused == 0
    assert plain.ingest(source.captures(csv_files(tmp_path), options), "controller").refused == 0
    for table in ("target_io", "target_histograms"):
        assert contents(live, table) == contents(plain, table)
    assert len(contents(live, "target_io")) == len(IO)
    again = live.ingest(source.url_captures([url], options), "controller")  # type: ignore[attr-defined]
    assert (again.already_present, dict(again.rows)) == (2, {})
