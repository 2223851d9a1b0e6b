"""Objects of other packages are looked for only where a package registers some."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolens.registry import RegisteredObject, _is_named, registered


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


def test_an_object_of_an_installed_package_is_registered_beside_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "a-1.dist-info"
    place.mkdir()
    (place / "METADATA").write_text("Metadata-Version: 2.1\nName: a\nVersion: 1\n")
    (place / "entry_points.txt").write_text("[iolens.sources]\nothers = a:X\nlustre-lctl = a:Y\n")
    monkeypatch.syspath_prepend(tmp_path)
    sources = registered.__wrapped__("iolens.sources", "SOURCE", "iolens.sources")
    assert sources["others"] == RegisteredObject("others", "a:X", "iolens.sources")
    assert sources["lustre-lctl"].value == "iolens.sources.lustre.lustre_lctl:SOURCE"  # ours is not replaced


def test_an_archive_may_hold_packages(tmp_path: Path) -> None:
    archive = tmp_path / "packages.zip"
    archive.touch()
    assert _is_named("iolens.sources", [str(archive)])
