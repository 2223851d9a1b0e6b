"""Messages: which are shown, how a line looks, and that a trouble which lasts is said once and counted."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolens import messages
from iolens.messages import DEBUG, ERROR, INFO, NOTICE, WARNING, Message, TroubleLog, cause, kind_of


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    messages.set_level()
    messages.set_log(False)


@dataclass
class Log:
    """A log, and the clock of who writes it."""

    lines: list[tuple[int, str]] = field(default_factory=list)
    now: float = 0.0

    def troubles(self) -> TroubleLog:
        return TroubleLog(self.take, lambda: self.now)

    def take(self, line: str) -> None:
        assert isinstance(line, Message)
        self.lines.append((line.level, str(line)))


@pytest.mark.parametrize(
    ("level", "shown"),
    [(WARNING, "ew"), (NOTICE, "ewn"), (INFO, "ewni"), (DEBUG, "ewnid")],
)
def test_a_level_shows_what_is_at_least_as_grave(level: int, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    messages.set_level(level)
    for word, grade in zip("ewnid", (ERROR, WARNING, NOTICE, INFO, DEBUG), strict=True):
        messages.say(Message(word, grade))
    assert "".join(line.removeprefix("iolens: ") for line in capsys.readouterr().err.splitlines()) == shown


def test_a_log_has_time_and_level_and_one_line_for_each_message(capsys: pytest.CaptureFixture[str]) -> None:
    messages.set_log(True)
    messages.warn("a name\nwith \x1b[31m in it")
    said = capsys.readouterr().err
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ warning: a name\\nwith \\x1b\[31m in it\n", said)


def test_the_journal_gets_the_level_as_a_prefix_and_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading) as log, os.fdopen(writing, "w") as stream:
        status = os.fstat(stream.fileno())
        monkeypatch.setattr(sys, "stderr", stream)
        messages.set_log(True)
        monkeypatch.setenv("JOURNAL_STREAM", f"{status.st_dev}:{status.st_ino}")
        messages.say(Message("a sample is lost", ERROR))
        assert log.readline() == "<3>a sample is lost\n"
        monkeypatch.setenv("JOURNAL_STREAM", f"{status.st_dev}:{status.st_ino + 1}")  # of a parent, not of this stream
        messages.say(Message("a sample is lost", ERROR))
        assert log.readline().endswith("Z error: a sample is lost\n")


def test_the_cause_is_one_line_with_begin_and_end() -> None:
    text = "s3://x: cannot be opened:\n" + "Generic error " * 60 + "Connection refused (os error 111)"
    assert len(cause(text)) <= messages.LONGEST_CAUSE
    assert cause(text).startswith("s3://x: cannot be opened: Generic error")
    assert cause(text).endswith("Connection refused (os error 111)")


def test_a_trouble_that_lasts_is_said_once_then_counted_each_hour_and_its_end_is_said() -> None:
    log = Log()
    troubles = log.troubles()
    for second in range(0, 3 * 3600, 15):
        log.now = second
        troubles.tell("store", f"not shipped after {second} s: refused")
    troubles.over("store", "shipped again")
    troubles.over("store", "shipped again")
    assert log.lines == [
        (WARNING, "not shipped after 0 s: refused"),
        (WARNING, "not shipped after 3600 s: refused (again 240 times in the last hour)"),
        (WARNING, "not shipped after 7200 s: refused (again 240 times in the last hour)"),
        (NOTICE, "shipped again (it lasted 3 h, 720 times)"),
    ]


def test_another_trouble_in_the_same_place_is_news() -> None:
    log = Log()
    troubles = log.troubles()
    for text in ("refused", "refused", "not allowed", "not allowed"):
        troubles.tell("store", text)
    assert [text for _, text in log.lines] == ["refused", "not allowed"]


def test_a_trouble_that_comes_and_goes_fills_no_log() -> None:
    log = Log()
    troubles = log.troubles()
    for tick in range(720):  # every 5 s for an hour
        log.now = tick * 5.0
        if tick % 2:
            troubles.over("file", "read again")
        else:
            troubles.tell("file", "not read")
    assert log.lines[:2] == [(WARNING, "not read"), (NOTICE, "read again (it lasted 5 s, once)")]
    assert len(log.lines) <= 2 * 7
    assert log.lines[2][1].startswith("not read (again 61 times in the last 10 min)")


def test_texts_that_differ_in_numbers_only_are_of_one_kind() -> None:
    assert kind_of("GET x in 2.08s, request 7F3A") == kind_of("GET x in 13.5s, request 88B1") == "GET x in # request #"
    assert len(kind_of("x" * 10_000_000)) <= messages.LONGEST_KIND


def test_what_was_no_trouble_does_not_end() -> None:
    log = Log()
    log.troubles().over("store", "shipped again")
    assert log.lines == []


@given(st.lists(st.tuples(st.floats(0.1, 900), st.booleans()), max_size=300))
def test_every_occurrence_is_in_the_log_or_counted_in_it(steps: list[tuple[float, bool]]) -> None:
    log = Log()
    troubles = log.troubles()
    counted = 0
    for seconds, is_bad in [*steps, (4000.0, True)]:
        log.now += seconds
        if is_bad:
            counted += 1
            troubles.tell("x", "refused")
        else:
            troubles.over("x", "accepted")
    counts = [re.search(r"again (once|[\d,]+ times)", text) for level, text in log.lines if level == WARNING]
    said = sum(1 if count is None else {"once": 1}.get(count[1]) or int(count[1].split()[0]) for count in counts)
    assert said == counted
    assert len(log.lines) <= 2 * (1 + log.now / messages.BEGUN_AGAIN_S)


def test_troubles_of_ever_new_places_take_bounded_memory() -> None:
    log = Log()
    troubles = log.troubles()
    for number in range(2 * messages.MOST_TROUBLES):
        troubles.tell(number, "refused")
    assert len(troubles.going_on()) == messages.MOST_TROUBLES
