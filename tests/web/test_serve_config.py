"""The section [serve]: every key, and what is refused."""

from __future__ import annotations

from ipaddress import ip_network
from pathlib import Path

import pytest

from iolens.agent.exporter.server import Address
from iolens.config import load_config
from iolens.errors import InputError
from iolens.web.serve_config import ServeConfig, serve_config

SAMPLE = Path(__file__).parents[2] / "contrib" / "iolens.toml"
EVERYTHING = """
[serve]
listen = "[::]:9000"
tls_cert = "/etc/iolens/server.pem"
tls_key = "/etc/iolens/server.key"
hosts = ["IO.example.org"]
require_token = true
proxy_addresses = ["10.0.0.5", "fd00::/8"]
proxy_user_header = "X-Remote-User"
proxy_role_header = "X-Remote-Role"
proxy_roles = { ada = "operator" }
requests_per_address = 20
questions_per_reader = 5
body_limit = "2MiB"
body_time = "1min"
"""


def read(folder: Path, text: str) -> ServeConfig:
    path = folder / "iolens.toml"
    path.write_text(text, "utf-8")
    return serve_config(load_config(path))


def test_every_key(tmp_path: Path) -> None:
    assert read(tmp_path, EVERYTHING) == ServeConfig(
        Address("::", 9000),
        Path("/etc/iolens/server.pem"),
        Path("/etc/iolens/server.key"),
        ("io.example.org",),
        True,
        (ip_network("10.0.0.5"), ip_network("fd00::/8")),
        "X-Remote-User",
        "X-Remote-Role",
        {"ada": "operator"},
        20,
        5,
        2 << 20,
        60.0,
    )


def test_without_the_section_there_are_defaults(tmp_path: Path) -> None:
    assert read(tmp_path, "") == ServeConfig()
    assert ServeConfig().listen == Address("127.0.0.1", 8470)


def test_the_sample_has_every_key() -> None:
    sample = load_config(SAMPLE)
    assert set(sample.serve) == {
        "listen", "tls_cert", "tls_key", "hosts", "require_token", "proxy_addresses", "proxy_user_header",
        "proxy_role_header", "proxy_roles", "requests_per_address", "questions_per_reader",
        "body_limit", "body_time",
    }  # fmt: skip
    assert serve_config(sample).listen == ServeConfig().listen


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("port = 1", "unknown key serve.port; expected one of listen, tls_cert"),
        ("listen = '8470'", "serve.listen: '8470': write HOST:PORT"),
        ("listen = 8470", "serve.listen = 8470 has the wrong type"),
        ("hosts = ['a b']", "serve.hosts: 'a b' is no host"),
        ("proxy_user_header = 'X'", "proxy_user_header and serve.proxy_addresses go together"),
        ("proxy_addresses = ['10.0.0.1']", "proxy_user_header and serve.proxy_addresses go together"),
        ("proxy_addresses = ['proxy.example.org']\nproxy_user_header = 'X'", "expected an address such as 10.0.0.5"),
        ("proxy_addresses = ['10.0.0.1']\nproxy_user_header = 'X: y'", "expected the name of a header"),
        ("proxy_roles = { ada = 'root' }", "serve.proxy_roles.ada = 'root'; expected one of viewer, user"),
        ("proxy_roles = { ada = 'viewer' }", "expected serve.proxy_user_header with them"),
        ("tls_cert = 'x'", "serve.tls_cert and serve.tls_key go together"),
        ("body_limit = '5'", "serve.body_limit: 5 of what?"),
        ("requests_per_address = 0", "has the wrong type or range"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as refused:
        read(tmp_path, f"[serve]\n{text}\n")
    assert message in str(refused.value)
