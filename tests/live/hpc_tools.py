"""IOR, mdtest and Darshan for live tests, built once from sources and kept between sessions.

`components/build-hpc-tools` of the directory IOLENS_SHARED builds them, in about three minutes, into a folder of the
user's cache; IOLENS_HPC_TOOLS names a folder where they already are. A session that will need them begins to build at
once, behind everything else.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
from functools import cache
from pathlib import Path

from tests.live.slurm_cluster import SHARED
from tests.live.spark_cluster import ComponentFailed, ComponentMissing

BUILDER = SHARED / "components" / "build-hpc-tools"
FILES = ("bin/ior", "bin/mdtest", "bin/darshan-parser", "lib/libdarshan.so")
PROGRAMS = ("gcc", "make", "mpicc", "mpirun", "flock", "nice")
BUILD_S = 1200


def hpc_tools() -> Path:
    """The folder with all of FILES; ComponentMissing where they are neither there nor can be built."""
    given = os.environ.get("IOLENS_HPC_TOOLS")
    if given is not None:
        return _complete(Path(given), f"IOLENS_HPC_TOOLS={given}")
    done = subprocess.run(_command(), capture_output=True, text=True, check=False, timeout=BUILD_S)
    if done.returncode:
        raise ComponentFailed(f"IOR and Darshan could not be built: {done.stderr[-2000:]}")
    return _complete(_folder(), str(BUILDER))


class BackgroundBuild:
    """A build that goes on while other tests run; whoever needs the tools waits for its lock."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        """Start it, unless there is nothing to build, or nothing to build with."""
        with contextlib.suppress(ComponentMissing):
            if "IOLENS_HPC_TOOLS" not in os.environ and not _is_complete(_folder()):
                quiet = subprocess.DEVNULL
                self.process = subprocess.Popen(
                    _command(), stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True
                )

    def end(self) -> None:
        """Leave no process behind; a build that is not complete begins anew next time."""
        if self.process is not None and self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGTERM)
            self.process.wait(30)


def _command() -> list[str]:
    """Build behind everything else, one at a time on this machine; nothing is done where it is complete."""
    folder = _folder()
    folder.parent.mkdir(parents=True, exist_ok=True)
    return ["flock", f"{folder}.lock", "nice", "-n", "10", str(BUILDER), str(folder)]


@cache
def _folder() -> Path:
    """Named after the builder and its sources, so that others are built when they change."""
    if not BUILDER.is_file():
        raise ComponentMissing("components/build-hpc-tools is not in IOLENS_SHARED")
    if not all(shutil.which(name) for name in PROGRAMS):
        raise ComponentMissing("IOR and Darshan need: apt-get install gcc make zlib1g-dev openmpi-bin libopenmpi-dev")
    digest = hashlib.sha256()
    for path in (BUILDER, *sorted(BUILDER.parent.glob("*.tar.gz"))):
        digest.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    cached = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cached / "iolens-test" / f"hpc-tools-{digest.hexdigest()[:16]}"


def _is_complete(folder: Path) -> bool:
    return all((folder / name).is_file() for name in FILES)


def _complete(folder: Path, whose: str) -> Path:
    if not _is_complete(folder):
        missing = ", ".join(name for name in FILES if not (folder / name).is_file())
        raise ComponentMissing(f"{whose}: no {missing}")
    return folder
