"""The examples of the page about `iolens serve`, run by real curl against a real server."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.live.served_pages import RunningServer

pytestmark = pytest.mark.live

PAGE = Path(__file__).parents[2] / "docs" / "serve.md"
DOCUMENTED = "http://127.0.0.1:8470"
BEGINS = {".csv": b"name,", ".svg": b"<?xml", ".pdf": b"%PDF-"}


def examples() -> list[str]:
    return re.findall(r"^curl .*$", PAGE.read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize("example", examples())
def test_an_example_gives_what_the_page_says(server: RunningServer, tmp_path: Path, example: str) -> None:
    if shutil.which("curl") is None:
        pytest.skip("no curl on PATH: install the package curl")
    command = [word.replace(DOCUMENTED, server.url) for word in shlex.split(example)]
    done = subprocess.run(command, capture_output=True, check=False, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
    if "-o" in command:
        path = tmp_path / command[command.index("-o") + 1]
        assert path.read_bytes().startswith(BEGINS[path.suffix])
    else:
        assert "error" not in json.loads(done.stdout)


def test_every_picture_of_the_page_is_there_and_small() -> None:
    pictures = [PAGE.parent / name for name in re.findall(r"\]\((images/serve-[^)]+)\)", PAGE.read_text("utf-8"))]
    assert len(pictures) >= 7
    assert all(0 < path.stat().st_size <= 150_000 for path in pictures)
