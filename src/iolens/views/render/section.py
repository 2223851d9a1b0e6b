"""What a report is made of, as plain data: answers to questions, notices, and sections of words, tables and figures.

A report opens with one page for each file system, then has a chapter for each question (`QUESTIONS`): a conclusion, the
figure that shows it, and sections that are closed until the reader opens them. What explains the numbers is in an
appendix. An analysis appears by having a view; nothing is registered anywhere. The view, or of a package its module
`report`, may define

- `report_answers(result)`: what it says to a question, and the figure that shows it
- `report_sections(result)`: the details; without it, all tables and figures of the view
- `report_facts(result)`: numbers in large type for the first page
- `report_now(result)`: the newest numbers, for the first page of `iolens serve`
- `report_identity(result)`: what the file system is, in a few words: `24 OSTs`
- `report_notices(result)`: what is wrong or needs a look, and what to do next
- `report_comparison(results)`: sections on several file systems side by side; called when there are several
- `report_methods(results)`: sections of the appendix: how it was measured and how to read it
- `REPORT_CHAPTER`: title of a chapter of its own, for a result that belongs to no file system (its `filesystem` is
  None), such as the application runs of a centre
- `REPORT_ORDER`: analyses with a smaller number stand first; 100 without it
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeVar

from iolens.views.render import tables as t
from iolens.views.render.figures import Figure
from iolens.views.render.tables import TableView
from iolens.visible_text import shown_name

if TYPE_CHECKING:
    from iolens.target_servers import TargetServers
    from iolens.views.render.tables import Row, TableColumn


Question = Literal["load", "who", "targets", "metadata", "capacity", "drives", "data", "other", "appendix"]
Severity = Literal["high", "warn", "info"]

QUESTIONS: Final[Mapping[Question, str]] = {
    "load": "Load",
    "who": "Who made it busy",
    "targets": "Targets",
    "metadata": "Metadata",
    "capacity": "Contents and capacity",
    "drives": "Drives",
    "other": "Other measurements",
    "data": "Data quality",
}
SEVERITIES: Final[tuple[Severity, ...]] = ("high", "warn", "info")


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


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that is wrong or needs a look; what to do next in words, and the command for it."""

    severity: Severity
    question: Question
    words: str
    step: str = ""
    command: tuple[str, ...] = ()  # arguments of `iolens`


@dataclass(frozen=True, slots=True)
class OverviewLine:
    """A line of the first page: words that lead to a chapter, perhaps with a command or as a notice."""

    words: str
    anchor: str = ""  # of the chapter that has the evidence
    command: str = ""
    severity: Severity | None = None
    address: str = ""  # of the page that shows it


@dataclass(frozen=True, slots=True)
class OverviewLines:
    """Lines under labels: `How busy`, `What is wrong`."""

    lines: tuple[tuple[str, tuple[OverviewLine, ...]], ...]


@dataclass(frozen=True, slots=True)
class PartHeading:
    """A heading within a block of a page; `level` 2 is a chapter's, 3 a section's."""

    text: str
    level: int = 2


Part = str | Facts | OverviewLines | TableView | Figure | PartHeading


@dataclass(frozen=True, slots=True)
class Answer:
    """What a result says to a question: its conclusion, and the figure for it; details are in the chapter only."""

    question: Question
    words: tuple[str, ...]
    figure: Figure | None = None
    is_detail: bool = False


@dataclass(frozen=True, slots=True)
class ReportSection:
    """A heading and what stands below it, in reading order; a string is a paragraph. `appendix`: fits and coverage."""

    title: str
    parts: tuple[Part, ...]
    question: Question = "other"


# Targets in tables and figures by the server that serves them, where at least two servers are known -------------------

MOVES_SHOWN: Final = 3
COLUMN: Final = t.text("server", "Server")


class OfTarget(Protocol):
    """Whatever is said of one target."""

    @property
    def target(self) -> str:
        """Its name."""


Line = TypeVar("Line", bound=OfTarget)


def by_server(servers: TargetServers | None, lines: Sequence[Line]) -> list[Line]:
    """Sorted by server, then target; as they are where servers are not known."""
    if servers is None or not servers.are_several:
        return list(lines)
    return sorted(lines, key=lambda line: servers.place(line.target))


def with_servers(
    servers: TargetServers | None,
    columns: tuple[TableColumn, ...],
    lines: Sequence[OfTarget],
    rows: list[Row] | None = None,
) -> tuple[tuple[TableColumn, ...], list[Row]]:
    """The columns and rows of lines of targets, with their server in front where several are known."""
    rows = t.rows_of(lines, columns) if rows is None else rows
    if servers is None or not servers.are_several:
        return columns, rows
    known = servers.of_targets
    return (COLUMN, *columns), [(known.get(line.target), *row) for line, row in zip(lines, rows, strict=True)]


def moved(servers: TargetServers | None) -> list[str]:
    """Who was moved to another server, in sentences; their numbers are of the whole window all the same."""
    moves = servers.moves if servers is not None else []
    said = [
        f"{shown_name(move.target)} moved from {shown_name(move.from_server)} to {shown_name(move.to_server)} at"
        f" {t.show_time(move.time)} UTC; it is shown under the server that had it longest."
        for move in moves[:MOVES_SHOWN]
    ]
    return [*said, f"{len(moves) - MOVES_SHOWN} more moves; JSON has them all."] if len(moves) > MOVES_SHOWN else said


def grouped_rows(
    servers: TargetServers | None, targets: Sequence[str]
) -> tuple[list[int], tuple[tuple[str, int], ...]]:
    """The places of targets sorted by server, and each server with how many it has; no groups where none are known.

    The name is empty for targets whose server is not known.
    """
    order = list(range(len(targets)))
    if servers is None or not servers.are_several:
        return order, ()
    order.sort(key=lambda row: servers.place(targets[row]))
    runs = groupby(servers.of_targets.get(targets[row], "") for row in order)
    return order, tuple((server, len(list(run))) for server, run in runs)
