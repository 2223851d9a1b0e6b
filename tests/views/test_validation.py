"""The table of published and recomputed numbers for people and for machines."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from iolens.validation import InputFile, StudyName, Validation
from iolens.validation.checks import CheckedNumber
from iolens.views.render import tables as t
from iolens.views.render.formats import figures_of, tables_of
from iolens.views.render.json_text import to_plain
from iolens.views.validation import shown, shown_deviation


def line(**changes: Any) -> CheckedNumber:
    values: dict[str, Any] = {
        "study": "X", "where": "Fig. 1", "quantity": "growth", "unit": "TB/day", "published_text": "133",
        "published": 133.0, "basis": "printed", "recomputed": 153.81, "deviation_pct": 15.647,
        "verdict": "differs, explained", "reason": "another window", "agrees_from": 132.5, "agrees_to": 133.5,
        "tolerance_reason": "half a unit", "inputs": ["a.csv"],
    }  # fmt: skip
    return CheckedNumber(**{**values, **changes})


def result(data: str | None = "folder") -> Validation:
    nothing = {"published": None, "published_text": "curve", "recomputed": None, "deviation_pct": None, "unit": ""}
    checks = [line(), line(quantity="bars", verdict="not reachable", reason="drawn", **nothing)]
    counts = {"agrees": 0, "differs, explained": 1, "not reachable": 1}
    files = [InputFile("a.csv", "https://example.org", data is not None, "ff" if data else None, 2 if data else None)]
    return Validation(True, counts, [StudyName("X", "A study", "https://example.org/x")], data, checks, files)


def test_every_line_is_printed_and_summed_up() -> None:
    text = t.to_terminal(tables_of(result()), 140)
    (growth,) = [row for row in text.splitlines() if "growth" in row]
    assert growth.split()[:8] == ["X", "Fig.", "1", "growth", "printed", "133", "153.8", "TB/day"]
    assert "+15.6" in growth
    assert "differs, explained" in growth
    assert "2 numbers: 1 differs, explained; 1 not reachable." in text
    assert "X: A study. https://example.org/x" in text
    assert "a.csv" in text


def test_without_data_that_is_said() -> None:
    assert "No data were given" in t.to_terminal(tables_of(result(None)), 140)
    assert "No data were given" not in t.to_terminal(tables_of(result()), 140)


def test_machines_get_the_numbers_as_they_are() -> None:
    rows = list(csv.DictReader(io.StringIO(t.to_csv(tables_of(result())[0]))))
    assert rows[0]["recomputed"] == "153.81"
    assert rows[0]["published"] == "133"
    assert rows[1]["recomputed"] == rows[1]["deviation_pct"] == rows[1]["unit"] == ""
    plain = to_plain(result())
    assert plain["checks"][0]["published"] == 133.0
    assert plain["checks"][1]["published"] is None
    assert plain["verdicts"]["differs, explained"] == 1


def test_there_are_no_figures() -> None:
    assert figures_of(result()) == {}


@pytest.mark.parametrize(
    ("number", "text"), [(1152.0, "1,152"), (0.02414, "0.02414"), (1.73e-9, "1.73e-09"), (30.478, "30.48")]
)
def test_numbers_as_people_read_them(number: float, text: str) -> None:
    assert shown(number) == text


@pytest.mark.parametrize(("number", "text"), [(15.647, "+15.6"), (-0.7, "-0.7"), (-1e-14, "0.0"), (0.04, "0.0")])
def test_a_deviation_of_nothing_has_no_sign(number: float, text: str) -> None:
    assert shown_deviation(number) == text
