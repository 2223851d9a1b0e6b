"""The table of what an answer rests on and what was missing, and its columns for results that rest on intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.views.render import tables as t

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from iolens.views.render.tables import Row, TableColumn, TableView

ENOUGH_PCT: Final = 95.0  # of the window: less is said in every sentence about it
COLUMNS: Final = (
    t.count("targets_known", "Targets known"), t.count("targets_reporting", "Targets reporting"),
    t.text("missing_targets", "Missing targets"), t.percent("complete_pct", "Complete"),
    t.number("hours_window", "Window", "h", ",.2f"), t.number("hours_min", "Reported, least", "h", ",.2f"),
    t.number("hours_median", "Reported, median", "h", ",.2f"), t.number("hours_max", "Reported, most", "h", ",.2f"),
    t.count("resets", "Counter resets"), t.count("missed_samples", "Missed samples"),
    t.count("irregular_samples", "Irregular samples"), t.count("ios_outside_bins", "I/Os outside bins"),
    t.text("targets_without_sizes", "Targets without sizes"), t.text("sources", "Sources"),
    t.count("overlapping_rows", "Overlapping rows"), t.time("first_sample", "First sample"),
    t.time("last_sample", "Last sample"),
)  # fmt: skip


def covered(result: Any, sentence: str) -> str:
    """A sentence about a window, with the share of it that has data where that is less than `ENOUGH_PCT`."""
    share = getattr(result.coverage, "complete_pct", None)
    if share is None or t.is_missing(share) or not 0 < share < ENOUGH_PCT or not sentence:
        return sentence
    begins = sentence[:1].lower() if sentence[1:2].islower() else sentence[:1]
    return f"With data for {t.show_percent(share)} % of the window: {begins}{sentence[1:]}"


def coverage_table(coverages: Iterable[tuple[str, object]], columns: Sequence[TableColumn], note: str) -> TableView:
    """A line for each file system and its coverage."""
    rows: list[Row] = [(filesystem, *t.row_of(coverage, columns)) for filesystem, coverage in coverages]
    return t.TableView(
        "Coverage", (t.text("filesystem", "File system"), *columns), rows, note, sideways=True, name="coverage"
    )
