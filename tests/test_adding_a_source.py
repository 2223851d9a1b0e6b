"""docs/adding-a-source.md followed literally: its files written, its package made visible, its commands run.

Instead of `pip install`, which wants a network, a `.dist-info` directory with the package's entry points is put on the
path: what an installation leaves behind.
"""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import pytest

from tests.console_examples import examples, missing, run

PAGE = Path(__file__).parent.parent / "docs" / "adding-a-source.md"
FILE = re.compile(r"^`([\w./-]+)`:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)


def _write_files(folder: Path) -> list[str]:
    """Every file that the page shows below its name."""
    files = FILE.findall(PAGE.read_text("utf-8"))
    for name, text in files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return [name for name, _ in files]


def _installed(folder: Path) -> str:
    """PYTHONPATH under which the package counts as installed."""
    project = tomllib.loads((folder / "my-iolens-source" / "pyproject.toml").read_text("utf-8"))["project"]
    name, version = project["name"], project["version"]
    information = folder / "installed" / f"{name.replace('-', '_')}-{version}.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", "utf-8")
    groups = project["entry-points"]
    lines = [f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in groups[group].items()) for group in groups]
    (information / "entry_points.txt").write_text("\n".join(lines), "utf-8")
    places = [folder / "installed", folder / "my-iolens-source" / "src", os.environ.get("PYTHONPATH", "")]
    return os.pathsep.join(str(place) for place in places if str(place))


@pytest.fixture
def workplace(tmp_path: Path) -> Path:
    written = _write_files(tmp_path)
    assert written == [
        "rackmeter-1.txt",
        "my-iolens-source/pyproject.toml",
        "my-iolens-source/src/my_iolens_source/__init__.py",
        "my-iolens-source/src/my_iolens_source/rackmeter.py",
        "my-iolens-source/tests/test_rackmeter.py",
    ]
    return tmp_path


def test_every_command_prints_what_the_page_says(workplace: Path) -> None:
    path = {"PYTHONPATH": _installed(workplace)}
    commands = list(examples(PAGE))
    assert [command.split()[1] for command, _ in commands].count("ingest") == 4
    for command, shown in commands:
        assert shown, f"$ {command}: the page must say what it prints"
        printed = run(command, workplace, path).stdout.splitlines()
        assert missing(shown, printed) == [], f"$ {command}"


def test_without_the_entry_point_the_file_is_not_recognised(workplace: Path) -> None:
    """So that the test above cannot pass by another way."""
    done = run("iolens ingest rackmeter-1.txt --store centre", workplace)
    assert done.returncode == 1
    assert "format not recognised; expected one of " in done.stdout
    assert "rackmeter," not in done.stdout


def test_a_source_that_cannot_be_imported_is_named(workplace: Path) -> None:
    path = {"PYTHONPATH": _installed(workplace)}
    (workplace / "my-iolens-source" / "src" / "my_iolens_source" / "rackmeter.py").write_text("import no_such_module\n")
    done = run("iolens ingest rackmeter rackmeter-1.txt --store centre", workplace, path)
    assert done.returncode == 2
    assert "iolens.sources 'rackmeter' of my_iolens_source.rackmeter:SOURCE cannot be loaded: No module" in done.stdout
