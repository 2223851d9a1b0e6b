"""Delta tables on S3: what is written comes back, and of two concurrent writers of one batch exactly one wins."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError

from tests.live.s3_emulator import S3Emulator

pytestmark = pytest.mark.live

ROWS = pa.table({"target": ["OST0000", "OST0001"], "bytes": [4096, 1048576]})


@pytest.fixture(params=["s3", "disk"])
def place(request: pytest.FixtureRequest, emulator: S3Emulator, tmp_path: Path) -> tuple[str, dict[str, str] | None]:
    """The same specification holds on S3 and on local disk."""
    if request.param == "s3":
        return f"{emulator.url}/{request.node.originalname}", emulator.storage_options
    return str(tmp_path / "table"), None


def test_a_table_comes_back(place: tuple[str, dict[str, str] | None]) -> None:
    url, options = place
    write_deltalake(url, ROWS, storage_options=options)
    assert DeltaTable(url, storage_options=options).to_pyarrow_table().equals(ROWS)


def test_the_second_writer_of_a_batch_fails(place: tuple[str, dict[str, str] | None]) -> None:
    url, options = place
    write_deltalake(url, ROWS, storage_options=options)
    batch = CommitProperties(app_transactions=[Transaction("collector-7", 1)])
    first, second = (DeltaTable(url, storage_options=options) for _ in range(2))
    write_deltalake(first, ROWS, mode="append", commit_properties=batch)
    with pytest.raises(CommitFailedError, match="Concurrent transaction failed"):
        write_deltalake(second, ROWS, mode="append", commit_properties=batch)
    after = DeltaTable(url, storage_options=options)
    assert after.transaction_version("collector-7") == 1
    assert after.to_pyarrow_table().num_rows == 2 * ROWS.num_rows


def test_no_concurrent_append_is_lost(place: tuple[str, dict[str, str] | None]) -> None:
    url, options = place
    write_deltalake(url, ROWS, storage_options=options)
    with ThreadPoolExecutor(6) as pool:
        tables = [DeltaTable(url, storage_options=options) for _ in range(6)]
        list(pool.map(lambda table: write_deltalake(table, ROWS, mode="append"), tables))
    after = DeltaTable(url, storage_options=options)
    assert after.version() == 6
    assert after.to_pyarrow_table().num_rows == 7 * ROWS.num_rows


def test_the_server_ends_with_its_context() -> None:
    with S3Emulator("other") as s3:
        assert s3.daemon.alive()
    assert not s3.daemon.alive()
    assert not s3.directory.exists()
