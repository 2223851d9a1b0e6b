"""The comparison of answers: no command is forgotten, what is volatile is let be, a change is noticed."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import signal
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import compare_answers
import numpy as np
import pytest
from comparison import driver, product, server, sides, verbs, verdicts
from comparison.verdicts import Answer, MeantChange, Verdict, rules_of, verdict, verdicts_of
from comparison.visible_page import links_of, visible_page

import iolens.findings
from iolens.views.render.figures import Axis, Figure, LineMark, Panel
from iolens.web.questions import QUESTIONS

NOW = datetime(2026, 11, 19, 23, 59, 58, tzinfo=UTC)
VALUES = {"has_store": True, "filesystem": ["home", "scratch"], "middle": "2026-01-06T00:00:00Z", "job": "4711"}


@pytest.fixture(scope="module")
def known_verbs() -> list[verbs.Verb]:
    root = product.command_line()
    return verbs.verbs_of(root, click.Context(root, info_name="iolens"))


def test_every_command_is_asked_or_left_out_by_name(known_verbs: list[verbs.Verb]) -> None:
    verbs.check_known(known_verbs)
    names = {verb.name for verb in known_verbs}
    assert {"utilization", "store verify", "serve token list"} <= names
    assert {*verbs.ACTS, *verbs.ARGUMENTS, *verbs.WITHOUT_STORE} <= names, "these are no commands"


@pytest.mark.parametrize("made_up", [verbs.Verb("store burn", frozenset(), (), ()),
                                     verbs.Verb("inquire", frozenset({"--format"}), ("json",), ("WHAT",))])  # fmt: skip
def test_a_command_of_which_nothing_is_said_is_an_error(made_up: verbs.Verb) -> None:
    with pytest.raises(verbs.UnknownVerbError, match=made_up.name):
        verbs.check_known([made_up])


def test_every_parameter_of_the_api_has_a_value() -> None:
    names = {name for question in QUESTIONS.values() for name in question.known}
    assert names <= server.PARAMETERS.keys()


def test_the_names_of_the_package_are_where_they_are_looked_for() -> None:
    for name in product.PLACES:
        module, attribute = product.place(name)
        assert callable(getattr(module, attribute))


def test_a_verb_is_asked_of_each_file_system_and_of_the_first_in_all_of_its_formats(
    known_verbs: list[verbs.Verb],
) -> None:
    (verb,) = (verb for verb in known_verbs if verb.name == "latency")
    questions = list(verbs.questions_of(verb, VALUES, brief=False))
    assert [question.command for question in questions if question.is_main] == [
        "latency --store store --filesystem home"
    ]
    assert {"latency --store store", "latency --store store --filesystem scratch"} <= {q.command for q in questions}
    assert "latency --from 2026-01-06T00:00:00Z --store store --filesystem home" in [q.command for q in questions]
    assert not any("--target" in question.command for question in questions), "the store has no value for it"
    main = next(question for question in questions if question.is_main)
    endings = [name for name, *_ in driver.forms(main, brief=False)]
    assert endings == [*(f" --format {name}" for name in verb.formats), " (80 columns)", " --wide"]
    assert [name for name, *_ in driver.forms(questions[0], brief=False)] == [" --format json"]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (Answer("a"), Answer("a"), "equal"),
        (Answer("", "StoreError: no", 1), Answer("", "StoreError: no", 1), "same error"),
        (Answer("", "StoreError: no", 1), Answer("", "StoreError: none", 1), "differs"),
        (Answer("a", "", 0), Answer("a", "", 3), "differs"),
        (Answer('{"a": 1.0}'), Answer('{"a": 1.0000000000000002}'), "last digits"),
        (Answer('{"a": 1.0}'), Answer('{"a": 1.00001}'), "differs"),
        (Answer('{"a": 1}'), Answer('{"a": 1, "b": 2}'), "new keys"),
        (Answer('{"a": 1, "b": 2}'), Answer('{"a": 1}'), "differs"),
        (Answer('{"a": 1, "b": 2}'), Answer('{"b": 2, "a": 1}'), "differs"),
        (Answer('{"a": NaN}'), Answer('{"a": NaN, "b": 1}'), "new keys"),
        (Answer("mean\n0.30000000000000004"), Answer("mean\n0.3"), "last digits"),
        (Answer("mean\n3"), Answer("mean\n4"), "differs"),
        (Answer("FSU\n0.3"), Answer("util\n0.3"), "differs"),
        (Answer("a\nb"), Answer("a\nb\nc"), "differs"),
        (None, Answer("a"), "new"),
        (Answer("a"), None, "gone"),
        (Answer("", "no answer in 60 s"), Answer("", "no answer in 60 s"), "no answer"),
        (Answer("", "the process ended", -11), Answer("a"), "no answer"),
    ],
)
def test_verdicts(old: Answer | None, new: Answer | None, expected: str) -> None:
    assert verdict(old, new).kind == expected


def test_a_difference_is_shown_where_it_is() -> None:
    assert verdict(Answer("x\nmean FSU 3 %"), Answer("x\nmean FSU 4 %")).details == (
        "1 of 2 lines; line 2: mean FSU 3 % → mean FSU 4 %"
    )
    assert verdict(Answer('{"a": [{"b": 1}]}'), Answer('{"a": [{"b": 2}]}')).details == "1 of 1 values; a.0.b: 1 → 2"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("as_of: 2026-11-19T23:59:58Z", "as_of: 2026-11-20T00:00:01.25Z"),
        ("written: /tmp/x/old/demo/out/a", "written: /tmp/x/new/demo/out/a"),
        ("in /tmp/iolens-8sd7fs/part", "in /tmp/iolens-k2_d4a/part"),
        ('{"age_s": 27375741.7}', '{"age_s": 27375730.2}'),
        ("The log of the server has it as 0123abcd.", "The log of the server has it as fe98dc76."),
    ],
)
def test_what_is_volatile_is_let_be(old: str, new: str) -> None:
    rules = rules_of(NOW, datetime(2026, 11, 20, 0, 10, tzinfo=UTC))
    (_, verdict), *_ = verdicts_of({"a": Answer(old)}, {"a": Answer(new)}, rules)
    assert verdict.kind == "equal"


@pytest.mark.parametrize(
    ("old", "new"),
    [("end 2026-01-07T12:00:00Z", "end 2026-01-07T12:00:30Z"), ("OST0001", "OST0002"), ("took 3 s", "took 4 s")],
)
def test_what_is_not_volatile_is_reported(old: str, new: str) -> None:
    (_, verdict), *_ = verdicts_of({"a": Answer(old)}, {"a": Answer(new)}, rules_of(NOW, NOW))
    assert verdict.kind == "differs"


def test_a_meant_change_is_counted_apart_and_one_that_never_was_is_reported() -> None:
    meant = [MeantChange("*/verbs/latency *", "another mean"), MeantChange("*/verbs/drives *", "another wear")]
    tally = compare_answers.Tally(meant)
    assert tally.add("demo", "verbs/latency --format csv", Verdict("differs", "1 → 2")).kind == "meant"
    assert tally.bad == 0
    tally.add("demo", "verbs/capacity", Verdict("differs"))
    assert tally.bad == 1
    assert tally.lines() == [
        "verbs         2 answers: 1 meant, 1 differs",
        "meant         1 answers: */verbs/latency *: another mean",
        "meant        NO answers: */verbs/drives *: another wear",
    ]


def test_meant_changes_are_read_and_name_their_reason(tmp_path: Path) -> None:
    verdicts.meant_changes(compare_answers.MEANT)
    (tmp_path / "some.toml").write_text('[[meant]]\nnames = "*"\n', "utf-8")
    with pytest.raises(TypeError, match="reason"):
        verdicts.meant_changes(tmp_path / "some.toml")
    assert MeantChange("*/a --x [y]*", "").covers("demo/verbs/a --x [y] z")


def test_a_change_of_an_answer_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [])
    command = ["findings", "explain", "small-rpcs"]
    before = driver.run(command)
    assert before.error == ""
    rule = iolens.findings.get_rule("small-rpcs")
    monkeypatch.setattr(iolens.findings, "get_rule", lambda code: replace(rule, title="another title"))
    assert verdict_on(before, before).kind == "equal"
    assert verdict_on(before, driver.run(command)).kind == "differs"


def verdict_on(old: driver.Outcome, new: driver.Outcome) -> Verdict:
    return verdict(*(Answer(outcome.text, outcome.error, outcome.code) for outcome in (old, new)))


def test_an_error_is_an_answer_with_its_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [])
    outcome = driver.run(["findings", "explain", "small-rcps"])
    assert outcome.error.startswith("UsageError: no finding is called 'small-rcps'")
    assert (outcome.text, outcome.code) == ("", 1)


def test_files_that_a_command_writes_are_part_of_its_answer(tmp_path: Path) -> None:
    page = tmp_path / "a.html"
    page.write_text("<p>Load <b>3 %</b></p>", "utf-8")
    assert driver.file_text(page) == "Load 3 %"


def test_an_answer_that_takes_too_long_is_given_up() -> None:
    def wait() -> driver.Outcome:
        signal.pause()
        return driver.Outcome("done")

    assert driver.limited(wait, 0.01).error == "no answer in 0.01 s"


def test_a_process_that_dies_loses_one_answer_and_the_others_are_kept(tmp_path: Path) -> None:
    lines = [
        {"begin": "a"}, {"digest": "1", "text": "words"},
        {"name": "a", "is": "1", "error": "", "code": 0, "seconds": 1},
        {"begin": "b"}, {"name": "b", "is": "1", "error": "", "code": 0, "seconds": 1}, {"begin": "c"},
    ]  # fmt: skip
    process: Any = SimpleNamespace(stdout=[json.dumps(line) + "\n" for line in lines])
    answers = sides.Answers(tmp_path / "answers")
    sides.read(process, answers, 60)
    assert answers.pending == "c"
    assert answers.known == {"a": Answer("words"), "b": Answer("words")}
    with answers.file.open("a") as stream:
        stream.write('{"name": "c", "is')
    again = sides.Answers(answers.file)
    assert (again.known, again.pending) == (answers.known, "")


def test_a_text_is_sent_once_and_what_was_answered_is_not_asked_again() -> None:
    stream, asked = io.StringIO(), list[str]()

    def work() -> driver.Outcome:
        asked.append("work")
        return driver.Outcome("words")

    session = driver.Session({"values": {}, "done": ["a"], "seconds": 60}, stream)
    for name in ("a", "b", "c"):
        session.ask(name, work)
    assert len(asked) == 2
    assert [line.get("text") or line.get("name") for line in map(json.loads, stream.getvalue().splitlines())] == [
        None, "words", "b", None, "c",
    ]  # fmt: skip


FIGURE = Figure("load", "Load", (Panel("FSU", Axis("time", "time"), Axis("FSU (%)")),))


def test_a_figure_is_described_with_its_class_its_texts_and_its_numbers() -> None:
    line = LineMark(x=np.array([0.1, np.nan]), y=np.array([1, 2]), label="OST", colour="#111111")
    described = json.loads(product.described(replace(FIGURE, panels=(replace(FIGURE.panels[0], marks=(line,)),))))
    assert described["panels"][0]["marks"][0] == {
        "is": "LineMark", "x": [0.1, "nan"], "y": [1, 2], "label": "OST", "colour": "#111111", "side": "left",
        "weight": 1.0, "zoom": None,
    }  # fmt: skip
    other = product.described(replace(FIGURE, title="Loads"))
    assert verdict(Answer(product.described(FIGURE)), Answer(other)).kind == "differs"


def test_a_page_is_what_its_reader_sees() -> None:
    picture = base64.b64encode(product.PICTURE + b'{"is": "Figure"}').decode()
    page = f"""<head><style>p {{}}</style><script>draw()</script></head><p class="warning">Little <b>data</b>.</p>
    <table><tr><th>OST</th><td>3 %</td></tr></table><img alt="Load" src="data:image/svg+xml;base64,{picture}">
    <script type="application/json">{{"a": 1}}</script><section data-block="/blocks/load?a=1&amp;b=2"></section>
    <a href="/jobs/1">1</a><a href="https://example.org">there</a>"""
    assert visible_page(page).split("\n") == [
        "[class=warning] Little data .", "| OST | 3 %", '[src=figure {"is": "Figure"}] [alt=Load]', '{"a": 1}',
        "[data-block=/blocks/load?a=1&b=2]", "[href=/jobs/1] 1 [href=https://example.org] there",
    ]  # fmt: skip
    assert links_of(page) == ["/blocks/load?a=1&b=2", "/jobs/1"]


FILESYSTEM, BY_NAME = ({"name": name, "required": name == "figure"} for name in ("filesystem", "figure"))
DESCRIBED = {"paths": {
    "/api/v1/load": {"get": {"parameters": [FILESYSTEM, {"name": "top", "required": False}]}},
    "/api/v1/load/figures/{figure}": {"get": {"parameters": [BY_NAME]}},
    "/api/v1/silences": {"post": {}},
}}  # fmt: skip


async def small_server(scope: Mapping[str, Any], receive: Any, send: Any) -> None:
    """Pages for the operator, the API for whoever has a token."""
    if scope["type"] == "lifespan":
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        return
    token = dict(scope["headers"]).get(b"authorization", b"").decode().removeprefix("Bearer ")
    is_seen = scope["path"] == server.HEALTH or token == "o" or (token and scope["path"].startswith("/api/"))
    kind = "application/json" if scope["path"].startswith("/api/") else "text/html"
    body = {"/": '<a href="/jobs/1">1</a><a href="/jobs/2">2</a><a href="/jobs/3">3</a>'}.get(scope["path"], "{}")
    body = json.dumps(DESCRIBED) if scope["path"] == server.OPENAPI else body
    body = '{"error": "no figure; there are: busy, sizes"}' if scope["path"].endswith("/none") else body
    headers = [(b"Content-Type", kind.encode()), (b"Date", b"now")]
    await send({"type": "http.response.start", "status": 200 if is_seen else 403, "headers": headers})
    await send({"type": "http.response.body", "body": body.encode() if is_seen else b"no"})


def test_every_url_is_asked_for_every_role() -> None:
    stream = io.StringIO()
    request = {"values": VALUES, "done": [], "seconds": 60, "only": [], "families": ["server"], "brief": False}
    session = driver.Session(request, stream)
    asyncio.run(server.walk(session, small_server, {"nobody": "", "operator": "o", "agent": "a"}))
    lines = list(map(json.loads, stream.getvalue().splitlines()))
    codes = {line["name"].removeprefix("server/"): line["code"] for line in lines if "name" in line}
    urls = {name.partition(" GET ")[2] for name in codes}
    assert {name for name in codes if name.startswith("agent ")} == {f"agent GET {url}" for url in urls}
    assert {"/", "/jobs/1", "/api/v1/load?filesystem=home", "/api/v1/load?filesystem=home&top=3"} <= urls
    assert {"/api/v1/load/figures/busy.svg", "/api/v1/load/figures/sizes.svg"} <= urls
    assert "/jobs/3" not in urls, "it differs from three others in its name only"
    assert [codes[f"{role} GET /jobs/2"] for role in ("nobody", "operator", "agent")] == [403, 200, 403]
    texts = {line["digest"]: line["text"] for line in lines if "digest" in line}
    (shown,) = {texts[line["is"]] for line in lines if line.get("name") == "server/nobody GET /"}
    assert shown == "403\ncontent-type: text/html\n\nno"
