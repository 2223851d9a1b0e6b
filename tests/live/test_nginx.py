"""`iolens serve` behind a real nginx with the shipped configuration: who is believed, and what passes through."""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.agent.server import Server
from tests.live.nginx_server import NginxServer
from tests.live.prometheus_server import iolens
from tests.live.spark_cluster import HOST, ComponentMissing

pytestmark = pytest.mark.live
OUTSIDE = "127.0.0.3"  # an address of this machine that is not the proxy's
PASSWORDS = {"ada": "correct horse", "ben": "battery staple"}
SETTINGS = """
[serve]
proxy_addresses = ["127.0.0.1"]
proxy_user_header = "X-Remote-User"
proxy_role_header = "X-Remote-Role"
proxy_roles = { ada = "operator" }
[hub]
commit_every = "1s"
"""


@dataclass(frozen=True)
class Centre:
    """The server, the proxy in front of it, and the token of an agent."""

    folder: Path
    straight: str
    proxy: NginxServer
    token_file: Path

    def client(self, name: str | None = None, password: str | None = None) -> httpx.Client:
        """One that comes through the proxy."""
        trusted = ssl.create_default_context(cafile=self.proxy.certificate)
        login = None if name is None else (name, password or PASSWORDS[name])
        return httpx.Client(base_url=self.proxy.url, verify=trusted, auth=login, timeout=60)

    @property
    def token(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token_file.read_text().strip()}"}

    def send_samples(self) -> None:
        """A real agent takes two samples of a made-up server and pushes them through the proxy."""
        lustre = Server(self.folder / "root")
        hub = ["--hub", self.proxy.url, "--hub-token-file", self.token_file, "--hub-ca", self.proxy.certificate]
        where = ["--root", lustre.root, "--spool", self.folder / "spool"]
        for _ in range(2):
            lustre.work()
            command = [sys.executable, "-m", "iolens.cli.main", "collect", "--once", "--no-devices", *where, *hub]
            subprocess.run([str(word) for word in command], check=True, timeout=120)


@pytest.fixture(scope="module")
def centre(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Centre]:
    folder = tmp_path_factory.mktemp("centre")
    (folder / "iolens.toml").write_text(SETTINGS)
    options = ("--config", folder / "iolens.toml", "--state", folder / "state")
    token = iolens(folder / "token", "serve", "token", "add", "oss1", "--role", "agent", *options)
    assert token.process.wait(60) == 0
    (folder / "token").chmod(0o600)
    server = iolens(folder / "log", "serve", *options, "--store", folder / "store", "--listen", f"{HOST}:0")
    try:
        straight = server.wait_for(r"serving \S+ at (http://\S+);")
        with NginxServer(folder / "nginx", straight.removeprefix("http://"), PASSWORDS) as proxy:
            yield Centre(folder, straight, proxy, folder / "token")
    except ComponentMissing as error:
        pytest.skip(str(error))
    finally:
        server.stop()


def test_the_proxy_says_who_asks(centre: Centre) -> None:
    with centre.client("ada") as ada, centre.client("ben") as ben:
        page = ada.get("/").raise_for_status()
        assert 'title="ada"' in page.text
        assert page.headers["strict-transport-security"], "the server knows that TLS is in front of it"
        assert ada.get("/alerts").status_code == 200
        assert ben.get("/").status_code == 200
        assert ben.get("/alerts").status_code == 403, "role user"


def test_nobody_comes_in_without_a_password_or_a_token(centre: Centre) -> None:
    with centre.client() as nobody, centre.client("ada", "wrong") as wrong:
        assert nobody.get("/").status_code == 401
        assert wrong.get("/").status_code == 401
        assert nobody.get("/api/v1/filesystems", headers={"Authorization": "Bearer iolens_wrong"}).status_code == 401


def test_plain_http_is_led_to_https(centre: Centre) -> None:
    answer = httpx.get(f"{centre.proxy.plain_url}/jobs?from=-7d")
    assert (answer.status_code, answer.headers["location"]) == (308, f"https://{HOST}/jobs?from=-7d")


@pytest.mark.parametrize("header", ["X-Remote-User", "x-remote-user", "X-Remote-Role"])
def test_a_forged_name_or_role_is_not_believed(centre: Centre, header: str) -> None:
    forged = {header: "operator" if header == "X-Remote-Role" else "ada"}
    with centre.client() as nobody, centre.client("ben") as ben:
        assert nobody.get("/", headers=forged).status_code == 401
        assert nobody.get("/data", headers=forged | centre.token).status_code == 403, "an agent stays an agent"
        assert ben.get("/alerts", headers=forged).status_code == 403, "ben stays ben"


UNPROVEN = "Basic " + b64encode(b"ada:").decode()


@pytest.mark.parametrize("values", [[UNPROVEN], ["Bearer x", UNPROVEN], [UNPROVEN, "bearer x"]], ids=len)
def test_a_name_without_its_password_is_not_believed(centre: Centre, values: list[str]) -> None:
    """Nor where a second header has it: nginx must not check one and pass on the other."""
    with centre.client() as nobody:
        for path in ("/", "/alerts", "/api/v1/hub/segments/x", "/api/v1/changes"):
            answer = nobody.get(path, headers=[("Authorization", value) for value in values])
            assert answer.status_code in (400, 401), path


def test_the_header_is_not_believed_of_others(centre: Centre) -> None:
    with httpx.Client(base_url=centre.straight, transport=httpx.HTTPTransport(local_address=OUTSIDE)) as outside:
        assert outside.get("/healthz").status_code == 200
        assert outside.get("/api/v1/filesystems", headers={"X-Remote-User": "ada"}).status_code == 401
        assert outside.get("/api/v1/filesystems").status_code == 401


def test_passwords_do_not_reach_the_server_and_addresses_do(centre: Centre) -> None:
    with centre.client("ben") as ben:
        assert ben.get("/users", headers={"X-Forwarded-For": "10.9.8.7"}).status_code == 403
    lines = [json.loads(line) for line in (centre.folder / "state" / "audit.log").read_text().splitlines()]
    refused = [line for line in lines if line.get("path") == "/users"]
    assert [(line["principal"], line["address"]) for line in refused] == [("ben", HOST)]


def test_changes_of_browsers_pass(centre: Centre) -> None:
    silence = {"rule": "fsu", "duration": "1h", "comment": "nginx"}
    with centre.client("ada") as ada:
        own = ada.post("/api/v1/silences", json=silence, headers={"Origin": centre.proxy.url})
        assert own.is_success, own.text
        foreign = ada.post("/api/v1/silences", json=silence, headers={"Origin": "https://elsewhere.example.org"})
        assert foreign.status_code == 403


def test_samples_of_an_agent_arrive_and_live_pages_hear_of_it_at_once(centre: Centre) -> None:
    with centre.client("ada") as ada, ada.stream("GET", "/api/v1/changes", timeout=60) as events:
        lines = events.iter_lines()
        assert next(lines) == "retry: 5000", "the beginning is here, though the answer has no end"
        centre.send_samples()
        assert next(line for line in lines if line.startswith("event")) == "event: changed"
    with centre.client("ada") as ada:
        assert "scratch" in ada.get("/api/v1/filesystems").raise_for_status().text


def test_large_bodies_are_for_the_hub_alone(centre: Centre) -> None:
    large = b"x" * (3 << 20)
    with centre.client() as agent:
        taken = agent.put("/api/v1/hub/segments/no-name", content=large, headers=centre.token)
        assert (taken.status_code, taken.headers["content-type"]) == (422, "application/json"), (
            "iolens refuses its name"
        )
        refused = agent.put("/api/v1/silences", content=large, headers=centre.token)
        assert refused.status_code == 413
