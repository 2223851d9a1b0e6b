"""Agents that push: `iolens collect --hub`, the single-file agent, TLS, tokens, `doctor` and `job push`."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from iolens.agent.doctor import diagnose
from iolens.agent.sampling.hub_client import TOKEN_VARIABLE, HubAddress
from iolens.agent.sampling.pushing import push_spool
from iolens.agent.sampling.shipping import Shipping
from iolens.errors import InputError, IolensError, UsageError
from tests.agent import truth
from tests.agent.exporter.test_access import certificate as certificate
from tests.agent.sampling.test_collect import busy
from tests.agent.server import Server
from tests.cli.command import iolens, iolens_process
from tests.cli.test_job import assert_enzo, environment, enzo_job, reported
from tests.hub.segments import spool_of
from tests.hub.served_hub import ServedHub
from tests.light.test_agent_file import agent as agent
from tests.light.test_agent_file import run
from tests.sources.lustre.client_trees import enzo_node

QUICK = {"commit_every": "100ms", "reserve": "0B"}


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[ServedHub]:
    with ServedHub(tmp_path / "state", tmp_path / "store", QUICK) as served:
        yield served


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("agent\n")
    path.chmod(0o600)
    return path


def test_totals_in_the_store_are_those_of_the_server(hub: ServedHub, tmp_path: Path, token_file: Path) -> None:
    server = Server(tmp_path / "root")
    server.work(10)
    config = tmp_path / "iolens.toml"
    config.write_text(f'[agent]\nhub = "{hub.address.url}"\nhub_token_file = "{token_file}"\n')
    options = ["--root", server.root, "--spool", tmp_path / "spool", "--interval", "200ms", "--config", config]
    assert iolens_process("collect", "--once", *options).code == 0
    before = server.total_bytes()
    with busy(server):
        done = iolens_process("collect", *options, "--slow-interval", "1s", "--duration", "3s", "--ship-every", "1s")
    assert done.code == 0, done.err
    assert hub.address.url in done.out
    assert iolens_process("collect", "--once", *options).code == 0
    hub.wait_until_stored()
    assert truth.total(hub.store) == server.total_bytes() - before
    assert truth.breaks(hub.store) == []
    health = json.loads((tmp_path / "spool" / "health.json").read_text())
    assert (health["segments_shipped"], health["segments_waiting"]) == (1, 0)


@pytest.mark.parametrize("name", ["iolens-agent.pyz", "iolens-agent"])
def test_the_single_file_agent_pushes(hub: ServedHub, agent: Path, tmp_path: Path, token_file: Path, name: str) -> None:
    agent = Path(shutil.copy(agent, tmp_path / name))
    server = Server(tmp_path / "root")
    server.work(10)
    options = ["--root", server.root, "--spool", tmp_path / "spool"]
    there = ["--hub", hub.address.url, "--hub-token-file", token_file]
    first = run(agent, "collect", "--once", *options, *there)
    assert first.returncode == 0, first.stderr
    assert not list((tmp_path / "spool").glob("*.seg"))
    server.work(5)
    assert run(agent, "collect", "--once", *options).returncode == 0
    done = run(agent, "push", "--spool", tmp_path / "spool", *there)
    assert (done.returncode, done.stdout) == (0, "1 segments pushed, 0 refused, 0 waiting\n")
    hub.wait_until_stored()
    assert truth.total(hub.store) == 5 * (1 + 2) << 20
    checked = run(agent, "doctor", *options, *there)
    assert f"ok      hub: {hub.address.url} takes samples of this agent" in checked.stdout


def test_certificates_are_checked(tmp_path: Path, certificate: tuple[Path, Path], token_file: Path) -> None:
    with ServedHub(tmp_path / "state", tmp_path / "store", QUICK, certificate=certificate) as hub:
        unknown = HubAddress(hub.address.url, token_file)
        spool = spool_of(tmp_path, "oss1", range(4))
        refused = push_spool(spool, unknown)
        assert (refused.shipped, refused.left) == (0, 1)
        assert "its certificate is not trusted" in refused.error
        elsewhere = HubAddress(f"https://localhost:{hub.port}", token_file, certificate[0])
        assert "its certificate is not trusted" in push_spool(spool, elsewhere).error
        assert push_spool(spool, HubAddress(hub.address.url, token_file, certificate[0])).shipped == 1
        hub.wait_until_stored()
    assert truth.total(tmp_path / "store") == 30


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_a_token_that_others_can_read_is_refused(tmp_path: Path, token_file: Path, mode: int) -> None:
    token_file.chmod(mode)
    with pytest.raises(IolensError, match=f"others can read the token: chmod 600 {token_file}"):
        HubAddress("https://hub.example.org", token_file).token()


def test_tokens_that_are_none(tmp_path: Path, token_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = HubAddress("https://hub.example.org", token_file)
    assert address.token() == "agent"
    for text in ("", "two words", "line\nbreak", "x" * 5000, "é"):
        token_file.write_text(text)
        with pytest.raises(InputError, match="token") as raised:
            address.token()
        assert not text or text not in str(raised.value)
    monkeypatch.setenv(TOKEN_VARIABLE, "of-the-environment")
    assert HubAddress("https://hub.example.org").token() == "of-the-environment"
    assert HubAddress("https://hub.example.org", tmp_path / "missing").token_file is not None


@pytest.mark.parametrize(
    "url",
    [
        "hub.example.org", "ftp://hub", "https://", "https://hub:port", "https://hub:70000", "https://hub?x=1",
        "https://user:hunter2@hub", "http://hub.example.org:8470", "https://[::1", "http://10.0.0.1:8470",
    ],
)  # fmt: skip
def test_addresses_that_are_no_hub_or_would_show_the_token(url: str) -> None:
    with pytest.raises(UsageError) as raised:
        HubAddress(url)
    assert "hunter2" not in str(raised.value)


def test_options_that_contradict_each_other(tmp_path: Path) -> None:
    for more in (["--store", tmp_path / "store"], ["--no-ship"]):
        done = iolens("collect", "--once", "--hub", "https://hub.example.org", *more)
        assert done.code == 2
        assert "segments go to one place" in done.err


def test_doctor_tries_the_hub_and_the_token(
    hub: ServedHub, tmp_path: Path, token_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def line(address: HubAddress) -> tuple[str, str]:
        (line_of_hub,) = [
            item for item in diagnose(tmp_path, address, tmp_path / "s").findings if item.subject == "hub"
        ]
        return line_of_hub.status, line_of_hub.detail

    good = HubAddress(hub.address.url, token_file)
    assert line(good) == ("ok", f"{hub.address.url} takes samples of this agent")
    token_file.write_text("viewer")
    assert line(good)[0] == "missing"
    assert "may not send samples" in line(good)[1]
    token_file.write_text("guessed")
    assert "the token is missing or wrong" in line(good)[1]
    token_file.chmod(0o644)
    assert "chmod 600" in line(good)[1]
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    assert line(HubAddress("http://127.0.0.1:1"))[0] == "missing"
    assert not list((hub.state / "hub" / "segments").iterdir())


def test_a_hub_that_asks_to_wait_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 0.0)
    shipping = Shipping(tmp_path, HubAddress("https://hub.example.org"), 300.0)
    monkeypatch.setattr(Shipping, "command", lambda self: ["echo", '{"error": "full", "left": 1, "wait_s": 444}'])
    shipping.start()
    assert shipping.child is not None
    shipping.child.wait()
    shipping.poll()
    assert shipping.next_at == 444


def test_the_token_is_in_no_argument_of_a_process(tmp_path: Path, token_file: Path) -> None:
    words = Shipping(tmp_path, HubAddress("https://hub.example.org", token_file), 300.0).command()
    assert str(token_file) in words
    assert "agent" not in words


# --- jobs of a shared folder


def push(hub: ServedHub, folder: Path, token_file: Path, code: int = 0) -> str:
    done = iolens("job", "push", folder, "--hub", hub.address.url, "--hub-token-file", token_file)
    assert done.code == code, done.err
    return done.out


def test_finished_jobs_of_a_folder_reach_the_store_once(hub: ServedHub, tmp_path: Path, token_file: Path) -> None:
    folder = enzo_job(tmp_path, ends=(0, 1, 2))
    assert push(hub, folder, token_file) == "3 pushed, 0 pushed before, 1 have not ended (jobs by node)\n"
    assert push(hub, folder, token_file) == "0 pushed, 3 pushed before, 1 have not ended (jobs by node)\n"
    enzo_job_end(tmp_path, folder, 3)
    assert push(hub, folder, token_file) == "1 pushed, 3 pushed before, 0 have not ended (jobs by node)\n"
    for note in folder.rglob("*.pushed"):
        note.unlink()
    assert push(hub, folder, token_file).startswith("4 pushed")
    hub.wait_until_stored()
    report = reported(4711, "--store", hub.store, IOLENS_JOBS=str(tmp_path / "none"))
    assert_enzo(report)
    assert report["missing_nodes"] == []


def enzo_job_end(tmp_path: Path, folder: Path, node: int) -> None:
    root = enzo_node(tmp_path / f"{node}-end", node, ended=True)
    assert iolens("job", "end", "--no-report", "--root", root, **environment(folder)).code == 0


def test_jobs_that_cannot_be_pushed_are_named_and_stop_no_other(
    hub: ServedHub, tmp_path: Path, token_file: Path
) -> None:
    folder = enzo_job(tmp_path)
    junk = folder / "junk"
    junk.mkdir()
    (junk / "node.job").write_text("no samples")
    victim = tmp_path / "victim"
    victim.write_text("precious")
    first = sorted(folder.glob("4711/*.job"))[0]
    first.with_suffix(".pushed").symlink_to(victim)
    assert push(hub, folder, token_file, code=3).startswith("4 pushed")
    assert victim.read_text() == "precious"
    assert iolens("job", "push", folder).code == 2  # no hub is named
    away = iolens("job", "push", folder, "--hub", "http://127.0.0.1:1")
    assert away.code in (1, 3)
