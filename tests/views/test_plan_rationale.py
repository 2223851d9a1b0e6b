"""The design rationale for people: what the document says, and in which order."""

from __future__ import annotations

from dataclasses import replace

import pytest

from iolens.plans.cases import value
from iolens.plans.endurance import plan_endurance
from iolens.plans.rationale import make_rationale
from iolens.views.plan_rationale.chapters import document, specification
from iolens.views.plan_rationale.document import (
    BulletList,
    Caution,
    DocumentChapter,
    Drawing,
    Equations,
    RationaleDocument,
    runs,
)
from iolens.views.render import tables as t
from iolens.views.render.formats import figures_of, tables_of
from tests.plans.designs import ABOUT, from_telemetry, published
from tests.plans.test_endurance import case


def chapter(rationale_document: RationaleDocument, title: str) -> DocumentChapter:
    return next(item for item in rationale_document.chapters if item.title == title)


def titles(document_chapter: DocumentChapter) -> list[str]:
    return [part.title for part in document_chapter.parts if isinstance(part, t.TableView)]


def test_what_to_buy_comes_first_and_how_to_reproduce_it_last() -> None:
    result = document(from_telemetry())
    assert [item.title for item in result.chapters] == [
        "What to buy", "All requirements", "Capacity", "Endurance", "Metadata", "Performance", "Data behind this plan",
        "Assumptions", "How to reproduce this document",
    ]  # fmt: skip
    first, *_ = result.chapters[0].parts
    assert isinstance(first, BulletList)
    assert len(first.points) == 3
    assert titles(result.chapters[0]) == ["Requirements"]
    assert titles(result.chapters[1]) == ["All cases"]
    assert dict(result.facts)["Reference system"] == "scratch"
    assert dict(result.facts)["Date"] == "2026-01-02 03:04:05 UTC, iolens 1.2.3"


def test_every_plan_has_equations_inputs_what_ifs_and_figures() -> None:
    result = document(from_telemetry())
    for name in ("Capacity", "Endurance", "Metadata", "Performance"):
        parts = chapter(result, name).parts
        (equations,) = [part for part in parts if isinstance(part, Equations)]
        assert all(equation.workings for equation in equations.equations)
        assert "Inputs" in titles(chapter(result, name))
        assert any(isinstance(part, Drawing) for part in parts)
    assert "What if" in titles(chapter(result, "Capacity"))
    assert "Classes of drives" in titles(chapter(result, "Endurance"))
    assert "Other DOM thresholds" in titles(chapter(result, "Metadata"))
    assert [drawing.name for drawing in result.drawings()] == [
        "capacity-growth", "endurance-fswpd", "endurance-dwpd", "metadata-mdt", "metadata-files", "metadata-inodes",
        "performance-demand",
    ]  # fmt: skip


def test_a_missing_part_has_a_caution_and_no_chapter() -> None:
    result = document(published())
    assert "Performance" not in [item.title for item in result.chapters]
    (caution,) = [part for part in result.chapters[0].parts if isinstance(part, Caution)]
    assert caution.text.startswith("Performance is not answered: the store knows no demand. Needed: counters")
    assert dict(result.facts)["Not answered"] == "performance"


def test_a_document_without_telemetry_says_so_and_draws_only_what_it_knows() -> None:
    result = document(published(metadata=None))
    assert (
        chapter(result, "Data behind this plan").parts[0]
        == "No telemetry was read: every input was given or is a default."
    )
    assert [drawing.name for drawing in result.drawings()] == ["endurance-dwpd"]


def test_cells_of_the_specification() -> None:
    rows = t.body(tables_of(published())[1])
    assert rows[0] == ["Usable capacity", "SSI 3, 28 days, fraction 0.5", "22.3 PB", "–", "–", "option, default"]
    by_name = {(row[0], row[1]): row[2:] for row in rows}
    assert by_name["Class of drives", "SSI 4, 8+2, WAF 3.17"][0] == "1 DWPD"
    unsure = {row[0]: row for row in t.body(tables_of(from_telemetry())[1])}
    low, dots, high = unsure["Usable capacity"][3].partition(" … ")
    assert dots
    assert high.endswith("B")
    assert not low.endswith("B")  # one unit for both
    assert "telemetry" in unsure["Usable capacity"][5]
    assert unsure["Drive writes per day, strict"][5].split(", ")[-1] == "assumption"


def test_no_class_is_said_so_and_not_left_empty() -> None:
    rows = t.body(tables_of(published(endurance=plan_endurance([case(fswpd=20.0)])))[1])
    assert next(row for row in rows if row[0] == "Class of drives")[2] == "none suffices"


def test_given_growth_beside_measured_growth_is_reported() -> None:
    result = from_telemetry()
    assert result.capacity is not None
    given = published().capacity
    assert given is not None
    both = replace(result, capacity=replace(given, growth=result.capacity.growth))
    words = [part for part in chapter(document(both), "Capacity").parts if isinstance(part, str)]
    assert "The plan uses the growth that was given instead." in words[-1]
    alone = [part for part in chapter(document(result), "Capacity").parts if isinstance(part, str)]
    assert "was given" not in alone[-1]


def test_figures_and_tables_by_the_usual_door() -> None:
    names = list(figures_of(from_telemetry()))
    assert names[:2] == ["capacity-growth", "capacity-cases"]
    assert "performance-required" in names
    assert t.to_csv(tables_of(published())[0]).startswith("name,case,expected,range,others\n")
    assert all(t.to_parquet(table) for table in tables_of(published()))


def test_an_empty_design_is_still_a_document() -> None:
    result = document(make_rationale(ABOUT))
    assert result.chapters[0].title == "What to buy"
    assert result.drawings() == []


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("plain", [("plain", False)]),
        ("use `iolens scan` now", [("use ", False), ("iolens scan", True), (" now", False)]),
        ("`all`", [("all", True)]),
        ("one ` alone", [("one ` alone", False)]),
        ("", []),
    ],
)
def test_what_is_to_be_typed_is_distinguished(text: str, pieces: list[tuple[str, bool]]) -> None:
    assert runs(text) == pieces


def test_what_does_not_fit_stands_below_the_requirements_and_is_counted_below_the_title() -> None:
    """A new system an eighth as large: the strict count needs 3.12, the published equation 1.25."""
    small = plan_endurance([case(fswpd=0.13)], capacity_ratio=value("capacity_ratio", 8.0, "test"))
    result = document(make_rationale(ABOUT, endurance=small))
    sentences, requirements, caution = result.chapters[0].parts
    assert isinstance(sentences, BulletList)
    assert isinstance(requirements, t.TableView)
    assert isinstance(caution, Caution)
    assert caution.text.startswith("Endurance: The published equation is not on the safe side")
    assert dict(result.facts)["Warnings"] == "1, below the requirements"
    verdict = result.chapters[1].parts[0]
    assert isinstance(verdict, str)
    assert verdict.startswith("Drives of 10 DWPD suffice for every case by either count")
    rows = {row[0]: row[2] for row in specification(make_rationale(ABOUT, endurance=small)).rows}
    assert rows["Class of drives"] == "10 DWPD"


@pytest.mark.parametrize(("ratio", "words"), [
    (1.0, "In this plan the published number is larger in every case."),
    (8.0, "In this plan the strict number is larger in every case."),
])  # fmt: skip
def test_which_count_is_larger_is_said_as_it_is_here(ratio: float, words: str) -> None:
    plan = plan_endurance([case(fswpd=0.13)], capacity_ratio=value("capacity_ratio", ratio, "test"))
    introduction = chapter(document(make_rationale(ABOUT, endurance=plan)), "Endurance").parts[0]
    assert isinstance(introduction, str)
    assert introduction.endswith(words)
    assert "safe side" not in introduction
