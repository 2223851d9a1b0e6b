"""Sampling every node of a job through a launcher; the launchers are stand-ins that run everything here."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from iolens.agent.jobs.nodes import LAUNCHERS, run_on_nodes
from iolens.errors import IolensError
from tests.cli.command import iolens_process
from tests.sources.lustre.client_trees import tree_2_5

# Each runs the command once for every node, as that node; n3 does not answer.
EACH = 'for node in $(echo "$list" | tr , " "); do [ "$node" = n3 ] || SLURMD_NODENAME=$node {}; done'
STAND_INS = {
    "ssh": 'node=$8; shift 8; [ "$node" = n3 ] && exit 255; SLURMD_NODENAME=$node exec sh -c "$1"',
    "srun": "list=$9; shift 10; " + EACH.format('"$@"'),
    "pdsh": "list=$2; " + EACH.format('sh -c "$3"') + "; exit 1",
}


@pytest.fixture
def launchers(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, body in {**STAND_INS, "clush": STAND_INS["pdsh"]}.items():
        (folder / name).write_text(f"#!/bin/sh\n{body}\n")
        (folder / name).chmod(0o755)
    return folder


@pytest.mark.parametrize("launcher", sorted(LAUNCHERS))
def test_every_node_is_sampled_and_who_does_not_answer_is_named(tmp_path: Path, launchers: Path, launcher: str) -> None:
    root = tree_2_5(tmp_path / "a tree")  # the blank has to survive the shells on the way
    variables = {
        "PATH": f"{launchers}:{os.environ['PATH']}", "IOLENS_JOBS": str(tmp_path / "jobs"), "SLURM_JOB_ID": "17",
        "SLURM_JOB_NODELIST": "n[1-3]",
    }  # fmt: skip
    done = iolens_process("job", "begin", "--via", launcher, "--root", root, **variables)
    assert done.code == 0
    assert "iolens: no sample of n3" in done.err.splitlines()
    done = iolens_process("job", "end", "--via", launcher, "--root", root, **variables)
    assert done.code == 3
    assert "NOT COMPLETE: n3: no sample: it did not answer" in done.out.splitlines()
    assert sorted(path.name for path in (tmp_path / "jobs" / "17").iterdir()) == ["n1.job", "n2.job"]


def test_a_launcher_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pdsh").write_text("#!/bin/sh\nexec sleep 600\n")
    (tmp_path / "pdsh").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert run_on_nodes("pdsh", ["n1"], [sys.executable, "-c", ""], 0.2) == ["pdsh took too long and was ended"]


def test_a_launcher_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(IolensError, match="clush: No such file or directory; install it, or choose another with --via"):
        run_on_nodes("clush", ["n1"], ["true"], 1)


def test_via_without_a_list_of_nodes(tmp_path: Path) -> None:
    done = iolens_process("job", "begin", "--via", "srun", "--job-id", "1", IOLENS_JOBS=str(tmp_path))
    assert done.code == 2
    assert "the environment does not name the nodes of the job" in done.err
