"""The script of IOR runs: only options that IOR documents, transfers by the model's weights, nothing left behind."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from iolens.benchmarks.synthetic_fio import TrafficBounds
from iolens.benchmarks.synthetic_ior import SCRIPT, ior_workload, write_ior
from iolens.errors import UsageError
from iolens.records import Row
from iolens.sources import ReadOptions
from iolens.sources.benchmarks.ior import read_ior_text
from iolens.sources.benchmarks.results import ResultFile
from iolens.units import KIB, MIB
from tests.benchmarks.made_models import READ_SIZES, WRITE_SIZES, model
from tests.benchmarks.standins import put_ior

BOUNDS = TrafficBounds(max_bytes=256 * MIB, max_s=60.0, jobs=2)
# IOR's user documentation, "Command line options": those with a value, and those without.
WITH_VALUE = set("aAbdDfGijJMNoOQsStTUX")
WITHOUT = set("BcCeEFgHhIkKlmnpPqrRuvVwWxYzZ")


def runs_of(script: Path) -> list[list[str]]:
    """The words of every IOR call in a script, shared ones first."""
    text = script.read_text("utf-8")
    match = re.search(r'\$LAUNCH "\$IOR" (.*) "\$@"', text)
    assert match is not None
    shared = shlex.split(match[1])
    lines = [line.strip().removesuffix(" >&2") for line in text.splitlines()]
    return [shared + shlex.split(line)[1:] for line in lines if line.startswith("run -")]


def test_only_documented_options_are_used(tmp_path: Path) -> None:
    write_ior(model(), tmp_path, BOUNDS)
    runs = runs_of(tmp_path / SCRIPT)
    assert len(runs) > 8
    for words in runs:
        rest = iter(words)
        for word in rest:
            if word == "--posix.odirect":
                continue
            assert re.fullmatch(r"-[A-Za-z]", word), word
            assert word[1] in WITH_VALUE | WITHOUT
            if word[1] in WITH_VALUE:
                assert not next(rest).startswith("-")


def test_options_are_those_of_real_runs_or_of_the_documentation(tmp_path: Path, shared_data: Path) -> None:
    """Every option without a value that we use stands in a real command line that IOR accepted, or is documented."""
    seen: set[str] = set()
    for path in sorted((shared_data / "ior").rglob("*")):
        if path.is_file() and not path.name.startswith("error"):
            for line in re.findall(r'Command line"?\s*: "?(ior [^"\n]*)', path.read_text("utf-8", "replace")):
                seen |= {word for word in shlex.split(line) if word.startswith("-")}
    assert {"-a", "-w", "-r", "-z", "-F", "-C", "-e", "-i", "-b", "-t", "-s", "-o", "--posix.odirect"} <= seen
    write_ior(model(), tmp_path, BOUNDS)
    used = {word for words in runs_of(tmp_path / SCRIPT) for word in words if word.startswith("-")}
    assert used - seen <= {"-D", "-E", "-k", "-N"}  # documented, and not in these runs


def test_a_block_is_a_whole_number_of_transfers(tmp_path: Path) -> None:
    """IOR refuses everything else: "block size must be a multiple of transfer size"."""
    write_ior(model(), tmp_path, BOUNDS)
    for words in runs_of(tmp_path / SCRIPT):
        block, transfer = (int(words[words.index(option) + 1]) for option in ("-b", "-t"))
        assert block >= transfer
        assert block % transfer == 0


def test_only_several_transfers_are_put_in_random_order(tmp_path: Path) -> None:
    """IOR refuses -z for one transfer: "choose blocksize > transferSize". The layout is written in sequence."""
    made = model(read_sizes=((4 * KIB, 1.0),), write_sizes=((64 * KIB, 0.15), (4 * MIB, 0.85)))
    write_ior(made, tmp_path, replace(BOUNDS, max_bytes=64 * MIB))
    seen = set()
    for words in runs_of(tmp_path / SCRIPT):
        block, transfer = (int(words[words.index(option) + 1]) for option in ("-b", "-t"))
        is_layout = "-D" not in words
        assert ("-z" in words) == (block > transfer and not is_layout)
        seen.add((is_layout, block > transfer))
    assert len(seen) == 4


def test_transfers_are_by_the_models_weights() -> None:
    workload = ior_workload(model(), BOUNDS)
    assert workload.read_requests_pct == pytest.approx(42.2, abs=1.0)
    for direction, sizes in (("read", READ_SIZES), ("write", WRITE_SIZES)):
        got = workload.size_shares(direction)
        assert {size: 100 * share for size, share in got.items()} == pytest.approx(
            {size: 100 * share for size, share in sizes}, abs=1.0
        )
    assert workload.left_out == {"read": [], "write": []}


@pytest.mark.parametrize("jobs", [1, 2, 7])
@pytest.mark.parametrize("space", [64 * MIB, 1000 * MIB])
def test_files_fit_the_space(jobs: int, space: int) -> None:
    workload = ior_workload(model(), replace(BOUNDS, jobs=jobs, max_bytes=space))
    taken = jobs * sum(size * transfers for size, transfers in workload.files.items())
    assert 0.7 * space < taken <= space
    for run in workload.runs:
        assert run.transfers <= workload.files[run.transfer_bytes]


def test_a_size_too_rare_for_the_space_is_named(tmp_path: Path) -> None:
    rare = model(read_sizes=((4 * KIB, 0.999), (4 * MIB, 0.001)), write_sizes=((MIB, 1.0),))
    bounds = replace(BOUNDS, max_bytes=64 * MIB)
    assert ior_workload(rare, bounds).left_out["read"] == [4 * MIB]
    write_ior(rare, tmp_path, bounds)
    assert "reads of 4 MiB" in (tmp_path / SCRIPT).read_text()
    with pytest.raises(UsageError, match="leaves no transfers"):
        ior_workload(rare, replace(BOUNDS, max_bytes=MIB))


def test_the_deadline_of_all_runs_together_is_the_time(tmp_path: Path) -> None:
    for seconds in (60.0, 8.0, 3.0):
        write_ior(model(), tmp_path, replace(BOUNDS, max_s=seconds))
        limits = [int(words[words.index("-D") + 1]) for words in runs_of(tmp_path / SCRIPT) if "-D" in words]
        assert min(limits) >= 1
        assert sum(limits) <= seconds


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    put_ior(folder)
    return folder


def run_script(script: Path, programs: Path, directory: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "DIR": directory, **variables}
    return subprocess.run(["sh", str(script)], env=environment, capture_output=True, text=True, check=False)


def test_the_script_runs_and_its_output_is_read(tmp_path: Path, programs: Path) -> None:
    place = tmp_path / "a place; $(touch oops) 'x'"
    place.mkdir()
    (script,) = write_ior(model(filesystem="lake\n$(touch oops)"), tmp_path / "ior", BOUNDS)
    done = run_script(script, programs, str(place), ROUNDS="2")
    assert done.returncode == 0, done.stderr
    assert list(place.iterdir()) == []  # the files went
    assert not list(tmp_path.rglob("oops"))
    rows = [
        item.values
        for item in read_ior_text(ResultFile(script, ReadOptions(), "x"), done.stdout)
        if isinstance(item, Row)
    ]
    workload = ior_workload(model(), BOUNDS)
    assert len(rows) == 2 * len(workload.runs)  # the layout is no result: it is printed on standard error
    assert done.stderr.count("Finished") == len(workload.files)
    assert "mpirun -np 2" in (programs / "log").read_text()
    reads = {row["transfer_bytes"] for row in rows if row["direction"] == "read"}
    assert reads == {size for size, _ in READ_SIZES}


def test_without_a_directory_nothing_runs(tmp_path: Path, programs: Path) -> None:
    (script,) = write_ior(model(), tmp_path / "ior", BOUNDS)
    for directory, words in (("", "name a directory"), ("/tmp/a@b", "@ in a name")):
        done = run_script(script, programs, directory)
        assert done.returncode != 0
        assert words in done.stderr
    assert not (programs / "log").exists()


def test_files_go_also_when_a_run_fails(tmp_path: Path, programs: Path) -> None:
    (script,) = write_ior(model(), tmp_path / "ior", BOUNDS)
    place = tmp_path / "disk"
    place.mkdir()
    failing = programs / "failing"
    failing.write_text('#!/bin/sh\nfor word; do last=$word; done\n: > "$last"\nexit 3\n')
    failing.chmod(0o755)
    done = run_script(script, programs, str(place), IOR=str(failing), LAUNCH="")
    assert done.returncode == 3
    assert list(place.iterdir()) == []
