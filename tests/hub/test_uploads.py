"""The interface for agents under a real server: idempotent, resumable, bounded, and nothing but segments gets in."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import pytest

from iolens.agent.sampling.hub_client import TOKEN_VARIABLE, HubClient, HubError, SegmentRefusedError
from iolens.agent.sampling.pushing import push_spool
from iolens.hub.inbox import SegmentName
from tests.agent import truth
from tests.hub.segments import content, spool_of, stem
from tests.hub.served_hub import ServedHub

BODY = content("oss1", range(4))
STEM = stem("oss1")
NEVER = {"commit_every": "1h", "reserve": "0B"}  # the writer leaves everything where it is


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedHub]:
    folder = tmp_path_factory.mktemp("hub")
    with ServedHub(folder / "state", folder / "store", NEVER) as served:
        yield served


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, "agent")


def digest(body: bytes) -> str:
    return f"sha-256=:{base64.b64encode(hashlib.sha256(body).digest()).decode()}:"


def ask(hub: ServedHub, method: str, path: str, body: bytes | None = None, **headers: str) -> HTTPResponse:
    connection = HTTPConnection("127.0.0.1", hub.port, timeout=30)
    named = {name.replace("_", "-"): value for name, value in ({"Authorization": "Bearer agent"} | headers).items()}
    connection.request(method, path, body, named)
    answer = connection.getresponse()
    answer.text = answer.read()  # type: ignore[attr-defined]
    connection.close()
    return answer


def put(hub: ServedHub, name: str, body: bytes, **headers: str) -> HTTPResponse:
    return ask(hub, "PUT", f"/api/v1/hub/segments/{name}", body, **({"Repr_Digest": digest(body)} | headers))


def state(hub: ServedHub, name: str) -> dict[str, Any]:
    answer = ask(hub, "GET", f"/api/v1/hub/segments/{name}")
    return dict(json.loads(answer.text))  # type: ignore[attr-defined]


def waiting(hub: ServedHub) -> list[Path]:
    return sorted((hub.state / "hub" / "segments").rglob("*.seg"))


def test_an_accepted_segment_is_on_disk_and_a_repeat_is_acknowledged_at_once(hub: ServedHub) -> None:
    name, body = stem("once"), content("once", range(4))
    assert state(hub, name) == {"segment": name, "received_bytes": 0, "is_complete": False}
    assert put(hub, name, body).status == 201
    path = hub.state / "hub" / "segments" / "once" / f"{name}.seg"
    assert path.read_bytes() == body
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert put(hub, name, body).status == 200
    assert state(hub, name) == {"segment": name, "received_bytes": len(body), "is_complete": True}
    assert ask(hub, "HEAD", f"/api/v1/hub/segments/{name}").headers["Upload-Complete"] == "?1"


def test_another_segment_of_the_same_name_is_refused(hub: ServedHub) -> None:
    name = stem("twice")
    assert put(hub, name, content("twice", range(4))).status == 201
    assert put(hub, name, content("twice", range(5))).status == 422
    assert state(hub, name)["received_bytes"] == len(content("twice", range(4)))


def cut_off(hub: ServedHub, name: str, body: bytes, sent: int) -> None:
    """Announce all of it, send a part, and go away."""
    head = (
        f"PUT /api/v1/hub/segments/{name} HTTP/1.1\r\nHost: hub\r\nAuthorization: Bearer agent\r\n"
        f"Content-Length: {len(body)}\r\nRepr-Digest: {digest(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", hub.port)) as connection:
        connection.sendall(head.encode() + body[:sent])
        wait_for(lambda: ask(hub, "HEAD", f"/api/v1/hub/segments/{name}").status == 200)


def wait_for(condition: Any, seconds: float = 20.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_an_upload_that_was_cut_off_goes_on_where_it_broke(hub: ServedHub, tmp_path: Path) -> None:
    """Three million bytes arrive, then the connection breaks; the client sends the rest and no more."""
    body = content("cut", range(4)) + b"x" * 5_000_000
    name = stem("cut")
    cut_off(hub, name, body, 3_000_000)
    wait_for(lambda: state(hub, name)["received_bytes"] == 3_000_000)
    spool = tmp_path / "cut"
    spool.mkdir(mode=0o700)
    (spool / f"{name}.seg").write_bytes(body)
    wait_for(lambda: put_range(hub, name, body, 1).status == 409)  # not where it broke; nor while the first is at it
    done = push_spool(spool, hub.address)
    assert (done.shipped, done.left, done.error) == (1, 0, "")
    assert (hub.state / "hub" / "segments" / "cut" / f"{name}.seg").read_bytes() == body


def put_range(hub: ServedHub, name: str, body: bytes, first: int) -> HTTPResponse:
    stated = {"Repr_Digest": digest(body), "Content_Range": f"bytes {first}-{len(body) - 1}/{len(body)}"}
    return ask(hub, "PUT", f"/api/v1/hub/segments/{name}", body[first:], **stated)


def test_a_wrong_digest_leaves_nothing_and_the_segment_can_be_sent_again(hub: ServedHub) -> None:
    name, body = stem("digest"), content("digest", range(4))
    assert put(hub, name, body, Repr_Digest=digest(b"something else")).status == 409
    assert state(hub, name)["received_bytes"] == 0
    assert put(hub, name, body).status == 201


@pytest.mark.parametrize(
    "name",
    [
        "..", "%2e%2e", "..%2f..%2fetc%2fpasswd", ".hidden~run~00000001", "..~run~00000001", "a~..~00000001", "a~b",
        "a~b~000000001", "a~b~00000001.seg", "a%2fb~run~00000001", "a%00~run~00000001", "é~run~00000001", "a~b~1",
        "a~b~c~00000001",
        f"{'a' * 129}~run~00000001", f"a~{'b' * 65}~00000001", "a~b~0000000000001", "~b~00000001", "-a~b~00000001",
    ],
)  # fmt: skip
def test_hostile_names_never_become_paths(hub: ServedHub, name: str) -> None:
    before = sorted(hub.state.rglob("*.part")) + waiting(hub)
    address = name.replace("é", "%C3%A9")
    assert put(hub, address, BODY).status in (404, 405, 422)
    assert ask(hub, "GET", f"/api/v1/hub/segments/{address}").status in (404, 405, 422)
    assert sorted(hub.state.rglob("*.part")) + waiting(hub) == before
    assert SegmentName.parse(name) is None


def test_a_segment_whose_first_line_names_another_is_refused(hub: ServedHub) -> None:
    assert put(hub, stem("liar"), content("victim", range(4))).status == 422
    assert not list((hub.state / "hub" / "segments" / "liar").iterdir())


def test_headers_that_are_missing_or_contradict_each_other(hub: ServedHub) -> None:
    path = f"/api/v1/hub/segments/{STEM}"
    assert ask(hub, "PUT", path, BODY).status == 400
    assert put(hub, STEM, BODY, Repr_Digest="sha-256=:AAAA:").status == 400
    assert put(hub, STEM, BODY, Repr_Digest="md5=:AAAA:").status == 400
    assert put(hub, STEM, b"").status == 400
    for wrong in (
        "bytes 0-1/2",
        "bytes 5-4/5",
        "bytes */5",
        "bytes 0-0/1",
        "lines 1-2/3",
        "bytes 99999999999999999-1/2",
    ):
        assert put(hub, STEM, BODY, Content_Range=wrong).status == 400, wrong
    assert put_range(hub, STEM, BODY, 10).status == 409  # nothing is here to go on from
    assert ask(hub, "POST", path, BODY).status == 405
    with socket.create_connection(("127.0.0.1", hub.port)) as connection:
        connection.sendall(
            f"PUT {path} HTTP/1.1\r\nHost: hub\r\nAuthorization: Bearer agent\r\nTransfer-Encoding: chunked\r\n"
            f"Repr-Digest: {digest(BODY)}\r\n\r\n3\r\nabc\r\n0\r\n\r\n".encode()
        )
        assert connection.recv(1000).startswith(b"HTTP/1.1 411")
    assert not list(hub.state.rglob(f"{STEM}*"))


def test_an_oversized_body_is_refused_before_it_is_read(hub: ServedHub) -> None:
    head = (
        f"PUT /api/v1/hub/segments/{STEM} HTTP/1.1\r\nHost: hub\r\nAuthorization: Bearer agent\r\n"
        f"Content-Length: 999999999999\r\nRepr-Digest: {digest(b'')}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", hub.port)) as connection:
        connection.sendall(head.encode())
        assert connection.recv(1000).startswith(b"HTTP/1.1 413")


def test_who_may_send(hub: ServedHub) -> None:
    path = f"/api/v1/hub/segments/{STEM}"
    for role, sends in (("agent", 200), ("viewer", 403), ("operator", 403), ("user", 403)):
        assert ask(hub, "GET", path, Authorization=f"Bearer {role}").status == sends, role
    assert ask(hub, "PUT", path, BODY, Authorization="Bearer viewer", Repr_Digest=digest(BODY)).status == 403
    assert ask(hub, "GET", path, Authorization="").status == 401


def test_two_uploads_of_the_same_segment_at_once_leave_one_whole_segment(hub: ServedHub) -> None:
    body = content("race", range(4)) + b"y" * 3_000_000
    statuses: list[int] = []
    threads = [threading.Thread(target=lambda: statuses.append(put(hub, stem("race"), body).status)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(statuses) <= {200, 201, 409}
    assert statuses.count(201) == 1
    assert (hub.state / "hub" / "segments" / "race" / f"{stem('race')}.seg").read_bytes() == body


def test_the_state_counts_by_agent(hub: ServedHub) -> None:
    spoken = content("counted", range(4))
    assert put(hub, stem("counted"), spoken).status == 201
    now = hub.now()
    own = next(agent for agent in now.agents if agent.host == "counted")
    assert (own.waiting_segments, own.waiting_bytes) == (1, len(spoken))
    assert now.waiting_segments == len(waiting(hub))
    assert now.free_bytes is not None
    assert now.free_bytes > 0


# --- limits


def limited(tmp_path: Path, **settings: Any) -> ServedHub:
    return ServedHub(tmp_path / "state", tmp_path / "store", NEVER | settings)


def test_an_agent_at_its_quota_waits_and_the_others_do_not(tmp_path: Path) -> None:
    with limited(tmp_path, agent_segments=2) as hub:
        spool = spool_of(tmp_path / "spools", "many", *(range(number, number + 1) for number in range(5)))
        done = push_spool(spool, hub.address)
        assert (done.shipped, done.left) == (2, 3)
        assert "2 segments of many" in done.error
        assert 60 <= done.wait_s <= 90
        answer = put(hub, stem("many", 9), content("many", range(9), 9))
        assert (answer.status, int(answer.headers["Retry-After"]) >= 60) == (429, True)
        assert push_spool(spool_of(tmp_path / "spools", "other", range(4)), hub.address).shipped == 1
        hub.stop()
        agents = {agent.host: agent for agent in hub.now().agents}
        assert (agents["many"].refused, agents["other"].refused) == (2, 0)
        assert "are not in the store yet" in agents["many"].last_refusal
        hub.start()


def test_bytes_per_hour_are_bounded(tmp_path: Path) -> None:
    size = len(content("fast", range(1)))
    with limited(tmp_path, agent_limit_per_hour=f"{size * 2 + 10}B") as hub:
        spool = spool_of(tmp_path / "spools", "fast", *(range(number, number + 1) for number in range(3)))
        done = push_spool(spool, hub.address)
        assert done.shipped == 2
        assert "within an hour" in done.error
        assert 0 < done.wait_s <= 3600


@pytest.mark.parametrize(
    ("settings", "status"),
    [({"inbox_segments": 1}, 503), ({"inbox_limit": "100B"}, 503), ({"reserve": "1EiB"}, 507), ({"agents": 1}, 429)],
)
def test_a_full_inbox_or_disk_is_back_pressure(tmp_path: Path, settings: dict[str, Any], status: int) -> None:
    with limited(tmp_path, **settings) as hub:
        put(hub, stem("a"), content("a", range(4)))
        answer = put(hub, stem("b"), content("b", range(4)))
        assert (answer.status, int(answer.headers["Retry-After"]) > 0) == (status, True)
        with HubClient(hub.address) as client, pytest.raises(HubError, match=f"HTTP {status}"):
            client.push(stem("b"), spool_of(tmp_path / "spools", "b", range(4)) / f"{stem('b')}.seg")


def test_a_token_of_one_host_sends_nothing_for_another(tmp_path: Path) -> None:
    with limited(tmp_path, own_host_only=True) as hub:
        assert put(hub, STEM, BODY, Authorization="Bearer agent.oss2").status == 403
        assert put(hub, STEM, BODY, Authorization="Bearer agent.oss1").status == 201


def test_a_second_server_on_the_same_state_is_refused(tmp_path: Path) -> None:
    with limited(tmp_path) as hub:
        second = ServedHub(hub.state, hub.store, NEVER)
        second.start()  # it has bound its socket when it finds out
        assert second.process is not None
        assert second.process.wait(30) != 0
        second._let_go()
        assert put(hub, STEM, BODY).status == 201


# --- the client


def test_a_segment_that_is_refused_for_good_goes_aside_and_stops_no_other(hub: ServedHub, tmp_path: Path) -> None:
    spool = spool_of(tmp_path, "aside", range(4), range(4, 8), range(8, 12))
    liar = spool / f"{stem('aside', 2)}.seg"
    liar.write_bytes(content("somebody-else", range(4), 2))
    done = push_spool(spool, hub.address)
    assert (done.shipped, done.bad, done.left, done.error) == (2, 1, 0, "")
    assert "names another segment" in (spool / "bad" / liar.name).with_suffix(".reason").read_text()


def test_links_and_pipes_in_a_spool_are_not_sent(hub: ServedHub, tmp_path: Path) -> None:
    spool = spool_of(tmp_path, "links", range(4))
    (spool / f"{stem('links', 2)}.seg").symlink_to("/etc/passwd")
    os.mkfifo(spool / f"{stem('links', 3)}.seg")
    done = push_spool(spool, hub.address)
    assert (done.shipped, done.bad) == (1, 2)


def test_without_a_hub_everything_stays_in_the_spool(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    spool = spool_of(tmp_path, "alone", range(4))
    away = ServedHub(tmp_path / "state", tmp_path / "store", port=port)
    done = push_spool(spool, away.address)
    assert (done.shipped, done.left) == (0, 1)
    assert "refused" in done.error


def test_a_wrong_token_loses_nothing_and_is_not_shown(
    hub: ServedHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, "wrong-and-secret")
    done = push_spool(spool_of(tmp_path, "wrong", range(4)), hub.address)
    assert (done.shipped, done.left) == (0, 1)
    assert "the token is missing or wrong" in done.error
    assert "secret" not in repr(done)
    with HubClient(hub.address) as client, pytest.raises(HubError, match="HTTP 401"):
        client.check()


def test_a_segment_that_cannot_be_opened_is_refused(hub: ServedHub, tmp_path: Path) -> None:
    with HubClient(hub.address) as client, pytest.raises(SegmentRefusedError, match="No such file"):
        client.push(STEM, tmp_path / "missing.seg")


def test_a_segment_that_is_too_large_is_put_aside_before_it_is_sent(tmp_path: Path) -> None:
    with limited(tmp_path, segment_limit="1KiB") as hub:
        spool = spool_of(tmp_path, "large", range(4))
        path = spool / f"{stem('large')}.seg"
        path.write_bytes(path.read_bytes() + b"z" * 20_000_000)
        done = push_spool(spool, hub.address)
        assert (done.shipped, done.bad, done.error) == (0, 1, "")


def test_what_the_store_has_already_is_accepted_and_dropped(tmp_path: Path) -> None:
    with ServedHub(tmp_path / "state", tmp_path / "store", {"commit_every": "100ms", "reserve": "0B"}) as hub:
        for _ in range(3):
            assert push_spool(spool_of(tmp_path, "oss1", range(4), range(4, 8)), hub.address).shipped == 2
            hub.wait_until_stored()
    assert truth.total(tmp_path / "store") == 70
    assert truth.breaks(tmp_path / "store") == []
