"""Examples of a page in the documentation: commands after `$ `, and what is shown below each."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ELLIPSIS = "…"


def run(command: str, folder: Path, variables: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": "120", "PYTHONIOENCODING": "utf-8", "MPLBACKEND": "agg"}
    environment |= variables or {}
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, text=True, encoding="utf-8", check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def missing(shown: list[str], printed: list[str]) -> list[str]:
    """Lines of an example that were not printed. `…` alone skips any number of lines, within a line any text."""
    position = 0
    skipping = False
    for line in shown:
        if line == ELLIPSIS:
            skipping = True
            continue
        pattern = re.compile(".*".join(map(re.escape, line.rstrip().split(ELLIPSIS))))
        rest = range(position, len(printed) if skipping else min(position + 1, len(printed)))
        result = next((index for index in rest if pattern.fullmatch(printed[index].rstrip())), None)
        if result is None:
            return [f"{line!r} was not printed; from there on was: {printed[position : position + 5]}"]
        position, skipping = result + 1, False
    if not skipping and position < len(printed) and shown:
        return [f"more was printed: {printed[position : position + 5]}"]
    return []


def examples(page: Path) -> Iterator[tuple[str, list[str]]]:
    """Commands of a page's console blocks, with the lines shown below each."""
    for block in re.findall(r"^```console\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL):
        command, shown = "", []
        for line in block.splitlines():
            if line.startswith("$ "):
                if command:
                    yield command, shown
                command, shown = line[2:], []
            else:
                shown.append(line)
        yield command, shown
