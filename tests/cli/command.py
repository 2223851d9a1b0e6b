"""Runs the real command in a process of its own, as a user would."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Finished:
    """What a run left: exit code and what it printed."""

    code: int
    out: str
    err: str


def iolens(*arguments: object, cwd: Path | None = None, **environment: str) -> Finished:
    """`iolens ARGUMENTS…`."""
    command = [sys.executable, "-m", "iolens.cli.main", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, cwd=cwd, env={**os.environ, **environment}, check=False)
    return Finished(done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace"))
