"""What each test costs: seconds, processor time, programs it starts and addresses it opens, as one line of JSON each.

    python -m pytest -p measure_tests --measured=FOLDER -n 2 --dist loadfile

writes FOLDER/PROCESS.jsonl. `choose_tests.py` reads them and decides which tests are in `make test`.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import pytest

PROGRAMS = ("subprocess.Popen", "os.posix_spawn", "os.exec", "os.system")
ADDRESSES = ("socket.bind", "socket.connect")


class Measurement:
    """One process of the run: the test that runs now, and the file that keeps what was seen of each."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.stream: TextIO = (folder / f"{os.getpid()}.jsonl").open("w")
        self.programs: set[str] = set()
        self.addresses: set[str] = set()
        sys.addaudithook(self._seen)

    def _seen(self, event: str, args: tuple[Any, ...]) -> None:
        if event in PROGRAMS:
            self.programs.add(str(args[0]))
        elif event in ADDRESSES:
            self.addresses.add(str(args[1]))

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Set-up, call and what is taken down; a fixture counts for the test that asks first."""
        self.programs.clear()
        self.addresses.clear()
        began, used_s = time.monotonic(), _processor_s()
        yield
        line = {
            "test": item.nodeid,
            "seconds": round(time.monotonic() - began, 4),
            "processor_s": round(_processor_s() - used_s, 4),
            "programs": sorted(self.programs),
            "addresses": sorted(self.addresses),
        }
        print(json.dumps(line), file=self.stream, flush=True)


def _processor_s() -> float:
    """Of this process and of its children that have ended."""
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where the lines go."""
    parser.addoption("--measured", type=Path, help="write what each test costs into this folder")


def pytest_configure(config: pytest.Config) -> None:
    """Workers of xdist are asked as well; the one that only hands out tests has none."""
    folder = config.getoption("measured")
    if folder is not None:
        config.pluginmanager.register(Measurement(folder), "measurement")
