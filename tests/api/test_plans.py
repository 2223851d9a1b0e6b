"""Plans from Python: the JSON is that of the verb, sequences and numbers do for lists and sizes, slips are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest

import iolens
from iolens.api.plans.rationale import write_rationale
from iolens.cli.main import iolens as root
from iolens.errors import UsageError
from iolens.questions import all_questions
from iolens.views.render.json_text import to_json
from tests.cli import test_plan_rationale
from tests.cli.command import iolens as verb

store = test_plan_rationale.store  # growth, writes, drives and a scan of one file system

ASKED: list[tuple[str, tuple[str, ...], dict[str, Any]]] = [
    ("capacity", ("--ssi", "3,4", "--cutoff", "2020-09-16"), {"ssi": [3, 4], "cutoff": "2020-09-16"}),
    (
        "capacity",
        ("--what-if", "purge-days=14,28", "--smaller"),
        {"what_if": {"purge_days": [14, 28]}, "smaller": True},
    ),
    ("endurance", ("--ssi", "3..4", "--waf", "p95"), {"ssi": "3..4", "waf": "p95"}),
    ("endurance", ("--case", "ssi=3,data=10,parity=2"), {"cases": [{"ssi": 3, "data": 10, "parity": 2}]}),
    ("metadata", ("--capacity", "30PB", "--dom", "64KiB"), {"capacity": "30PB", "dom": ["64KiB"]}),
    ("performance", ("--ssi", "3,4", "--percentile", "99"), {"ssi": [3, 4], "percentile": 99}),
    (
        "performance",
        ("--demand", "bytes_per_s=35GB/s", "--to", "2020-09-20"),
        {"demands": {"bytes_per_s": 35_000_000_000}, "until": "2020-09-20"},
    ),
]


def printed(name: str, *arguments: object) -> Any:
    done = verb("plan", name, *arguments, "--format", "json")
    assert done.code == 0, done.err
    return json.loads(done.out)


@pytest.mark.parametrize(("name", "arguments", "options"), ASKED)
def test_a_plan_of_an_open_store_is_what_the_verb_prints(
    store: Path, name: str, arguments: tuple[str, ...], options: dict[str, Any]
) -> None:
    with iolens.open(str(store)) as opened:
        assert json.loads(to_json(opened.plan(name, **options))) == printed(name, "--store", store, *arguments)
        assert opened.store.select().filesystem == "scratch"  # it is still open


def test_a_plan_without_a_store_is_what_the_verb_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = iolens.plan("capacity", ssi=[3, 4], daily_growth=133 * 10**12)
    assert [round(case.capacity_bytes / 1e15, 1) for case in made.cases] == [22.3, 29.8]
    assert json.loads(to_json(made)) == printed("capacity", "--ssi", "3,4", "--daily-growth", "133TB")


def test_a_store_by_its_address(store: Path) -> None:
    made = iolens.plan("performance", "scratch", store=str(store), ssi=3)
    assert json.loads(to_json(made)) == printed("performance", "--store", store, "-f", "scratch", "--ssi", "3")


def test_a_rationale_says_how_to_make_it_again(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1554163200")
    done = verb("plan", "rationale", "--store", store, "--ssi", "3,4", "--smaller", "-o", tmp_path / "verb.json")
    assert done.code == 0, done.err
    with iolens.open(str(store)) as opened:
        made = opened.plan("rationale", ssi=[3, 4], smaller=True)
    assert made.about.command == f"iolens.open({str(store)!r}).plan_rationale(ssi=[3, 4], smaller=True)"
    assert write_rationale(made, tmp_path / "python.json") == [tmp_path / "python.json"]
    by_verb, by_python = (json.loads((tmp_path / f"{name}.json").read_text("utf-8")) for name in ("verb", "python"))
    assert by_verb["about"].pop("command") != by_python["about"].pop("command")
    assert by_python == by_verb


def test_the_method_of_a_plan_is_the_same(store: Path) -> None:
    with iolens.open(str(store)) as opened:
        made = opened.plan_performance("scratch", ssi=[3, 4], percentile=99)
        assert to_json(made) == to_json(opened.plan("performance", "scratch", ssi=[3, 4], percentile=99))
        grid = opened.plan_capacity(what_if={"purge_days": [14, 28]}, smaller=True, ssi=None)
        assert [case.purge_days for case in grid.cases] == [14, 28]
        assert {item.name: item.origin for item in grid.inputs}["ssi"] == "default"  # None is as if it were not given


def test_every_option_of_a_command_is_an_option_of_its_plan() -> None:
    from iolens.cli.options import Asked, Selected

    shared = {*Asked.__dataclass_fields__, *Selected.__dataclass_fields__, "output", "during", "table", "wide"}
    shared |= {"verbose", "quiet", "debug"}
    group = root.get_command(click.Context(root), "plan")
    assert isinstance(group, click.Group)
    plans = [question for question in all_questions() if question.words.startswith("plan ")]
    assert len(plans) == 5
    for plan in plans:
        command = group.get_command(click.Context(group), plan.words.removeprefix("plan "))
        assert command is not None
        assert {param.name for param in command.params} - shared == {option.name for option in plan.options}


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("holidays", {}, "no plan is called 'holidays'"),
        ("capacity", {"sis": 3, "daily_growth": "1TB"}, "plan_capacity has no option 'sis'; did you mean ssi?"),
        ("capacity", {"daily_growth": "133"}, "--daily-growth: 133 of what? write 133TB"),
        (
            "capacity",
            {"daily_growth": "1TB", "method": "lazy"},
            "method: 'lazy' is not known; there are: paper, strict",
        ),
        ("capacity", {"daily_growth": "1TB", "purge_every": 0}, "purge_every: '0' is not a whole number from 1 to"),
        ("capacity", {"daily_growth": "1TB", "cutoff": "soon"}, "cutoff: 'soon': not a time"),
        ("endurance", {"waf": 2, "fswpd": 0.1, "min_coverage": 120}, "min_coverage: '120' is not within 0<=x<=100"),
        ("metadata", {}, "plan_metadata needs capacity: Capacity of the new file system, such as 30PB"),
    ],
)
def test_slips_are_refused(
    name: str, options: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as refused:
        iolens.plan(name, **options)
    assert message in str(refused.value)
