"""What a report is made of, as plain data: sections of words, facts, tables and figures.

An analysis appears in the report by having a view; nothing is registered anywhere. `iolens.views.NAME_report`, or
`iolens.views.NAME` itself, may define

- `report_sections(result)`: the sections of one file system; without it, all tables and figures of the view
- `report_summary(result)`: parts for the summary on top, in words a director understands
- `report_comparison(results)`: sections on several file systems side by side; called when there are several
- `report_methods(results)`: sections at the end: how it was measured and how to read it
- `REPORT_CHAPTER`: title of a chapter of its own, for a result that belongs to no file system (its `filesystem` is
  None), such as the application runs of a centre
- `REPORT_ORDER`: analyses with a smaller number stand first; 100 without it
"""

from __future__ import annotations

from dataclasses import dataclass

from iolens.views.render.figures import Figure
from iolens.views.render.tables import TableView


@dataclass(frozen=True, slots=True)
class Fact:
    """A number worth large type: `20.3 %`, what it is, and perhaps what it means."""

    value: str
    label: str
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts in a row."""

    facts: tuple[Fact, ...]


Part = str | Facts | TableView | Figure


@dataclass(frozen=True, slots=True)
class ReportSection:
    """A heading and what stands below it, in reading order; a string is a paragraph."""

    title: str
    parts: tuple[Part, ...]
