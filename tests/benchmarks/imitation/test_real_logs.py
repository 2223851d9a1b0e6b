"""Logs of real runs: those of IOR give back what IOR was asked for, all others parameters or a reason in one line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from iolens.api.runs import record_of_log
from iolens.api.studies import file_rows, imitation_of_record
from iolens.benchmarks.imitation.run_imitation import imitation_of_run, ior_commands
from iolens.errors import IolensError
from iolens.models.ior_parameters import Imitation, IorParameters
from iolens.units import KIB, MIB
from tests.simulator.stated_runs import NEEDS_DARSHAN
from tests.sources.darshan import LOGS
from tests.sources.darshan.conftest import CAPTURED, label

pytestmark = NEEDS_DARSHAN
WRITTEN = IorParameters(
    api="POSIX", tasks=4, transfer_bytes=MIB, block_bytes=64 * MIB, segments=4, file_per_process=False, write=True,
    read=False, fsync=True,
)  # fmt: skip
PAIRS = {
    "n1-write": WRITTEN,
    "n1-read": replace(WRITTEN, write=False, read=True, fsync=False),
    "nn-write": replace(WRITTEN, file_per_process=True),
    "nn-mpiio": replace(
        WRITTEN,
        api="MPIIO",
        transfer_bytes=256 * KIB,
        block_bytes=16 * MIB,
        segments=1,
        file_per_process=True,
        read=True,
    ),
}
CORPUS = {  # by the directory's README and the options in the logs
    "climate": {"api": "POSIX", "transfer_bytes": 64 * KIB, "file_per_process": True, "write": True, "read": True},
    "energy": {"api": "POSIX", "transfer_bytes": MIB, "file_per_process": False, "write": True, "read": False},
    "turbulence": {"api": "POSIX", "transfer_bytes": 512, "block_bytes": 64 * KIB, "file_per_process": False},
    "chemistry": {"api": "MPIIO", "transfer_bytes": 256 * KIB, "block_bytes": 4 * MIB, "collective": True},
    "astro": {"api": "POSIX", "transfer_bytes": 4 * MIB, "block_bytes": 64 * MIB, "file_per_process": False},
}


@pytest.mark.parametrize("name", PAIRS)
def test_a_log_of_ior_gives_back_its_parameters(name: str) -> None:
    imitation = imitation_of_record(record_of_log(LOGS / f"{name}.darshan"))
    (imitated,) = imitation.runs
    assert imitated.parameters == PAIRS[name]
    assert all(item.is_known for item in imitated.evidence)
    assert imitated.parameters.work == imitated.recorded


@pytest.mark.parametrize("name", PAIRS)
def test_they_are_what_ior_says_of_itself(name: str) -> None:
    (test,) = json.loads((LOGS / f"{name}.ior.json").read_text())["tests"]
    asked, said = test["Parameters"], test["Options"]
    parameters = PAIRS[name]
    assert (parameters.transfer_bytes, parameters.block_bytes) == (asked["transferSize"], asked["blockSize"])
    assert (parameters.segments, parameters.tasks) == (asked["segmentCount"], said["tasks"])
    flags = parameters.file_per_process, parameters.collective, parameters.write, parameters.read
    assert flags == tuple(bool(asked[key]) for key in ("filePerProc", "collective", "writeFile", "readFile"))


@pytest.mark.parametrize("name", PAIRS)
def test_without_the_command_line_only_segments_of_own_files_are_open(name: str) -> None:
    """Four blocks of 64 MiB that follow each other are as one of 256 MiB."""
    record = record_of_log(LOGS / f"{name}.darshan")
    (imitated,) = imitation_of_run({**record.run, "command": None}, file_rows(record.files)).runs
    one_piece = replace(PAIRS[name], segments=1, block_bytes=PAIRS[name].task_bytes)
    assert imitated.parameters == (one_piece if PAIRS[name].file_per_process else PAIRS[name])


def test_gaps_between_blocks_are_on_record() -> None:
    record = record_of_log(LOGS / "n1-write.darshan")
    (file,) = (row for row in file_rows(record.files) if row["module"] == "POSIX")
    assert (file["stride1_bytes"], file["stride1_count"]) == (3 * 64 * MIB, 4 * 3)


@pytest.mark.parametrize("path", [path for path in CAPTURED if "darshan-corpus" in path.parts], ids=label)
def test_every_log_of_the_corpus(path: Path) -> None:
    imitation = imitation_of_record(record_of_log(path))
    (imitated,) = imitation.runs
    (project,) = (name for name in CORPUS if f"/scratch/{name}" in str(imitated.example))
    for name, value in CORPUS[project].items():
        assert getattr(imitated.parameters, name) == value, name
    assert imitated.parameters.segments == 1
    assert imitated.parameters.work == imitated.recorded


def imitation_or_reason(path: Path) -> Imitation | str:
    try:
        return imitation_of_record(record_of_log(path))
    except IolensError as error:
        return str(error)


@pytest.mark.parametrize("path", [path for path in CAPTURED if "darshan-corpus" not in path.parts], ids=label)
def test_any_log_gives_parameters_that_ior_takes_or_a_reason(path: Path) -> None:
    imitation = imitation_or_reason(path)
    if isinstance(imitation, str):
        assert "\n" not in imitation
        return
    for imitated in imitation.runs:
        for command in ior_commands(imitated.parameters):
            command.check()
        assert imitated.parameters.moved_bytes == pytest.approx(imitated.recorded.moved_bytes, rel=0.1, abs=4 * KIB)
        assert all(item.words and item.value for item in imitated.evidence)
    imitated_pct = sum(item.share_pct for item in imitation.runs)
    assert imitated_pct + sum(item.share_pct for item in imitation.not_imitated) == pytest.approx(100)
