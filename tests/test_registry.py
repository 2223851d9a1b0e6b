"""Objects of other packages are looked for only where a package registers some."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolens.registry import _is_named


@pytest.mark.parametrize(
    ("path", "text", "named"),
    [
        ("a-1.dist-info/entry_points.txt", "[iolens.sources]\nx = a:X\n", True),
        ("a-1.egg-info/entry_points.txt", "[console_scripts]\na = a:main\n\n[iolens.sources]\nx = a:X\n", True),
        ("a-1.dist-info/entry_points.txt", "[console_scripts]\na = a:main\n", False),
        ("a-1.dist-info/METADATA", "[iolens.sources]\n", False),
        ("a-1.egg/EGG-INFO/entry_points.txt", "", True),  # looked into by importlib.metadata
        ("a/entry_points.txt", "[iolens.sources]\n", False),
    ],
)
def test_a_group_is_found_by_name(tmp_path: Path, path: str, text: str, named: bool) -> None:
    place = tmp_path / path
    place.parent.mkdir(parents=True)
    place.write_text(text)
    assert _is_named("iolens.sources", [str(tmp_path / "absent"), str(tmp_path)]) is named


def test_an_archive_may_hold_packages(tmp_path: Path) -> None:
    archive = tmp_path / "packages.zip"
    archive.touch()
    assert _is_named("iolens.sources", [str(archive)])
