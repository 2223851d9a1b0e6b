"""Logs that are read once for all tests: with iolens, together, and with PyDarshan."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iolens.errors import InputError
from iolens.sources.darshan.isolated import DarshanReader
from iolens.sources.darshan.messages import LogRequest, RefusedLog, RowOptions
from tests import quick
from tests.sources.darshan import LOGS

SHARED = quick.SHARED / "data"
CAPTURED = sorted(
    path for name in ("darshan", "darshan-corpus", "darshan-ior-pairs") for path in (SHARED / name).rglob("*.darshan")
)
EVERY_LOG = [*sorted(LOGS.glob("*.darshan")), *CAPTURED]


def label(path: Path) -> str:
    """Short, and different for each."""
    return f"{path.parent.name}/{path.name}"


class LogRows:
    """The rows of one log: one run, and lists of the others."""

    def __init__(self, tables: dict[str, dict[str, list[Any]]]) -> None:
        self.run = {name: values[0] for name, values in tables["runs"].items()}
        self.totals: dict[str, dict[str, Any]] = json.loads(self.run["module_totals"])
        self.files, self.ranks, self.series = (
            [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
            for table in (tables["run_files"], tables["run_ranks"], tables["run_series"])
        )

    def of_module(self, module: str) -> list[dict[str, Any]]:
        """File records of one module."""
        return [row for row in self.files if row["module"] == module]


def read_logs(paths: list[Path], options: RowOptions = RowOptions()) -> dict[Path, LogRows | InputError]:  # noqa: B008
    """Every log read alone, in one child."""
    reader, read = DarshanReader(), {}
    try:
        for path in paths:
            tables: dict[str, dict[str, list[Any]]] = {}
            refused: InputError | None = None
            for item in list(reader.read([LogRequest(str(path), str(path))], options)):
                if isinstance(item, RefusedLog):
                    refused = item.error
                else:
                    tables[item.table] = {name: _plain(values) for name, values in item.columns.items()}
            read[path] = refused or LogRows(tables)
    finally:
        reader.close()
    return read


def _plain(values: Any) -> list[Any]:
    listed = values if isinstance(values, list) else values.tolist()
    return [None if isinstance(value, float) and value != value else value for value in listed]


@pytest.fixture(scope="session")
def logs() -> dict[Path, LogRows | InputError]:
    """Every log there is."""
    return read_logs(EVERY_LOG)


@pytest.fixture(scope="session")
def pydarshan(made_once: Callable[[str, Callable[[Path], None]], Path]) -> dict[str, Any]:
    """What PyDarshan says of every log that it can read; by path."""

    def ask(folder: Path) -> None:
        readable = [str(path) for path in EVERY_LOG if "SYNTHETIC" not in path.name]
        script = Path(__file__).with_name("pydarshan_figures.py")
        answer = subprocess.run([sys.executable, str(script), *readable], capture_output=True, check=True)
        (folder / "figures.json").write_bytes(answer.stdout)

    figures: dict[str, Any] = json.loads((made_once("pydarshan", ask) / "figures.json").read_bytes())
    return figures
