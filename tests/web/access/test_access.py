"""Which servers start, whom a proxy may speak for, and TLS."""

from __future__ import annotations

import socket
import ssl
from ipaddress import ip_network
from pathlib import Path

import pytest

from iolens.agent.exporter.server import Address
from iolens.errors import UsageError
from iolens.web.access.access import Access, is_loopback, opens_without_token
from iolens.web.access.http_request import HttpRequest
from iolens.web.access.proxies import client_address
from iolens.web.serve_config import ServeConfig
from tests.certificates import self_signed
from tests.web.access.running_application import running

PROXY = ServeConfig(
    proxy_addresses=(ip_network("127.0.0.1"),),
    proxy_user_header="X-Remote-User",
    proxy_role_header="X-Remote-Role",
    proxy_roles={"grace": "operator"},
)
FOREIGN = ServeConfig(
    proxy_addresses=(ip_network("10.1.2.0/24"),), proxy_user_header="X-Remote-User", require_token=True
)


# Where a server may listen --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "is_local"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("LOCALHOST", True),
     ("0.0.0.0", False), ("::", False), ("10.0.0.1", False), ("localhost.example.org", False),
     ("io.example.org", False), ("", False)],
)  # fmt: skip
def test_which_addresses_only_this_machine_reaches(host: str, is_local: bool) -> None:
    assert is_loopback(host) is is_local


@pytest.mark.parametrize(
    ("config", "host", "has_tokens", "is_open"),
    [
        (ServeConfig(), "127.0.0.1", False, True),
        (ServeConfig(), "::1", True, True),
        (ServeConfig(require_token=True), "127.0.0.1", True, False),
        (PROXY, "127.0.0.1", False, False),  # a proxy on this machine brings the requests of others
        (ServeConfig(), "0.0.0.0", True, False),
        (PROXY, "0.0.0.0", False, False),
    ],
)
def test_who_needs_no_token(config: ServeConfig, host: str, has_tokens: bool, is_open: bool) -> None:
    assert opens_without_token(config, Address(host, 8470), has_tokens) is is_open


def test_an_address_for_others_without_token_or_proxy_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        Access.of(ServeConfig(), tmp_path / "state", Address("0.0.0.0", 8470), tls=True)
    assert "--listen 0.0.0.0:8470: other machines can reach this address, and there is no token" in str(refused.value)
    assert "iolens serve token add NAME --role viewer" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_tokens_that_expired_or_were_revoked_do_not_count(tmp_path: Path) -> None:
    local = Access.of(ServeConfig(), tmp_path / "state", Address("127.0.0.1", 8470), tls=False)
    local.tokens.add("wall", "viewer")
    address = Address("0.0.0.0", 8470)
    wide = Access.of(ServeConfig(), tmp_path / "state", address, tls=False)
    assert not wide.is_open
    assert wide.concerns(address) == ["tokens cross the network in the clear: see --tls-cert"]
    assert Access.of(ServeConfig(), tmp_path / "state", address, tls=True).concerns(address) == []
    local.tokens.revoke("wall")
    with pytest.raises(UsageError):
        Access.of(ServeConfig(), tmp_path / "state", address, tls=False)


# Proxies --------------------------------------------------------------------------------------------------------------


def test_a_trusted_proxy_says_who_asks(tmp_path: Path) -> None:
    with running(tmp_path / "state", PROXY) as server:
        token = server.add("wall")

        def asked(**headers: str) -> object:
            answer = server.get(
                "/api/v1/jobs", headers={name.replace("_", "-"): value for name, value in headers.items()}
            )
            return answer.json() if answer.status_code == 200 else answer.status_code

        assert asked() == 401  # nobody is let in for being on this machine
        assert asked(X_Remote_User="ada") == {"name": "ada", "role": "user", "user": "ada"}
        assert asked(X_Remote_User="grace") == {"name": "grace", "role": "operator", "user": None}
        assert asked(X_Remote_User="ada", X_Remote_Role="viewer") == {"name": "ada", "role": "viewer", "user": None}
        assert asked(X_Remote_User="ada", X_Remote_Role="root") == 403
        assert asked(X_Remote_User="") == 401
        assert asked(X_Remote_User="a b") == 400
        assert asked(X_Remote_Role="operator") == 401
        assert asked(X_Remote_User="ada", Authorization="Bearer iolens_" + "x" * 43) == 401
        assert asked(X_Remote_User="ada", Authorization=f"Bearer {token}")["name"] == "wall"  # type: ignore[index]
        twice = b"X-Remote-User: ada\r\nX-Remote-User: grace\r\nConnection: close\r\n\r\n"
        assert server.raw(b"GET /api/v1/jobs HTTP/1.1\r\nHost: x\r\n" + twice).startswith(b"HTTP/1.1 400")


def test_changes_through_a_proxy_need_a_page_of_this_server(tmp_path: Path) -> None:
    with running(tmp_path / "state", PROXY) as server:
        grace = {"X-Remote-User": "grace"}
        assert server.get("/api/v1/silences", method="POST", headers=grace).status_code == 403
        own = {**grace, "Sec-Fetch-Site": "same-origin"}
        assert server.get("/api/v1/silences", method="POST", headers=own).status_code == 200


def test_the_word_of_others_is_not_believed(tmp_path: Path) -> None:
    with running(tmp_path / "state", FOREIGN) as server:
        assert server.get("/api/v1/jobs", headers={"X-Remote-User": "ada"}).status_code == 401
        secure = server.get("/healthz", headers={"X-Forwarded-Proto": "https", "X-Forwarded-For": "1.2.3.4"})
        assert "strict-transport-security" not in secure.headers
        server.get("/api/v1/jobs", "iolens_" + "x" * 43, headers={"X-Forwarded-For": "1.2.3.4"})
        assert {line["address"] for line in server.audit_lines()} == {"127.0.0.1"}


def test_behind_a_proxy_with_tls_cookies_are_secure_and_addresses_are_the_clients(tmp_path: Path) -> None:
    headers = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "6.6.6.6, 1.2.3.4", "Sec-Fetch-Site": "same-origin"}
    with running(tmp_path / "state", PROXY) as server:
        form = {"token": server.add("wall")}
        answer = server.get("/login", method="POST", headers=headers, data=form)
        assert answer.headers["set-cookie"].startswith("__Host-iolens=")
        assert "Secure" in answer.headers["set-cookie"]
        assert answer.headers["strict-transport-security"] == "max-age=31536000"
        assert server.audit_lines()[-1]["address"] == "1.2.3.4"  # the one the proxy saw, not what the client claims


@pytest.mark.parametrize(
    ("forwarded", "address"),
    [
        ((), "10.1.2.3"),
        (("1.2.3.4",), "1.2.3.4"),
        (("6.6.6.6, 1.2.3.4, 10.1.2.9",), "1.2.3.4"),
        (("6.6.6.6", "1.2.3.4"), "1.2.3.4"),
        ((", ,",), "10.1.2.3"),
        (("x" * 999,), "x" * 64),
    ],
)
def test_the_address_of_a_client_behind_proxies(forwarded: tuple[str, ...], address: str) -> None:
    request = HttpRequest("GET", "/", "/", {"x-forwarded-for": forwarded})
    assert client_address("10.1.2.3", request, FOREIGN) == address
    assert client_address("10.9.9.9", request, FOREIGN) == "10.9.9.9"


# TLS ------------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return self_signed(tmp_path_factory.mktemp("tls"))


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")  # therefore it is refused
def test_with_tls_cookies_and_transport_are_strict(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    config = ServeConfig(tls_cert=certificate[0], tls_key=certificate[1], require_token=True)
    trust = ssl.create_default_context(cafile=str(certificate[0]))
    with running(tmp_path / "state", config) as server:
        with server.client(verify=trust) as client:
            form = {"token": server.add("wall")}
            assert (
                client.post("/login", data=form, headers={"Origin": server.url.replace("https", "http")}).status_code
                == 403
            )
            answer = client.post("/login", data=form, headers={"Origin": server.url})
            assert answer.headers["set-cookie"].startswith("__Host-iolens=")
            assert {"Secure", "HttpOnly", "SameSite=strict", "Path=/"} <= set(answer.headers["set-cookie"].split("; "))
            assert answer.headers["strict-transport-security"] == "max-age=31536000"
            assert client.get("/jobs").text == "page for wall"
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        old.set_ciphers("ALL:@SECLEVEL=0")
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
        with socket.create_connection(server.address, timeout=60) as plain, pytest.raises((ssl.SSLError, OSError)):
            old.wrap_socket(plain)
        assert server.raw(b"GET / HTTP/1.1\r\n\r\n") == b""  # plain HTTP to a port of TLS


def test_a_wrong_certificate_is_said_at_the_start(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    from iolens.web.access.connections import listening_settings

    with pytest.raises(UsageError, match="No such file"):
        listening_settings(ServeConfig(tls_cert=tmp_path / "none", tls_key=certificate[1]))
