"""The rationale as Markdown: readable as it is, figures beside it, names that are no markup."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from iolens.views.plan_rationale.chapters import document
from iolens.views.plan_rationale.document import NO_FIGURES, to_markdown, write
from tests.plans.designs import ABOUT, from_telemetry, published

HOSTILE = """x"><script>alert(1)</script>|<!--"""


def test_headings_equations_and_the_command() -> None:
    text = to_markdown(document(published()))
    assert text.startswith("# Design rationale\n\n**Prepared by**: The storage group  \n")
    assert re.findall(r"^##? (.*)", text, re.MULTILINE)[1:5] == [
        "1. What to buy", "Appendix: how the numbers were found", "A1. All requirements", "A2. Capacity"
    ]  # fmt: skip
    assert "    SSI 3, 28 days, fraction 0.5: C = 3 · (28 / 0.5) · 133 TB = 22.34 PB\n" in text
    assert "```sh\niolens plan rationale -o plan.pdf\n```" in text
    assert "> **Performance is not answered: " in text
    assert "\n\n\n" not in text


def test_without_a_file_there_are_no_figures_and_it_says_so() -> None:
    text = to_markdown(document(from_telemetry()))
    assert "![" not in text
    assert NO_FIGURES in text


def test_figures_are_files_beside_it_and_the_links_lead_to_them(tmp_path: Path) -> None:
    path = tmp_path / "the plan.md"
    written = write(document(from_telemetry()), path)
    links = re.findall(r"!\[[^]]*\]\(([^)]+)\)", path.read_text("utf-8"))
    assert len(links) == len(written) - 1 == 7
    for link in links:
        target = tmp_path / link.replace("%20", " ")
        assert target in written
        assert target.read_text("utf-8").startswith("<?xml")
    assert "*Figure 7. Demand over ticks.*" in path.read_text("utf-8")
    again = {item: item.read_bytes() for item in written}
    write(document(from_telemetry()), path)
    assert {item: item.read_bytes() for item in written} == again


def test_names_are_no_markup() -> None:
    result = replace(from_telemetry(), filesystem=HOSTILE, about=replace(ABOUT, title=HOSTILE, author=HOSTILE))
    text = to_markdown(document(result))
    assert "<script" not in text
    assert "<!--" not in text
