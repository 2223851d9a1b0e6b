"""`iolens export prometheus` as a user runs it: one page, a server until it is reported to stop, clear refusals."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.agent.exposition import matching, only, parsed
from tests.agent.server import Server
from tests.cli.command import iolens


@pytest.fixture
def root(tmp_path: Path) -> Path:
    Server(tmp_path / "root").work(writes=100)
    return tmp_path / "root"


HANGS = """
import os, time
plain = os.open
def hanging(path, *options, **named):
    if str(path).endswith("scratch-OST0000/stats"):
        time.sleep(3600)
    return plain(path, *options, **named)
os.open = hanging
"""


@contextmanager
def serving(*arguments: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-m", "iolens.cli.main", "export", "prometheus", "--listen", "127.0.0.1:0"]
    with subprocess.Popen([*command, *map(str, arguments)], stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            result = re.search(r"http://127\.0\.0\.1:\d+", line)
            assert result, line + process.stderr.read()
            yield process, result.group()
        finally:
            process.kill()


def test_one_page(root: Path) -> None:
    done = iolens("export", "prometheus", "--once", "--root", root)
    assert (done.code, done.err) == (0, "")
    samples = parsed(done.out.encode())
    busy_s = 100 * (1.04e-3 + 1.73e-9 * (1 << 20))
    assert only(samples, "iolens_target_busy_seconds_total", target="scratch-OST0000") == pytest.approx(busy_s)
    assert only(samples, "lustre_write_bytes_total", target="scratch-OST0001") == 200 << 20
    assert only(samples, "iolens_calibration_info", borrowed="true") == 1
    assert only(samples, "iolens_calibration_state", filesystem="scratch", state="assumed") == 1
    assert list(matching(samples, "iolens_fsu_ceiling_percent")) == []  # no level without a calibration
    chosen = iolens("export", "prometheus", "--once", "--root", root, "--calibration", "grace-2012")
    samples = parsed(chosen.out.encode())
    assert only(samples, "iolens_calibration_state", filesystem="scratch", state="class") == 1
    assert only(samples, "iolens_fsu_ceiling_percent", filesystem="scratch", origin="default") == 100
    assert len({dict(pairs)["jobid"] for _, pairs in samples if "jobid" in dict(pairs)}) == 3


def test_a_configured_calibration(root: Path, tmp_path: Path) -> None:
    config = tmp_path / "iolens.toml"
    config.write_text(
        '[filesystems.scratch]\ncalibration = "ours"\nceiling_fsu_pct = 70\n\n[calibrations.ours]\n'
        "write_latency_s = 0.5\nwrite_s_per_byte = 1e-30\nread_latency_s = 1\nread_s_per_byte = 1\n"
    )
    done = iolens("export", "prometheus", "--once", "--root", root, "--config", config)
    samples = parsed(done.out.encode())
    assert only(samples, "iolens_target_busy_seconds_total", target="scratch-OST0000", calibration="ours") == 50
    assert only(samples, "iolens_calibration_info", borrowed="false", calibration="ours") == 1
    assert only(samples, "iolens_fsu_ceiling_percent", filesystem="scratch", origin="configured") == 70
    done = iolens("export", "prometheus", "--once", "--root", root, "--config", config, "--calibration", "grace-2012")
    assert only(parsed(done.out.encode()), "iolens_calibration_info", calibration="grace-2012", borrowed="false") == 1


def test_exit_codes_of_one_page(root: Path, tmp_path: Path) -> None:
    done = iolens("export", "prometheus", "--once", "--root", root, "--spool", tmp_path / "none")
    assert done.code == 3
    assert "agent: " in done.err
    done = iolens("export", "prometheus", "--once", "--root", tmp_path / "nowhere")
    assert done.code == 1
    assert "no such directory" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--listen", "9169"), "write HOST:PORT"),
        (("--listen", "256.1.1.1:1"), "--listen 256.1.1.1:1"),
        (("--interval", "0"), "intervals are at least"),
        (("--timeout", "0s"), "above zero"),
        (("--jobs", "-1"), "--jobs"),
        (("--calibration", "nobody"), "no calibration is called 'nobody'"),
    ],
)
def test_usage(root: Path, arguments: tuple[str, ...], message: str) -> None:
    done = iolens("export", "prometheus", "--root", root, *arguments)
    assert done.code == 2
    assert message in done.err


def test_a_taken_port_is_said(root: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = iolens("export", "prometheus", "--root", root, "--listen", f"127.0.0.1:{taken.getsockname()[1]}")
    assert done.code == 2
    assert "Address already in use" in done.err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_it_is_reported_to_stop(root: Path, number: int) -> None:
    with serving("--root", root) as (process, url):
        samples = parsed(urllib.request.urlopen(f"{url}/metrics", timeout=60).read())
        assert only(samples, "iolens_scrape_success", collector="lustre") == 1
        assert urllib.request.urlopen(f"{url}/-/healthy", timeout=60).status == 200
        process.send_signal(number)
        assert process.wait(timeout=60) == 0


def test_a_hung_file_does_not_keep_it_from_answering_or_from_stopping(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "sitecustomize.py").write_text(HANGS)  # a file of /proc that does not answer
    monkeypatch.setenv("PYTHONPATH", str(root), prepend=os.pathsep)
    with serving("--root", root, "--timeout", "200ms") as (process, url):
        samples = parsed(urllib.request.urlopen(f"{url}/metrics", timeout=60).read())
        assert only(samples, "iolens_scrape_success", collector="lustre") == 0
        assert list(matching(samples, "lustre_write_bytes_total")) == []
        process.terminate()
        assert process.wait(timeout=60) == 0


def test_it_stays_small(root: Path) -> None:
    with serving("--root", root, "--interval", "50ms") as (_, url):
        for _ in range(20):
            samples = parsed(urllib.request.urlopen(f"{url}/metrics", timeout=60).read())
        assert only(samples, "process_resident_memory_bytes") < 60 << 20
