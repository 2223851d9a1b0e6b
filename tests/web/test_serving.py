"""`iolens serve` as a process of its own: its address, its end, its state, and what it refuses."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.cli.command import Finished, iolens, iolens_process
from tests.web.hourly_rows import ingest
from tests.web.served_centre import NO_TRUST

PATIENCE_S = 60.0


@dataclass
class ServedProcess:
    """A server, its address, and what it has said."""

    process: subprocess.Popen[str]
    url: str
    first_line: str

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=PATIENCE_S, trust_env=False, verify=NO_TRUST)

    def ended(self, number: signal.Signals) -> Finished:
        self.process.send_signal(number)
        out, _ = self.process.communicate(timeout=PATIENCE_S)
        return Finished(self.process.returncode, out, "")


@contextmanager
def served_process(folder: Path, *options: str) -> Iterator[ServedProcess]:
    words = ["serve", "--store", str(folder / "store"), "--state", str(folder / "state"), *options]
    if "--listen" not in options:
        words += ["--listen", "127.0.0.1:0"]
    command = [sys.executable, "-m", "iolens.cli.main", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        address = re.search(r"at (https?://\S+);", line)
        assert address is not None, line
        yield ServedProcess(process, address[1], line)
    finally:
        process.kill()
        process.communicate()


def test_it_says_where_it_is_and_ends_when_it_is_asked_to(tmp_path: Path) -> None:
    """With a live page open and an answer on its way to nobody: code 0, and not a word more."""
    ingest(tmp_path / "store", 1)
    with served_process(tmp_path) as served, served.client() as client:
        expected = rf"serving {re.escape(str(tmp_path))}/store at http://127\.0\.0\.1:[1-9]\d*; Ctrl-C stops\n"
        assert re.fullmatch(expected, served.first_line)
        assert client.get("/healthz").json()["status"] == "ok"
        page = client.get("/filesystems/scratch")
        assert (page.status_code, "Log out" in page.text) == (200, False)  # nobody logs in on this machine
        assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700
        assert {path.name: path.stat().st_mode & 0o077 for path in (tmp_path / "state").iterdir()} == dict.fromkeys(
            (path.name for path in (tmp_path / "state").iterdir()), 0
        )
        with client.stream("GET", "/api/v1/changes") as live:
            lines = live.iter_lines()
            assert next(lines) == "retry: 5000"
            rest: list[str] = []
            reader = threading.Thread(target=lambda: rest.extend(line for line in lines if line))
            reader.start()
            ended = served.ended(signal.SIGTERM)
            reader.join(PATIENCE_S)
    assert (ended.code, ended.out) == (0, "")
    assert rest in ([], ["event: changed", rest[-1]] if rest else [])  # the stream has an end, and no error


def test_ctrl_c_ends_it(tmp_path: Path) -> None:
    with served_process(tmp_path, "--no-alerts") as served:
        ended = served.ended(signal.SIGINT)
    assert (ended.code, ended.out) == (130, "\niolens: interrupted\n")


def test_a_store_that_comes_later_and_the_configuration(tmp_path: Path) -> None:
    """`[serve]` is read; options win over it."""
    (tmp_path / "iolens.toml").write_text('[serve]\nlisten = "127.0.0.1:1"\nrequire_token = true\n', "utf-8")
    assert iolens("serve", "token", "add", "wall", "--role", "viewer", "--state", tmp_path / "state").code == 0
    token = iolens("serve", "token", "add", "phone", "--role", "viewer", "--state", tmp_path / "state").out.strip()
    with served_process(tmp_path, "--config", str(tmp_path / "iolens.toml"), "--listen", "127.0.0.1:0") as served:
        with served.client() as client:
            assert client.get("/api/v1/filesystems").status_code == 401
            client.headers["Authorization"] = f"Bearer {token}"
            assert client.get("/api/v1/filesystems").status_code == 503
            assert "The store holds no data of a file system yet." in client.get("/").text
            ingest(tmp_path / "store", 1)
            with client.stream("GET", "/api/v1/changes") as live:
                assert "event: changed" in live.iter_lines()
            assert "/filesystems/scratch" in client.get("/").text
            assert client.get("/api/v1/filesystems").status_code == 200
        assert served.ended(signal.SIGTERM).code == 0


def refused(folder: Path, *options: str, **environment: str) -> str:
    done = iolens_process(
        "serve", "--store", folder / "store", "--state", folder / "state", *options, cwd=folder, **environment
    )
    assert (done.code, done.out) == (2, "")
    return done.err


def test_an_address_that_is_taken_is_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        said = refused(tmp_path, "--listen", f"127.0.0.1:{port}")
    assert said == f"iolens: cannot listen on 127.0.0.1:{port}: Address already in use\n"


def test_an_open_address_without_a_token_is_refused(tmp_path: Path) -> None:
    said = refused(tmp_path, "--listen", "0.0.0.0:0")
    assert said.startswith("iolens: --listen 0.0.0.0:0: other machines can reach this address, and there is no token:")
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--listen", "8470"), "--listen '8470': write HOST:PORT"),
        (("--tls-cert", "site.crt"), "--tls-cert and --tls-key go together"),
        (("--config", "nowhere.toml"), "nowhere.toml"),
    ],
)
def test_options_that_cannot_be(tmp_path: Path, options: tuple[str, ...], words: str) -> None:
    done = iolens_process("serve", "--store", tmp_path / "store", "--state", tmp_path / "state", *options, cwd=tmp_path)
    assert done.code in (1, 2)
    assert words in done.err
    assert "Traceback" not in done.err
    assert not (tmp_path / "state" / "access.sqlite").exists()


def test_help_has_examples() -> None:
    for words in (("serve",), ("serve", "token"), ("serve", "token", "add")):
        done = iolens(*words, "--help")
        assert done.code == 0
        assert f"Usage: iolens {' '.join(words)}" in done.out
        assert re.search(rf"Examples?:\s+iolens {' '.join(words)}", done.out)
    assert "Serve a store to browsers, programs and agents." in iolens("serve", "--help").out


def test_a_state_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file\n", "utf-8")
    done = iolens_process("serve", "--store", tmp_path / "store", "--state", tmp_path / "state", cwd=tmp_path)
    assert done.code in (1, 2)
    assert len(done.err.splitlines()) == 1
    assert "Traceback" not in done.err
    assert os.fspath(tmp_path / "state") in done.err
