"""The specification of a design and the data behind it, as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from iolens.models.bootstrap import RESAMPLES
from iolens.units import format_bytes_si
from iolens.views.plan_inputs import warned
from iolens.views.plan_performance import tables as plan_performance
from iolens.views.render import tables as t

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iolens.plans.rationale import Rationale
    from iolens.plans.specification import Requirement
    from iolens.views.render.tables import Row, TableView


RANGE: Final = "Low\N{NO-BREAK SPACE}…\N{NO-BREAK SPACE}high"
SSI: Final = (
    "SSI, sustained system improvement: how many times as much work the new system does as the reference system. "
    "From: where the inputs come from; each is reported in its chapter."
)
POWERS: Final = "kB, TB, PB are powers of ten; KiB, TiB, PiB powers of two."
MEANING: Final = (
    "Low and high take every input at its better or worse end. The 95 % interval is the middle of "
    f"{RESAMPLES:,} draws: days and drives resampled, ranges evenly; none where every input is a single value."
)


def tables(result: Rationale) -> list[TableView]:
    """The specification first."""
    views = [specification(result), *([evidence(result)] if result.evidence else [])]
    return warned(views, result.warnings)


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
            _amount(requirement.unit, requirement.expected) if requirement.expected is not None else "none suffices",
            span(requirement.unit, requirement.low, requirement.high),
            span(requirement.unit, *(requirement.ci95 or (None, None))),
            _kinds(requirement.origins),
        )
        for requirement in result.requirements
    ]
    return t.TableView(
        "What to specify",
        columns,
        rows,
        f"{SSI}\n{MEANING}\n{POWERS}",
        name="specification",
        keep=("expected", "range"),
    )


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


def requirement_name(requirement: Requirement) -> str:
    """As a sentence begins with it."""
    words = plan_performance.measure_name(requirement.name) if requirement.part == "performance" else requirement.name
    return f"{words[:1].upper()}{words[1:]}"


def _amount(unit: str, amount: float) -> str:
    if unit == "bytes":
        return format_bytes_si(amount)
    if unit == "bytes/s":
        return f"{format_bytes_si(amount)}/s"
    return f"{amount:.3g} DWPD" if unit == "DWPD" else f"{amount:,.0f} /s" if amount >= 10 else f"{amount:.2g} /s"


def span(unit: str, low: float | None, high: float | None) -> str | None:
    """`22.3 … 29.8 PB`; nothing where it spans nothing."""
    if low is None or high is None or low == high:
        return None
    return joined(_amount(unit, low), _amount(unit, high)).removesuffix(" DWPD")  # its row has the unit


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
