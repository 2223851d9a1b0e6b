"""`iolens synthesize fio|ior|acceptance`: files that fio, sh and `iolens acceptance` take."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from iolens.benchmarks.acceptance import read_suite
from tests.cli.command import iolens


def test_a_shipped_model_becomes_jobs_a_script_and_a_suite(tmp_path: Path) -> None:
    common = (
        "--model",
        "spider",
        "--scale",
        "0.5",
        "--max-size",
        "2GiB",
        "--max-time",
        "2min",
        "--jobs",
        4,
        "--ssi",
        3,
    )
    of_fio = ("--queue-depth", 32, "--log-requests")
    of_suite = ("--percentile", 99, "--latency-limit", "100ms")
    written: set[str] = set()
    for verb, place, more in (
        ("fio", "jobs", of_fio),
        ("ior", "ior", ()),
        ("acceptance", "suite", (*of_fio, *of_suite)),
    ):
        done = iolens("synthesize", verb, "-o", place, *common, *more, cwd=tmp_path)
        assert (done.code, done.out) == (0, ""), done.err
        written |= {line.removeprefix("written: ") for line in done.err.splitlines()}
    assert {"jobs/layout.fio", "jobs/workload.fio", "ior/workload.sh", "suite/suite.toml"} <= written
    assert all((tmp_path / path).is_file() for path in written)
    text = (tmp_path / "jobs/workload.fio").read_text()
    for option in ("numjobs=4", "iodepth=32", f"size={512 << 20}", "log_offset=1", "write_lat_log=phase-01"):
        assert f"{option}\n" in text
    assert subprocess.run(["sh", "-n", tmp_path / "ior/workload.sh"], check=False).returncode == 0
    suite = read_suite(tmp_path / "suite")
    assert (suite.filesystem, suite.share, suite.ssi, suite.percentile) == ("spider", 0.5, 3.0, 99.0)
    limits = {limit.measure: limit for step in suite.steps for limit in step.limits}
    assert limits["read_p99_s"].at_most == pytest.approx(0.1)
    assert (limits["write_bytes_per_s"].at_least or 0) > 1e9  # 24 targets, three times over


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--scale", "0", "--scale must be above 0"),
        ("--ssi", "-1", "--ssi must be above 0"),
        ("--max-size", "1MiB", "too small"),
        ("--percentile", "200", "--percentile"),
        ("--scale", "1e-9", "larger --scale"),
    ],
)
def test_what_makes_no_load_is_a_usage_error(tmp_path: Path, option: str, value: str, words: str) -> None:
    done = iolens("synthesize", "acceptance", "--model", "spider", "-o", "suite", option, value, cwd=tmp_path)
    assert done.code == 2
    assert words in done.err
    assert not (tmp_path / "suite").exists()
