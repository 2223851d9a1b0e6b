"""The program that is traced: what it does to files, and when it ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from iolens.benchmarks.studies import traced_program
from iolens.benchmarks.studies.traced_program import CALLS, IDLE_CALL, TIME_UP, run_operations

PROGRAM = [sys.executable, "-I", "-S", traced_program.__file__]


def test_a_write_makes_one_file_per_operation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    clock = run_operations("write", 3, 8, 60.0)
    assert clock is not None
    assert {path.name: path.stat().st_size for path in tmp_path.iterdir()} == {f"data.{i}": 8 for i in range(3)}
    assert list(clock.times_ns) == [IDLE_CALL, *CALLS["write"]]
    assert {len(times) for times in clock.times_ns.values()} == {3}


def test_a_read_makes_the_calls_of_a_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_operations("write", 2, 8, 60.0)
    clock = run_operations("read", 2, 8, 60.0)
    assert clock is not None
    assert list(clock.times_ns) == [IDLE_CALL, *CALLS["read"]]


def test_a_file_with_other_bytes_is_not_taken_for_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.0").write_bytes(b"short")
    with pytest.raises(SystemExit, match=r"data\.0: not the 8 bytes that were written"):
        run_operations("read", 1, 8, 60.0)


def test_no_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").write_bytes(b"precious")
    (tmp_path / "data.0").symlink_to("precious")
    done = subprocess.run(
        [*PROGRAM, "write", "1", "8", "60"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert (tmp_path / "precious").read_bytes() == b"precious"


def test_it_ends_when_its_time_is_up(tmp_path: Path) -> None:
    done = subprocess.run([*PROGRAM, "write", "5", "8", "-1"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == f"{TIME_UP}\n"
    assert list(tmp_path.iterdir()) == []


def test_it_ends_when_its_parent_is_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when strace was killed: nobody else would stop it."""
    monkeypatch.chdir(tmp_path)
    parents = iter([4711, 4711, 1])
    monkeypatch.setattr(os, "getppid", lambda: next(parents))
    with pytest.raises(SystemExit, match="the parent process has ended"):
        run_operations("write", 5, 8, 60.0)
    assert [path.name for path in tmp_path.iterdir()] == ["data.0"]
