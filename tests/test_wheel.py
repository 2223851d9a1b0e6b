"""The wheel: it holds everything that is not Python too, and `iolens serve` works from it outside the checkout."""

from __future__ import annotations

import os
import re
import subprocess
import zipfile
from pathlib import Path

import httpx
import pytest

from tests.built_wheel import REPOSITORY, build_wheel, install_alone
from tests.live.spark_cluster import HOST, Daemon

SOURCE = REPOSITORY / "src"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    files = (path for path in (SOURCE / "iolens").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    assert names == {path.relative_to(SOURCE).as_posix() for path in files}
    for folder, suffixes in (
        ("dashboard/templates", ".jinja"),
        ("dashboard/static", ".css .js .svg"),
        ("report", ".css .js .jinja"),
    ):
        there = {Path(name).suffix for name in names if name.startswith(f"iolens/views/{folder}/")}
        assert there >= set(suffixes.split()), folder


def test_the_server_of_the_wheel_has_its_templates_and_static_files(wheel: Path, tmp_path: Path) -> None:
    programs = install_alone(wheel, tmp_path / "venv")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    asked = [programs / "python", "-c", "import iolens; print(iolens.__file__)"]
    place = subprocess.run(asked, env=environment, check=True, capture_output=True, text=True).stdout
    assert place.startswith(str(tmp_path / "venv")), "not the checkout's"
    options = ["--store", tmp_path / "store", "--state", tmp_path / "state", "--listen", f"{HOST}:0"]
    command = [str(programs / "iolens"), "serve", *map(str, options)]
    server = Daemon(command, tmp_path / "log", environment)
    try:
        with httpx.Client(base_url=server.wait_for(r"serving \S+ at (http://\S+);")) as client:
            page = client.get("/").raise_for_status().text
            assert "<h1>Centre</h1>" in page
            assert "There is no such page." in client.get("/nowhere").text
            static = re.findall(r'(?:src|href)="(/static/[^"]+)"', page)
            assert len(static) >= 7
            assert all(client.get(address).raise_for_status().content for address in static)
    finally:
        server.stop()
