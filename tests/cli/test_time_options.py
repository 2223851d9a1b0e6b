"""`--from`, `--to`, `--during` and `--timezone` of every verb."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import pytest

from iolens import times
from iolens.cli.main import iolens as command_line
from iolens.cli.value_types import ZONE, KindType
from iolens.questions import declarations
from iolens.store.store import Store
from tests.analyses.telemetry import T0_US, TICK_US, made_up
from tests.cli.command import iolens

NOW = datetime(2012, 10, 24, 10, tzinfo=UTC)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    part = made_up(1, 300, 3)
    for name in ("target_sizes", "target_io"):
        Store(folder).append(name, part.table(name))
    return folder


@pytest.fixture(scope="module")
def recent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a minute of data in each of the windows before NOW, since one without any is no answer."""
    folder = tmp_path_factory.mktemp("recent")
    for hours in (1, 22, 39 * 24):
        first_tick = (round(NOW.timestamp()) - hours * 3600 - T0_US // 1_000_000) * 1_000_000 // TICK_US
        part = made_up(1, 12, 1, first_tick=first_tick)
        for name in ("target_sizes", "target_io"):
            Store(folder).append(name, part.table(name))
    return folder


def window(store: Path, *options: str) -> tuple[str, str]:
    done = iolens("utilization", "--store", store, "--format", "json", *options)
    assert done.code == 0, done.err
    result = json.loads(done.out)
    return result["window_start"], result["window_end"]


@pytest.mark.parametrize(
    ("options", "start", "end"),
    [
        (("--from", "-3d", "--to", "now"), "2012-10-21T10:00:00Z", "2012-10-24T10:00:00Z"),
        (("--from", "-90min", "--to", "now-30min"), "2012-10-24T08:30:00Z", "2012-10-24T09:30:00Z"),
        (("--from", "yesterday", "--to", "today"), "2012-10-23T00:00:00Z", "2012-10-24T00:00:00Z"),
        (("--from", "2012-10", "--to", "2012-W43-3"), "2012-10-01T00:00:00Z", "2012-10-24T00:00:00Z"),
        (("--during", "yesterday"), "2012-10-23T00:00:00Z", "2012-10-24T00:00:00Z"),
        (("--during", "2012-W43", "--timezone", "Europe/Berlin"), "2012-10-21T22:00:00Z", "2012-10-28T23:00:00Z"),
        (("--timezone", "Asia/Tokyo", "--during", "last month"), "2012-08-31T15:00:00Z", "2012-09-30T15:00:00Z"),
    ],
)
def test_windows(recent: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], start: str, end: str) -> None:
    monkeypatch.setattr(times, "present", lambda: NOW)
    assert window(recent, *options) == (start, end)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--from", "soon"), "'soon': not a time; write 2026-01-05T19:00, 2026-01-05, 2026-01, 2026-W03, today"),
        (("--from", "-7"), "not a time"),
        (("--during", "now"), "'now': not a period; write 2026-01-05"),
        (("--during", "yesterday", "--from", "-7d"), "--during is a whole window: leave out --from and --to"),
        (("--to", "now", "--during", "yesterday"), "--during is a whole window"),
        (("--timezone", "Mars/Base"), "no time zone is called 'Mars/Base'"),
    ],
)
def test_what_is_refused(store: Path, options: tuple[str, ...], says: str) -> None:
    done = iolens("utilization", "--store", store, *options)
    assert done.code == 2
    assert says in " ".join(done.err.split())


def verbs(command: click.Command, *names: str) -> list[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        return [(" ".join(names), command)]
    context = click.Context(command)
    parts = [(name, command.get_command(context, name)) for name in command.list_commands(context)]
    return [pair for name, part in parts if part is not None for pair in verbs(part, *names, name)]


TIMES = {"since", "until", "at", "start", "end", "now", "before", "after", "valid_from", "during", "cutoff"}
PROBES = ("2026-07-06", "2026-07-06T23:00Z")  # begins earlier in Berlin; is the next day there
BERLIN = "Europe/Berlin"
VERBS = verbs(command_line)


def read_in(zone: str | None, option: click.Parameter, text: str) -> Any:
    """What an option makes of a text where `--timezone` is known; None: nothing."""
    context = click.Context(click.Command("any"))
    context.params["timezone"] = zone
    try:
        return option.type.convert(text, option, context)
    except click.UsageError:
        return None


def reads_times(option: click.Parameter) -> bool:
    """Whether the zone changes what a text means."""
    return any(read_in(BERLIN, option, text) != read_in(None, option, text) for text in PROBES)


def test_every_time_on_the_command_line_is_read_in_the_zone() -> None:
    """Of all verbs, those made of questions too: what is called a time or takes one reads it as its kind does."""
    timed = set()
    for verb, command in VERBS:
        for option in command.params:
            metavar = (isinstance(option, click.Option) and option.metavar) or ""
            takes_one = metavar.endswith(("TIME", "TIMES", "DATE")) and read_in(None, option, "90min") is None
            if isinstance(option, click.Option) and (option.name in TIMES or takes_one):
                assert isinstance(option.type, KindType), (verb, option.name)
                assert reads_times(option), (verb, option.name)
                timed.add((verb, option.name))
    assert {("imbalance", "at"), ("contents", "compare"), ("report", "against"), ("plan capacity", "cutoff")} <= timed
    assert len(timed) > 130
    assert {verb for verb, _ in timed} >= {words for words in declarations() if "filesystems" not in words}


@pytest.mark.parametrize(("verb", "command"), VERBS, ids=lambda item: item if isinstance(item, str) else "")
def test_the_zone_is_known_before_every_time(verb: str, command: click.Command) -> None:
    """Also where it stands behind it."""
    options = [option for option in command.params if isinstance(option, click.Option)]
    zones = [option for option in options if option.name == "timezone" or "--timezone" in option.opts]
    assert [(option.name, option.type is ZONE, option.is_eager) for option in zones] in ([], [("timezone", True, True)])
    for option in options if zones else ():
        if reads_times(option):
            text = next(text for text in PROBES if read_in(BERLIN, option, text) != read_in(None, option, text))
            words = [option.opts[0], text, "--timezone", BERLIN]
            with command.make_context(verb, words, resilient_parsing=True) as context:
                given = context.params[option.name or ""]
            assert given == read_in(BERLIN, option, text), option.name


def test_times_and_days_are_shown_in_the_zone(store: Path) -> None:
    done = iolens("utilization", "--store", store, "--timezone", "Asia/Tokyo", "--during", "2020-09-14")
    assert done.code == 0, done.err
    assert "2020-09-14 00:00:00" in done.out  # the window, from 15:00 UTC of the day before
    assert "From (Asia/Tokyo)" in done.out
    assert "Day (Asia/Tokyo)" in done.out
    assert "UTC" not in done.out
    assert "From (UTC)" in iolens("utilization", "--store", store).out  # only that command
