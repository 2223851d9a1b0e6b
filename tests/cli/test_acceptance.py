"""`iolens acceptance`: a suite run by the command, with a stand-in for fio."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from iolens.benchmarks.acceptance import write_acceptance
from iolens.benchmarks.device_counters import mounted_kind
from iolens.benchmarks.light_probe import IN_MEMORY
from iolens.benchmarks.synthetic_fio import TrafficBounds
from iolens.units import MIB
from tests.benchmarks.job_standins import put_job_fio
from tests.benchmarks.made_models import model
from tests.cli.command import Finished, iolens


def is_in_memory(place: Path) -> bool:
    number = place.stat().st_dev
    return mounted_kind(f"{os.major(number)}:{os.minor(number)}") in IN_MEMORY


@pytest.fixture
def suite(tmp_path: Path) -> Iterator[Path]:
    """On a disk, because no suite runs in memory."""
    places = [place for place in (tmp_path, Path("/var/tmp"), Path(__file__).parent) if not is_in_memory(place)]
    if not places:
        pytest.skip("all files are in memory here, where no suite runs")
    with tempfile.TemporaryDirectory(prefix="iolens-", dir=places[0]) as name:
        folder = Path(name)
        write_acceptance(model(), folder / "suite", TrafficBounds(max_bytes=16 * MIB, max_s=4.0, direct=False))
        (folder / "disk").mkdir()
        (folder / "bin").mkdir()
        yield folder / "suite"


def run(suite: Path, *arguments: object, **speed: float) -> Finished:
    programs = suite.parent / "bin"
    put_job_fio(programs, **speed)  # type: ignore[arg-type]
    return iolens("acceptance", suite, suite.parent / "disk", *arguments, PATH=f"{programs}:/usr/bin:/bin")


def test_a_pass_is_exit_code_0_with_scores(suite: Path) -> None:
    done = run(suite, "--format", "json", ops=1e6)
    assert done.code == 0, done.err
    result = json.loads(done.out)
    assert result["passed"] is True
    assert result["thousand_ops_per_s"] == pytest.approx(1000.0)
    assert [check["verdict"] for check in result["checks"]] == ["pass"] * 8
    assert any("buffered" in note for note in result["notes"])
    assert "workload" in done.err.splitlines()  # one line per step
    assert list((suite.parent / "disk").iterdir()) == []
    assert len(list(suite.glob("results-*/workload/workload.json"))) == 1


def test_a_failure_is_exit_code_1_with_its_table(suite: Path) -> None:
    done = run(suite, "--results", suite.parent / "kept", ops=100.0)
    assert done.code == 1
    assert "not passed" in done.out
    lines = [line.split() for line in done.out.splitlines()]
    slow = [line[0] for line in lines if "fail" in line]
    assert slow[-2:] == ["write-operations", "read-operations"], done.out
    assert (suite.parent / "kept/layout.json").is_file()


def test_a_directory_that_is_no_suite_is_named(tmp_path: Path) -> None:
    done = iolens("acceptance", tmp_path, tmp_path)
    assert done.code == 1
    assert "suite.toml: no such file" in done.err
    assert iolens("acceptance", tmp_path / "nowhere", tmp_path).code == 2
