"""A copy of the process reads a log as a new program does, and dies alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.analyses.runs import one_run
from tests.cli.command import iolens_process

LOG = next((Path(one_run.__file__).parent / "logs").glob("*_id4400006-*.darshan"))


def in_one_thread(program: str) -> str:
    """What a program of one thread prints."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    head = "import os, signal, subprocess, time\nfrom iolens.sources.darshan.isolated import ForkedProcess, may_fork\n"
    done = subprocess.run(
        [sys.executable, "-c", head + program], env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_both_kinds_of_children_read_the_same() -> None:
    copied, spawned = (
        iolens_process("runs", "summary", LOG, "--format", "json", OPENBLAS_NUM_THREADS=threads) for threads in "12"
    )
    assert copied.code == spawned.code == 0
    assert copied.out == spawned.out


@pytest.mark.parametrize(
    ("work", "code"),
    [("os.abort", -signal.SIGABRT), ("lambda: None", 0), ("lambda: 1 / 0", 1), ("lambda: os._exit(7)", 7)],
)
def test_its_end_is_known(work: str, code: int) -> None:
    assert in_one_thread(f"print(ForkedProcess({work}).wait(60))") == str(int(code))


def test_it_can_be_waited_for_and_ended() -> None:
    program = (
        "child = ForkedProcess(lambda: time.sleep(3600))\n"
        "try: child.wait(0.05)\n"
        "except subprocess.TimeoutExpired: print('still there', child.poll())\n"
        "child.kill(); print(child.wait(60)); child.kill()"
    )
    assert in_one_thread(program).splitlines() == ["still there None", str(-signal.SIGKILL.value)]


def test_a_process_with_threads_is_not_copied() -> None:
    program = (
        "import threading\n"
        "print(may_fork())\n"
        "stop = threading.Event(); threading.Thread(target=stop.wait).start()\n"
        "print(may_fork()); stop.set()"
    )
    assert in_one_thread(program).splitlines() == ["True", "False"]
