"""A real pmcd of one's own on 127.0.0.1 with the agent of `iolens export pcp`, and pmlogger beside it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Self

from tests.live.spark_cluster import HOST, ComponentFailed, ComponentMissing, Daemon

PROGRAMS = Path("/usr/lib/pcp/bin")
NAMESPACES = Path("/var/lib/pcp/pmns")
PMCD_AGENT = Path("/var/lib/pcp/pmdas/pmcd/pmda_pmcd.so")
PYTHON = "/usr/bin/python3"  # PCP's module is compiled for the system's
ENVIRONMENT = {"TZ": "UTC", "PCP_PYTHON_PROG": PYTHON, "PCP_DERIVED_CONFIG": ""}


def require_pcp() -> None:
    """ComponentMissing unless daemon, tools and Python module are installed."""
    for name in ("pminfo", "pmval", "pmrep", "pmlogger", "pmprobe"):
        if shutil.which(name) is None:
            raise ComponentMissing(f"{name}: install the packages pcp and python3-pcp")
    if not all(path.exists() for path in (PROGRAMS / "pmcd", NAMESPACES / "root_pmcd", PMCD_AGENT)):
        raise ComponentMissing("pmcd: install the package pcp")
    if subprocess.run([PYTHON, "-c", "from pcp import pmda"], capture_output=True, check=False).returncode:
        raise ComponentMissing("PCP's Python module: install the package python3-pcp")


class Pmcd:
    """`with Pmcd(root, "n1") as pmcd:` serves a root under that host name, set up by `iolens export pcp --install`."""

    def __init__(self, root: Path, host: str = "n1", *options: object) -> None:
        self.root, self.host, self.options = root, host, options

    def __enter__(self) -> Self:
        require_pcp()
        self.folder = Path(tempfile.mkdtemp(prefix="pmcd-"))
        self.port = _free_port()
        try:
            self._install()
            self.daemon = self._start()
            self._wait_until_served()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if hasattr(self, "daemon"):
            self.daemon.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, *command: object) -> str:
        """What a tool of PCP prints of this pmcd."""
        program, *words = map(str, command)
        done = subprocess.run(
            [program, "-h", f"{HOST}:{self.port}", *words], capture_output=True, text=True, check=False, timeout=60,
            env={**os.environ, **ENVIRONMENT},
        )  # fmt: skip
        assert done.returncode == 0, (done.stdout, done.stderr, self.log)
        return done.stdout

    def logger(self, base: Path, every: str = "100 msec", metrics: str = "iolens") -> Daemon:
        """A pmlogger that writes an archive until it is stopped."""
        configuration = self.folder / f"{base.name}.config"
        configuration.write_text(f"log mandatory on {every} {{ {metrics} }}\n")
        command = ["pmlogger", "-h", f"{HOST}:{self.port}", "-c", configuration, "-U", "root", "-l",
                   self.folder / f"{base.name}.log", "-y", base]  # fmt: skip
        return Daemon(list(map(str, command)), self.folder / f"{base.name}.out", {**os.environ, **ENVIRONMENT})

    @property
    def log(self) -> str:
        """What pmcd and the agent had to say."""
        return "\n".join(path.read_text(errors="replace") for path in sorted(self.folder.glob("*.log")))

    def _install(self) -> None:
        command = [sys.executable, "-m", "iolens.cli.main", "export", "pcp", "--install", self.folder, "--root",
                   self.root, *self.options]  # fmt: skip
        subprocess.run(list(map(str, command)), check=True, capture_output=True, timeout=60)
        merged = self.folder / "merged.ns"
        subprocess.run(
            [PROGRAMS / "pmnsmerge", "-a", NAMESPACES / "root_pmcd", self.folder / "root", merged], check=True
        )
        own = f"pmcd 2 dso pmcd_init {PMCD_AGENT}\n"
        line = (self.folder / "pmcd.conf").read_text().rstrip("\n")
        (self.folder / "agents.conf").write_text(f"{own}{line} --log {self.folder / 'agent.log'}\n")

    def _start(self) -> Daemon:
        command = [PROGRAMS / "pmcd", "-f", "-A", "-i", HOST, "-p", self.port, "-s", self.folder / "pmcd.sock", "-U",
                   "root", "-c", self.folder / "agents.conf", "-n", self.folder / "merged.ns", "-H", self.host, "-l",
                   self.folder / "pmcd.log"]  # fmt: skip
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        return Daemon(list(map(str, command)), self.folder / "pmcd.out", {**environment, **ENVIRONMENT})

    def _wait_until_served(self, seconds: float = 30.0) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.daemon.process.poll() is not None:
                break
            command = ["pmprobe", "-h", f"{HOST}:{self.port}", "iolens.agent.reading.success"]
            asked = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
            if asked.stdout.split()[1:2] == ["3"]:
                return
            time.sleep(0.05)
        raise ComponentFailed(f"pmcd does not serve iolens: {self.log}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
