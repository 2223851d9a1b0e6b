"""What several processes do to one store at once; they meet first, so that they truly start together."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake import Schema as DeltaSchema

from iolens.records import Capture, Row
from iolens.schema import TABLES, Table
from iolens.store.rows import to_arrow
from iolens.store.store import Store
from iolens.store.tables import BatchPart, arrow_schema
from tests.store.samples import T0, capture, io_sample

PROCESSES = 8
SNAPSHOTS = 10


def meet(folder: Path, number: int, of: int = PROCESSES) -> None:
    """Wait until all have come."""
    folder.mkdir(exist_ok=True)
    (folder / str(number)).touch()
    deadline = time.monotonic() + 60
    while len(list(folder.iterdir())) < of:
        assert time.monotonic() < deadline, "the others never came"
        time.sleep(0.005)


def send_own_and_others(url: str, folder: Path, number: int) -> list[int]:
    """Two captures of one's own, and two of the next process, partly together; rows written by call."""
    from bench.soak import SOURCE
    from bench.soak import capture as soak_capture

    following = (number + 1) % PROCESSES
    meet(folder, number)
    store = Store(url)
    calls = [
        [soak_capture(number, 0), soak_capture(following, 0)],
        [soak_capture(following, 1)],
        [soak_capture(number, 1)],
    ]
    return [sum(store.ingest(captures, SOURCE).rows.values()) for captures in calls]


def snapshot(number: int) -> Capture:
    """One file with one sample of two targets that all writers share."""
    both = [io_sample(5 * number, 1000 * number * number, 10 * number, target=f"OST000{n}") for n in range(2)]
    return capture(both, f"snapshot {number}")


def send_snapshots(url: str, folder: Path, number: int) -> int:
    """A stretch of the snapshots that overlaps those of the neighbours, in small calls; samples refused as older."""
    stretch = [(number + step) % SNAPSHOTS for step in range(5)]
    meet(folder, number)
    store = Store(url)
    parts = (sorted(stretch[:2]), stretch[2:3], sorted(stretch[3:]))
    return sum(store.ingest([snapshot(item) for item in part], "test").older for part in parts)


def row_of(table: Table, writer: int) -> pa.Table:
    """One row with a value in every column."""
    values = {
        "timestamp": 1_600_000_000_000_000 + writer,
        "date": table.directory_day(date(2020, 9, 13)).toordinal() - date(1970, 1, 1).toordinal(),
        "int64": writer,
        "float64": writer + 0.5,
        "string": f"writer {writer}",
        "bool": True,
    }
    storage = {"timestamp": pa.int64(), "date": pa.int32()}
    schema = arrow_schema(table)
    columns = [
        pa.array([values[column.type]], storage.get(column.type, field.type)).cast(field.type)
        for column, field in zip(table.columns, schema, strict=True)
    ]
    return pa.table(columns, schema=schema)


def append_to_every_table(url: str, folder: Path, number: int) -> None:
    """The first row ever of each table, in an order of one's own."""
    store = Store(url)
    names = sorted(TABLES)
    random.Random(number).shuffle(names)
    names = ["target_io", *(name for name in names if name != "target_io")]  # at least here all are the first
    meet(folder, number)
    for name in names:
        store.tables.append(name, {BatchPart(f"writer/{number}", 1): row_of(TABLES[name], number)})


def send_grown_log(url: str, folder: Path, number: int) -> int:
    """A log of finished rows that is longer for each process, so that no two have the same identity."""
    rows = []
    for tick in range(3 + number):
        time_us = (T0 + 5 * tick) * 1_000_000
        head = {"time": time_us, "filesystem": "scratch", "target": "scratch-OST0000"}
        rows.append(Row("target_io", {**head, "start": time_us - 5_000_000, "duration_s": 5.0, "read_bytes": tick}))
        rows.append(Row("target_capacity", {**head, "used_bytes": tick}))
    meet(folder, number)
    return Store(url).ingest([capture(rows, f"log of {number}")], "test").repeated


def append_one_by_one(url: str, folder: Path, number: int) -> None:
    """A dozen captures of one target, while somebody else compacts."""
    store = Store(url)
    meet(folder, number, 2)
    for tick in range(12):
        store.ingest([capture([io_sample(5 * tick, 100 * tick, 0)], f"tick {tick}")], "test")
    (folder / "done").touch()


def append_to_tables_of_0_1(url: str, folder: Path, number: int) -> None:
    """Rows that all bring, and one of each writer's own, to tables that the first of them has to cut by `date`."""
    store = Store(url)
    meet(folder, number)
    for name in CUT_SINCE_0_1:
        store.append(name, row_of(TABLES[name], number), f"writer/{number}")
        store.append(name, row_of(TABLES[name], PROCESSES), "shared")


CUT_SINCE_0_1 = ("jobs", "drives", "runs", "run_files", "run_ranks")


def make_table_of_0_1(
    store: Store, name: str, rows: Sequence[Mapping[str, object]] = (), rows_per_file: int = 1
) -> None:
    """A table as iolens 0.1 made it: not cut by `date`, and without the columns that came later."""
    later = {"jobs": ("date", "ended"), "run_files": ("date", "start"), "run_ranks": ("date", "start")}
    older = [field for field in arrow_schema(TABLES[name]) if field.name not in later.get(name, ("date",))]
    content = to_arrow(TABLES[name], [dict(row) for row in rows]).select([field.name for field in older])
    DeltaTable.create(
        store.tables.uri(name),
        DeltaSchema.from_arrow(pa.schema(older)),
        description="iolens schema 1",
        configuration={"delta.dataSkippingNumIndexedCols": "-1"},
    )
    for place in range(0, content.num_rows, rows_per_file):  # a file and a mark for each
        marks = CommitProperties(app_transactions=[Transaction(f"file/old-{place}", 1_000_001)])
        write_deltalake(
            store.tables.uri(name), content.slice(place, rows_per_file), mode="append", commit_properties=marks
        )
