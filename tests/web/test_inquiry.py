"""Inquiries: which windows and resolutions URLs mean, and the command that gives the same."""

from __future__ import annotations

import shlex
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolens.api import OpenStore
from iolens.cli.main import iolens as root
from iolens.errors import UsageError
from iolens.store.rollup import roll_up
from iolens.store.scope import Scope
from iolens.store.store import Store
from iolens.units import epoch_us, parse_time
from iolens.web.inquiry import SCOPE, Inquiry, rollup_note
from iolens.web.parameters import scope_words
from iolens.web.questions import QUESTIONS
from tests.web.hourly_rows import FIRST, append, append_days
from tests.web.test_questions import command_of, is_read

LAST = FIRST + timedelta(days=10)


@pytest.fixture(scope="module")
def ten_days(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten days with both rollups."""
    place = tmp_path_factory.mktemp("ten") / "store"
    append_days(Store(place), range(10))
    roll_up(Store(place))
    return place


def scope_of(place: Path, name: str = "utilization", **values: str) -> Scope:
    given = {key.rstrip("_"): text for key, text in values.items()}
    with OpenStore(str(place)) as opened:
        return Inquiry.of(name, given).scope(opened)


def window(place: Path, **values: str) -> tuple[datetime | None, datetime | None]:
    scope = scope_of(place, filesystem="scratch", **values)
    return scope.since, scope.until


def test_windows(ten_days: Path) -> None:
    day = timedelta(days=1)
    assert window(ten_days) == (None, None)
    assert window(ten_days, from_="2026-01-06") == (FIRST + day, None)
    assert window(ten_days, to="2026-01-06T12:00") == (None, FIRST + 1.5 * day)
    assert window(ten_days, from_="2026-01-06T01:00+01:00", to="2026-01-07") == (FIRST + day, FIRST + 2 * day)
    assert window(ten_days, during="2026-W03") == (FIRST + 7 * day, FIRST + 14 * day)
    assert window(ten_days, last="1d") == (LAST - day, LAST)
    assert window(ten_days, last="90min") == (LAST - timedelta(minutes=90), LAST)


def test_the_last_part_is_no_longer_than_the_data(ten_days: Path, tmp_path: Path) -> None:
    assert window(ten_days, last="365d") == (FIRST, LAST)
    assert window(ten_days, last="all") == (None, None)
    append_days(Store(tmp_path / "other"), [0], "home")
    assert window(ten_days, last="1d", target="OST0000") == (LAST - timedelta(days=1), LAST)


def test_the_last_part_ends_now_where_data_are_of_the_future(ten_days: Path) -> None:
    """One row of 2036 must not empty every page; the data begin at `FIRST`."""
    day = timedelta(days=1)

    def last(text: str, now: datetime) -> tuple[datetime | None, datetime | None]:
        with OpenStore(str(ten_days)) as opened:
            scope = Inquiry.of("utilization", {"filesystem": "scratch", "last": text}).scope(opened, now)
        return scope.since, scope.until

    assert last("1d", FIRST + 6 * day) == (FIRST + 5 * day, FIRST + 6 * day)
    assert last("1d", LAST + day) == (LAST - day, LAST)
    assert last("1d", FIRST + day / 2) == (FIRST, FIRST + day / 2)
    assert last("1d", FIRST - 9 * day) == (FIRST - 10 * day, FIRST - 9 * day)


def test_the_last_part_of_a_file_system_without_data_and_of_the_whole_centre(ten_days: Path, tmp_path: Path) -> None:
    place = tmp_path / "store"
    append_days(Store(place), [0], "home")
    append_days(Store(place), [3], "scratch")
    assert scope_of(place, "lost", last="1h") == Scope(
        None, FIRST + timedelta(days=4, hours=-1), FIRST + timedelta(days=4)
    )
    assert scope_of(place, "utilization", filesystem="home", last="1h").until == FIRST + timedelta(days=1)
    with pytest.raises(UsageError, match="holds no file system 'nowhere'"):
        scope_of(place, filesystem="nowhere", last="1h")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"last": "1d", "from": "2026-01-05"}, "from and last do not go together: each is a window"),
        ({"during": "2026-01", "to": "2026-01-05"}, "to and during do not go together"),
        ({"during": "2026-01", "last": "1d"}, "during and last do not go together"),
        ({"last": "soon"}, "last: "),
        ({"last": "-1d"}, "last: "),
        ({"resolution": "1min"}, "resolution: '1min' is not known"),
        ({"what": "1"}, "utilization has no parameter 'what'"),
        ({"filesystem": "x" * 501}, "filesystem: 501 characters; at most 500"),
    ],
)
def test_what_cannot_be_asked(given: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError) as error:
        Inquiry.of("utilization", given)
    assert str(error.value).startswith(message)


def test_a_question_that_does_not_exist() -> None:
    with pytest.raises(UsageError, match="no question is called 'utilizaton'; did you mean utilization"):
        Inquiry.of("utilizaton", {})


def resolution(place: Path, **values: str) -> str | None:
    return scope_of(place, filesystem="scratch", resolution="auto", **values).resolution


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"last": "6h"}, None),
        ({"last": "361min"}, "60s"),
        ({"last": "4d"}, "60s"),
        ({"last": "5d"}, "1h"),
        ({"last": "all"}, "1h"),
        ({}, "1h"),
        ({"from_": "2026-01-14T20:00"}, None),
        ({"from_": "2026-01-14T20:00", "to": "2027-01-01"}, None),  # the data end after four hours
        ({"from_": "2025-01-01", "to": "2026-01-05T05:00"}, None),  # … or begin five hours before the end
        ({"from_": "2026-01-06", "to": "2026-01-08"}, "60s"),
        ({"during": "2026-W02"}, "1h"),
    ],
)
def test_the_resolution_fits_the_length_of_the_window(
    ten_days: Path, values: dict[str, str], expected: str | None
) -> None:
    assert resolution(ten_days, **values) == expected


def test_a_resolution_that_is_named_is_kept(ten_days: Path) -> None:
    for name in ("raw", "60s", "1h"):
        assert scope_of(ten_days, filesystem="scratch", resolution=name, last="1h").resolution == name
    assert scope_of(ten_days, filesystem="scratch", last="9d").resolution is None


def test_a_rollup_is_taken_only_if_it_has_the_days(tmp_path: Path) -> None:
    """The newest day need not be there: it is not over."""
    place = tmp_path / "store"
    append_days(Store(place), range(5))
    assert resolution(place, last="all") is None
    roll_up(Store(place))
    append_days(Store(place), [5])
    assert resolution(place, last="all") == "1h"
    append_days(Store(place), [6])
    assert resolution(place, last="all") is None
    assert resolution(place, during="2026-01-06") == "60s"  # that day is there
    roll_up(Store(place))
    assert resolution(place, last="all") == "1h"


def test_without_intervals_there_is_no_last_part(tmp_path: Path) -> None:
    """Readings of fullness alone: all of them are meant."""
    reading = {"time": epoch_us(FIRST), "filesystem": "archive", "target": "OST0000", "target_kind": "ost"}
    append(Store(tmp_path), "target_capacity", [reading])
    scope = scope_of(tmp_path, "capacity", filesystem="archive", last="1d", resolution="auto")
    assert scope == Scope("archive")


# The command

WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=20)
LISTS = st.lists(WORDS.map(lambda word: word.replace(",", "").strip() or "x"), min_size=1, max_size=3).map(",".join)
TIMES = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)).map(lambda time: time.isoformat() + "Z")
LOCAL_TIMES = st.one_of(
    TIMES, TIMES.map(lambda text: text.removesuffix("Z")), st.sampled_from(["2026-03-29", "2026-W13"])
)
VALUES = {
    "filesystem": WORDS, "target": LISTS, "source": WORDS, "from": TIMES, "to": TIMES,
    "resolution": st.sampled_from(["raw", "60s", "1h"]), "timezone": st.sampled_from(["UTC", "Europe/Berlin"]),
    "calibration": WORDS, "by": st.sampled_from(["job", "user", "name", "cores"]), "metadata": st.sampled_from("01"),
    "top": st.integers(1, 1000).map(str), "busiest": st.sampled_from(["1h", "90min"]), "user": LISTS, "project": LISTS,
    "executable": LISTS, "name": WORDS, "id": WORDS, "cluster": WORDS, "names": st.sampled_from("01"),
    "sort": st.sampled_from(["bytes", "disk"]), "min_processes": st.integers(0, 10**8).map(str),
    "at": LOCAL_TIMES, "compare": st.one_of(LOCAL_TIMES, st.just("first")), "since": LOCAL_TIMES, "before": LOCAL_TIMES,
    "after": LOCAL_TIMES, "inode_size": st.just("4KiB"), "method": st.sampled_from(["strict", "paper"]),
}  # fmt: skip
WHOLE = ("skip", "most", "min_samples", "plateau", "resamples", "bootstrap", "purge_every", "cores")
FRACTIONS = ("threshold", "threshold_files", "rated_dwpd", "warranty_years", "waf_limit", "ceiling", "percentiles")
VALUES |= dict.fromkeys(WHOLE, st.integers(2, 100).map(str))
VALUES |= dict.fromkeys(FRACTIONS, st.floats(0.001, 99).map(str))
VALUES |= dict.fromkeys(("min_bytes", "at_most", "largest_file", "raid_block"), st.sampled_from(["4KiB", "64KiB"]))
VALUES |= dict.fromkeys(("every", "within"), st.sampled_from(["1h", "90d"]))
VALUES |= dict.fromkeys(("reverse", "exclusive", "without_background", "smaller"), st.sampled_from("01"))
VALUES |= {"significance": st.sampled_from(["0.01", "0.5"]), "peak": st.just("35GB/s"), "min_coverage": st.just("50")}
ASKABLE = [question for question in QUESTIONS.values() if question.command]


@st.composite
def inquiries(draw: st.DrawFn) -> Inquiry:
    """Any question with any of its parameters that the command line has too."""
    question = draw(st.sampled_from(ASKABLE))
    needed = {name for name, parameter in question.known.items() if parameter.is_needed}
    known = [name for name in question.known if name not in ("during", "last")]
    chosen = needed | draw(st.sets(st.sampled_from(known), max_size=6) if known else st.just(set()))
    values = {name: draw(VALUES.get(name, WORDS)) for name in sorted(chosen)}
    read = {name: text for name, text in values.items() if name in needed or is_read(question.known[name], text)}
    return Inquiry.of(question.name, read)  # without `by=cores` of blame


def scope_without_store(inquiry: Inquiry) -> Scope:
    if inquiry.question.about == "store":
        return Scope()
    read = {key: inquiry.question.known[key].read(text) for key, text in inquiry.values if key in SCOPE}
    named = Scope(read.get("filesystem"), read.get("from"), read.get("to"), read.get("target", ()), read.get("source"))
    return replace(named, resolution=read.get("resolution"))


@given(inquiries())
def test_the_command_line_reads_the_command_as_the_inquiry_means_it(inquiry: Inquiry) -> None:
    words = shlex.split(inquiry.command(scope_without_store(inquiry)))
    command = command_of(inquiry.question)
    assert words[: 1 + len(inquiry.question.command)] == ["iolens", *inquiry.question.command]
    parent = click.Context(root, **root.context_settings)  # commands keep the option for help of the first context
    context = command.make_context("iolens", words[1 + len(inquiry.question.command) :], parent)
    for key, text in inquiry.values:
        parameter = inquiry.question.known[key]
        option = f"--{key.replace('_', '-')}" if not parameter.flag else parameter.flag
        known = next(
            item for item in command.params
            if (parameter.is_argument and isinstance(item, click.Argument)) or option in item.opts
        )  # fmt: skip
        meant = parameter.read(text, inquiry.value("timezone"))
        assert understood(context.params[known.name or ""]) == understood(meant), key


def understood(value: Any) -> Any:
    """`report` takes a list of what others take one of."""
    return [value] if isinstance(value, str) else list(value) if isinstance(value, tuple) else value


@pytest.mark.parametrize(
    ("name", "option", "text", "of_day"),
    [
        ("imbalance", "at", "2026-07-06T15:00,2026-01-06T15:00Z", "2026-07-06T13:00:00Z,2026-01-06T15:00:00Z"),
        ("contents", "compare", "2026-01-06", "2026-01-06T22:59:59.999999Z"),
        ("job/compare", "after", "2026-01-06", "2026-01-05T23:00:00Z"),
    ],
)
def test_times_of_options_are_those_of_the_zone(name: str, option: str, text: str, of_day: str) -> None:
    """The window is in UTC, in the URL and in the command; times of options are as the reader wrote them in both."""
    values = {"from": "2026-01-01", option: text, "timezone": "Europe/Berlin"}
    inquiry = Inquiry.of(name, values)
    keyword = inquiry.question.known[option].in_python
    times = [parse_time(time) for time in of_day.split(",")]
    assert inquiry.options()[keyword] == (tuple(times) if len(times) > 1 else times[0])
    assert inquiry.but(timezone=None).options()[keyword] != inquiry.options()[keyword]
    scope = scope_without_store(inquiry)
    assert scope.since == parse_time("2026-01-01T00:00:00Z")
    words = shlex.split(inquiry.command(scope))
    assert words[words.index("--timezone") + 1] == "Europe/Berlin"
    assert words[words.index(f"--{option}") + 1] == text
    assert words[words.index("--from") + 1] == "2026-01-01T00:00:00Z"


def test_a_zone_that_is_none_is_named_before_the_times_in_it() -> None:
    with pytest.raises(UsageError, match=r"^timezone: no time zone is called 'Mars'"):
        Inquiry.of("imbalance", {"at": "2026-01-06", "timezone": "Mars"})


def test_the_order_of_values_makes_no_difference() -> None:
    first, second = ({"top": "3", "filesystem": "a b", "by": "user"}, {"by": "user", "top": "3", "filesystem": "a b"})
    assert Inquiry.of("blame", first) == Inquiry.of("blame", second)
    assert Inquiry.of("blame", first).query == "by=user&filesystem=a+b&top=3"
    assert Inquiry.of("blame", first).but(by=None, top="4").values == (("filesystem", "a b"), ("top", "4"))


def test_a_hostile_name_stays_one_word() -> None:
    scope = Scope("; rm -rf /", targets=("$(id)", "`id`"))
    assert shlex.split(shlex.join(scope_words(scope))) == ["-f", "; rm -rf /", "--target", "$(id),`id`"]
    assert Inquiry.of("explain", {"id": "-x; y"}).command(Scope()) == "iolens explain -- '-x; y'"


def note(place: Path, **values: str) -> str:
    scope = scope_of(place, filesystem="scratch", resolution="auto", **values)
    with OpenStore(str(place)) as opened:
        return rollup_note(opened, scope)


def test_a_rollup_that_ends_before_the_window_says_so(tmp_path: Path) -> None:
    place = tmp_path / "store"
    append_days(Store(place), range(5))
    roll_up(Store(place))
    assert note(place, last="all") == ""
    append_days(Store(place), [5])
    assert note(place, last="all") == (
        "Rolled up until 2026-01-10 00:00:00 UTC only: later data are missing here. `iolens store rollup` adds them."
    )
    assert note(place, last="1h") == ""  # read row by row
    assert note(place, during="2026-01-06") == ""
