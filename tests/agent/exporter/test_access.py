"""TLS, passwords and /healthz of the exporter, by real clients on real sockets."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import ssl
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolens.agent.exporter import access as exporter_access
from iolens.agent.exporter import server as prometheus_server
from iolens.agent.exporter.access import ExporterAccess, PasswordHash, Passwords, password_line
from iolens.agent.exporter.server import MetricsServer
from iolens.errors import InputError, UsageError
from tests.agent.exporter.running_server import running_server
from tests.agent.server import Server
from tests.certificates import self_signed
from tests.cli.command import iolens_process

SECRET = "correct horse: battery"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    Server(tmp_path / "root").work()
    return tmp_path / "root"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Of 127.0.0.1, and its key."""
    return self_signed(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("users") / "users"
    path.write_text(f"# who may read\n\n{password_line('prometheus', SECRET)}\n")
    path.chmod(0o600)
    return path


def get(
    server: MetricsServer, path: str = "/metrics", user: str = "", password: str = "", tls: ssl.SSLContext | None = None
) -> tuple[int, str]:
    """Status and body."""
    if tls is None:
        connection = http.client.HTTPConnection(*server.address, timeout=60)
    else:
        connection = http.client.HTTPSConnection(*server.address, timeout=60, context=tls)
    code = base64.b64encode(f"{user}:{password}".encode()).decode()
    connection.request("GET", path, headers={"Authorization": f"Basic {code}"} if user else {})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


# Passwords ------------------------------------------------------------------------------------------------------------


def test_only_the_right_password_of_the_right_user_reads(root: Path, users: Path) -> None:
    said: list[str] = []
    with running_server(root, ExporterAccess.of(None, None, users), said) as server:
        assert get(server, user="prometheus", password=SECRET)[0] == 200
        assert get(server, user="prometheus", password=SECRET)[0] == 200
        for user, password in (("", ""), ("prometheus", "wrong"), ("root", SECRET), ("prometheus", "")):
            status, body = get(server, user=user, password=password)
            assert (status, body) == (401, "a user and a password are needed\n")
            assert get(server, "/", user=user, password=password)[0] == 401
        assert get(server, user="prometheus", password=SECRET)[0] == 200
    assert sorted(said) == [
        "a request from 127.0.0.1 is refused: a wrong user or password",
        "a request from 127.0.0.1 is refused: no password",
    ]


def test_health_is_open_and_names_nothing(root: Path, users: Path) -> None:
    with running_server(root, ExporterAccess.of(None, None, users), []) as server:
        assert get(server, "/healthz") == (200, "ok: the samples are fresh\n")
        assert get(server, "/-/healthy")[0] == 200


@pytest.mark.parametrize(
    "header",
    [
        "Basic",
        "Basic !!!",
        "Bearer cHJvbWV0aGV1cw==",
        "Basic cHJvbWV0aGV1cw==",
        "basic " + "A" * 8000,
        "\xff",
        "Basic ÿ:ÿ",
    ],
)
def test_headers_that_are_none_are_refused(users: Path, header: str) -> None:
    assert not Passwords.read(users).admits(header)


@given(st.text(max_size=60))
def test_no_other_header_is_admitted(header: str) -> None:
    kept = PasswordHash(2, 1, 1, b"12345678", exporter_access._digest(SECRET.encode(), b"12345678", 2, 1, 1))
    assert not Passwords({"prometheus": kept}, _nobody=kept).admits(f"Basic {header}")
    code = base64.b64encode(f"nobody:{SECRET}".encode()).decode()
    assert not Passwords({"prometheus": kept}, _nobody=kept).admits(f"Basic {code}")  # though the hash would match


def test_who_was_admitted_is_known_again_without_another_hash(users: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    passwords = Passwords.read(users)
    header = "Basic " + base64.b64encode(f"prometheus:{SECRET}".encode()).decode()
    assert passwords.admits(header)
    monkeypatch.setattr(exporter_access, "_digest", None)
    assert passwords.admits(header)
    assert SECRET not in repr(passwords)


def test_a_line_has_a_new_salt_and_no_password() -> None:
    first, second = password_line("u", SECRET), password_line("u", SECRET)
    assert first != second
    assert SECRET not in first
    assert PasswordHash.parse(first.partition(":")[2]).matches(SECRET.encode())
    assert not PasswordHash.parse(first.partition(":")[2]).matches(b"correct horse")


@pytest.mark.parametrize(
    "line",
    [
        "prometheus",
        "prometheus:secret",
        "prometheus:$2y$05$abcdefghijklmnopqrstuu",
        "u:scrypt$16384$8$1$AAAAAAAAAAAAAAAA$AAAA",
        "u:scrypt$99999999999$8$1$AAAAAAAAAAAAAAAA$" + "A" * 43 + "=",
        "u:scrypt$16383$8$1$AAAAAAAAAAAAAAAA$" + "A" * 43 + "=",
        "u:scrypt$16384$-8$-1$AAAAAAAAAAAAAAAA$" + "A" * 43 + "=",
        "# nobody",
    ],
)
def test_a_file_that_holds_something_else_is_refused_without_showing_it(tmp_path: Path, line: str) -> None:
    (tmp_path / "users").write_text(f"{line}\n")
    with pytest.raises(InputError, match="as `iolens export password USER` prints it") as error:
        Passwords.read(tmp_path / "users")
    assert line.partition(":")[2] not in str(error.value) or ":" not in line


@pytest.mark.parametrize(("user", "password"), [("a:b", "x"), ("", "x"), ("#a", "x"), ("a\nb", "x"), ("a", "")])
def test_what_cannot_be_a_line_is_refused(user: str, password: str) -> None:
    with pytest.raises(UsageError):
        password_line(user, password)


def test_the_command_reads_the_password_and_prints_the_line(tmp_path: Path) -> None:
    command = ["export", "password", "prometheus"]
    done = subprocess.run(
        [sys.executable, "-m", "iolens.cli.main", *command],
        input=f"{SECRET}\n", capture_output=True, text=True, check=True,
    )  # fmt: skip
    (tmp_path / "users").write_text(done.stdout)
    header = "Basic " + base64.b64encode(f"prometheus:{SECRET}".encode()).decode()
    assert Passwords.read(tmp_path / "users").admits(header)
    assert (done.stderr, SECRET in done.stdout) == ("", False)


# TLS ------------------------------------------------------------------------------------------------------------------


def test_a_page_by_https_with_a_password(root: Path, certificate: tuple[Path, Path], users: Path) -> None:
    tls = ssl.create_default_context(cafile=certificate[0])
    said: list[str] = []
    with running_server(root, ExporterAccess.of(*certificate, users), said) as server:
        status, body = get(server, user="prometheus", password=SECRET, tls=tls)
        assert status == 200
        assert "iolens_scrape_success" in body
        assert get(server, tls=tls)[0] == 401
        assert get(server, "/healthz", tls=tls)[0] == 200
        with pytest.raises(ssl.SSLCertVerificationError):
            get(server, tls=ssl.create_default_context())
        with socket.create_connection(server.address, timeout=60) as plain:  # http where https is spoken
            plain.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            with suppress(ConnectionResetError):
                assert b"200 OK" not in plain.recv(65536)
        assert get(server, "/healthz", tls=tls)[0] == 200
    assert said == ["a request from 127.0.0.1 is refused: no password"]


def test_old_versions_of_tls_are_refused(root: Path, certificate: tuple[Path, Path]) -> None:
    context = ExporterAccess.of(*certificate, None).tls
    assert context is not None
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


def test_slow_clients_hold_up_nobody_in_the_handshake_nor_after_it(
    root: Path, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prometheus_server, "REQUEST_S", 3600.0)  # none of them is cut off meanwhile
    tls = ssl.create_default_context(cafile=certificate[0])
    with running_server(root, ExporterAccess.of(*certificate, None), []) as server:
        silent = [socket.create_connection(server.address, timeout=60) for _ in range(40)]
        for connection in silent[:20]:
            connection.sendall(b"\x16\x03\x01\x02\x00\x01")  # the begin of a hello
        slow = tls.wrap_socket(silent.pop(), server_hostname="127.0.0.1")
        slow.sendall(b"GET /metrics HT")
        for _ in range(3):
            assert get(server, tls=tls)[0] == 200
        slow.sendall(b"TP/1.0\r\n\r\n")
        pieces = b""
        while piece := slow.recv(512):  # a client that takes little at a time gets all of it
            pieces += piece
        head, _, body = pieces.partition(b"\r\n\r\n")
        assert f"Content-Length: {len(body)}".encode() in head
        for connection in (*silent, slow):
            connection.close()


def test_what_is_no_certificate_is_said_at_the_start(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    (tmp_path / "x").write_text("no certificate")
    with pytest.raises(UsageError, match="go together"):
        ExporterAccess.of(certificate[0], None, None)
    with pytest.raises(UsageError, match="--tls-cert"):
        ExporterAccess.of(tmp_path / "x", certificate[1], None)
    with pytest.raises(UsageError, match="No such file"):
        ExporterAccess.of(tmp_path / "none", certificate[1], None)


def test_a_key_with_a_password_is_refused_not_asked_for(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the key has a password"):
        ExporterAccess.of(*self_signed(tmp_path, password=b"x"), None)


# Warnings and health --------------------------------------------------------------------------------------------------


def test_an_address_for_others_without_protection_gives_a_warning(users: Path, certificate: tuple[Path, Path]) -> None:
    assert ExporterAccess().concerns(is_local=True) == []
    assert "nothing asks them who they are" in ExporterAccess().concerns(is_local=False)[0]
    assert "in the clear" in ExporterAccess.of(None, None, users).concerns(is_local=False)[0]
    assert ExporterAccess.of(*certificate, users).concerns(is_local=False, auth_file=users) == []
    users.chmod(0o644)
    assert "chmod 640" in ExporterAccess.of(*certificate, users).concerns(is_local=True, auth_file=users)[0]
    users.chmod(0o600)


def test_health_is_503_with_the_reason_when_nothing_fresh_can_be_had(root: Path, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    with running_server(root, ExporterAccess(), [], spool=spool) as server:  # reads anew for each request
        assert get(server, "/healthz") == (503, "no fresh sample of: agent\n")
        (spool / "health.json").write_text(json.dumps({"time": (time.time() - 500) * 1e6, "host": "oss1"}))
        status, body = get(server, "/healthz")
        assert (status, body[:28]) == (503, "the agent's last sample is 5")
        assert "oss1" not in body
        (spool / "health.json").write_text(json.dumps({"time": time.time() * 1e6}))
        assert get(server, "/healthz")[0] == 200


def test_health_where_there_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with running_server(tmp_path / "empty", ExporterAccess(), []) as server:
        status, body = get(server, "/healthz")
    assert status == 503
    assert str(tmp_path) not in body


def test_wrong_options_are_said_before_anything_is_served(tmp_path: Path) -> None:
    (tmp_path / "users").write_text("prometheus:secret\n")
    done = iolens_process("export", "prometheus", "--auth-file", tmp_path / "users")
    assert done.code == 1
    assert "users:1: not a user and a hash; expected USER:scrypt$" in done.err
    assert "secret" not in done.err
    done = iolens_process("export", "prometheus", "--tls-cert", tmp_path / "users")
    assert (done.code, done.err) == (2, "iolens: --tls-cert and --tls-key go together\n")
