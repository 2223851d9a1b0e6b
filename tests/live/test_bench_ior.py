"""Studies with real IOR, mdtest and a real control group: our numbers are those the programs print themselves."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from iolens.benchmarks.light_probe import IN_MEMORY
from iolens.benchmarks.studies.cache_study import PREFIX, ROOT, NoMemoryLimit, memory_limit
from iolens.benchmarks.studies.plan import StudyFolder
from iolens.benchmarks.studies.sequential_study import filesystem_kind
from iolens.units import MIB
from tests.benchmarks.studies.killing import await_points
from tests.cli.command import iolens
from tests.live.hpc_tools import hpc_tools
from tests.live.spark_cluster import ComponentMissing

pytestmark = pytest.mark.live

LAUNCHER = "mpirun --allow-run-as-root --oversubscribe -np {tasks}"
ROUNDED = 6e-4  # a line of IOR's results has whole MiB/s from 1000 on, and whole microseconds; its summary has more
MDTEST_ROUNDED = 1e-3
GONE_S = 60.0
TEE = """#!/bin/sh
{program} "$@" | {tee} -a {log}
"""


@pytest.fixture
def printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`ior` and `mdtest` on PATH that also keep what they print, in the folder that is given."""
    try:
        tools = hpc_tools()
    except ComponentMissing as missing:
        pytest.skip(str(missing))
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in ("ior", "mdtest"):
        words = {"program": tools / "bin" / name, "tee": shutil.which("tee"), "log": folder / f"{name}.txt"}
        (folder / name).write_text(TEE.format(**words))
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    return folder


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "lake").mkdir()
    return tmp_path / "lake"


def bench(kind: str, place: Path, *options: object) -> tuple[StudyFolder, Any]:
    """A study that completes: its folder, and its result as JSON."""
    folder = place.parent / "study"
    done = iolens("bench", kind, place, "--folder", folder, "--max-fullness", "100", "--format", "json", *options)
    assert done.code == 0, done.err
    assert list(place.iterdir()) == []
    return StudyFolder(folder), json.loads(done.out)


def ior_summaries(folder: Path) -> list[dict[str, float]]:
    """MiB/s by direction as IOR's summaries print them, run by run."""
    parts = (folder / "ior.txt").read_text().split("Summary of all tests:")[1:]
    tables = [[line.split() for line in part.partition("Finished")[0].splitlines()] for part in parts]
    return [{words[0]: float(words[3]) for words in table if words[:1] in (["write"], ["read"])} for table in tables]


@pytest.mark.parametrize("tasks", [1, 2])
def test_bench_ior_has_the_numbers_of_iors_summaries(printed: Path, place: Path, tasks: int) -> None:
    sizes = ("--sizes", "64MiB", "--transfers", "256KiB", "--repeats", "2")
    folder, result = bench("ior", place, "--tasks", tasks, *sizes, "--launcher", LAUNCHER)
    summaries = ior_summaries(printed)
    points = list(folder.journal().rows.values())
    assert len(summaries) == len(points) == 4  # a file per process and a shared one, twice each
    for rows, summary in zip(points, summaries, strict=True):
        assert [row["direction"] for row in rows] == ["write", "read"]
        for row in rows:
            bytes_per_s = summary[row["direction"]] * MIB
            assert row["reported_bytes_per_s"] == pytest.approx(bytes_per_s, rel=ROUNDED)
            assert row["bytes"] / row["duration_s"] == pytest.approx(bytes_per_s, rel=ROUNDED)
            assert (row["bytes"], row["operations"], row["tasks"]) == (64 * MIB, 256, tasks)
    for case in result["cases"]:
        mine = summaries[0::2] if case["file_per_process"] else summaries[1::2]
        best = max(summary[case["direction"]] for summary in mine)
        assert case["best_bytes_per_s"] == pytest.approx(best * MIB, rel=ROUNDED)
    assert {line["direction"] for line in result["files"]} == {"write", "read"}
    for line in result["files"]:
        assert line["factor"] == pytest.approx(line["per_process_bytes_per_s"] / line["shared_bytes_per_s"])


def test_a_single_task_needs_no_launcher(printed: Path, place: Path) -> None:
    bench("ior", place, "--tasks", 1, "--sizes", "4MiB", "--repeats", 1, "--files", "shared", "--launcher", "")
    text = (printed / "ior.txt").read_text()
    assert re.search(r"^tasks +: 1$", text, re.MULTILINE)
    assert len(ior_summaries(printed)) == 1


def mdtest_summaries(folder: Path) -> list[dict[str, float]]:
    """Operations per second as mdtest's tables print them, run by run."""
    parts = (folder / "mdtest.txt").read_text().split("SUMMARY rate")[1:]
    line = re.compile(r"^ {3}([A-Z][a-z ]+?) +([0-9.]+) +([0-9.]+) +([0-9.]+) +[0-9.]+$", re.MULTILINE)
    return [
        {name.lower().replace(" ", "_"): float(mean) for name, _, _, mean in line.findall(part.partition("SUMMARY")[0])}
        for part in parts
    ]


def test_bench_metadata_has_the_rates_of_mdtests_summaries(printed: Path, place: Path) -> None:
    options = ("--tasks", "1,2", "--items", "50", "--file-size", "1KiB", "--repeats", "2", "--launcher", LAUNCHER)
    folder, result = bench("metadata", place, *options)
    summaries = mdtest_summaries(printed)
    points = list(folder.journal().rows.values())
    assert len(summaries) == len(points) == 4
    for number, (rows, summary) in enumerate(zip(points, summaries, strict=True)):
        rates = {row["direction"]: row["reported_ops_per_s"] for row in rows}
        assert {"file_creation", "file_stat", "file_read", "file_removal", "directory_creation"} <= set(rates)
        assert rates == {name: pytest.approx(summary[name], rel=MDTEST_ROUNDED) for name in rates}
        assert {row["tasks"] for row in rows} == {1 + number % 2}
    for line in result["rates"]:
        best = max(summary[line["operation"]] for summary in summaries[line["tasks"] - 1 :: 2])
        assert line["best_ops_per_s"] == pytest.approx(best, rel=MDTEST_ROUNDED)
        assert line["runs"] == 2


@pytest.mark.parametrize("kind", ["ior", "metadata"])
def test_a_program_that_fails_is_one_line_and_leaves_nothing(printed: Path, place: Path, kind: str) -> None:
    options = ("--tasks", "1", "--repeats", "1", "--launcher", "false", "--max-fullness", "100")
    done = iolens("bench", kind, place, "--folder", place.parent / "study", *options)
    assert done.code == 1
    assert re.search(r"^iolens: false failed with code 1", done.err.splitlines()[-1])
    assert list(place.iterdir()) == []


def begun(place: Path, folder: Path) -> subprocess.Popen[bytes]:
    """`bench ior` that would go on for hours."""
    options = ("--tasks", "2", "--sizes", "512MiB", "--transfers", "4KiB", "--repeats", "5000", "--max-bytes", "100TiB")
    words = ["bench", "ior", place, "--folder", folder, *options, "--max-fullness", "100", "--launcher", LAUNCHER]
    command = [sys.executable, "-m", "iolens.cli.main", *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def benchmark_processes(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """mpirun and the tasks it started, once all are there."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        children: list[psutil.Process] = psutil.Process(process.pid).children(recursive=True)
        if sum("bin/ior" in " ".join(child.cmdline()) for child in children) >= 2:
            return children
        time.sleep(0.02)
    raise AssertionError("IOR was not started")


@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGTERM])
def test_ior_ends_when_iolens_is_ended(printed: Path, place: Path, kind: signal.Signals) -> None:
    with begun(place, place.parent / "study") as process:
        try:
            await_points(process, 1)
            children = benchmark_processes(process)
        finally:
            process.send_signal(kind)
            process.communicate(timeout=60)
    _, alive = psutil.wait_procs(children, timeout=GONE_S)
    assert alive == []
    assert process.returncode == (130 if kind == signal.SIGTERM else -kind)
    if kind == signal.SIGTERM:
        assert list(place.iterdir()) == []
    assert iolens("bench", "clean", place.parent / "study").code == 0
    assert list(place.iterdir()) == []


@pytest.fixture
def disk() -> Iterator[Path]:
    """A directory on a disk, because memory below memory shows no step."""
    for parent in (Path(tempfile.gettempdir()), Path("/var/tmp"), Path(__file__).parent):
        if filesystem_kind(parent) not in IN_MEMORY and os.access(parent, os.W_OK):
            with tempfile.TemporaryDirectory(prefix="iolens-cache-", dir=parent) as folder:
                (Path(folder) / "lake").mkdir()
                yield Path(folder) / "lake"
            return
    pytest.skip("no disk here")


def test_the_cache_study_shows_the_step_between_memory_and_disk(disk: Path) -> None:
    """In a group of 512 MiB, with a file of 128 MiB and one of 1.5 GiB."""
    try:
        with memory_limit(512 * MIB):
            pass
    except NoMemoryLimit as error:
        pytest.skip(str(error))
    _, result = bench("cache", disk, "--memory", "512MiB", "--repeats", "2")
    small, large = result["files"]
    assert (small["file_bytes"], large["file_bytes"]) == (128 * MIB, 1536 * MIB)
    assert {file["memory_bytes"] for file in result["files"]} == {512 * MIB}
    # 18 against 2.9 GiB/s on a virtual disk that is itself in the memory of its host.
    assert small["read_again_bytes_per_s"] > 2 * large["read_again_bytes_per_s"]
    assert result["policies"][0]["reads_cached"] is True
    assert list(ROOT.rglob(f"{PREFIX}*")) == []
