"""docs/adding-a-question.md followed literally: its files written, its package made visible, its commands run.

The same is then asked of the server and of an open store.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.console_examples import examples, installed, missing, run, write_files

REPOSITORY = Path(__file__).parent.parent
PAGE = REPOSITORY / "docs" / "adding-a-question.md"
MOST_LINES = 160  # that a verb with one table may cost
ASKED = """
import json
from dataclasses import asdict
from pathlib import Path
import iolens
from tests.web.served_centre import serving

with serving(Path("centre"), Path("state")) as centre:
    reply = centre.get("/api/v1/quiet?filesystem=scratch&below=200GiB")
    figure = centre.get("/api/v1/quiet/figures/moved.svg?filesystem=scratch&below=200GiB")
    wrong = centre.get("/api/v1/quiet?below=many")
store = iolens.open("centre")
answer = store.quiet("scratch", below_bytes="200GiB")
print(json.dumps([
    reply.json(), figure.status_code, figure.text[:5], wrong.status_code, asdict(answer),
    len(iolens.frame(answer)), "quiet" in dir(store), store.quiet.__doc__,
]))
"""


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workplace")
    written = write_files(PAGE, folder)
    assert [Path(name).name for name in written] == ["pyproject.toml", "__init__.py", "quiet.py"]
    assert len((folder / written[-1]).read_text("utf-8").splitlines()) <= MOST_LINES
    return folder


@pytest.fixture(scope="module")
def path(workplace: Path) -> dict[str, str]:
    return {"PYTHONPATH": installed(workplace, "my-iolens-question")}


@pytest.fixture(scope="module")
def asked(workplace: Path, path: dict[str, str]) -> Path:
    """The folder in which every command of the page was run."""
    commands = list(examples(PAGE))
    assert [command.split()[1] for command, _ in commands].count("quiet") == 4
    for command, shown in commands:
        assert shown, f"$ {command}: the page must say what it prints"
        assert missing(shown, run(command, workplace, path).stdout.splitlines()) == [], f"$ {command}"
    return workplace


def test_every_command_prints_what_the_page_says(asked: Path) -> None:
    assert (asked / "quiet.svg").stat().st_size > 1_000


def test_the_server_and_python_answer_the_same(asked: Path, path: dict[str, str]) -> None:
    paths = os.pathsep.join([path["PYTHONPATH"], str(REPOSITORY)])
    done = subprocess.run(
        [sys.executable, "-c", ASKED], cwd=asked, env={**os.environ, "PYTHONPATH": paths}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    served, status, picture, refused, answer, lines, is_listed, docstring = json.loads(done.stdout.splitlines()[-1])
    printed = json.loads(run("iolens quiet --store centre --below 200GiB --format json", asked, path).stdout)
    assert served.pop("as_of").endswith("Z")
    assert served == printed == answer
    assert (status, picture, refused) == (200, "<?xml", 400)
    assert (lines, is_listed) == (2, True)
    assert "Targets that moved less than a limit" in docstring


def test_a_module_that_is_not_there_is_named(workplace: Path, path: dict[str, str]) -> None:
    information = next((workplace / "installed").glob("*.dist-info")) / "entry_points.txt"
    before = information.read_text("utf-8")
    information.write_text("[iolens.questions]\nquiet = no_such_module_anywhere\n", "utf-8")
    try:
        done = run("iolens --help", workplace, path)
    finally:
        information.write_text(before, "utf-8")
    assert "iolens.questions 'quiet': there is no module no_such_module_anywhere" in done.stdout
