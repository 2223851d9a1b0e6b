"""Requests against a real server: paths, hosts, bodies, headers of every answer, failures and numbers of requests."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from iolens.web.access.bodies import BodyBounds
from iolens.web.access.connections import BoundedHttp
from iolens.web.access.http_request import decoded_path
from iolens.web.access.refusals import Refusal
from iolens.web.access.secure_headers import POLICY
from iolens.web.serve_config import ServeConfig
from tests.web.access.running_application import CLOSED, SECRET_PATH, Running, received, running

SECURE = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def raw_get(target: str, *headers: str, host: str = "127.0.0.1", version: str = "1.1") -> bytes:
    lines = [
        f"GET {target} HTTP/{version}",
        *([f"Host: {host}"] if host else []),
        *headers,
        "Connection: close",
        "",
        "",
    ]
    return "\r\n".join(lines).encode("latin-1")


# Headers of every answer ----------------------------------------------------------------------------------------------


def test_every_kind_of_answer_has_the_secure_headers(server: Running) -> None:
    viewer = server.tokens["viewer"]
    answers = {
        200: server.get("/", viewer),
        303: server.get("/", headers={"Accept": "text/html"}),
        400: server.get("/%2e%2e/", viewer),
        401: server.get("/api/v1/jobs"),
        403: server.get("/users", server.tokens["user"]),
        404: server.get("/nothing", viewer),
        405: server.get("/jobs", viewer, "DELETE"),
        413: server.get("/api/v1/silences", server.tokens["operator"], "POST", content=b"x" * (1 << 20) + b"x"),
        414: server.get("/jobs?" + "a" * 9000, viewer),
        431: server.get("/", viewer, headers={f"x-{number}": "1" for number in range(150)}),
        500: server.get("/api/v1/workload", viewer),
    }
    for status, answer in answers.items():
        assert answer.status_code == status
        assert SECURE.items() <= dict(answer.headers).items()
        assert answer.headers["cache-control"] == "private, no-cache"
        assert "server" not in answer.headers
        assert "strict-transport-security" not in answer.headers


def test_an_answer_to_what_is_no_http_has_them_too(server: Running) -> None:
    head = server.raw(b"NONSENSE\r\n\r\n").lower()
    assert head.startswith(b"http/1.1 400")
    assert all(f"{name}: {value}".lower().encode() in head for name, value in SECURE.items())
    assert b"server:" not in head


def test_what_the_application_says_of_caching_stays(server: Running) -> None:
    assert server.get("/static/dashboard.css").headers["cache-control"] == "public, max-age=31536000, immutable"


def test_refusals_are_json_for_programs_and_pages_for_people(server: Running) -> None:
    refused = server.get("/api/v1/jobs")
    assert refused.json() == {"error": "A token is needed."}
    assert refused.headers["www-authenticate"] == 'Bearer realm="iolens"'
    assert server.get("/users", server.tokens["user"]).headers["content-type"] == "text/html; charset=utf-8"
    redirected = server.get("/jobs?sort=bytes", headers={"Accept": "text/html"})
    assert (redirected.status_code, redirected.headers["location"]) == (303, "/login?next=%2Fjobs%3Fsort%3Dbytes")


def test_a_link_on_another_site_is_looked_at_twice_before_the_log_in(server: Running) -> None:
    """Strict cookies do not come with the first request."""
    foreign = {"Accept": "text/html", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    answer = server.get("/jobs?a=1&b='\"<x>", headers=foreign)
    assert answer.status_code == 200
    assert '<meta http-equiv="refresh" content="0;url=/jobs?a=1&amp;b=&#x27;' in answer.text
    assert "<x>" not in answer.text
    own = server.get("/jobs", headers={**foreign, "Sec-Fetch-Site": "same-origin"})
    assert own.status_code == 303


# Paths ----------------------------------------------------------------------------------------------------------------

TRICKS = [
    "/..", "/../etc/passwd", "/jobs/..", "/jobs/../users", "/./jobs", "/jobs/.", "/%2e%2e/etc", "/jobs/%2e%2e/users",
    "/jobs%2f17", "/jobs/a%2Fb", "/jobs/a%5cb", "/jobs/a\\b", "/jobs/%00", "/jobs/a%0a", "/jobs/%0d%0aSet-Cookie:x",
    "/jobs/%252e%252e", "/jobs/%252f", "/jobs/%255c", "/jobs/%2500", "/jobs/%ff", "/jobs/%c0%af", "/jobs/%c0%ae%c0%ae",
    "/jobs/%ed%a0%80", "//evil.example.org/", "/jobs//17", "///", "/jobs/%zz", "/jobs/%", "/jobs/%2", "/jobs/a|b",
    "/jobs/<x>", '/jobs/"', "http://127.0.0.1/jobs", "http://evil.example.org/", "*", "jobs", "/jobs/%7f",
    "/jobs?a=%00",
    "/jobs?a=%ff", "/static/../users", "/static/%2e%2e%2fusers", "/static/..%5cusers", "/api/v1/hub/../users",
    "/healthz/../users",
]  # fmt: skip


@pytest.mark.parametrize("target", TRICKS)
def test_path_tricks_are_refused_before_anything_else(server: Running, target: str) -> None:
    answer = server.raw(raw_get(target, f"Authorization: Bearer {server.tokens['operator']}"))
    assert status_of(answer) == 400
    assert b"page for" not in answer


@pytest.mark.parametrize(
    "raw", [b"/", b"/jobs/17", b"/jobs/a%20b", b"/jobs/%25", b"/jobs/caf%C3%A9", b"/jobs/a;b=c:d@e"]
)
def test_plain_paths_are_taken(raw: bytes) -> None:
    from urllib.parse import unquote

    assert decoded_path(raw) == unquote(raw.decode())


@pytest.mark.parametrize("raw", [b"", b"jobs", b"/\x80", b"/a b", b"/a#b", b"/a?b"])
def test_bytes_that_are_no_path_are_refused(raw: bytes) -> None:
    with pytest.raises(Refusal):
        decoded_path(raw)


def test_long_paths_and_headers_are_refused(server: Running) -> None:
    assert status_of(server.raw(raw_get("/jobs/" + "a" * 3000))) == 414
    assert status_of(server.raw(raw_get("/jobs", "X: " + "a" * 200_000))) == 400  # longer than a head may be


# Hosts ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:8470", "localhost:1", "LOCALHOST", "[::1]:8470", "[::1]", "iolens.example.org:99"]
)
def test_an_open_server_answers_under_its_own_names(open_server: Running, host: str) -> None:
    assert b"page for local" in open_server.raw(raw_get("/", host=host))


@pytest.mark.parametrize(
    "host",
    ["evil.example.org", "127.0.0.1.evil.org", "127.0.0.1@evil.org", "localhost.evil.org", "127.0.0.1:80:80", "[::1",
     "::1", "evil.org#127.0.0.1", "127.0.0.1/", "0.0.0.0", "127.0.0.2", "localhost:999999"],
)  # fmt: skip
def test_an_open_server_answers_under_no_other_name(open_server: Running, host: str) -> None:
    answer = open_server.raw(raw_get("/", host=host))
    assert status_of(answer) in (400, 421)
    assert b"page for" not in answer


def test_without_a_list_of_names_an_open_server_has_its_own_alone(tmp_path: Path) -> None:
    with running(tmp_path / "state", ServeConfig()) as server:
        assert status_of(server.raw(raw_get("/", host="localhost:5"))) == 200
        assert status_of(server.raw(raw_get("/", host="iolens.example.org"))) == 421


def test_an_open_server_needs_a_host_and_only_one(open_server: Running) -> None:
    assert status_of(open_server.raw(raw_get("/", host="", version="1.0"))) == 400
    assert status_of(open_server.raw(raw_get("/", "Host: evil.example.org"))) == 400


def test_with_tokens_any_name_will_do_unless_names_are_listed(server: Running, tmp_path: Path) -> None:
    authorization = f"Authorization: Bearer {server.tokens['viewer']}"
    assert status_of(server.raw(raw_get("/", authorization, host="io.example.org"))) == 200
    with running(tmp_path / "state", ServeConfig(require_token=True, hosts=("io.example.org",))) as strict:
        authorization = f"Authorization: Bearer {strict.add('wall')}"
        assert status_of(strict.raw(raw_get("/", authorization, host="io.example.org"))) == 200
        assert status_of(strict.raw(raw_get("/", authorization, host="other.example.org"))) == 421


def test_an_open_server_lets_this_machine_in_but_not_what_a_proxy_brings(open_server: Running) -> None:
    assert open_server.get("/api/v1/jobs").json() == {"name": "local", "role": "operator", "user": None}
    for header in ("X-Forwarded-For", "Forwarded", "X-Real-IP", "Via"):
        assert open_server.get("/api/v1/jobs", headers={header: "10.0.0.1"}).status_code == 403
    assert open_server.get("/api/v1/jobs", "iolens_" + "x" * 43).status_code == 401  # a wrong token is wrong here too


# Changes from pages of others -----------------------------------------------------------------------------------------


def change(server: Running, **headers: str) -> int:
    return server.get("/api/v1/silences", method="POST", headers=headers, content=b"{}").status_code


def test_an_open_server_changes_nothing_for_pages_of_others(open_server: Running) -> None:
    own = open_server.url
    assert change(open_server, Origin=own) == 200
    assert change(open_server, **{"Sec-Fetch-Site": "same-origin"}) == 200
    assert change(open_server) == 403
    for origin in ("null", "http://evil.example.org", own + "0", own.replace("127.0.0.1", "localhost"), "http://["):
        assert change(open_server, Origin=origin) == 403
    for site in ("cross-site", "same-site", "none", "same-origin, cross-site"):
        assert change(open_server, Origin=own, **{"Sec-Fetch-Site": site}) == 403


def test_requests_with_a_token_need_no_origin(server: Running) -> None:
    operator = server.tokens["operator"]
    answer = server.get(
        "/api/v1/silences", operator, "POST", content=b"{}", headers={"Origin": "http://evil.example.org"}
    )
    assert answer.status_code == 200
    assert server.get("/api/v1/silences/9", operator, "DELETE").json() == {"ended": "9"}


def test_pages_of_others_load_nothing_in_the_background(open_server: Running, server: Running) -> None:
    for site in ("cross-site", "same-site"):
        embedded = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"}
        assert open_server.get("/api/v1/jobs", headers=embedded).status_code == 403
        assert open_server.get("/jobs", headers={**embedded, "Sec-Fetch-Mode": "navigate"}).status_code == 200
        assert server.get("/api/v1/jobs", server.tokens["viewer"], headers=embedded).status_code == 200


# Bodies ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def hasty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    """A server with little patience for bodies."""
    monkeypatch.setattr(BoundedHttp, "rest_s", 0.3)
    config = ServeConfig(require_token=True, body_time_s=0.6)
    with running(tmp_path / "state", config, hub_bounds=BodyBounds(4 << 20, 600.0, 1e6, 0.3)) as started:
        for role in ("operator", "agent"):
            started.add(role, role)
        yield started


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Running]:
    """A server with patience, which nobody else asks."""
    with running(tmp_path / "alone", ServeConfig(require_token=True)) as started:
        started.add("operator", "operator")
        yield started


@contextmanager
def hasty_for_heads() -> Iterator[None]:
    """No patience with clients that come meanwhile and do not send the head of their request."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BoundedHttp, "head_s", 0.3)
        yield


def head_of(server: Running, path: str, method: str, role: str, *headers: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {server.tokens[role]}", *headers, "", ""]
    return "\r\n".join(lines).encode()


def is_cut_off(connection: socket.socket, part: bytes, pause_s: float = 0.0) -> bool:
    """Send for a minute, or until the server will have no more of it."""
    deadline = time.monotonic() + 60
    with suppress(OSError):
        while time.monotonic() < deadline:
            connection.sendall(part)
            time.sleep(pause_s)
        return False
    return True


def test_a_body_that_says_it_is_too_large_is_refused_unread(server: Running) -> None:
    for length in ("1048577", "9" * 30):
        head = head_of(server, "/api/v1/silences", "POST", "operator", f"Content-Length: {length}", "Connection: close")
        answer = server.raw(head)
        assert status_of(answer) in (413, 400)  # the parser itself refuses a length of thirty digits
    assert (
        server.get("/api/v1/silences", server.tokens["operator"], "POST", content=b"x" * (1 << 20)).status_code == 200
    )


def test_the_log_in_takes_less_and_the_hub_more(server: Running) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded", "Origin": server.url}
    assert server.get("/login", method="POST", headers=form, content=b"a=" + b"x" * (64 << 10)).status_code == 413
    answer = server.get("/api/v1/hub/segments/a", server.tokens["agent"], "PUT", content=b"x" * (3 << 20))
    assert answer.json() == {"bytes": 3 << 20}


def test_a_length_that_is_stated_in_two_ways_is_refused(server: Running) -> None:
    both = head_of(server, "/api/v1/silences", "POST", "operator", "Content-Length: 4", "Transfer-Encoding: chunked")
    assert status_of(server.raw(both + b"0\r\n\r\n")) == 400


def test_an_endless_body_is_cut_off(alone: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Because of its length: there is time for it."""
    monkeypatch.setattr(BoundedHttp, "rest_s", 0.3)
    with socket.create_connection(alone.address, timeout=60) as connection:
        connection.sendall(head_of(alone, "/api/v1/silences", "POST", "operator", "Transfer-Encoding: chunked"))
        chunk = b"8000\r\n" + b"x" * 0x8000 + b"\r\n"
        assert is_cut_off(connection, chunk)
    assert alone.get("/healthz").status_code == 200
    assert [line["status"] for line in alone.audit_lines()] == [413]


def test_an_endless_body_to_a_page_that_reads_none_is_cut_off(hasty: Running) -> None:
    """uvicorn would go on to read and throw away for ever."""
    with socket.create_connection(hasty.address, timeout=60) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        assert is_cut_off(connection, b"1\r\nx\r\n")


def test_a_slow_body_is_refused(hasty: Running) -> None:
    with socket.create_connection(hasty.address, timeout=60) as connection:
        connection.sendall(head_of(hasty, "/api/v1/silences", "POST", "operator", "Content-Length: 1000"))
        connection.sendall(b"x" * 10)
        answer = received(connection)
    assert status_of(answer) == 408


def test_a_body_below_the_lowest_rate_is_refused_before_its_time_is_up(hasty: Running) -> None:
    """The hub gives ten minutes, but not to a byte now and then."""
    stop = threading.Event()
    with socket.create_connection(hasty.address, timeout=60) as connection:
        connection.sendall(head_of(hasty, "/api/v1/hub/segments/a", "PUT", "agent", "Content-Length: 1000000"))

        def dribble() -> None:
            while not stop.wait(0.02):
                try:
                    connection.sendall(b"x")
                except OSError:
                    return

        writer = threading.Thread(target=dribble)
        writer.start()
        answer = connection.recv(4096)
        stop.set()
        writer.join()
    assert status_of(answer) == 408


def test_a_client_that_goes_away_leaves_no_error(hasty: Running, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_connection(hasty.address, timeout=60) as connection:
        connection.sendall(head_of(hasty, "/api/v1/silences", "POST", "operator", "Content-Length: 1000"))
    assert hasty.get("/healthz").status_code == 200
    assert "error" not in capsys.readouterr().err


# Connections ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("begin", [b"", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: x\r\nX-A: "])
def test_a_head_that_does_not_come_is_not_waited_for(alone: Running, begin: bytes) -> None:
    with hasty_for_heads(), socket.create_connection(alone.address, timeout=60) as connection:
        connection.sendall(begin)
        assert received(connection) == b""


def test_a_head_that_dribbles_in_is_not_waited_for(alone: Running) -> None:
    """Bytes now and then do not extend the deadline."""
    with hasty_for_heads(), socket.create_connection(alone.address, timeout=60) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n")
        assert is_cut_off(connection, b"X-A: b\r\n", pause_s=0.02)


def test_slow_clients_do_not_hold_up_others(alone: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BoundedHttp, "head_s", 3600.0)  # none of them is cut off meanwhile
    slow = [socket.create_connection(alone.address, timeout=60) for _ in range(200)]
    for connection in slow:
        connection.sendall(b"GET / HTTP/1.1\r\nHost:")
    assert alone.get("/healthz").status_code == 200
    assert select.select(slow, [], [], 0)[0] == []
    for connection in slow:
        connection.close()


def test_several_requests_on_one_connection_and_in_one_packet(server: Running) -> None:
    request = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    answer = server.raw(request * 3 + request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    assert answer.count(b'{"status":"ok"}') == 4


def test_a_long_answer_streams_and_is_not_cut_off(alone: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it streams, its connection has no deadline."""
    entered, enter = [], BoundedHttp._enter

    def noted(self: BoundedHttp, phase: str, seconds: float | None) -> None:
        entered.append(self)
        enter(self, phase, seconds)

    monkeypatch.setattr(BoundedHttp, "_enter", noted)
    headers = {"Authorization": f"Bearer {alone.add('wall')}"}
    with alone.client() as client, client.stream("GET", "/api/v1/changes", headers=headers) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        ticks = (line for line in answer.iter_lines() if line)
        assert [next(ticks) for _ in range(5)] == ["data: tick"] * 5
        (connection,) = set(entered)
        assert (connection._phase, connection._cut, connection._stall) == ("answer", None, None)


def test_a_long_answer_ends_when_its_token_is_revoked(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iolens.web.access.middleware.RECHECK_S", 0.1)
    headers = {"Authorization": f"Bearer {server.add('watcher')}"}
    with server.client() as client, client.stream("GET", "/api/v1/changes", headers=headers) as answer:
        lines = answer.iter_lines()
        assert next(lines) == "data: tick"
        server.access.tokens.revoke("watcher")
        deadline = time.monotonic() + 60
        with pytest.raises(httpx.RemoteProtocolError):
            any(time.monotonic() > deadline for _ in lines)


def test_one_address_cannot_take_all_connections(alone: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iolens.web.access.connections.MOST_CONNECTIONS", 20)
    monkeypatch.setattr(BoundedHttp, "head_s", 3600.0)
    idle = [socket.create_connection(alone.address, timeout=60) for _ in range(30)]
    assert _until(lambda: len(select.select(idle, [], [], 0)[0]) == 20)  # closed; half of all connections are kept
    for connection in idle:
        connection.close()
    assert _until(lambda: _is_served(alone))


def _is_served(server: Running) -> bool:
    """A connection may be cut off before anything is sent."""
    try:
        return server.raw(raw_get("/healthz")).startswith(b"HTTP/1.1 200")
    except OSError:
        return False


# Numbers of requests, failures ----------------------------------------------------------------------------------------


def test_too_many_requests_at_once_from_an_address_wait(tmp_path: Path) -> None:
    with running(tmp_path / "state", ServeConfig(requests_per_address=2)) as server, server.client() as client:
        with client.stream("GET", "/api/v1/changes"), client.stream("GET", "/api/v1/changes"):
            refused = server.get("/api/v1/jobs")
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert _until(lambda: server.get("/api/v1/jobs").status_code == 200)


def _until(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if condition():
            return True
    return False


def test_an_exception_becomes_a_number_that_stands_in_the_log(
    server: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = server.get("/api/v1/workload", server.tokens["viewer"])
    assert answer.status_code == 500
    assert SECRET_PATH not in answer.text
    assert "SELECT" not in answer.text
    assert "Traceback" not in answer.text
    number = answer.json()["error"].removesuffix(".").split()[-1]
    log = capsys.readouterr().err
    assert f"error {number}: GET /api/v1/workload: please report this: RuntimeError" in log


def test_there_is_no_websocket(server: Running) -> None:
    upgrade = ("Upgrade: websocket", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13")
    assert status_of(server.raw(raw_get("/healthz", *upgrade))) == 200  # an ordinary answer


def test_revoked_and_expired_tokens_are_refused_by_the_running_server(server: Running) -> None:
    token = server.add("short")
    assert server.get("/api/v1/jobs", token).status_code == 200
    server.access.tokens.revoke("short")
    assert server.get("/api/v1/jobs", token).status_code == 401
    expired = server.add("expired", expires=1000)
    assert server.get("/api/v1/jobs", expired).status_code == 200
    server.access.tokens.database.change("UPDATE tokens SET expires_s = expires_s - 1000 WHERE name = 'expired'")
    assert server.get("/api/v1/jobs", expired).status_code == 401


def test_other_schemes_and_malformed_headers_open_nothing(server: Running) -> None:
    token = server.tokens["viewer"]
    for value in (
        token,
        f"Basic {token}",
        f"Bearer{token}",
        f"Bearer {token} x",
        "Bearer",
        f"Bearer {token}, Bearer x",
    ):
        assert server.get("/api/v1/jobs", headers={"Authorization": value}).status_code == 401
    twice = [("Authorization", f"Bearer {token}"), ("Authorization", f"Bearer {token}")]
    with server.client() as client:
        assert client.get("/api/v1/jobs", headers=httpx.Headers(twice)).status_code == 400
    assert server.get(f"/api/v1/jobs?token={token}").status_code == 401


def test_the_configuration_of_these_tests_needs_a_token(server: Running) -> None:
    assert server.access.config == CLOSED
    assert not server.access.is_open
