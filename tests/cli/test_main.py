"""The end of a command: interrupted, or with nobody left to read what it prints, it needs one line or none."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from iolens import messages
from iolens.cli.main import TITLES, iolens
from iolens.cli.output_options import progress
from iolens.store.store import Store
from tests.cli.command import iolens as iolens_here
from tests.cli.command import iolens_process
from tests.store.samples import capture, io_sample

GROUPS = ("calibrate", "export", "findings", "job", "plan", "runs", "simulate", "store", "synthesize")
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


# Help and slips of the pen --------------------------------------------------------------------------------------------


def test_every_verb_is_under_one_title_of_help() -> None:
    titled = [verb for members in TITLES.values() for verb in members]
    assert sorted(titled) == iolens.list_commands(click.Context(iolens))


def test_help_imports_no_verb_and_no_library_that_is_slow_to_start() -> None:
    seen = "import sys; from iolens.cli.main import iolens; iolens.main(['--help'], standalone_mode=False); "
    heavy = "print([name for name in sys.modules if name.split('.')[0] in ('numpy', 'pyarrow', 'rich', 'duckdb')])"
    verbs = "; print([name for name in sys.modules if name.startswith('iolens.cli.')])"
    done = subprocess.run([sys.executable, "-c", seen + heavy + verbs], capture_output=True, text=True, check=True)
    *_, libraries, modules = done.stdout.splitlines()
    assert libraries == "[]"
    assert {name.removeprefix("iolens.cli.") for name in ast.literal_eval(modules)} <= {
        "main",
        "lazy_verbs",
        "visible_streams",
    }


@pytest.mark.parametrize("words", [(), *((verb,) for verb in GROUPS)])
def test_each_summary_is_one_line_at_80_columns(words: tuple[str, ...]) -> None:
    said = CliRunner().invoke(iolens, [*words, "--help"], prog_name="iolens", terminal_width=80).output
    group = iolens.get_command(click.Context(iolens), words[0]) if words else iolens
    assert isinstance(group, click.Group)
    verbs = group.list_commands(click.Context(group))
    listed = said[said.index("  -h, --help") :].split("Example")[0].splitlines()[1:]
    assert sorted(line.split()[0] for line in listed if line.strip() and not line.endswith(":")) == sorted(verbs)
    assert max(map(len, listed)) <= 78


def test_the_options_of_an_analysis_are_under_titles() -> None:
    said = iolens_here("utilization", "--help").out
    own, data, output = (said.index(title) for title in ("\nOptions:\n", "\nWhich data:\n", "\nOutput:\n"))
    assert own < said.index("--calibration") < data < said.index("--from") < output < said.index("--figure")
    assert "Which data" not in iolens_here("ingest", "--help").out  # which only writes to its store


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["utilzation"], "did you mean utilization?"),
        (["fus"], "did you mean fsu?"),
        (["store", "inf"], "did you mean info? There are: anonymize, compact, "),
        (["info"], "did you mean `iolens store info`?"),
        (["telemetry"], "did you mean `iolens simulate telemetry`"),
        (["../report"], "did you mean report"),
        (["utilization", "--formt", "json"], "'--format'"),
        (["--verzion"], "'--version'"),
    ],
)
def test_a_slip_of_the_pen_is_answered_with_the_nearest_name(words: list[str], meant: str) -> None:
    done = iolens_here(*words)
    assert (done.code, done.out) == (2, "")
    assert meant in done.err


# Loud and quiet -------------------------------------------------------------------------------------------------------


CAPTURE = Path(__file__).parents[2] / "docs" / "capture.txt.gz"


def test_quiet_drops_notes_before_and_after_the_verb(tmp_path: Path) -> None:
    words = ["ingest", CAPTURE, "--store", tmp_path / "store"]
    assert "taken for lustre-lctl" in iolens_here(*words).err
    assert iolens_here("--quiet", *words).err == ""
    assert iolens_here(*words, "--quiet").err == ""


def test_quiet_keeps_errors(tmp_path: Path) -> None:
    done = iolens_here("store", "info", "--store", tmp_path / "none", "--quiet")
    assert done.code != 0
    assert done.err.startswith("iolens: ")


def test_verbose_says_what_is_asked_and_debug_what_is_read(store: Path) -> None:
    words = ["store", "info", "--store", store]
    assert iolens_here(*words).err == ""
    assert "configuration: " in iolens_here(*words, "-v").err
    said = iolens_here("--debug", "ingest", CAPTURE, "--store", store).err
    assert f"iolens: reading {CAPTURE}" in said
    said = iolens_here("fsu", "--store", store, "-f", "scratch", "--verbose").err
    assert "utilization of scratch, raw rows: " in said
    assert iolens_here(*words).err == ""  # the next command begins as always


def test_an_unexpected_error_is_one_line_and_debug_shows_where(monkeypatch: pytest.MonkeyPatch, store: Path) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("never thought of")

    monkeypatch.setattr("iolens.cli.store.opened_store", fail)
    words = ["store", "info", "--store", store]
    done = iolens_here(*words)
    expected = "iolens: unexpected ZeroDivisionError: never thought of; --debug shows where it arose\n"
    assert (done.code, done.err) == (1, expected)
    assert "in fail" in iolens_here(*words, "--debug").err


def test_progress_is_not_shown_when_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    messages.set_level(messages.WARNING)
    try:
        with progress(1, "reading") as step:
            step("x")
            assert "rich.progress" not in type(step).__module__
            assert step.__name__ == "<lambda>"
    finally:
        messages.set_level()
