"""Examples of a page in the documentation: files below their names, commands after `$ `, what is shown below each."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

ELLIPSIS = "…"
FILE = re.compile(r"^`([\w./-]+)`:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)


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


def write_files(page: Path, folder: Path) -> list[str]:
    """Every file that the page shows below its name."""
    files = FILE.findall(page.read_text("utf-8"))
    for name, text in files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return [name for name, _ in files]


def installed(folder: Path, package: str) -> str:
    """PYTHONPATH under which a package of the page counts as installed."""
    project = tomllib.loads((folder / package / "pyproject.toml").read_text("utf-8"))["project"]
    name, version = project["name"], project["version"]
    information = folder / "installed" / f"{name.replace('-', '_')}-{version}.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", "utf-8")
    groups = project["entry-points"]
    lines = [f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in groups[group].items()) for group in groups]
    (information / "entry_points.txt").write_text("\n".join(lines), "utf-8")
    places = [folder / "installed", folder / package / "src", os.environ.get("PYTHONPATH", "")]
    return os.pathsep.join(str(place) for place in places if str(place))
