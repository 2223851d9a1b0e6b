"""The design as one result: evidence, assumptions, what is missing, keys."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from iolens.errors import NotKnownError
from iolens.plans.cases import value
from iolens.plans.performance import plan_performance
from iolens.plans.plausibility import PARTS
from iolens.plans.rationale import NEEDED, Rationale, design_capacity, make_rationale
from iolens.views.render.json_text import to_plain
from tests.console_examples import examples, missing, run
from tests.plans.designs import ABOUT, MISSING, SPEEDS, from_telemetry, published, published_capacity
from tests.plans.test_performance import asked
from tests.test_docs import DOCS, _json_keys


def test_evidence_says_which_telemetry_from_when_to_when() -> None:
    result = {item.input: item for item in from_telemetry().evidence}
    assert list(result) == ["daily growth", "file-system writes per day", "sizes of inodes", "demand"]
    writes = result["file-system writes per day"]
    assert (str(writes.first_day), str(writes.last_day), writes.samples) == ("2019-01-01", "2019-07-19", 200)
    growth = result["daily growth"]
    assert growth.first_day is not None
    assert growth.last_day is not None
    assert growth.samples <= (growth.last_day - growth.first_day).days + 1
    assert "method strict" in growth.origin
    assert result["demand"].samples_of == "ticks of 5 s"
    assert "ticks of 0 complete and 5 partial days" in result["demand"].origin


def test_what_was_left_out_is_reported() -> None:
    from iolens.analyses.growth import growth
    from iolens.plans.capacity import plan_capacity
    from tests.analyses.capacity_rows import readings, selection
    from tests.plans.designs import capacity_inputs

    used = growth(selection(readings(range(20), [100, 200, 150, *range(250, 1950, 100)], total=10**6)))
    (item,) = make_rationale(ABOUT, capacity=plan_capacity(capacity_inputs(), growth=used)).evidence
    assert item.left_out == ["usage fell: 1 day"]


def test_given_numbers_are_no_evidence() -> None:
    assert [item.input for item in published().evidence] == ["sizes of inodes"]


def test_assumptions_name_defaults_but_not_what_was_said_or_measured() -> None:
    words = published().assumptions
    assert "age in days at which files are purged: 28, default" in words
    assert "RMW, bytes written to drives ÷ bytes of full stripes: 1, not measured: assumed to be 1" in words
    assert "stripes of 5+5: default, as in the published study" in words
    assert not any("10+2" in word or "SSI, work" in word for word in words)
    assert len(words) == len(set(words))


def test_a_part_that_is_missing_is_missing_everywhere() -> None:
    result = published()
    assert result.performance is None
    assert result.missing == MISSING
    assert "performance" not in {requirement.part for requirement in result.requirements}
    assert not any("per second" in assumption for assumption in result.assumptions)
    assert set(NEEDED) == set(PARTS)


def test_notes_of_all_plans_each_once() -> None:
    result = from_telemetry()
    assert len(result.notes) == len(set(result.notes))
    assert any("read-modify-write" in note for note in result.notes)


def test_design_capacity_is_the_largest_case_unless_given() -> None:
    plan = published_capacity()
    largest = design_capacity(None, plan)
    assert (largest.expected, largest.kind) == (29_792e12, "value")
    assert "SSI 4" in largest.origin
    given = value("capacity_bytes", 30e15, "option --capacity")
    assert design_capacity(given, plan) is given
    with pytest.raises(NotKnownError, match="give --capacity"):
        design_capacity(None, None)
    measured = from_telemetry().capacity
    assert measured is not None
    unsure = design_capacity(None, measured)
    assert unsure.kind == "range"
    assert unsure.low < unsure.expected < unsure.high


def test_the_file_system_is_that_of_the_first_plan_that_knows_it() -> None:
    assert from_telemetry().filesystem == "scratch"
    assert published().filesystem is None
    only = make_rationale(ABOUT, performance=plan_performance(SPEEDS, asked()))
    assert only.filesystem == "scratch"


def test_json_is_plain_and_its_keys_are_documented() -> None:
    plain = to_plain(from_telemetry())
    assert plain["about"]["made"] == "2026-01-02T03:04:05Z"
    assert plain["requirements"][0]["unit"] == "bytes"
    pages = ("plan-rationale.md", "planning.md", "plan-endurance.md", "plan-metadata.md", "plan-performance.md")
    named = {word for page in pages for word in re.findall(r"`(\w+)`", (DOCS / page).read_text("utf-8"))}
    assert sorted(set(_json_keys(Rationale)) - named) == []
    own = set(re.findall(r"`(\w+)`", (DOCS / pages[0]).read_text("utf-8")))
    assert set(plain) <= own


def test_the_example_prints_what_its_page_says(tmp_path: Path) -> None:
    ((command, shown),) = examples(DOCS / "plan-rationale.md")
    assert missing(shown, run(command, tmp_path).stdout.splitlines()) == []
