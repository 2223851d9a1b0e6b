"""Runs the command as a user would: in this process, which is quick, or in one of its own."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from iolens.cli import main
from iolens.cli.visible_streams import guard_streams


@dataclass(frozen=True)
class Finished:
    """What a run left: exit code and what it printed."""

    code: int
    out: str
    err: str


def iolens(*arguments: object, cwd: Path | None = None, **environment: str) -> Finished:
    """`iolens ARGUMENTS…`, by the command's own way of reporting errors."""
    with _streams() as (out, err), _surroundings(cwd, environment, arguments):
        guard_streams()
        try:
            code = main._run()
        except Exception:
            traceback.print_exc()
            code = 1
        sys.stdout.flush()
        sys.stderr.flush()
    return Finished(code, out.getvalue().decode(), err.getvalue().decode(errors="replace"))


def iolens_process(*arguments: object, cwd: Path | None = None, **environment: str) -> Finished:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "iolens.cli.main", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, cwd=cwd, env={**os.environ, **environment}, check=False)
    return Finished(done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace"))


class _Kept(io.BytesIO):
    """Bytes that outlive the stream that writes them."""

    def close(self) -> None:
        pass


@contextmanager
def _streams() -> Iterator[tuple[io.BytesIO, io.BytesIO]]:
    out, err = _Kept(), _Kept()
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (io.TextIOWrapper(kept, "utf-8", "surrogateescape") for kept in (out, err))
    try:
        yield out, err
    finally:
        sys.stdout, sys.stderr = before


@contextmanager
def _surroundings(cwd: Path | None, environment: dict[str, str], arguments: tuple[object, ...]) -> Iterator[None]:
    argv, folder, variables = sys.argv, Path.cwd(), dict(os.environ)
    sys.argv = ["iolens", *map(str, arguments)]
    os.environ.update(environment)
    if cwd is not None:
        os.chdir(cwd)
    try:
        yield
    finally:
        sys.argv = argv
        os.chdir(folder)
        for name in {*os.environ, *variables}:  # no more than was changed: threads of other libraries may be reading it
            if name not in variables:
                del os.environ[name]
            elif os.environ.get(name) != variables[name]:
                os.environ[name] = variables[name]
