"""Tables are made on demand with the declared types, and grow columns without rewriting what is there."""

from __future__ import annotations

import ast
import dataclasses
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake import Schema as DeltaSchema

from iolens import schema
from iolens.counters import differences, rows
from iolens.errors import StoreError, UsageError
from iolens.schema import TABLES, Column, Table
from iolens.store import counter_series, placing, rebuild, units
from iolens.store import tables as tables_module
from iolens.store.duckdb_engine import data_files, relation
from iolens.store.maintenance import compact_store, store_info
from iolens.store.store import Store
from iolens.store.tables import VERSION_MARK, BatchPart, Tables, arrow_schema
from tests.store.samples import capture, io_sample
from tests.store.writers import row_of

DELTA_TYPES = {
    "timestamp": "timestamp",
    "date": "date",
    "int64": "long",
    "float64": "double",
    "string": "string",
    "bool": "boolean",
}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def nothing_but(table: Table, values: dict[str, object]) -> pa.Table:
    return pa.Table.from_pylist([values], schema=arrow_schema(table))


def read(tables: Tables, name: str) -> pa.Table:
    handle = tables.load(name)
    assert handle is not None
    columns = ", ".join(f'"{column.name}"' for column in TABLES[name].columns)
    return relation(tables, name, data_files(handle)).project(columns).to_arrow_table()


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_made_on_demand_and_gives_back_what_was_put_in(name: str, store: Store) -> None:
    table = TABLES[name]
    nulls = {"date": row_of(table, 0).column("date")[0].as_py()} if table.partitioned else {}
    store.tables.append(name, {BatchPart("full", 1): row_of(table, 7)})
    store.tables.append(name, {BatchPart("nulls", 1): nothing_but(table, nulls)})
    handle = store.tables.load(name)
    assert handle is not None
    assert [(field.name, field.type.type) for field in handle.schema().fields] == [
        (column.name, DELTA_TYPES[column.type]) for column in table.columns
    ]
    assert handle.metadata().partition_columns == (["date"] if table.partitioned else [])
    result = read(store.tables, name)
    assert result.schema.equals(arrow_schema(table))
    full, empty = sorted(result.to_pylist(), key=lambda row: sum(value is None for value in row.values()))
    assert full == row_of(table, 7).to_pylist()[0]
    assert {column: value for column, value in empty.items() if value is not None} == nulls


def test_every_column_has_a_type_the_store_knows_and_every_key_is_a_column() -> None:
    for table in TABLES.values():
        names = [column.name for column in table.columns]
        assert len(set(names)) == len(names)
        assert set(table.key) <= set(names)
        assert table.partitioned == ("date" in names)


@pytest.fixture
def older_store(store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store whose `target_io` was made and filled before `busy_us` existed."""
    table = TABLES["target_io"]
    older = dataclasses.replace(table, columns=tuple(column for column in table.columns if column.name != "busy_us"))
    with monkeypatch.context() as patch:
        patch.setitem(schema.TABLES, "target_io", older)
        store.ingest([capture([io_sample(0, 0, 0), io_sample(5, 100, 0)], "old")], "test")
    handle = store.tables.load("target_io")
    assert handle is not None
    assert "busy_us" not in [field.name for field in handle.schema().fields]
    return store


def new_row(store: Store) -> None:
    """A row of the same day that has the new column."""
    store.tables.append("target_io", {BatchPart("new", 1): row_of(TABLES["target_io"], 9)})


def test_a_column_that_an_older_store_lacks_reads_as_unknown(older_store: Store) -> None:
    result = older_store.select("scratch").frame("target_io").select("read_bytes", "busy_us").collect(backend="pyarrow")
    assert result.to_native().to_pylist() == [{"read_bytes": 100, "busy_us": None}]


def test_an_older_store_gets_the_column_with_the_first_append(older_store: Store) -> None:
    new_row(older_store)
    handle = older_store.tables.load("target_io")
    assert handle is not None
    assert "busy_us" in [field.name for field in handle.schema().fields]
    assert handle.to_pyarrow_table().column("busy_us").to_pylist().count(None) == 1


def test_files_from_before_and_after_a_migration_are_read_together(older_store: Store) -> None:
    new_row(older_store)
    assert sorted(read(older_store.tables, "target_io").column("busy_us").to_pylist(), key=str) == [9, None]


def test_files_from_before_and_after_a_migration_are_compacted_together(older_store: Store) -> None:
    new_row(older_store)
    compact_store(older_store)
    result = read(older_store.tables, "target_io").select(["read_bytes", "busy_us"]).to_pylist()
    assert sorted(result, key=str) == [{"read_bytes": 100, "busy_us": None}, {"read_bytes": 9, "busy_us": 9}]


def test_a_table_of_an_older_version_is_marked_with_the_new_one_once_migrated(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.tables.append("jobs", {BatchPart("a", 1): row_of(TABLES["jobs"], 1)})
    wider = dataclasses.replace(TABLES["jobs"], columns=(*TABLES["jobs"].columns, Column("queue", "string", "queue")))
    monkeypatch.setitem(schema.TABLES, "jobs", wider)
    monkeypatch.setattr(tables_module, "SCHEMA_VERSION", schema.SCHEMA_VERSION + 1)
    store.tables.append("jobs", {BatchPart("b", 1): row_of(wider, 2)})
    handle = DeltaTable(store.tables.uri("jobs"))
    assert handle.metadata().description == f"{VERSION_MARK}{schema.SCHEMA_VERSION + 1}"
    assert handle.to_pyarrow_table().num_rows == 2


@pytest.mark.parametrize(
    "use", [lambda store: store_info(store), lambda store: store.ingest([capture([io_sample(0, 0, 0)], "a")], "test")]
)
def test_a_store_written_by_a_newer_iolens_is_refused_with_both_versions(store: Store, use) -> None:
    DeltaTable.create(
        store.tables.uri("baselines"),
        schema=DeltaSchema.from_arrow(arrow_schema(TABLES["baselines"])),
        description=f"{VERSION_MARK}{schema.SCHEMA_VERSION + 1}",
    )
    with pytest.raises(
        StoreError, match=r"baselines has schema version 2, written by a newer iolens; this one knows 1"
    ):
        use(store)


def test_a_table_that_is_not_ours_is_refused(store: Store) -> None:
    DeltaTable.create(store.tables.uri("jobs"), schema=DeltaSchema.from_arrow(pa.schema([("x", pa.int64())])))
    with pytest.raises(StoreError, match="jobs was not written by iolens"):
        store.tables.load("jobs")


def test_an_address_with_credentials_is_refused_without_repeating_them() -> None:
    with pytest.raises(UsageError, match="from the environment") as refused:
        Tables("s3://somebody:hush@bucket/store")
    assert "hush" not in str(refused.value)


def test_what_the_counters_of_a_table_look_like_is_said_by_the_schema_alone() -> None:
    """No module that makes rows of counters, or counters of rows, tells tables apart by their names."""
    for module in (differences, rows, counter_series, placing, rebuild, units):
        tree = ast.parse(Path(module.__file__ or "").read_text())
        texts = {
            node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        named = texts.intersection(table.name for table in TABLES.values() if table.kind == "interval")
        assert named == set(), module.__name__


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_a_counter_form_names_columns_of_its_table(table: Table) -> None:
    form = table.form
    named = {*form.name_columns, *([form.set_column] if form.set_column else [])}
    assert named <= set(table.dimensions)
    if form.name_columns:
        assert {column for _, column in form.value_columns} <= set(table.counters)
