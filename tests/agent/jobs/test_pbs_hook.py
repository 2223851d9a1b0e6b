"""The hook for PBS with a stand-in for PBS's own module: which command it runs, for which job, on which nodes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HOOK = Path(__file__).parents[3] / "contrib" / "pbs" / "iolens_hook.py"
PBS = """
from types import SimpleNamespace
EXECJOB_PROLOGUE, EXECJOB_EPILOGUE, LOG_WARNING = 1, 2, 3
def logmsg(level, text): print("log", text)
def event():
    import os
    job = SimpleNamespace(id="17.pbs", Job_Name="enzo", euser="alice", exec_host="n1/0*4+n2/0*4+n1/1")
    return SimpleNamespace(type=int(os.environ["EVENT"]), job=job, accept=lambda: print("accepted"))
"""
NAMES = ("IOLENS_JOBS", "IOLENS_JOB_NODES", "PBS_JOBID", "PBS_JOBNAME", "PBS_O_LOGNAME")


def run(tmp_path: Path, event: int, program: str) -> str:
    (tmp_path / "pbs.py").write_text(PBS)
    text = HOOK.read_text().replace('"/usr/bin/iolens"', repr(program))
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "EVENT": str(event)},
    )  # fmt: skip
    return done.stdout


@pytest.mark.parametrize(("event", "words"), [(1, ["job", "begin"]), (2, ["job", "end", "--no-report"])])
def test_each_event_has_its_command(tmp_path: Path, event: int, words: list[str]) -> None:
    program, said = tmp_path / "iolens", tmp_path / "said.json"
    heard = f"[sys.argv[1:], {{name: os.environ[name] for name in {NAMES}}}]"
    script = f"import json, os, sys\njson.dump({heard}, open({str(said)!r}, 'w'))\n"
    program.write_text(f"#!{sys.executable}\n{script}")
    program.chmod(0o755)
    assert run(tmp_path, event, str(program)) == "accepted\n"
    arguments, environment = json.loads(said.read_text())
    assert arguments == words
    assert environment == {
        "IOLENS_JOBS": "/var/lib/iolens/jobs", "IOLENS_JOB_NODES": "n1,n2", "PBS_JOBID": "17.pbs",
        "PBS_JOBNAME": "enzo", "PBS_O_LOGNAME": "alice",
    }  # fmt: skip


def test_a_job_goes_on_without_iolens(tmp_path: Path) -> None:
    out = run(tmp_path, 1, str(tmp_path / "nothing"))
    assert out.startswith("log iolens: ")
    assert out.endswith("accepted\n")
