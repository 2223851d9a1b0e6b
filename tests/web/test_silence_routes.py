"""Silences over HTTP: operators add and end them, viewers read them, and bad bodies are one line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cli.command import iolens
from tests.web.hourly_rows import ingest
from tests.web.served_centre import ServedCentre, serving

GIVEN = {
    "rule": "fullness",
    "duration": "2h",
    "comment": "known since Monday",
    "filesystem": "scratch",
    "subject": "*OST*",
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedCentre]:
    folder = tmp_path_factory.mktemp("silences")
    ingest(folder / "store", 1)
    with serving(folder / "store", folder / "hidden-state") as started:
        started.add("own", "user", "ada")
        yield started


def post(served: ServedCentre, body: Any, name: str = "operator") -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return served.get("/api/v1/silences", name, "POST", content=content)


def test_a_silence_begins_is_seen_and_ends(served: ServedCentre, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IOLENS_STATE", str(served.state))
    assert served.get("/api/v1/silences").json() == []
    assert served.get("/api/v1/alerts").json()["silences"] == []
    added = post(served, GIVEN)
    assert added.status_code == 201, added.text
    silence = added.json()
    assert {name: silence[name] for name in ("rule", "filesystem", "subject", "comment", "author")} == {
        **{name: GIVEN[name] for name in ("rule", "filesystem", "subject", "comment")}, "author": "operator",
    }  # fmt: skip
    assert served.get("/api/v1/silences").json() == [silence]
    assert served.get("/api/v1/alerts").json()["silences"] == [silence]  # at once
    listed = iolens("alerts", "list", "--state", served.state, "--format", "json")
    assert json.loads(listed.out)["silences"] == [silence]
    ended = served.get(f"/api/v1/silences/{silence['id']}", "operator", "DELETE")
    assert (ended.status_code, ended.json()["id"]) == (200, silence["id"])
    assert served.get("/api/v1/silences").json() == []
    assert served.get("/api/v1/alerts").json()["silences"] == []


def test_without_file_system_and_subject_all_are_meant(served: ServedCentre) -> None:
    silence = post(served, {"rule": "f*", "duration": "1min", "comment": "", "subject": ""}).json()
    assert (silence["filesystem"], silence["subject"]) == ("*", "*")
    served.get(f"/api/v1/silences/{silence['id']}", "operator", "DELETE")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "a silence is a JSON object"),
        (b"rule=full&duration=2h", "a silence is a JSON object"),
        (b"\xff\xfe", "a silence is a JSON object"),
        (b"[" * 100_000, "a silence is a JSON object"),
        ([], "a silence is a JSON object of texts: rule, filesystem, subject, duration, comment"),
        (None, "a silence is a JSON object of texts"),
        ({**GIVEN, "comment": 7}, "a silence is a JSON object of texts"),
        ({**GIVEN, "comment": None}, "a silence is a JSON object of texts"),
        ({**GIVEN, "comment": ["x"]}, "a silence is a JSON object of texts"),
        ({**GIVEN, "until": "tomorrow"}, "a silence has no 'until'; it has rule, filesystem"),
        ({**GIVEN, "x" * 1000: ""}, f"a silence has no '{'x' * 40}'; it has"),
        ({**GIVEN, "comment": "x" * 501}, "a text of a silence has at most 500 characters"),
        (b'{"rule": "full", "duration": "2h", "comment": "\\ud800"}', "a text of a silence is Unicode"),
        ({**GIVEN, "duration": "soon"}, "duration: "),
        ({**GIVEN, "duration": ""}, "duration: "),
        ({**GIVEN, "duration": "-1h"}, "duration: "),
        ({**GIVEN, "duration": "0s"}, "would be over already"),
        ({**GIVEN, "duration": "99999y"}, "duration: "),
        ({**GIVEN, "duration": "9000000d"}, "duration: "),
        ({**GIVEN, "rule": "fulness"}, "no rule is called 'fulness'; did you mean fullness"),
        ({"duration": "2h"}, "no rule is called ''"),
    ],
)  # fmt: skip
def test_a_body_that_is_no_silence(served: ServedCentre, body: Any, words: str) -> None:
    answer = post(served, body)
    assert (answer.status_code, answer.headers["content-type"]) == (400, "application/json")
    assert words in answer.json()["error"]
    assert served.get("/api/v1/silences").json() == []


def test_a_huge_body_is_not_read(served: ServedCentre) -> None:
    answer = post(served, {**GIVEN, "comment": "x" * (2 << 20)})
    assert answer.status_code == 413
    assert served.get("/api/v1/silences").json() == []


@pytest.mark.parametrize("number", ["77", "-1", str(10**30), "x", "1.5"])
def test_a_silence_that_is_not_there(served: ServedCentre, number: str) -> None:
    answer = served.get(f"/api/v1/silences/{number}", "operator", "DELETE")
    assert (answer.status_code, answer.json()) == (404, {"error": f"there is no silence '{number[:20]}'"})


def test_before_there_is_any_state(tmp_path: Path) -> None:
    with serving(tmp_path / "store", tmp_path / "hidden-state") as served:
        assert served.get("/api/v1/silences").json() == []
        answer = served.get("/api/v1/silences/1", "operator", "DELETE")
        assert (answer.status_code, answer.json()) == (404, {"error": "there is no silence '1'"})


@pytest.mark.parametrize("name", ["viewer", "own", "agent"])
def test_only_operators_change_silences(served: ServedCentre, name: str) -> None:
    silence = post(served, GIVEN).json()
    assert post(served, GIVEN, name).status_code in (403, 405)
    assert served.get(f"/api/v1/silences/{silence['id']}", name, "DELETE").status_code in (403, 405)
    assert served.get("/api/v1/silences", name).status_code == (200 if name == "viewer" else 403)
    assert [kept["id"] for kept in served.get("/api/v1/silences").json()] == [silence["id"]]
    served.get(f"/api/v1/silences/{silence['id']}", "operator", "DELETE")


def test_the_form_is_shown_to_operators(served: ServedCentre) -> None:
    assert 'id="silence"' in served.get("/alerts", "operator").text
    assert 'id="silence"' not in served.get("/alerts").text
