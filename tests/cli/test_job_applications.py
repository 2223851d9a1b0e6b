"""`iolens job applications`: formats, core counts, figures and errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iolens.store.store import Store
from tests.analyses.like_jobs import five_applications, stored_like_jobs
from tests.cli.command import iolens

KEYS = [
    "filesystem", "window_start", "window_end", "by", "jobs", "applications", "applications_left_out", "jobs_left_out",
    "jobs_unnamed", "jobs_without_counters", "jobs_running",
]  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    stored_like_jobs(Store(folder), five_applications())
    return folder


def test_applications_beside_each_other(store: Path, tmp_path: Path) -> None:
    done = iolens("job", "applications", "--store", store, "--format", "json", "--figure", tmp_path / "a.png")
    assert done.code == 0, done.err
    result = json.loads(done.out)
    assert list(result) == KEYS
    enzo = result["applications"][0]
    assert (enzo["name"], enzo["read_bytes"], enzo["write_bytes"]) == ("enzo", 54 * 10**9, 56 * 10**9)
    assert (enzo["opens_mean"], enzo["closes_mean"]) == (5303, 5305)
    assert [size["reads"] for size in enzo["rpc_sizes"]] == [12243, 264, 56, 81, 242, 269, 543, 1812, 26572]
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_one_application_across_core_counts(store: Path, tmp_path: Path) -> None:
    base = ("job", "applications", "--store", store, "--name", "over*", "--by", "cores")
    result = json.loads(iolens(*base, "--format", "json").out)
    assert [(line["name"], line["cores"]) for line in result["applications"]] == [
        ("overflow", 8), ("overflow", 32), ("overflow", 128)
    ]  # fmt: skip
    done = iolens(*base, "--figure", f"counts={tmp_path / 'b.html'}")
    assert "overflow, 128 cores" in done.out
    assert (tmp_path / "b.html").stat().st_size > 10_000
    assert iolens(*base, "--figure", "list").out.split() == ["gigabytes", "opens", "rpcs", "counts"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--name", "nobody"], "scratch has no job of that kind"),
        (["--by", "weather"], "weather"),
        (["-f", "nowhere"], "scratch"),
    ],
)
def test_errors_are_one_clear_message(store: Path, arguments: list[str], message: str) -> None:
    done = iolens("job", "applications", "--store", store, *arguments)
    assert done.code == 2, done.err
    assert message in done.err
