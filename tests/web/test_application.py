"""The application as a whole: errors for people and programs, what runs beside it, and what ends with it."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from iolens.config import Config
from iolens.units import iso
from iolens.web import alert_checks
from iolens.web import answers as answers_module
from iolens.web.application import SideWork
from iolens.web.questions import QUESTIONS
from iolens.web.turns import QueueState
from tests.web.hourly_rows import ingest
from tests.web.served_centre import ServedCentre, serving

PATIENCE_S = 60.0


def eventually(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_it_is_alive_without_a_token(centre: ServedCentre) -> None:
    answer = centre.get("/healthz", "")
    assert (answer.status_code, answer.json()["status"]) == (200, "ok")
    assert set(answer.json()) == {"status", "running", "waiting", "oldest_wait_s"}


def test_a_queue_that_does_not_go_on_is_not_alive(centre: ServedCentre, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(centre.app.state.answers.turns, "state", lambda: QueueState(3, 40, 612.04, is_stuck=True))
    answer = centre.get("/healthz", "")
    stuck = {"status": "stuck", "running": 3, "waiting": 40, "oldest_wait_s": 612.0}
    assert (answer.status_code, answer.json()) == (503, stuck)


def test_an_answer_says_how_old_it_is(centre: ServedCentre) -> None:
    path = "/api/v1/filesystems"
    centre.get(path)
    (known,) = [
        answer for inquiry, answer in centre.app.state.answers._answers.items() if inquiry.name == "filesystems"
    ]
    known.asked_at -= 57.0
    for name in ("", ".csv"):
        answer = centre.get(path + name)
        assert 57 <= int(answer.headers["age"]) < 57 + PATIENCE_S
    assert centre.get(path).json()["as_of"] == iso(known.as_of)


@pytest.mark.parametrize("path", ["/nowhere", "/filesystems", "/blocks", "/docs", "/redoc"])
def test_people_get_a_page_where_nothing_is(centre: ServedCentre, path: str) -> None:
    answer = centre.get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "There is no such page." in answer.text


@pytest.mark.parametrize("path", ["/api/v1/nowhere", "/api/v1/", "/api/v2/utilization", "/api/v1/runs/nowhere"])
def test_programs_get_json_where_nothing_is(centre: ServedCentre, path: str) -> None:
    answer = centre.get(path)
    assert (answer.status_code, answer.headers["content-type"], list(answer.json())) == (
        404, "application/json", ["error"],
    )  # fmt: skip


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_pages_and_answers_are_only_read(centre: ServedCentre, method: str) -> None:
    for path in ("/", "/api/v1/utilization", "/blocks/utilization"):
        answer = centre.get(path, "operator", method, headers={"Origin": centre.url})
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")


@pytest.fixture
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers_module, "LOOK_EVERY_S", 0.02)


@pytest.mark.usefixtures("quick_looks")
def test_pages_of_a_store_that_is_not_there_say_so_until_it_is(tmp_path: Path) -> None:
    place = tmp_path / "hidden-place" / "store"
    with serving(place, tmp_path / "state") as served:
        for path in ("/", "/jobs", "/data"):
            page = served.get(path)
            assert page.status_code == 200
            assert "The store holds no data of a file system yet." in page.text
        block = served.get("/blocks/utilization?filesystem=scratch").text
        assert block.startswith('<p class="trouble">the store holds no data yet: there is no such directory')
        answer = served.get("/api/v1/filesystems")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert "hidden-place" not in answer.text
        assert served.get("/filesystems/scratch").status_code == 404
        ingest(place, 1)
        eventually(lambda: "/filesystems/scratch" in served.get("/").text)
        page = served.get("/filesystems/scratch")
        assert page.status_code == 200
        assert "no data of a file system yet" not in page.text
        assert served.get("/api/v1/filesystems").json()["filesystems"][0]["filesystem"] == "scratch"


def test_a_damaged_store_is_one_line(tmp_path: Path) -> None:
    place = tmp_path / "hidden-place" / "store"
    ingest(place, 1)
    for log in (place / "target_io" / "_delta_log").glob("*.json"):
        log.write_text("damaged\n", "utf-8")
    with serving(place, tmp_path / "state") as served:
        answer = served.get("/api/v1/utilization?filesystem=scratch")
        assert (answer.status_code, list(answer.json())) == (503, ["error"])
        block = served.get("/blocks/utilization?filesystem=scratch")
        assert (block.status_code, served.get("/filesystems/scratch").status_code) == (200, 200)
        for text in (answer.json()["error"], block.text.removeprefix('<p class="trouble">')):
            assert text.startswith("the store/target_io: cannot be opened")
            assert len(text.splitlines()) == 1
            assert "hidden-place" not in text


def test_alerts_are_checked_beside_it_and_trouble_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    place, state = tmp_path / "store", tmp_path / "state"
    monkeypatch.setenv("IOLENS_STATE", str(state))
    checks: list[int] = []
    check = alert_checks.check_alerts

    def counted(*given: object) -> object:
        checks.append(1)
        if len(checks) <= 3:
            raise OSError("no space")
        return check(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(alert_checks, "check_alerts", counted)
    ingest(place, 1)
    with serving(place, state, SideWork(Config(), state, alerts_every_s=0.05)) as served:
        eventually(lambda: served.get("/api/v1/alerts").json()["checked_at"] is not None)
        assert re.search(r"alerts? fires?, as of 20\d\d-", served.get("/blocks/alerts?show=words").text)
    said = [line for line in capfd.readouterr().err.splitlines() if "alerts" in line]
    assert said[0] == "iolens: alerts are not checked: no space; tried again in 0.05 s"
    assert re.fullmatch(r"alerts are checked again \(it lasted \d+ s, 3 times\)", said[1])
    assert len(said) == 2


def test_nothing_is_left_of_a_server(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    ingest(tmp_path / "store", 1)
    with serving(tmp_path / "store", tmp_path / "state") as served:
        served.get("/api/v1/capacity?filesystem=scratch")
        assert set(threading.enumerate()) - before
    eventually(lambda: not set(threading.enumerate()) - before)


def test_a_request_that_the_end_does_not_wait_for_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    asked, may_answer, answers = threading.Event(), threading.Event(), []

    def slow(*_: object) -> None:
        asked.set()
        assert may_answer.wait(PATIENCE_S)

    monkeypatch.setitem(QUESTIONS, "workload", replace(QUESTIONS["workload"], ask=slow))  # type: ignore[arg-type]
    ingest(tmp_path / "store", 1)
    with serving(tmp_path / "store", tmp_path / "state") as served:
        reader = threading.Thread(
            target=lambda: answers.append(served.get("/api/v1/workload", params={"filesystem": "scratch"}))
        )
        reader.start()
        assert asked.wait(PATIENCE_S)
    reader.join(PATIENCE_S)
    may_answer.set()
    (answer,) = answers
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert answer.json() == {"error": "The server is about to end."}
    assert "Traceback" not in capfd.readouterr().err
