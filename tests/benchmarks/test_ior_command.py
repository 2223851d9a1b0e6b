"""What is asked of IOR, and what IOR would refuse is refused before it is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolens.benchmarks.ior_sweep import IorCommand, ior_rows
from iolens.benchmarks.programs import launcher_words
from iolens.errors import IolensError, UsageError
from iolens.units import GIB, KIB, MIB

FILE = Path("/scratch/data")


def test_the_usual_command() -> None:
    asked = IorCommand(file=FILE, transfer_bytes=MIB, block_bytes=GIB, tasks=64)
    assert asked.shown() == "mpirun -np 64 ior -a POSIX -t 1048576 -b 1073741824 -s 1 -w -r -o /scratch/data"
    assert asked.aggregate_bytes == 64 * GIB


def test_every_flag_is_iors_own() -> None:
    collective = IorCommand(
        file=FILE, api="MPIIO", transfer_bytes=MIB, block_bytes=MIB, segments=16, collective=True, fsync=True,
        reorder=True, keep=True, use_existing=True, repetitions=3,
    )  # fmt: skip
    sizes = ["-t", "1048576", "-b", "1048576", "-s", "16"]
    assert collective.options() == [
        "-a", "MPIIO", *sizes, "-c", "-w", "-r", "-e", "-C", "-k", "-E", "-i", "3", "-o", "/scratch/data"
    ]  # fmt: skip
    direct = IorCommand(
        file=FILE, transfer_bytes=4 * KIB, block_bytes=MIB, file_per_process=True, random=True, direct=True, read=False,
        max_seconds=0.2,
    )  # fmt: skip
    assert direct.options()[6:] == ["-s", "1", "-F", "-z", "-w", "--posix.odirect", "-D", "1", "-o", "/scratch/data"]


def test_an_fsync_is_of_writes_and_a_new_order_of_reads() -> None:
    only_read = IorCommand(file=FILE, transfer_bytes=MIB, block_bytes=MIB, write=False, fsync=True, reorder=True)
    only_written = IorCommand(file=FILE, transfer_bytes=MIB, block_bytes=MIB, read=False, fsync=True, reorder=True)
    assert [word for word in only_read.options() if word in ("-e", "-C", "-w", "-r")] == ["-r", "-C"]
    assert [word for word in only_written.options() if word in ("-e", "-C", "-w", "-r")] == ["-w", "-e"]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"api": "DFS"}, "api 'DFS' is none of POSIX, MPIIO"),
        ({"write": False, "read": False}, "neither written nor read"),
        ({"segments": 0}, "must be 1 or more"),
        ({"transfer_bytes": 0}, "must be 1 or more"),
        ({"transfer_bytes": 12}, "a transfer of 12 bytes is not a multiple of 8"),
        ({"block_bytes": MIB + 1}, "a block of 1048577 bytes is not a whole number of transfers of 1048576"),
        ({"collective": True}, "POSIX has no collective I/O"),
        ({"collective": True, "random": True, "api": "MPIIO"}, "collective I/O cannot be in random order"),
        ({"direct": True, "api": "MPIIO"}, "O_DIRECT is for POSIX"),
        ({"random": True, "reorder": True}, "a shared file in random order cannot also be reordered"),
        ({"max_seconds": 5.0}, "only writes or only reads"),
        ({"file": Path("/scratch/a@b")}, "/scratch/a@b: '@' separates files"),
    ],
    ids=str,
)
def test_what_ior_would_refuse(asked: dict[str, object], words: str) -> None:
    usual: dict[str, object] = {"file": FILE, "transfer_bytes": MIB, "block_bytes": MIB}
    with pytest.raises(UsageError) as refused:
        IorCommand(**{**usual, **asked}).options()  # type: ignore[arg-type]
    assert words in str(refused.value)


def test_a_result_that_is_missing_is_said() -> None:
    asked = IorCommand(file=FILE, transfer_bytes=MIB, block_bytes=MIB)
    with pytest.raises(IolensError, match="not a result of IOR"):
        ior_rows(asked, "nothing of the kind\n")


def test_a_launcher_is_the_users_or_the_first_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert launcher_words("srun -n {tasks} --mpi 'pmi x'", 4) == ["srun", "-n", "4", "--mpi", "pmi x"]
    with pytest.raises(UsageError, match='--launcher "srun \'a": No closing quotation'):
        launcher_words("srun 'a", 4)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert launcher_words(None, 1) == []
    with pytest.raises(UsageError, match="name one with --launcher, or use one task"):
        launcher_words(None, 2)
    (tmp_path / "mpiexec").write_text("#!/bin/sh\n")
    (tmp_path / "mpiexec").chmod(0o755)
    assert launcher_words(None, 2) == [str(tmp_path / "mpiexec"), "-n", "2"]
