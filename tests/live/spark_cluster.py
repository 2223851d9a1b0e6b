"""A real Spark standalone cluster on 127.0.0.1: a master, two workers and, on request, a Spark Connect server.

Everything comes from the PyPI wheel of PySpark and the `java` on PATH. The kernel chooses the ports.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Self

import psutil
import pytest

HOST = "127.0.0.1"
# C1 only and the serial collector: half the start-up time of a JVM on two cores. Spark's own classes are not verified:
# an eighth less processor time. No files under /tmp/hsperfdata_*.
QUICK_JVM = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
DRIVER_OPTIONS: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.host": HOST,
    "spark.driver.bindAddress": HOST,
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.cores.max": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


class ComponentMissing(Exception):
    """A program that a live test needs is not installed; the message says how to install it."""


class ComponentFailed(Exception):
    """A server ended or stayed silent instead of starting; the message carries the end of its log."""


class Daemon:
    """A child process that leads its own session, with its output in a log file."""

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        self.log = log
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(environment),
                start_new_session=True,
            )

    def wait_for(self, pattern: str, seconds: float = 60.0) -> str:
        """The first group of `pattern` once the log has it."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            ended = self.process.poll() is not None
            text = self.log.read_text(errors="replace")
            if result := re.search(pattern, text):
                return result.group(1)
            if ended:
                break
            time.sleep(0.05)
        raise ComponentFailed(f"{self.log.name}: expected {pattern!r}, found\n" + "\n".join(self._tail()))

    def stop(self) -> None:
        """Kill the whole session: the executors of a worker are in it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        deadline = time.monotonic() + 60.0
        while self.alive() and time.monotonic() < deadline:
            time.sleep(0.02)

    def alive(self) -> list[int]:
        """Process ids of the session, the leader and its descendants, without zombies."""
        result = []
        for process in psutil.process_iter():
            with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess):
                if os.getsid(process.pid) == self.process.pid and process.status() != psutil.STATUS_ZOMBIE:
                    result.append(process.pid)
        return result

    def _tail(self) -> list[str]:
        lines = self.log.read_text(errors="replace").splitlines()
        return [line for line in lines if not line.startswith("\tat ")][-20:]  # the message, not the stack


class SparkCluster:
    """`with SparkCluster(connect=True) as cluster:` gives `master_url`, `connect_url` and `driver_options`."""

    def __init__(self, workers: int = 2, connect: bool = False) -> None:
        self.workers = workers
        self.connect = connect
        self.master_url = ""
        self.connect_url = ""
        self.driver_options: dict[str, str] = dict(DRIVER_OPTIONS)
        self.daemons: list[Daemon] = []

    def __enter__(self) -> Self:
        self._java = require_java()
        self._home = spark_home()
        self.directory = Path(tempfile.mkdtemp(prefix="spark-cluster-"))
        # A killed JVM leaves its temporary directories, so they belong under ours.
        self._jvm = f"{QUICK_JVM} -Djava.io.tmpdir={self.directory}"
        self.driver_options["spark.driver.extraJavaOptions"] = self._jvm
        self.driver_options["spark.executor.extraJavaOptions"] = self._jvm
        self.driver_options["spark.sql.warehouse.dir"] = str(self.directory / "warehouse")
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop every process, last started first, and remove the work directories."""
        while self.daemons:
            self.daemons.pop().stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def alive_workers(self) -> int:
        """The number of ALIVE workers that the master reports."""
        try:
            with urllib.request.urlopen(f"{self._web_ui}/json/", timeout=5) as answer:
                return int(json.load(answer)["aliveworkers"])
        except (OSError, ValueError):  # the web UI answers without JSON until its handlers are attached
            return 0

    def _start(self) -> None:
        master = self._spark_class(
            "master", "org.apache.spark.deploy.master.Master", "--host", HOST, "--port", "0", "--webui-port", "0"
        )
        # A worker that finds no master retries only after 5 to 15 s, so the workers wait for the master's port.
        self.master_url = master.wait_for(rf"Starting Spark master at (spark://{HOST}:\d+)")
        for number in range(self.workers):
            self._spark_class(
                f"worker-{number}",
                "org.apache.spark.deploy.worker.Worker",
                "--host",
                HOST,
                "--webui-port",
                "0",
                "--cores",
                "1",
                "--memory",
                "1g",
                "--work-dir",
                str(self.directory / f"work-{number}"),
                self.master_url,
            )
        if self.connect:
            server = self._connect_server()
        self._web_ui = f"http://{HOST}:" + master.wait_for(r"'MasterUI' on port (\d+)")
        self._wait_for_workers()
        if self.connect:
            self.connect_url = "sc://" + server.wait_for(rf"Spark Connect server started at: ({HOST}:\d+)")

    def _wait_for_workers(self, seconds: float = 60.0) -> None:
        deadline = time.monotonic() + seconds
        while (alive := self.alive_workers()) < self.workers:
            if time.monotonic() > deadline:
                raise ComponentFailed(f"Spark master: expected {self.workers} ALIVE workers, found {alive}")
            time.sleep(0.05)

    def _spark_class(self, name: str, *arguments: str) -> Daemon:
        return self._daemon(name, "spark-class", *arguments)

    def _connect_server(self) -> Daemon:
        """It works by itself: what the cluster does behind a driver is the same whoever asks the driver."""
        options = self.driver_options | {
            "spark.connect.grpc.binding.address": HOST,
            "spark.connect.grpc.binding.port": "0",
        }
        settings = [word for key, value in options.items() for word in ("--conf", f"{key}={value}")]
        return self._daemon(
            "connect",
            "spark-submit",
            "--class",
            "org.apache.spark.sql.connect.service.SparkConnectServer",
            "--master",
            "local[2]",
            *settings,
        )

    def _daemon(self, name: str, program: str, *arguments: str) -> Daemon:
        command = [str(self._home / "bin" / program), *arguments]
        daemon = Daemon(command, self.directory / f"{name}.log", self.environment())
        self.daemons.append(daemon)
        return daemon

    def environment(self) -> dict[str, str]:
        """What a driver or daemon needs to find Java, Spark and this cluster's own directories."""
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))}
        return inherited | {
            "JAVA_HOME": str(self._java),
            "SPARK_HOME": str(self._home),
            "SPARK_LOCAL_IP": HOST,
            "SPARK_LOCAL_DIRS": str(self.directory / "local"),
            "SPARK_DAEMON_MEMORY": "512m",  # the Connect server takes this too, and refuses less
            "SPARK_DAEMON_JAVA_OPTS": f"{self._jvm} -Dspark.master.rest.enabled=false",
            "SPARK_LAUNCHER_OPTS": self._jvm,
            "PYSPARK_PYTHON": sys.executable,
        }


def java_children() -> set[int]:
    """Process ids of drivers that this process started."""
    return {child.pid for child in psutil.Process().children() if child.name() == "java"}


def require_java() -> Path:
    """JAVA_HOME of the `java` on PATH."""
    java = shutil.which("java")
    if java is None:
        raise ComponentMissing("java 17: apt-get install openjdk-17-jre-headless")
    return Path(java).resolve().parent.parent


def spark_home() -> Path:
    """The directory of the PySpark wheel, found without importing it."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise ComponentMissing("pyspark: pip install 'pyspark[connect]'")
    return Path(spec.origin).parent


@contextlib.contextmanager
def spark_environment(cluster: SparkCluster) -> Iterator[None]:
    """Variables with which drivers started in this process are small and stay on this machine."""
    options = " ".join(f"--conf '{key}={value}'" for key, value in cluster.driver_options.items())
    with pytest.MonkeyPatch.context() as patch:
        for name, value in cluster.environment().items():
            patch.setenv(name, value)
        patch.setenv("PYSPARK_SUBMIT_ARGS", f"{options} pyspark-shell")
        yield
