"""A question is one declaration: how values are read, what its options are called, and what is made of all of them."""

from __future__ import annotations

import inspect
import math
import shlex
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from click.testing import CliRunner

from iolens import question as declared_in
from iolens.cli.main import iolens as command_line
from iolens.cli.value_types import click_type, sizes_type
from iolens.errors import UsageError
from iolens.question import (
    BYTES,
    CAPACITY,
    DAY,
    DURATION,
    FILE,
    LARGEST_COUNT,
    MOST_LISTED,
    RATE,
    SWITCH,
    TIME,
    TIMES,
    TOP,
    WORDS,
    ZONE,
    Gathered,
    Kind,
    Option,
    Question,
    choice,
    number,
    several,
    whole,
)
from iolens.questions import all_questions, declarations, get_question
from iolens.questions.shared import LIKE_JOBS, LIKE_RUNS, NUMBERS
from iolens.web.questions import SHARED

QUESTIONS = all_questions()
each_question = pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.words)
BERLIN = "Europe/Berlin"
HEAVY = ("numpy", "duckdb", "narwhals", "pyarrow", "pandas", "matplotlib", "click", "iolens.analyses", "iolens.store")


# Kinds ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (choice("job", "user"), "user", "user"),
        (SWITCH, "1", True), (SWITCH, "0", False),
        (whole(1), "1", 1), (whole(0), str(LARGEST_COUNT), LARGEST_COUNT), (whole(2, 5), "5", 5),
        (number(0), "0", 0.0), (number(0, 100, above=True), "100", 100.0), (number(), "-1e9", -1e9),
        (RATE, "35GB/s", 35e9), (BYTES, "4KiB", 4096), (CAPACITY, "30PB", 30 * 10**15), (DURATION, "1h", 3600.0),
        (WORDS, "a, b,,c", ("a", "b", "c")), (WORDS, "", ()), (NUMBERS, "64,128", (64, 128)), (NUMBERS, "", ()),
        (several(number()), "80, 99.5", (80.0, 99.5)), (several(RATE), "1MB/s,2MB/s", (1e6, 2e6)),
        (TIME, "2026-07-06T15:00", datetime(2026, 7, 6, 15, tzinfo=UTC)),
        (TIMES, "2026-07-06,2026-07-06T02:00+02:00", 2 * (datetime(2026, 7, 6, tzinfo=UTC),)),
        (DAY, "2026-07-06T23:00Z", date(2026, 7, 6)),
        (FILE, "sizes.csv", Path("sizes.csv")),
        (ZONE, BERLIN, BERLIN),
    ],
)  # fmt: skip
def test_text_is_read_as_its_kind(kind: Kind, text: str, value: Any) -> None:
    assert kind.read(text, None) == value
    if kind is not SWITCH:  # the command line has it or not
        assert click_type(kind).convert(text, None, None) == value


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        (choice("job", "user"), ("", "jobs", "JOB", "job,user")),
        (SWITCH, ("", "yes", "true", "2", "²")),
        (whole(1, 1000), ("", "0", "1001", "-1", "1.0", "1e1", "nan", "inf")),
        (number(0, 0.5, above=True), ("", "0", "0.51", "-1", "nan", "inf", "-inf", "1e400", "²", "1h")),
        (number(), ("nan", "NaN", "inf", "-inf", "1e400", "²", "", "9" * 400)),
        *((kind, ("", "nan", "nans", "nanGB/s", "infB", "-1", "²", "much", "9" * 5000)) for kind in (RATE, BYTES)),
        (CAPACITY, ("", "nanTB", "infTB", "²")),
        (DURATION, ("", "nan", "nans", "infs", "1e400s", "-1h", "²h")),
        (NUMBERS, ("nan", "-1", "²", "1.5", "a", "9" * 5000)),
        (several(number()), ("", "1,", "1,nan", "inf")),
        (several(RATE), ("", ",", "1MB/s,nan")),
        (TIME, ("", "noon", "nan", "2026-13-01", "99999-01-01", "²")),
        (TIMES, ("", "2026-01-05,", "2026-01-05,noon")),
        (DAY, ("", "tuesday")),
        (ZONE, ("Mars", "../../etc/passwd", "/etc/passwd")),
    ],
)  # fmt: skip
def test_what_is_no_value_is_refused_at_every_door(kind: Kind, texts: tuple[str, ...]) -> None:
    option = Option("some", "Some", kind)
    for text in texts:
        with pytest.raises(ValueError, match=r"\S"):
            kind.read(text, None)
        with pytest.raises(ValueError, match=r"\S"):
            option.at_a_url(text)
        with pytest.raises(UsageError, match=r"^some: "):
            option.in_python(text)
        if kind is not SWITCH:
            with pytest.raises(click.UsageError):
                click_type(kind).convert(text, None, None)


@pytest.mark.parametrize("text", ["²", "٣", "１", "1_0", " 1", "+1", "9" * 10, "9" * 5000])
def test_a_whole_number_is_plain(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a whole number from 1 to 100,000,000"):
        whole(1).read(text, None)


@pytest.mark.parametrize("value", [math.nan, math.inf, 0, -3, 1e9])
def test_numbers_in_python_have_the_bounds_of_their_text(value: float) -> None:
    with pytest.raises(UsageError, match=r"^some: "):
        Option("some", "Some", whole(1)).in_python(value)
    if value != 1e9:
        with pytest.raises(UsageError, match=r"^some: "):
            Option("some", "Some", number(0, above=True)).in_python(value)
        with pytest.raises(UsageError, match=r"^some: "):
            Option("some", "Some", several(whole(1))).in_python([5, value])


def test_times_without_a_zone_are_those_of_the_zone() -> None:
    there, here = datetime(2026, 7, 5, 22, tzinfo=UTC), datetime(2026, 7, 6, tzinfo=UTC)
    in_berlin = timezone(timedelta(hours=2))
    for kind, text in ((TIME, "2026-07-06"), (TIMES, "2026-07-06,2026-07-06")):
        option = Option("at", "When", kind)
        times = (there, there) if kind is TIMES else there
        assert option.at_a_url(text, BERLIN) == option.in_python(text, BERLIN) == times
        assert option.at_a_url(text) == option.in_python(text) == ((here, here) if kind is TIMES else here)
    assert Option("at", "When", TIMES).in_python(["2026-07-06", here.replace(tzinfo=None)], BERLIN) == (there, there)
    assert Option("at", "When", TIME).in_python(datetime(2026, 7, 6, tzinfo=in_berlin), "Asia/Tokyo") == there
    assert Option("day", "Which", DAY).in_python("2026-07-06T23:00Z", BERLIN) == date(2026, 7, 7)


def test_a_list_of_sizes_has_each_once_and_whole_sectors() -> None:
    assert sizes_type().convert("1MiB,4KiB,1MiB", None, None) == (1 << 20, 4096)
    assert sizes_type(512).convert("4KiB", None, None) == (4096,)
    for kind, text in ((sizes_type(), ""), (sizes_type(), "0"), (sizes_type(512), "4KiB,100B")):
        with pytest.raises(click.UsageError, match=r"sizes are .*such as 4KiB,64KiB,1MiB"):
            kind.convert(text, None, None)


# Options --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "names"),
    [
        (Option("min_bytes", ""), ("min_bytes", "--min-bytes", "min_bytes")),
        (Option("threshold_pct", "", flag="--threshold"), ("threshold_pct", "--threshold", "threshold")),
        (Option("at_most_bytes", "", flag="--at-most"), ("at_most_bytes", "--at-most", "at_most")),
        (Option("run", "", is_argument=True, in_url="id"), ("run", "--run", "id")),
        (Option("text", "", flag="--x", is_argument=True), ("text", "--x", "text")),
    ],
)
def test_names_of_an_option_in_python_on_the_command_line_and_in_a_url(option: Option, names: tuple[str, ...]) -> None:
    assert (option.name, option.option, option.url_name) == names


def test_where_an_option_is() -> None:
    assert Option("a", "").is_at_url
    assert not Option("a", "", at_url=False).is_at_url
    assert not Option("a", "", FILE).is_at_url


def test_defaults_are_read_like_text() -> None:
    assert Option("a", "").usual is None
    assert Option("a", "", SWITCH).usual is False
    assert Option("a", "", many=True).usual == ()
    assert Option("a", "", WORDS, "1,2").usual == ("1", "2")
    assert Option("a", "", BYTES, "4KiB").usual == 4096
    assert Option("a", "", number(0), 90).usual == 90.0


def test_what_may_be_given_again_is_a_tuple() -> None:
    option = Option("by", "", choice("a", "b"), many=True)
    assert option.in_python("a") == option.at_a_url("a") == ("a",)
    assert option.in_python(["a", "b"]) == ("a", "b")
    assert option.in_python({"a": [1]}) == {"a": [1]}  # names and values, for whoever takes them
    with pytest.raises(UsageError, match="by: 'c' is not known"):
        option.in_python(["a", "c"])


def test_a_url_may_ask_for_less() -> None:
    assert TOP.at_a_url(str(MOST_LISTED)) == TOP.in_python(MOST_LISTED)
    assert TOP.in_python(MOST_LISTED + 1) == MOST_LISTED + 1
    with pytest.raises(ValueError, match=r"'1001' is not a whole number from 1 to 1,000"):
        TOP.at_a_url("1001")


# A question -----------------------------------------------------------------------------------------------------------

LIKE = Gathered("like", lambda **parts: SimpleNamespace(**parts), (Option("users", "", WORDS, ""), Option("name", "")))
MADE_UP = Question("made up", "Made up", lambda ask, **_: None, (TOP, LIKE, Option("by", "", choice("a", "b"), "a")))


def test_what_the_function_takes() -> None:
    usual = MADE_UP.keywords({})
    assert usual == {"top": 20, "by": "a", "like": SimpleNamespace(users=(), name=None)}
    some = MADE_UP.keywords({"top": 3, "users": ("ada",), "unknown": 1})
    assert (some["top"], some["by"], some["like"]) == (3, "a", SimpleNamespace(users=("ada",), name=None))
    assert MADE_UP.keywords({"like": "as it is"})["like"] == "as it is"
    assert [option.name for option in MADE_UP.options] == ["top", "users", "name", "by"]


def test_a_question_is_called_and_found_by_its_words() -> None:
    assert (MADE_UP.name, MADE_UP.address, MADE_UP.text) == ("made_up", "made/up", "Made up")
    assert get_question("job list").address == "jobs/list"
    assert get_question("runs interfaces").text.startswith("Which I/O interfaces runs use")


# Every declaration ----------------------------------------------------------------------------------------------------


def test_every_declaration_is_found_by_its_text() -> None:
    assert set(declared_in._DECLARED) == set(declarations()) == {question.words for question in QUESTIONS}
    for question in QUESTIONS:
        assert declarations()[question.words].summary == question.summary
    names = [question.name for question in QUESTIONS]
    addresses = [question.address for question in QUESTIONS if question.address]
    assert len(set(names)) == len(names)
    assert len(set(addresses)) == len(addresses)


@each_question
def test_the_function_takes_the_keywords_that_are_declared(question: Question) -> None:
    first, *others = inspect.signature(question.answer).parameters.values()
    assert first.name == "ask"
    named = {parameter.name for parameter in others if parameter.kind is not parameter.VAR_KEYWORD}
    keywords = set(question.keywords({}))
    assert named == keywords if len(named) == len(others) else named < keywords
    names = [option.name for option in question.options]
    assert len(set(names)) == len(names)


@each_question
def test_its_words_are_said_as_everywhere(question: Question) -> None:
    assert question.summary[0].isupper()
    assert not question.summary.endswith(".")
    assert question.text.splitlines()[0].strip().endswith((".", ":"))
    for option in question.options:
        assert not option.meaning.endswith("."), option.name


@pytest.mark.parametrize("group", sorted({words.rpartition(" ")[0] for words in declarations()}))
def test_every_summary_is_one_line_of_the_help(group: str) -> None:
    shown = CliRunner().invoke(command_line, [*group.split(), "--help"], terminal_width=80, prog_name="iolens").output
    below = [item for item in declarations().values() if item.words.rpartition(" ")[0] == group]
    lines = shown.splitlines()
    for item in below:
        assert any(line.split()[:1] == [item.words.split()[-1]] and item.summary in line for line in lines), item.words


@each_question
def test_a_url_says_each_thing_by_one_name_and_names_no_file(question: Question) -> None:
    at_url = [option for option in question.options if option.is_at_url]
    assert FILE not in [option.kind for option in at_url]
    names = [option.url_name for option in at_url]
    shared = [parameter.name for parameter in SHARED[question.about]]
    assert sorted({*names, *shared}) == sorted([*names, *shared])


@each_question
def test_what_names_somebody_says_so(question: Question) -> None:
    """A net under rights, which go by what options mean, for options that are called as others are."""
    meanings = {
        "users": "person", "user": "person", "owners": "person", "owner": "person", "projects": "project",
        "jobs": "job", "job": "job", "run": "job", "against": "job",
    }  # fmt: skip
    for option in question.options:
        assert option.means == meanings.get(option.name.removeprefix("without_"), ""), option.name


def command_of(words: str) -> click.Command:
    command: click.Command = command_line
    for word in words.split():
        assert isinstance(command, click.Group)
        below = command.get_command(click.Context(command), word)
        assert below is not None
        command = below
    return command


@each_question
def test_its_examples_are_commands(question: Question) -> None:
    assert question.examples
    command = command_of(question.words)
    parent = click.Context(command_line, **command_line.context_settings)
    for example in question.examples:
        with command.make_context(question.words, shlex.split(example), parent) as context:
            assert not context.args, example


def test_importing_all_questions_imports_nothing_heavy() -> None:
    code = "import sys; from iolens.questions import all_questions; all_questions(); print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()
    assert "iolens.questions.runs.question" in loaded
    assert [name for name in loaded if name in HEAVY or name.startswith("iolens.store")] == []


def test_finding_declarations_imports_none_of_them() -> None:
    code = "import sys; from iolens.questions import declarations; declarations(); print('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert [name for name in done.stdout.splitlines() if name.startswith("iolens.questions.")] == []


@pytest.mark.parametrize("gathered", [LIKE_RUNS, LIKE_JOBS], ids=lambda gathered: gathered.options[0].name)
def test_what_is_gathered_has_the_fields_of_its_options(gathered: Gathered) -> None:
    values = {option.name: option.usual for option in gathered.options}
    made = gathered.make(**values)
    assert {name: getattr(made, name) for name in values} == values
