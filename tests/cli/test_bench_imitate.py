"""`bench imitate`: a log, a stored run, a job with counters of its nodes; what it prints, and what it refuses."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from iolens.analyses.bench_imitate import ImitationResult
from iolens.api.stored_runs import StoredRuns, WantedRuns
from iolens.store.store import Store
from iolens.units import MIB
from tests.analyses.client_rows import client_rows, fill, job_row
from tests.analyses.run_rows import fill_runs, run_row
from tests.benchmarks.standins import put_ior
from tests.cli.command import iolens
from tests.cli.test_job import enzo_job
from tests.simulator.stated_runs import NEEDS_DARSHAN
from tests.sources.darshan import LOGS
from tests.views.documented import undocumented

WRITE, READ = LOGS / "n1-write.darshan", LOGS / "n1-read.darshan"


def imitated(*arguments: object) -> dict[str, Any]:
    done = iolens("bench", "imitate", *arguments, "--format", "json")
    assert done.code == 0, done.err
    result: dict[str, Any] = json.loads(done.out)
    return result


@NEEDS_DARSHAN
def test_a_log_needs_no_store() -> None:
    result = imitated(WRITE)
    (run,) = result["imitation"]["runs"]
    parameters = run["parameters"]
    assert (parameters["api"], parameters["tasks"], parameters["segments"]) == ("POSIX", 4, 4)
    assert (parameters["transfer_bytes"], parameters["block_bytes"]) == (MIB, 64 * MIB)
    (command,) = result["commands"]
    assert shlex.join(command) == "mpirun -np 4 ior -a POSIX -t 1048576 -b 67108864 -s 4 -w -e -o DIR/data"
    assert {line["ratio"] for line in result["nearness"]} == {1.0}


@NEEDS_DARSHAN
def test_a_share_makes_the_commands_smaller_not_the_parameters() -> None:
    result = imitated(READ, "--share", "5%", "--tasks", "2", "--launcher", "srun -n {tasks}")
    assert result["imitation"]["runs"][0]["parameters"]["tasks"] == 4
    assert [shlex.join(command) for command in result["commands"]] == [
        "srun -n 2 ior -a POSIX -t 1048576 -b 26214400 -s 1 -w -e -k -o DIR/data",
        "srun -n 2 ior -a POSIX -t 1048576 -b 26214400 -s 1 -r -o DIR/data",
    ]


@NEEDS_DARSHAN
def test_the_tables_say_why() -> None:
    done = iolens("bench", "imitate", READ)
    assert done.code == 0, done.err
    for words in (
        "TransferSize (-t)   1 MiB",
        "100 % of 1,024 reads had that size",
        "4 × 64 MiB",
        "12 times with a gap of 192 MiB, the blocks of 3 other tasks",
        "mpirun -np 4 ior -a POSIX -t 1048576 -b 67108864 -s 4 -r -o DIR/data",
        "1 file of one task, written through STDIO",
        "By its parameters IOR does 100 % of the bytes, 100 % of the operations",
    ):
        assert words in done.out, words
    names = iolens("bench", "imitate", READ, "--table", "list").out.split()
    assert names == ["parameters", "evidence", "not_imitated", "nearness"]


@NEEDS_DARSHAN
def test_a_stored_run_is_as_its_log(tmp_path: Path) -> None:
    store = tmp_path / "store"
    assert iolens("ingest", "darshan", WRITE, "--store", store).code == 0
    (run_id,) = (str(row["run_id"]) for row in StoredRuns.opened(str(store), None).wanted(WantedRuns()))
    of_store, of_log = imitated(run_id[:12], "--store", store), imitated(WRITE)
    for part in ("imitation", "nearness", "commands"):
        assert of_store[part] == of_log[part]


def test_a_job_without_a_log_is_imitated_from_counters_of_its_nodes(tmp_path: Path) -> None:
    rpcs = {("write", 256): 512, ("write", 1): 10, ("read", 16): 1024}
    moved: dict[str, Any] = {"read_bytes": 64 * MIB, "write_bytes": 512 * MIB, "rpcs": rpcs, "metadata": {"open": 2}}
    parts = [client_rows(node, 0, 60, job_id="815", **moved) for node in ("n1", "n2")]
    fill(Store(tmp_path), parts, [job_row("815", 0, 60, nodes=2, node_list="n[1-2]", processes=16)])
    result = imitated("815", "--store", tmp_path)["imitation"]
    assert result["record"] == "client_counters"
    assert result["notes"][0].startswith("coarse: ")
    written, read = (run["parameters"] for run in result["runs"])
    assert (written["tasks"], written["transfer_bytes"], written["block_bytes"]) == (16, MIB, 64 * MIB)
    assert (read["transfer_bytes"], read["block_bytes"], read["file_per_process"]) == (65536, 8 * MIB, False)


def test_the_folder_of_a_jobs_samples_is_a_record_as_well(tmp_path: Path) -> None:
    """The job of Tables I and II: 5303 opens by 64 tasks, and mostly RPCs of 1 MiB."""
    written, read = imitated(enzo_job(tmp_path) / "4711")["imitation"]["runs"]
    for run in (written, read):
        parameters = run["parameters"]
        assert (parameters["tasks"], parameters["transfer_bytes"], parameters["file_per_process"]) == (64, MIB, True)
    assert written["recorded"]["operations"] == 54378
    assert read["recorded"]["operations"] == 42082


def test_of_a_job_with_several_runs_one_must_be_named(tmp_path: Path) -> None:
    fill_runs(Store(tmp_path), [run_row(letter * 64, job_id="77") for letter in "ab"])
    done = iolens("bench", "imitate", "77", "--store", tmp_path)
    assert done.code != 0
    assert "77 names 2 runs: name one by its run id, such as aaaaaaaaaaaa (app), bbbbbbbbbbbb (app)" in done.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.darshan"], "nowhere.darshan: no such file; expected a Darshan log"),
        ([__file__], "not a Darshan log"),
        (["4711", "--store", "EMPTY"], "no run and no job '4711'"),
        ([WRITE, "--share", "0"], "'0': a share such as 1% or 0.01, at most 100%"),
        ([WRITE, "--share", "200%"], "'200%': a share such as 1%"),
        ([WRITE, "--launcher", "srun 'x"], "No closing quotation"),
        ([WRITE, "--place", "here=/no/such/place"], "/no/such/place: no such directory"),
    ],
    ids=str,
)
@NEEDS_DARSHAN
def test_what_is_refused_is_said_in_one_line(tmp_path: Path, arguments: list[object], words: str) -> None:
    fill(Store(tmp_path), [client_rows("n1", 0, 60)])
    given = [tmp_path if argument == "EMPTY" else argument for argument in arguments]
    done = iolens("bench", "imitate", *given)
    assert done.code != 0
    assert words in done.err
    assert "Traceback" not in done.err


@NEEDS_DARSHAN
def test_a_dry_run_prints_the_plan_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs, place = tmp_path / "programs", tmp_path / "place"
    programs.mkdir()
    place.mkdir()
    put_ior(programs)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    done = iolens("bench", "imitate", WRITE, "--place", f"here={place}", "--tasks", "2", "--dry-run", cwd=tmp_path)
    assert done.code == 0, done.err
    for line in (
        'kind = "imitate"',
        "share = 0.01",
        "tasks = [2]",
        'transfer_bytes = ["1MiB"]',
        'block_bytes = ["5MiB"]',
    ):
        assert line in done.out.splitlines()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["place", "programs"]
    assert list(place.iterdir()) == []


def test_every_key_of_the_json_is_documented() -> None:
    assert undocumented(ImitationResult, "bench-imitate.md") == []
