"""Answers: asked once at a time, remembered while they hold, a little old while the store changes, gone with it."""

from __future__ import annotations

import asyncio
import gc
import shutil
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest
from fastapi import Request

from iolens.api import OpenStore
from iolens.errors import StoreError
from iolens.questions.asking import Ask
from iolens.store.duckdb_engine import connection
from iolens.store.scope import Scope
from iolens.web import answers as answers_module
from iolens.web.answers import (
    MOST_ANSWERS,
    MOST_FORMS,
    Answers,
    NobodyWaitsError,
    StoredAnswer,
    TooManyInquiriesError,
)
from iolens.web.api_routes import while_waited_for
from iolens.web.inquiry import Inquiry
from iolens.web.questions import QUESTIONS, ServedQuestion
from iolens.web.replies import error_reply
from tests.web.hourly_rows import FIRST, ingest, last_batch
from tests.web.inquiries import AFTERNOON, SCRATCH

PATIENCE_S = 60.0
Result = TypeVar("Result")


@pytest.fixture(scope="module")
def tiny_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("tiny") / "store"
    ingest(place, 1)
    return place


@dataclass
class Counted:
    """A question that counts how often it is asked, and answers when it may."""

    asked: int = 0
    may_answer: threading.Event = field(default_factory=threading.Event)
    error: Exception | None = None

    def ask(self, ask: Ask, options: dict[str, Any]) -> int:
        self.asked += 1
        assert self.may_answer.wait(PATIENCE_S)
        if self.error is not None:
            raise self.error
        return self.asked


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    """Also as the question `state`, which holds for two seconds."""
    made = Counted()
    made.may_answer.set()
    question = ServedQuestion("counted", "Counted", (), made.ask, QUESTIONS["jobs"].parameters, about="runs")
    monkeypatch.setitem(QUESTIONS, "counted", question)  # type: ignore[arg-type]
    monkeypatch.setitem(QUESTIONS, "state", replace(question, name="state", lasts_s=2.0))  # type: ignore[arg-type]
    return made


def asked(number: int = 0, name: str = "counted") -> Inquiry:
    return Inquiry.of(name, {"skip": str(number)})


def run(place: Path, work: Callable[[Answers], Awaitable[Result]], threads: int = 3) -> Result:
    """Some work with answers, which are closed afterwards; a task that failed unheard is an error."""

    async def main() -> Result:
        unheard: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: unheard.append(context))
        answers = Answers(lambda: OpenStore(str(place), workers=1), threads)
        try:
            result = await asyncio.wait_for(work(answers), PATIENCE_S)
        finally:
            answers.close()
        gc.collect()
        await asyncio.sleep(0)
        assert unheard == []
        return result

    return asyncio.run(main())


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        await asyncio.sleep(0.01)


def test_what_many_ask_at_once_is_asked_once(tiny_store: Path, counted: Counted) -> None:
    counted.may_answer.clear()

    async def work(answers: Answers) -> list[StoredAnswer]:
        readers = [asyncio.create_task(answers.ask(asked())) for _ in range(30)]
        await until(lambda: counted.asked > 0)
        readers[0].cancel()  # one goes away: the others still get it
        counted.may_answer.set()
        return await asyncio.gather(*readers[1:])

    given = run(tiny_store, work)
    assert counted.asked == 1
    assert {id(answer) for answer in given} == {id(given[0])}


def test_an_answer_holds_while_the_store_is_unchanged(tiny_store: Path, counted: Counted) -> None:
    async def work(answers: Answers) -> None:
        first = await answers.ask(asked())
        first.asked_at -= 1e6
        assert await answers.ask(asked()) is first
        assert (await answers.ask(asked(1))).result == 2

    run(tiny_store, work)
    assert counted.asked == 2


def test_a_little_old_is_given_at_once_and_made_anew_behind(tiny_store: Path, counted: Counted) -> None:
    async def work(answers: Answers) -> None:
        first = await answers.ask(asked())
        answers.touch()
        counted.may_answer.clear()
        first.asked_at -= 300.0
        assert (await asyncio.gather(*(answers.ask(asked()) for _ in range(5)))) == [first] * 5
        await until(lambda: counted.asked == 2)  # once for all of them
        assert await answers.ask(asked()) is first  # while it is being made
        news = answers.news
        counted.may_answer.set()
        await until(lambda: answers.news > news)  # readers who were given the old one hear of it
        renewed = await answers.ask(asked())
        assert (renewed.result, renewed.version) == (2, answers.version)

    run(tiny_store, work)


def test_too_old_is_waited_for(tiny_store: Path, counted: Counted) -> None:
    async def work(answers: Answers) -> None:
        first = await answers.ask(asked())
        answers.touch()
        first.asked_at -= first.stale_s
        assert (await answers.ask(asked())).result == 2

    run(tiny_store, work)


@pytest.mark.parametrize(
    ("length", "most_s"),
    [(timedelta(hours=1), 30.0), (timedelta(days=1), 86.4), (timedelta(days=365), 600.0), (None, 600.0)],
)
def test_how_old_an_answer_may_be_while_the_store_changes(
    tiny_store: Path, counted: Counted, length: timedelta | None, most_s: float
) -> None:
    async def work(answers: Answers) -> float:
        answer = await answers.ask(asked())
        scope = Scope(None, FIRST, FIRST + length) if length is not None else Scope(None, FIRST)
        return replace(answer, scope=scope).stale_s

    assert run(tiny_store, work) == pytest.approx(most_s)


def test_what_changes_beside_the_store_holds_for_seconds_and_is_asked_when_it_is_changed_here(
    tiny_store: Path, counted: Counted
) -> None:
    async def work(answers: Answers) -> None:
        first = await answers.ask(asked(name="state"))
        assert first.stale_s == 2.0
        assert await answers.ask(asked(name="state")) is first
        first.asked_at -= 2.0
        second = await answers.ask(asked(name="state"))
        assert second.result == 2
        answers.touch()  # a silence was added: who did it wants to see it
        assert (await answers.ask(asked(name="state"))).result == 3

    run(tiny_store, work)


def test_the_oldest_answers_are_forgotten(tiny_store: Path, counted: Counted) -> None:
    async def work(answers: Answers) -> None:
        for number in range(MOST_ANSWERS):
            await answers.ask(asked(number))
        await answers.ask(asked(0))  # it was just read
        await answers.ask(asked(MOST_ANSWERS))
        assert counted.asked == MOST_ANSWERS + 1
        await answers.ask(asked(0))
        assert counted.asked == MOST_ANSWERS + 1
        await answers.ask(asked(1))
        assert counted.asked == MOST_ANSWERS + 2

    run(tiny_store, work)


def test_forms_of_an_answer_are_made_once_and_bounded(tiny_store: Path, counted: Counted) -> None:
    made: list[str] = []

    async def work(answers: Answers) -> None:
        answer = await answers.ask(asked())
        for _ in range(2):
            assert answer.form("csv", lambda given: made.append("csv") or given.result) == 1  # type: ignore[func-returns-value]
        assert answer.known_form("json") is None
        for number in range(3 * MOST_FORMS):
            answer.form(str(number), lambda _: None)
        assert len(answer._forms) <= MOST_FORMS

    run(tiny_store, work)
    assert made == ["csv"]


def test_more_than_can_be_answered_is_refused(
    tiny_store: Path, counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers_module, "MOST_WAITING", 4)
    counted.may_answer.clear()

    async def work(answers: Answers) -> None:
        readers = [asyncio.create_task(answers.ask(asked(number))) for number in range(4)]
        await until(lambda: counted.asked == 3)  # by the threads there are
        with pytest.raises(TooManyInquiriesError) as error:
            await answers.ask(asked(4))
        reply = error_reply(error.value, "nowhere")
        assert (reply.status_code, reply.headers["retry-after"]) == (503, "5")
        waiting = asyncio.create_task(answers.ask(asked(3)))  # what is asked already is not asked again
        counted.may_answer.set()
        await asyncio.gather(*readers, waiting)
        await answers.ask(asked(4))

    run(tiny_store, work)


def test_an_error_is_not_remembered(tiny_store: Path, counted: Counted) -> None:
    async def work(answers: Answers) -> None:
        counted.error = StoreError("for a while")
        readers = [asyncio.create_task(answers.ask(asked())) for _ in range(3)]
        heard = await asyncio.gather(*readers, return_exceptions=True)
        assert [str(error) for error in heard] == ["for a while"] * 3
        counted.error = None
        first = await answers.ask(asked())
        counted.error = StoreError("while it is made anew")
        answers.touch()
        first.asked_at -= 500.0
        assert await answers.ask(asked()) is first
        await until(lambda: not answers._renewals)
        assert await answers.ask(asked()) is first  # it is old, but it is an answer
        first.asked_at -= 500.0
        with pytest.raises(StoreError, match="while it is made anew"):
            await answers.ask(asked())

    run(tiny_store, work)


def test_threads_have_connections_of_their_own_and_answer_as_if_alone(small_store: Path) -> None:
    questions = [
        Inquiry.of("utilization", AFTERNOON),
        Inquiry.of("metadata", AFTERNOON),
        Inquiry.of("imbalance", AFTERNOON),
        Inquiry.of("capacity", SCRATCH),
        Inquiry.of("contents", SCRATCH),
        Inquiry.of("drives", SCRATCH),
    ]
    with OpenStore(str(small_store), workers=1, fresh=True) as opened:
        asked = [(inquiry, Ask(lambda: opened, inquiry.scope(opened))) for inquiry in questions]
        alone = [inquiry.question.ask(ask, inquiry.options()) for inquiry, ask in asked]
    all_there = threading.Barrier(3)

    def own_connection(_: OpenStore) -> int:
        all_there.wait(PATIENCE_S)
        return id(connection())

    async def work(answers: Answers) -> None:
        together = await asyncio.gather(*(answers.ask(inquiry) for inquiry in questions))
        assert [answer.result for answer in together] == alone
        assert len(set(await asyncio.gather(*(answers.run(own_connection) for _ in range(3))))) == 3

    run(small_store, work)


@pytest.fixture
def watching(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers_module, "LOOK_EVERY_S", 0.02)


@pytest.mark.usefixtures("watching")
def test_a_commit_is_noticed(tmp_path: Path, counted: Counted) -> None:
    place = tmp_path / "store"
    ingest(place, 1)

    async def work(answers: Answers) -> None:
        watch = asyncio.create_task(answers.watch())
        await until(lambda: answers.version[0] == last_batch(place))
        assert await answers.filesystems() == ["scratch"]
        before, changed = answers.version, answers.changed
        await asyncio.to_thread(ingest, place, 2)
        await changed.wait()
        assert answers.version > before
        watch.cancel()

    run(place, work)


@pytest.mark.usefixtures("watching")
def test_a_store_that_comes_and_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it was is forgotten with it: another one may come back with as many batches."""
    looks, version_of = [], answers_module._version

    def noted(opened: OpenStore) -> int:
        looks.append(opened)
        return version_of(opened)

    monkeypatch.setattr(answers_module, "_version", noted)
    place, away = tmp_path / "store", tmp_path / "away"
    inquiry = Inquiry.of("capacity", {"filesystem": "scratch"})

    async def work(answers: Answers) -> None:
        watch = asyncio.create_task(answers.watch())
        assert await answers.filesystems() == []
        with pytest.raises(StoreError, match="holds no data yet: there is no such directory"):
            await answers.ask(inquiry)
        await asyncio.to_thread(ingest, place, 1)
        await until(lambda: answers.version[0] == last_batch(place))
        assert await answers.filesystems() == ["scratch"]
        first = await answers.ask(inquiry)
        shutil.move(place, away)
        await until(lambda: answers.version == (-1, 0))
        assert await answers.filesystems() == []
        with pytest.raises(StoreError, match="holds no data yet"):
            await answers.ask(inquiry)
        (place / "batches" / "_delta_log").mkdir(parents=True)
        (place / "batches" / "_delta_log" / f"{0:020}.json").write_text("damaged\n", "utf-8")
        looks.clear()
        await until(lambda: len(looks) > 2)  # the watch goes on, whatever it finds
        shutil.rmtree(place)
        shutil.move(away, place)
        await until(lambda: answers.version[0] == last_batch(place))
        assert answers.version == first.version
        assert await answers.ask(inquiry) is not first
        assert not watch.done()
        watch.cancel()

    run(place, work)


def test_closing_leaves_no_thread(tiny_store: Path, counted: Counted) -> None:
    before = set(threading.enumerate())

    async def work(answers: Answers) -> None:
        watch = asyncio.create_task(answers.watch())
        await answers.warm_up()
        await asyncio.gather(*(answers.ask(asked(number)) for number in range(9)))
        assert {thread.name[:3] for thread in set(threading.enumerate()) - before} >= {"ask", "wat"}
        watch.cancel()

    run(tiny_store, work)
    for thread in ours(before):
        thread.join(PATIENCE_S)
    assert list(ours(before)) == []


def ours(before: set[threading.Thread]) -> Iterator[threading.Thread]:
    return (thread for thread in set(threading.enumerate()) - before if thread.name.startswith(("ask", "watch")))


def test_120_questions_of_one_reader_keep_no_other_waiting(
    tiny_store: Path, counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None of the 120 has an answer while the operator gets two, one of them a question that the 120 ask too."""
    counted.may_answer.clear()
    free = replace(QUESTIONS["jobs"], name="free", ask=lambda ask, options: "free")
    monkeypatch.setitem(QUESTIONS, "free", free)  # type: ignore[arg-type]

    async def work(answers: Answers) -> None:
        attack = [asyncio.create_task(answers.ask(asked(number), "evil")) for number in range(119)]
        attack.append(asyncio.create_task(answers.ask(Inquiry.of("free", {"top": "1"}), "evil")))
        await until(lambda: counted.asked == 2)
        assert (await answers.ask(Inquiry.of("free", {}), "operator")).result == "free"
        assert (await answers.ask(Inquiry.of("free", {"top": "1"}), "operator")).result == "free"
        assert await answers.run_beside(lambda _: "alerts are checked") == "alerts are checked"
        assert counted.asked == 2
        assert sum(task.done() for task in attack) == 1  # the one that the operator's turn has answered
        for task in attack:
            task.cancel()
        await asyncio.gather(*attack, return_exceptions=True)
        assert answers.turns.state().waiting == 0
        assert answers._asking == {}
        counted.may_answer.set()
        await until(lambda: answers.turns.state().running == 0)
        assert counted.asked == 2  # the others were never asked

    run(tiny_store, work)


def test_more_than_one_reader_may_have_waiting_is_refused(
    tiny_store: Path, counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers_module, "MOST_WAITING_EACH", 3)
    counted.may_answer.clear()

    async def work(answers: Answers) -> None:
        attack = [asyncio.create_task(answers.ask(asked(number), "evil")) for number in range(5)]
        await until(lambda: counted.asked == 2)
        with pytest.raises(TooManyInquiriesError):
            await answers.ask(asked(5), "evil")
        other = asyncio.create_task(answers.ask(asked(5), "operator"))
        await until(lambda: counted.asked == 3)
        counted.may_answer.set()
        await asyncio.gather(other, *attack)

    run(tiny_store, work)


def test_a_question_that_nobody_waits_for_ends_at_its_next_statement(
    tiny_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[str] = []
    begun, may_go_on = threading.Event(), threading.Event()

    def ask(ask: Ask, options: dict[str, Any]) -> None:
        begun.set()
        assert may_go_on.wait(PATIENCE_S)
        try:
            connection().execute("SELECT 1")
        except BaseException as error:
            ended.append(type(error).__name__)
            raise

    monkeypatch.setitem(QUESTIONS, "slow", replace(QUESTIONS["jobs"], name="slow", ask=ask))  # type: ignore[arg-type]

    async def work(answers: Answers) -> None:
        reader = asyncio.create_task(answers.ask(Inquiry.of("slow", {}), "ada"))
        await asyncio.to_thread(begun.wait, PATIENCE_S)
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)
        may_go_on.set()
        await until(lambda: answers.turns.state().running == 0)
        assert ended == ["NotWantedError"]
        assert await answers.run(lambda _: connection().execute("SELECT 1").fetchall(), "ada") == [(1,)]

    run(tiny_store, work)


def test_who_has_gone_is_not_waited_for() -> None:
    gone = asyncio.Event()

    async def receive() -> dict[str, Any]:
        await gone.wait()
        return {"type": "http.disconnect"}

    async def main() -> None:
        request = Request({"type": "http", "headers": []}, receive)
        work = asyncio.Event()
        waiting = asyncio.create_task(while_waited_for(request, _cancelled(work)))
        await asyncio.sleep(0)
        gone.set()
        with pytest.raises(NobodyWaitsError):
            await waiting
        await work.wait()

    async def _cancelled(noted: asyncio.Event) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            noted.set()

    asyncio.run(main())
