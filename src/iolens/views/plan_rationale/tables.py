"""What to buy, every requirement of a design in every case, and the data behind it, as tables."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

from iolens.models.resampling import RESAMPLES
from iolens.plans.purchase import DRIVE_CLASS, DRIVE_WRITES, METADATA
from iolens.units import format_bytes_si
from iolens.views import plan_endurance, plan_performance
from iolens.views.plan_inputs import warned
from iolens.views.render import tables as t

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iolens.plans.purchase import PurchaseLine
    from iolens.plans.rationale import Rationale
    from iolens.plans.specification import Requirement
    from iolens.views.render.tables import Row, TableView


RANGE: Final = "Low\N{NO-BREAK SPACE}…\N{NO-BREAK SPACE}high"
SSI: Final = (
    "SSI, sustained system improvement: how many times as much work the new system does as the reference system."
)
FROM: Final = "From says where the inputs come from; the chapters list each of them."
NONE_SUFFICES: Final = "none suffices"
NOT_KNOWN: Final = "not known"
NOT_DECIDED: Final = "not decided"
POWERS: Final = "kB, TB, PB are powers of ten; KiB, TiB, PiB powers of two."
MEANING: Final = (
    "Low and high take every input at the end that asks for least or most. The 95 % interval is the middle 95 % of "
    f"{RESAMPLES:,} random draws: days and drives are resampled, ranges are drawn uniformly. There is no interval "
    "where every input is a single value."
)
CHOSEN: Final = (
    "The case is the one with the largest capacity. The appendix has all cases with their 95 % intervals, and how each "
    "number was found."
)
KNEE: Final = "Metadata targets are those of the threshold that the prices favour: the knee of the curve."
OTHERS_SHOWN: Final = 4


def tables(result: Rationale) -> list[TableView]:
    """What to buy first, then every case."""
    views = [*([purchase(result)] if result.purchase else []), specification(result)]
    views += [evidence(result)] if result.evidence else []
    return warned(views, result.warnings)


def purchase(result: Rationale) -> TableView:
    """One line per requirement, in the chosen case; the other cases beside it."""
    columns = (
        t.text("name", "Requirement"), t.text("case", "Case"), right_aligned("expected", "To specify"),
        right_aligned("range", RANGE), t.text("others", "In other cases"),
    )  # fmt: skip
    rows: list[Row] = [
        (
            requirement_name(line),
            line.case,
            purchase_amount(result, line),
            span(line.unit, line.low, line.high),
            _others(result, line),
        )
        for line in result.purchase
    ]
    return t.TableView("Requirements", columns, rows, f"{CHOSEN}\n{SSI}\n{POWERS}", name="requirements")


def brief_purchase(result: Rationale) -> TableView:
    """The same for a page that stands alone: other cases are in the appendix."""
    table = purchase(result)
    kept = [place for place, column in enumerate(table.columns) if column.name != "others"]
    notes = [CHOSEN, *([KNEE] if result.metadata is not None and result.metadata.knee is not None else []), SSI]
    return replace(
        table,
        columns=tuple(table.columns[place] for place in kept),
        rows=[tuple(row[place] for place in kept) for row in table.rows],
        note="\n".join(notes),
    )


def purchase_amount(result: Rationale, line: PurchaseLine) -> str:
    """The amount of the chosen case, as the table and the sentences above it write it."""
    return _purchase_amount(result, line.name, line.unit, line.expected)


def _purchase_amount(result: Rationale, name: str, unit: str, expected: float | None) -> str:
    if expected is None and name.endswith(METADATA) and result.metadata is not None and result.metadata.undecided:
        return NOT_DECIDED
    if expected is None:
        return NONE_SUFFICES if name == DRIVE_CLASS else NOT_KNOWN
    if name == DRIVE_WRITES and result.endurance is not None:
        return f"{plan_endurance.need(result.endurance, expected)} DWPD"
    return amount(unit, expected)


def _others(result: Rationale, line: PurchaseLine) -> list[str]:
    shown = [
        f"{_purchase_amount(result, line.name, line.unit, other.expected)} ({other.case})"
        for other in line.others[:OTHERS_SHOWN]
    ]
    rest = len(line.others) - OTHERS_SHOWN
    return [*shown, *([f"and {rest} more"] if rest > 0 else [])]


def specification(result: Rationale) -> TableView:
    """One line per requirement and case."""
    columns = (
        t.text("name", "Requirement"), t.text("case", "Case"), right_aligned("expected", "Expected"),
        right_aligned("range", RANGE), right_aligned("ci95", "95 % interval"), t.text("from", "From"),
    )  # fmt: skip
    rows: list[Row] = [
        (
            requirement_name(requirement),
            requirement.case,
            _expected(requirement),
            span(requirement.unit, requirement.low, requirement.high),
            span(requirement.unit, *(requirement.ci95 or (None, None))),
            _kinds(requirement.origins),
        )
        for requirement in result.requirements
    ]
    note = f"{SSI} {FROM}\n{MEANING}\n{POWERS}"
    return t.TableView("All cases", columns, rows, note, name="specification", keep=("expected", "range"))


def _expected(requirement: Requirement) -> str:
    if requirement.expected is None:
        return NONE_SUFFICES if requirement.name == DRIVE_CLASS else NOT_KNOWN
    return amount(requirement.unit, requirement.expected)


def _kinds(origins: Sequence[str]) -> list[str]:
    """`telemetry`, `file`, `option`, `default`, `assumption`, `this plan`: each once."""
    words = {"option": "option", "default": "default", "file": "file", "this": "this plan"}
    words |= {"assumed:": "assumption", "not": "assumption"}
    texts = (origin.partition(": ")[2] for origin in origins)
    return list(dict.fromkeys(words.get(text.split()[0].rstrip(","), "telemetry") for text in texts if text))


class Amount(t.TableColumn):
    """A column of numbers that are written out with their units, and lean to the right like numbers."""

    __slots__ = ()

    @property
    def align(self) -> Literal["left", "right"]:
        """To the right."""
        return "right"


def right_aligned(name: str, heading: str) -> Amount:
    """A column of amounts."""
    return Amount(name, heading, "text", str)


def requirement_name(requirement: Requirement | PurchaseLine) -> str:
    """As a sentence begins with it."""
    words = plan_performance.measure_name(requirement.name) if requirement.part == "performance" else requirement.name
    return f"{words[:1].upper()}{words[1:]}"


def amount(unit: str, number: float) -> str:
    """A number with its unit: `22.3 PB`, `35 GB/s`, `0.38 DWPD`, `120,000 /s`."""
    if unit == "bytes":
        return format_bytes_si(number)
    if unit == "bytes/s":
        return f"{format_bytes_si(number)}/s"
    return f"{number:.3g} DWPD" if unit == "DWPD" else f"{number:,.0f} /s" if number >= 10 else f"{number:.2g} /s"


def span(unit: str, low: float | None, high: float | None) -> str | None:
    """`22.3 … 29.8 PB`; nothing where it spans nothing."""
    if low is None or high is None or amount(unit, low) == amount(unit, high):
        return None
    return joined(amount(unit, low), amount(unit, high)).removesuffix(" DWPD")  # its row has the unit


def joined(first: str, last: str) -> str:
    """Two amounts, with their unit once where it is the same."""
    (number, _, first_unit), (_, _, last_unit) = first.partition(" "), last.partition(" ")
    return f"{number if first_unit == last_unit else first} … {last}"


def evidence(result: Rationale) -> TableView:
    """Which telemetry, how much of it, from when to when, and what was left out."""
    columns = (
        t.text("input", "Input"), t.text("origin", "From"), right_aligned("samples", "Amount"),
        t.day("first_day", "First day"), t.day("last_day", "Last day"), t.text("left_out", "Left out"),
    )  # fmt: skip
    rows: list[Row] = [
        (
            input_data.input,
            input_data.origin,
            f"{input_data.samples:,} {input_data.samples_of}",
            input_data.first_day,
            input_data.last_day,
            input_data.left_out,
        )
        for input_data in result.evidence
    ]
    return t.TableView("Telemetry", columns, rows, name="telemetry")
