"""What an answer says against itself: its warnings and notes, known here and shown wherever the answer is.

A warning is what to know before the numbers are believed: of the result itself, of a table of its view, and of numbers
made from a rollup. A note says how they were made. Every renderer asks here: tables, JSON, blocks of pages, chapters of
the report, alerts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from iolens.views.render.view_names import view_name, view_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from iolens.views.render.figures import Axis, Figure, Panel
    from iolens.views.render.section import Part, ReportSection
    from iolens.views.render.tables import TableView

WARNING: Final = "Warning:"
LENGTHS: Final = {"60s": "one minute", "1h": "one hour"}
_OURS, _PLAIN = "iolens", "builtins"  # lists and dictionaries of answers that are no analysis have no view
# Views whose tables warn of what their result does not say; others are not made for their warnings alone.
_WARNING: Final = frozenset({
    "bench_bandwidth", "bench_cache", "bench_compare", "bench_latency", "bench_metadata", "blame",
    "job_applications", "job_compare", "job_list", "runs_compare", "runs_projects", "runs_scaling", "runs_variance",
})  # fmt: skip
_PARTS: Final = ("tables", "report", "page", "text")  # modules of a view, any of which may be all it has


def warnings(result: Any, tables: Iterable[TableView] | None = None) -> list[str]:
    """What the reader must know, of the result and of the one it is compared with; `tables` are those of its view."""
    lines = [
        *(part.level_unknown for part in _compared(result) if getattr(part, "level_unknown", "")),
        *filter(None, map(_of_rollups, _over_intervals(result))),
        *(str(line) for part in _compared(result) for line in getattr(part, "warnings", ())),
        *(line for table in _tables(result) if tables is None for line in table.warnings),
        *(line for table in tables or () for line in table.warnings),
    ]
    return _once(lines)


def level_unknown(result: Any) -> str:
    """Why the FSU of a result has no level, which comes before all else; empty where it has one."""
    return getattr(result, "level_unknown", "")


def calibrated(result: Any) -> str:
    """The state of the calibration and the band of the mean, in the few words that a title has space for."""
    return "; ".join(dict.fromkeys(filter(None, map(_calibrated, _compared(result)))))


def _calibrated(part: Any) -> str:
    return getattr(part, "calibration_words", "")


def notes(result: Any) -> list[str]:
    """How the numbers were made and what was left out, of the result and of the one it is compared with."""
    own = [line for part in _compared(result) for line in getattr(part, "notes", None) or ()]
    covered = [line for part in _compared(result) for line in _coverage_notes(part)]
    dropped = [line for part in _over_intervals(result) if (line := _of_parts(part))]
    return list(dict.fromkeys([*dropped, *own, *covered]))


def warned(line: str) -> str:
    """A warning as a sentence of its own."""
    return f"{WARNING} {line.rstrip('.')}."


def unsaid(lines: Sequence[str], parts: Iterable[Part]) -> list[str]:
    """Those lines that none of the parts says already."""
    if not lines:
        return []
    said = "\n".join(text for part in parts for text in _texts(part)).casefold()
    return [line for line in lines if _core(line) not in said]


def on_tables(result: Any, tables: list[TableView]) -> list[TableView]:
    """The main table begins with the state of the calibration and the warnings, and ends with notes no table has."""
    if not tables:
        return tables
    first, *rest = tables
    more, said = unsaid(warnings(result, tables), tables), unsaid(notes(result), tables)
    note = "\n".join([*first.note.splitlines(), *(f"{line[:1].upper()}{line[1:]}" for line in said)])
    words = calibrated(result)
    title = _with_words(first.title, words) if words else first.title
    return [replace(first, title=title, warnings=(*more, *first.warnings), note=note), *rest]


def _with_words(title: str, words: str) -> str:
    """Before the point, where the title is a sentence."""
    return f"{title.removesuffix('.')} ({words}){'.' * title.endswith('.')}"


def on_figure(result: Any, figure: Figure) -> Figure:
    """The figure with what it was made from in its title, and its axes of FSU with why it has no level."""
    words = [getattr(part, "without_level", "") for part in _compared(result)]
    if any(words):
        why = " and ".join(dict.fromkeys(filter(None, words)))
        figure = replace(figure, panels=tuple(_without_level(panel, why) for panel in figure.panels))
    rollups = dict.fromkeys(part.resolution for part in _over_intervals(result) if part.resolution != "raw")
    return replace(figure, title=f"{figure.title} (from the {' and '.join(rollups)} rollup)") if rollups else figure


def _without_level(panel: Panel, why: str) -> Panel:
    """The panel with axes of FSU that say so."""
    return replace(panel, x=_unlevelled(panel.x, why), y=_unlevelled(panel.y, why))


def _unlevelled(axis: Axis, why: str) -> Axis:
    return replace(axis, label=f"{axis.label}, {why}") if axis.label.startswith("FSU") else axis


def on_section(result: Any, section: ReportSection) -> ReportSection:
    """The section with the warning of a rollup on top, and in the titles of its figures."""
    from iolens.views.render.figures import Figure

    parts: list[Part] = [on_figure(result, part) if isinstance(part, Figure) else part for part in section.parts]
    rollups = [warned(line) for part in _over_intervals(result) if (line := _of_rollups(part))]
    return replace(section, parts=(*dict.fromkeys(rollups), *parts))


def _once(lines: Iterable[str]) -> list[str]:
    """Each once, however it is written."""
    return list({_core(line): line for line in reversed(list(lines))}.values())[::-1]


def _core(line: str) -> str:
    return line.removeprefix(WARNING).strip().rstrip(".").casefold()


def _texts(part: Part) -> Iterator[str]:
    from iolens.views.render.section import Facts, OverviewLines
    from iolens.views.render.tables import TableView

    if isinstance(part, str):
        yield part
    elif isinstance(part, TableView):
        yield from (part.title, part.note, *part.warnings)
    elif isinstance(part, Facts):
        yield from (f"{fact.value} {fact.label} {fact.remark}" for fact in part.facts)
    elif isinstance(part, OverviewLines):
        yield from (line.words for _, lines in part.lines for line in lines)


def _tables(result: Any) -> list[TableView]:
    package = type(result).__module__.partition(".")[0]
    if package == _PLAIN:
        return []
    if package == _OURS and view_name(result) not in _WARNING:
        return []
    module = view_of(result, *_PARTS)
    return list(module.tables(result)) if hasattr(module, "tables") else []


def _compared(result: Any) -> list[Any]:
    """The result and the one it is compared with."""
    return [part for part in (result, getattr(result, "compare", None)) if part is not None]


def _over_intervals(result: Any) -> list[Any]:
    """Those of them that rest on intervals, by a key of `OverIntervals`: the one-file agent has no analyses."""
    return [part for part in _compared(result) if hasattr(part, "days_only_in_rollups")]


def _coverage_notes(result: Any) -> Sequence[str]:
    return getattr(getattr(result, "coverage", None), "notes", None) or ()


def _of_rollups(result: Any) -> str:
    if result.resolution != "raw":
        return (
            f"computed from the {result.resolution} rollup of {result.filesystem}. Shares of time,"
            f" distributions, percentiles, peaks and tails are those of means over {LENGTHS[result.resolution]}, not of"
            " samples, and can be far from those; sums and means are the same."
        )
    if result.days_only_in_rollups:
        days = result.days_only_in_rollups
        return (
            f"the raw rows of {days:,} day{'s' * (days != 1)} of this window of {result.filesystem} were"
            " dropped. They are not in this answer; --resolution 60s has their sums and means."
        )
    return ""


def _of_parts(result: Any) -> str:
    days = result.days_from_parts
    if result.resolution != "raw" or result.days_only_in_rollups or not days:
        return ""
    return (
        f"The raw rows of {days:,} day{'s' * (days != 1)} of this window of {result.filesystem} were dropped. They"
        " are in this answer by the parts that were kept of them. For such days it is no longer possible to select"
        " hours, single targets or sources, another order of sources, or to leave out maintenance."
    )
