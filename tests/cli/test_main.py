"""The end of a command: interrupted, or with nobody left to read what it prints, it needs one line or none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from iolens.cli.main import iolens
from iolens.store.store import Store
from tests.cli.command import iolens_process
from tests.store.samples import capture, io_sample

ENDLESS = """
from iolens.cli.main import main
from iolens.store import maintenance
from iolens.store.duckdb_engine import connection
maintenance._exported = lambda *_: connection().sql("SELECT range AS time FROM range(1_000_000_000_000)")
main()
"""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    Store(tmp_path / "store").ingest([capture([io_sample(0, 0, 0), io_sample(5, 100, 0)], "a")], "test")
    return tmp_path / "store"


def test_every_verb_starts_in_a_process_of_its_own() -> None:
    """Other tests call verbs in their own process."""
    for verb in iolens.list_commands(click.Context(iolens)):
        done = iolens_process(verb, "--help")
        assert (done.code, done.err) == (0, "")
        assert "Usage: " in done.out


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_an_export_that_is_interrupted_says_so_and_leaves_nothing(suffix: str, store: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    words = ["store", "export", "target_io", "-o", str(folder / f"x{suffix}"), "--store", str(store)]
    process = subprocess.Popen([sys.executable, "-c", ENDLESS, *words], stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 60
        while not any(path.stat().st_size for path in folder.iterdir()):  # the engine is at work
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert (said.strip(), list(folder.iterdir())) == ("iolens: interrupted", [])


@pytest.mark.parametrize("words", [["store", "info"], ["store", "info", "--format", "json"], ["store", "verify"]])
def test_a_reader_who_has_gone_is_no_reason_to_complain(words: list[str], store: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "iolens.cli.main", *words, "--store", str(store)]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")  # as a shell reports SIGPIPE


def test_a_closed_standard_output_is_no_reason_to_complain(store: Path) -> None:
    words = f"{sys.executable} -m iolens.cli.main store verify --store {store} >&-"
    done = subprocess.run(["sh", "-c", words], stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
