"""A real Prometheus on 127.0.0.1, exporters and simulated servers for it to scrape, and `promtool`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from tests.live.spark_cluster import HOST, ComponentMissing, Daemon

Labels = frozenset[tuple[str, str]]


def iolens(log: Path, *arguments: object) -> Daemon:
    """`iolens ARGUMENTS…` in the background."""
    return Daemon([sys.executable, "-m", "iolens.cli.main", *map(str, arguments)], log, dict(os.environ))


def exporter(log: Path, *arguments: object) -> tuple[Daemon, str]:
    """`iolens export prometheus ARGUMENTS…` on a free port, and its address."""
    daemon = iolens(log, "export", "prometheus", "--listen", f"{HOST}:0", *arguments)
    return daemon, daemon.wait_for(rf"serving https?://({HOST}:\d+)/metrics")


def promtool(*arguments: object, standard_input: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    """`promtool ARGUMENTS…`."""
    program = shutil.which("promtool")
    if program is None:
        raise ComponentMissing("promtool: install the package prometheus")
    return subprocess.run([program, *map(str, arguments)], input=standard_input, capture_output=True, check=False)


class PrometheusServer:
    """`with PrometheusServer({"iolens": ["127.0.0.1:9169"]}) as server:` scrapes every second and answers queries."""

    def __init__(
        self,
        jobs: Mapping[str, Sequence[str]],
        rules: Sequence[Path] = (),
        interval: str = "1s",
        access: Mapping[str, Any] | None = None,
    ) -> None:
        """`access`: what a scrape configuration says of TLS and passwords."""
        self.jobs, self.rules, self.interval, self.access = jobs, rules, interval, dict(access or {})
        self.url = ""

    def __enter__(self) -> Self:
        program = shutil.which("prometheus")
        if program is None:
            raise ComponentMissing("prometheus: install the package prometheus")
        self.directory = Path(tempfile.mkdtemp(prefix="prometheus-"))
        config = {
            "global": {"scrape_interval": self.interval, "scrape_timeout": "1s", "evaluation_interval": self.interval},
            "rule_files": [str(path) for path in self.rules],
            "scrape_configs": [
                {"job_name": name, "static_configs": [{"targets": list(targets)}], **self.access}
                for name, targets in self.jobs.items()
            ],
        }
        path = self.directory / "prometheus.yml"
        path.write_text(json.dumps(config))  # YAML includes JSON
        command = [program, f"--config.file={path}", f"--storage.tsdb.path={self.directory / 'data'}",
                   f"--web.listen-address={HOST}:0"]  # fmt: skip
        self.daemon = Daemon(command, self.directory / "prometheus.log", dict(os.environ))
        try:
            self.url = "http://" + self.daemon.wait_for(rf"Listening on. address=({HOST}:[1-9]\d*)")
            self.wait_until("ready", lambda: urllib.request.urlopen(f"{self.url}/-/ready", timeout=5).status == 200)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End it and remove what it stored."""
        self.daemon.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def wait_until(self, what: str, condition: Any, seconds: float = 60.0) -> None:
        """Wait for a condition."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                if condition():
                    return
            except OSError:
                pass
            time.sleep(0.2)
        raise AssertionError(f"{what}: not within {seconds} s")

    def api(self, path: str, **parameters: object) -> Any:
        """The `data` of an answer; a query that fails raises."""
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{query}", timeout=30) as answer:
            return json.load(answer)["data"]

    def query(self, expression: str, at: float | None = None) -> dict[Labels, float]:
        """Values by labels at a time."""
        parameters = {"query": expression} | ({} if at is None else {"time": at})
        data = self.api("query", **parameters)
        if data["resultType"] == "scalar":
            return {frozenset(): float(data["result"][1])}
        return {frozenset(item["metric"].items()): float(item["value"][1]) for item in data["result"]}

    def only(self, expression: str, at: float | None = None) -> float:
        """The value of a query that has exactly one."""
        (value,) = self.query(expression, at).values()
        return value

    def samples(self, selector: str, window: str, at: float) -> list[tuple[float, float]]:
        """Raw samples (time, value) of one series."""
        (series,) = self.api("query", query=f"{selector}[{window}]", time=at)["result"]
        return [(float(when), float(value)) for when, value in series["values"]]

    def over_time(self, expression: str, since: float, until: float, step: float = 1.0) -> list[float]:
        """All values of all series of a range query."""
        data = self.api("query_range", query=expression, start=since, end=until, step=step)
        return [float(value) for item in data["result"] for _, value in item["values"]]
