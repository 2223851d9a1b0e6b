"""Log-in, sessions, log-out and wrong tokens, by real clients."""

from __future__ import annotations

from http.cookies import SimpleCookie
from pathlib import Path

import httpx
import pytest

from iolens.web.access.login import local_target
from tests.web.access.running_application import Running, running

WRONG = "iolens_" + "x" * 43


def log_in(server: Running, client: httpx.Client, token: str, target: str = "/jobs", **headers: str) -> httpx.Response:
    return client.post("/login", data={"token": token, "next": target}, headers={"Origin": server.url, **headers})


def test_a_log_in_gives_a_strict_cookie_and_leads_to_the_page(server: Running) -> None:
    with server.client() as client:
        answer = log_in(server, client, server.tokens["user"], "/jobs?sort=bytes")
        assert (answer.status_code, answer.headers["location"]) == (303, "/jobs?sort=bytes")
        cookie = SimpleCookie(answer.headers["set-cookie"])["iolens"]
        assert (cookie["httponly"], cookie["samesite"], cookie["path"], cookie["domain"]) == (True, "strict", "/", "")
        assert client.get("/jobs").text == "page for user"
        assert client.get("/users").status_code == 403
        assert server.tokens["user"] not in answer.text + str(answer.headers)


def test_the_form_is_shown_without_a_token(server: Running) -> None:
    page = server.get("/login?next=/jobs%3Fa%3D%22%3E%3Cscript%3E")
    assert page.status_code == 200
    assert 'name="token"' in page.text
    assert "<script>" not in page.text


def test_a_wrong_token_shows_the_form_again(server: Running) -> None:
    with server.client() as client:
        answer = log_in(server, client, WRONG)
        assert answer.status_code == 401
        assert "The token is not valid." in answer.text
        assert WRONG not in answer.text
        assert "set-cookie" not in answer.headers
        agent = log_in(server, client, server.tokens["agent"])
        assert (agent.status_code, "for an agent" in agent.text) == (403, True)


def test_only_a_form_of_this_server_logs_in(server: Running) -> None:
    with server.client() as client:
        for headers in ({"Origin": "http://evil.example.org"}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"}):
            assert log_in(server, client, server.tokens["viewer"], **headers).status_code == 403
        assert client.post("/login", data={"token": server.tokens["viewer"]}).status_code == 403
        assert not client.cookies


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"token=%ff%fe", "application/x-www-form-urlencoded", 401),
        (b"\xff\xfe", "application/x-www-form-urlencoded", 400),
        (b"&".join([b"a=b"] * 50), "application/x-www-form-urlencoded", 400),
        (b"", "application/x-www-form-urlencoded; charset=utf-8", 401),
        (b"{}", "application/json", 415),
        (b"--x\r\n", "multipart/form-data; boundary=x", 415),
    ],
)
def test_other_bodies_are_refused(server: Running, content: bytes, kind: str, status: int) -> None:
    headers = {"Origin": server.url, "Content-Type": kind}
    assert server.get("/login", method="POST", headers=headers, content=content).status_code == status


def test_changes_with_a_cookie_need_a_page_of_this_server(server: Running) -> None:
    with server.client() as client:
        log_in(server, client, server.tokens["operator"])
        assert client.post("/api/v1/silences", content=b"{}").status_code == 403
        assert client.post("/api/v1/silences", headers={"Origin": "http://evil.example.org"}).status_code == 403
        assert client.post("/api/v1/silences", headers={"Sec-Fetch-Site": "same-site"}).status_code == 403
        assert client.post("/api/v1/silences", headers={"Origin": server.url}).status_code == 200
        assert client.delete("/api/v1/silences/1", headers={"Sec-Fetch-Site": "same-origin"}).status_code == 200


def test_a_log_out_ends_the_session_for_everyone_who_has_the_cookie(server: Running) -> None:
    with server.client() as client:
        log_in(server, client, server.tokens["viewer"])
        cookie = client.cookies["iolens"]
        assert client.post("/logout").status_code == 403  # from a page of others
        answer = client.post("/logout", headers={"Origin": server.url})
        assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    assert server.get("/", headers={"Cookie": f"iolens={cookie}"}).status_code == 401


def test_revoking_a_token_ends_its_sessions_at_once(server: Running) -> None:
    with server.client() as client:
        log_in(server, client, server.add("guest"))
        assert client.get("/").status_code == 200
        server.access.tokens.revoke("guest")
        assert client.get("/").status_code == 401


@pytest.mark.parametrize("value", ["", "x", "A" * 43, "A" * 9000, "%00", '"'])
def test_a_made_up_cookie_opens_nothing(server: Running, value: str) -> None:
    assert server.get("/api/v1/jobs", headers={"Cookie": f"iolens={value}"}).status_code == 401
    assert server.get("/api/v1/jobs", headers={"Cookie": f"a=b; __Host-iolens={value}"}).status_code == 401


@pytest.mark.parametrize(
    "target",
    ["//evil.example.org", "//", "https://evil.example.org", "/\\evil.example.org", "\\\\evil", "javascript:alert(1)",
     "", "/%2f/evil", "/a\r\nSet-Cookie: x=y", "/a\tb", "evil", "/..//evil", "/login", "/login?next=/login", "/a?b=\n",
     "/" + "a" * 5000, "/é", "///evil.example.org", "/%5cevil"],
)  # fmt: skip
def test_a_log_in_leads_to_no_other_site(target: str) -> None:
    assert local_target(target) == "/"


@pytest.mark.parametrize("target", ["/", "/jobs?from=now-1d&sort=bytes", "/filesystems/scratch", "/jobs/a%20b"])
def test_a_log_in_leads_to_a_page_of_this_server(target: str) -> None:
    assert local_target(target) == target


def test_an_open_server_needs_no_log_in(open_server: Running) -> None:
    answer = open_server.get("/login?next=/jobs")
    assert (answer.status_code, answer.headers["location"]) == (303, "/jobs")


# Wrong tokens ---------------------------------------------------------------------------------------------------------


def test_many_wrong_tokens_have_to_wait_but_a_right_one_does_not(tmp_path: Path) -> None:
    with running(tmp_path / "state") as server, server.client() as client:
        token = server.add("wall")
        bearer = [server.get("/api/v1/jobs", WRONG) for _ in range(7)]
        forms = [log_in(server, client, WRONG) for _ in range(7)]
        assert [answer.status_code for answer in bearer + forms] == [401] * 10 + [429] * 4  # together
        assert 1 <= int(forms[-1].headers["retry-after"]) <= 10
        assert "Too many wrong tokens" in forms[-1].text
        assert server.get("/api/v1/jobs", token).status_code == 200  # the same address, as behind one proxy
        assert log_in(server, client, token).status_code == 303
        assert server.get("/login").status_code == 200


def test_the_audit_log_has_log_ins_refusals_and_changes_and_no_token(tmp_path: Path) -> None:
    with running(tmp_path / "state") as server, server.client() as client:
        token = server.add("op-erator", "operator")
        log_in(server, client, token)
        client.get("/jobs")
        client.post("/api/v1/silences?secret=1", headers={"Origin": server.url})
        client.post("/logout", headers={"Origin": server.url})
        server.get("/api/v1/jobs", WRONG)
        log_in(server, client, WRONG)
        server.get(f"/jobs/{token}")
        server.get("/jobs/%E2%80%A8line%20end%C2%85")
        lines = server.audit_lines()
        kinds = [(line["event"], line.get("principal"), line.get("status")) for line in lines]
        assert kinds == [
            ("log-in", "op-erator", 303),
            ("change", "op-erator", 200),
            ("log-out", "op-erator", None),
            ("refused", None, 401),
            ("refused", None, 401),
            ("refused", None, 401),
            ("refused", None, 401),
        ]
        assert lines[1]["path"] == "/api/v1/silences"
        assert lines[4]["path"] == "/login"
        assert lines[5]["path"] == "/jobs/iolens_(hidden)"
        assert lines[6]["path"] == "/jobs/\\u2028line end\\x85"
        assert {line["address"] for line in lines} == {"127.0.0.1"}
        assert token.encode() not in (tmp_path / "state" / "audit.log").read_bytes()
