"""`iolens store`: the verbs say what they did and exit as documented."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from iolens.cli import main
from iolens.store.store import Store
from tests.analyses.telemetry import made_up
from tests.cli.command import iolens


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Two days in several files each."""
    folder = tmp_path / "store"
    opened = Store(folder)
    for number in range(4):
        part = made_up(number, ticks=30, targets=2, first_tick=30 * (number % 2) + 17280 * (number // 2), missing=0)
        for name in ("target_sizes", "target_io"):
            opened.append(name, part.table(name))
    return folder


def test_a_store_is_described_compacted_checked_and_cleaned(store: Path) -> None:
    info = json.loads(iolens("store", "info", "--store", store, "--format", "json").out)
    before = {table["name"]: table for table in info["tables"]}
    assert (before["target_io"]["rows"], before["target_io"]["files"]) == (240, 4)
    assert info["filesystems"] == {"scratch": 2}
    assert "became" in iolens("store", "compact", "--store", store).out
    after = json.loads(iolens("store", "info", "--store", store, "--format", "json").out)
    assert next(table for table in after["tables"] if table["name"] == "target_io")["files"] == 2
    checked = iolens("store", "verify", "--store", store)
    assert (checked.code, " 0 faults" in checked.out) == (0, True)
    assert "would be removed" in iolens("store", "vacuum", "--older", "0s", "--dry-run", "--store", store).out
    refused = iolens("store", "vacuum", "--older", "0s", "--store", store)
    assert (refused.code, "--force" in refused.err) == (2, True)
    assert iolens("store", "vacuum", "--older", "0s", "--force", "--store", store).code == 0
    assert iolens("store", "verify", "--store", store).code == 0
    assert "target_io" in iolens("store", "info", "--store", store).out


def test_an_altered_file_is_found_and_named(store: Path) -> None:
    file = next((store / "target_io").glob("date=*/*.parquet"))
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    done = iolens("store", "verify", "--store", store)
    assert done.code == 1
    assert file.name in done.err


def test_raw_rows_go_only_after_they_are_rolled_up(store: Path) -> None:
    kept = iolens("store", "retain", "--raw", "1d", "--store", store)
    assert "rollup" in kept.err
    assert iolens("store", "rollup", "--store", store).code == 0
    assert "480 rows dropped" in iolens("store", "retain", "--raw", "1d", "--store", store).out
    done = iolens("fsu", "--store", store, "--resolution", "60s", "--format", "json")
    result = json.loads(done.out)
    assert result["samples"] > 0
    assert sum(line["count"] for line in result["io_sizes"]) > 0


def test_a_table_is_exported(store: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.parquet"
    done = iolens("store", "export", "target_io", "--to", "2020-09-15", "-o", output, "--store", store)
    assert (done.code, pq.read_table(output).num_rows) == (0, 120), done.err
    wrong = iolens("store", "export", "nothing", "-o", output, "--store", store)
    assert (wrong.code, "target_io" in wrong.err) == (2, True)


def test_a_damaged_file_stops_an_analysis_with_its_name(store: Path) -> None:
    file = next((store / "target_sizes").glob("date=*/*.parquet"))
    file.write_bytes(b"PAR1 not really PAR1")
    done = iolens("fsu", "--store", store)
    assert done.code == 1
    assert file.name in done.err
    assert "Traceback" not in done.err


def test_a_store_may_have_a_name_with_spaces_but_not_with_wildcards(tmp_path: Path) -> None:
    store = Store(tmp_path / "our centre's ä #1")
    part = made_up(1, ticks=10, targets=1)
    for name in ("target_sizes", "target_io"):
        store.append(name, part.table(name))
    assert iolens("fsu", "--store", store.url).code == 0
    wrong = iolens("fsu", "--store", tmp_path / "a[1]")
    assert (wrong.code, "cannot contain [ ]" in wrong.err) == (2, True)


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("none", "there is no such directory"),
        ("file", "it is a file; a store is a directory"),
        ("file/below", "there is no such directory"),
        ("empty", "the directory holds no store"),
        ("other", "the directory holds no store"),
    ],
)
def test_a_path_without_a_store_is_an_error_for_all_who_read_and_nothing_is_made(
    place: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no store")
    (tmp_path / "empty").mkdir()
    (tmp_path / "other" / "date=2020-01-01").mkdir(parents=True)
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.chdir(tmp_path)
    for words in (
        "store info", "store verify", "store compact", "store rollup", "store retain --raw 1d", "store vacuum",
        "store repair", "store export target_io -o out.csv", "fsu", "capacity", "drives", "top --once", "calibrate fit",
        "calibrate show", "report -o out.html", "plan endurance",
    ):  # fmt: skip
        monkeypatch.setattr(sys, "argv", ["iolens", *words.split(), "--store", str(tmp_path / place)])
        assert main._run() == 1, words
        assert f"{tmp_path / place} holds no data yet: {reason}" in capsys.readouterr().err, words
    assert sorted(tmp_path.rglob("*")) == before


def test_a_store_without_a_row_is_a_store(tmp_path: Path) -> None:
    """A capture of which nothing was understood is noted in batches all the same."""
    nonsense = tmp_path / "nonsense.txt"
    nonsense.write_text("obdfilter.scratch-OST0000.stats=\nwhat is this\n")
    iolens("ingest", "lustre-lctl", nonsense, "--store", tmp_path / "store")
    assert (tmp_path / "store").is_dir()
    for verb in ("info", "verify", "compact", "rollup"):
        done = iolens("store", verb, "--store", tmp_path / "store")
        assert done.code == 0, done.err


SACCT = """JobIDRaw|JobID|NNodes|NodeList|Submit|Start|End|ElapsedRaw|State
7|7|1|n1|2024-03-11T03:00:00|2024-03-11T04:00:00|2024-03-11T05:00:00|3600|COMPLETED
8|8|2|n[2-3]|2024-03-11T03:00:00|2024-03-11T06:00:00|2024-03-11T06:10:00|600|COMPLETED
"""


def test_a_file_that_was_read_with_the_wrong_zone_is_taken_back(tmp_path: Path) -> None:
    file, store = tmp_path / "sacct.txt", tmp_path / "store"
    file.write_text(SACCT)
    for zone in ("Europe/Berlin", "UTC"):
        iolens("ingest", file, "--store", store, "--timezone", zone)
    assert len(Store(store).jobs()) == 2  # the last load counts
    log = json.loads(iolens("store", "log", "--store", store, "--format", "json").out)
    newest, oldest = log["batches"]
    assert (log["batches_known"], newest["rows_by_table"], newest["origin"]) == (2, {"jobs": 2}, str(file))
    several = iolens("store", "undo", file, "--store", store)
    assert (several.code, f"{file} is several batches, name one: {oldest['batch']} of" in several.err) == (2, True)
    trial = iolens("store", "undo", oldest["batch"], "--dry-run", "--store", store)
    assert trial.out == f"would be taken back: {oldest['batch']} ({file})\njobs: 2 rows would be removed\n"
    assert iolens("store", "undo", oldest["batch"], "--store", store).out == trial.out.replace("would be ", "")
    assert iolens("store", "undo", oldest["batch"], "--store", store).code == 2
    handle = Store(store).tables.load("jobs")
    assert handle is not None
    assert handle.to_pyarrow_table().num_rows == 2
    after = json.loads(iolens("store", "log", "--store", store, "--format", "json").out)
    assert (after["undone"], [batch["undone"] is None for batch in after["batches"]]) == (1, [True, False])
    sources = json.loads(iolens("store", "sources", "--store", store, "--format", "json").out)
    assert (sources["batches"], sources["rows"]) == (1, 2)
    assert " 0 faults" in iolens("store", "verify", "--store", store).out
