"""A real Slurm of several nodes on this host, with accounting; each node has a tree of a Lustre client of its own.

`components/slurm-cluster` of the directory IOLENS_SHARED starts it. Its prolog and epilog are those of `contrib/slurm`,
with settings of this cluster: where iolens is, where jobs are sampled to, where the tree of the node is.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

import psutil

from tests.live.spark_cluster import HOST, ComponentFailed, ComponentMissing

REPOSITORY = Path(__file__).parents[2]
SHARED = Path(os.environ.get("IOLENS_SHARED", REPOSITORY.parent / "shared"))
STARTER = SHARED / "components" / "slurm-cluster"
CONTRIB = REPOSITORY / "contrib" / "slurm"
PROGRAMS = ("slurmctld", "slurmd", "slurmdbd", "munged", "mariadbd")
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
START_S, JOB_S = 180, 240


class SlurmCluster:
    """`with SlurmCluster(3) as cluster:` gives `trees` (by node), `jobs` (their folder), and the commands of Slurm."""

    def __init__(self, nodes: int) -> None:
        self.nodes = [f"n{number + 1}" for number in range(nodes)]

    def __enter__(self) -> Self:
        if not STARTER.is_file():
            raise ComponentMissing("components/slurm-cluster is not in IOLENS_SHARED")
        if os.geteuid() != 0 or not all(shutil.which(name, path=PATH) for name in PROGRAMS):
            raise ComponentMissing("Slurm needs root and: apt-get install slurm-wlm slurmdbd munge mariadb-server")
        self.folder = Path(tempfile.mkdtemp(prefix="iolens-slurm-"))
        self.folder.chmod(0o755)
        self.jobs, self.outputs = self.folder / "jobs", self.folder / "out"
        self.outputs.mkdir()
        self.trees = {node: self.folder / "trees" / node for node in self.nodes}
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(subprocess.SubprocessError):
            subprocess.run([STARTER, "stop", self.folder / "slurm"], check=False, capture_output=True, timeout=60)
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if self._is_ours(process):
                    process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _is_ours(self, process: psutil.Process) -> bool:
        """Whether a process is of this cluster; the step of a job that still runs tells it by its environment only."""
        if process.pid == os.getpid():
            return False
        environment = Path(f"/proc/{process.pid}/environ").read_bytes()  # psutil stops where a title overwrote it
        conf = f"SLURM_CONF={self.folder}/".encode()
        return conf in environment or any(str(self.folder) in word for word in process.cmdline())

    def run(self, *command: str | Path, **environment: str) -> str:
        """What a command of Slurm prints."""
        words = [str(word) for word in command]
        done = subprocess.run(
            words, capture_output=True, text=True, check=False, env={**self.environment, **environment}, timeout=JOB_S
        )
        if done.returncode:
            raise ComponentFailed(f"{' '.join(words)}: exit {done.returncode}: {done.stderr}")
        return done.stdout

    @property
    def environment(self) -> dict[str, str]:
        """What Slurm's commands and our own need."""
        return {**os.environ, "PATH": PATH, "SLURM_CONF": self.configuration, "PYTHONPATH": str(REPOSITORY / "src")}

    def submit(self, script: str, *options: str) -> str:
        """The id of a job, which writes to `outputs`/ID.out."""
        output = str(self.outputs / "%j.out")
        path = self.folder / f"batch-{random.getrandbits(64):x}.sh"
        path.write_text(f"#!/bin/sh\n{script}\n")
        return self.run("sbatch", "--parsable", "--output", output, *options, path).split(";")[0].strip()

    def wait_for(self, condition: Callable[[], bool], what: str, seconds: float = JOB_S) -> None:
        """Wait, but not for ever."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise ComponentFailed(f"waited {seconds:g} s for {what}; {self.run('squeue')}{self.log()}")
            time.sleep(0.2)

    def log(self) -> str:
        """What prologs and epilogs said."""
        path = self.folder / "iolens.log"
        return path.read_text(errors="replace")[-3000:] if path.exists() else ""

    def kill_node(self, node: str) -> None:
        """End a node's slurmd as a crash would."""
        os.kill(int((self.folder / "slurm" / f"slurmd.{node}.pid").read_text()), signal.SIGKILL)

    def _start(self) -> None:
        prolog, epilog = (self._script(name) for name in ("iolens-prolog", "iolens-epilog"))
        command = [STARTER, "start", self.folder / "slurm", str(len(self.nodes)), prolog, epilog]
        variables = {**os.environ, "PATH": PATH, "BASE_PORT": str(_free_ports(len(self.nodes) + 6))}
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            env=variables,
            timeout=START_S,
            stdin=subprocess.DEVNULL,
        )
        if done.returncode:
            raise ComponentFailed(f"Slurm did not start: {done.stderr[-2000:]}")
        self.configuration = done.stdout.split()[-1]

    def _script(self, name: str) -> Path:
        """A shipped script with the settings of this cluster; its messages go to a file, for no syslog runs here."""
        tools = self.folder / "bin"
        tools.mkdir(exist_ok=True)
        root = self.folder / "trees"
        _executable(tools / "iolens", f'exec {sys.executable} -m iolens.cli.main "$@" --root {root}/"$SLURMD_NODENAME"')
        _executable(tools / "logger", f"cat >> {self.folder}/iolens.log")
        settings = {
            "PATH": f"{tools}:{PATH}", "PYTHONPATH": REPOSITORY / "src", "IOLENS": tools / "iolens",
            "IOLENS_JOBS": self.jobs, "IOLENS_WAIT": "15s", "SLURM_CONF": self.folder / "slurm" / "slurm.conf",
        }  # fmt: skip
        exports = "\n".join(f'export {key}="{value}"' for key, value in settings.items())
        return _executable(self.folder / name, f'{exports}\nexec {CONTRIB / name} "$@"')


def _executable(path: Path, body: str) -> Path:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def _free_ports(count: int) -> int:
    """The first of so many ports in a row that nobody listens on."""
    for _ in range(200):
        first = random.randrange(20_000, 32_000)
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in range(first, first + count):
                stack.enter_context(socket.socket()).bind((HOST, port))
            return first
    raise ComponentFailed("no free ports in a row")
