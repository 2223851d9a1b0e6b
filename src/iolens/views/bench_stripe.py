"""The recommendation of a stripe study: what to set, the evidence, and how flat the optimum is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from iolens.units import MIB, format_bytes
from iolens.views import bench_bandwidth as bandwidth
from iolens.views.render import tables as t
from iolens.visible_text import counted

if TYPE_CHECKING:
    from iolens.analyses.bench_stripe import StripeCell, StripeChoice, StripeRecommendation
    from iolens.views.render.figures import Figure
    from iolens.views.render.tables import Row, TableView


MEANS: Final = (
    "Means of a cell are geometric, over its runs; below they stand beside the best and the median of the same runs."
)


def tables(result: StripeRecommendation) -> list[TableView]:
    """The choices, then the grid behind them."""
    return [choices(result), *bandwidth.tables(result.bandwidth)]


def choices(result: StripeRecommendation) -> TableView:
    """One line for writes, reads and both, in every place."""
    columns = (
        t.text("place", "Place"), t.text("aim", "For"), t.count("stripe_count", "Stripes"),
        t.size("stripe_bytes", "Stripe size"), t.size("block_bytes", "Block"),
        t.number("mib_per_s", "Mean", "MiB/s", ",.0f"), t.number("best_mib_per_s", "Best cell's mean", "MiB/s", ",.0f"),
        t.number("worst_mib_per_s", "Worst cell's mean", "MiB/s", ",.0f"), t.count("cells", "Cells"),
        t.count("as_good", "As good"), t.percent("noise_pct", "Noise of a run"),
    )  # fmt: skip
    rows: list[Row] = [
        (
            choice.place, choice.aim, *_recommended(choice), choice.best.bytes_per_s / MIB,
            choice.worst.bytes_per_s / MIB, choice.cells, choice.as_good, choice.noise_pct,
        )
        for choice in result.choices
    ]  # fmt: skip
    note = "\n".join([*(words(choice) for choice in result.choices), MEANS])
    return t.TableView(title(result), columns, rows, note, name="recommended", keep=("aim", "block_bytes"))


def title(result: StripeRecommendation) -> str:
    """Of a flat grid no cell is recommended."""
    return "None recommended" if all(choice.flat for choice in result.choices) else "Recommended"


def _recommended(choice: StripeChoice) -> Row:
    """Stripes, block and mean; empty where the default is as good."""
    if choice.flat:
        return None, None, None, None
    cell = choice.recommended
    return cell.stripe_count, cell.stripe_bytes, cell.block_bytes, cell.bytes_per_s / MIB


def headline(result: StripeRecommendation) -> str:
    """What is recommended for writing and reading."""
    return " ".join(words(choice) for choice in result.choices if choice.aim == "both") or words(result.choices[0])


def words(choice: StripeChoice) -> str:
    """`Writes on scratch: 4 stripes of 1 MiB, blocks of 1 MiB. 3 of 12 cells are as good …`"""
    what = {"write": "Writes", "read": "Reads", "both": "Writing and reading"}[choice.aim]
    where = f" on {choice.place}" if choice.place else ""
    if choice.flat:
        return (
            f"{what}{where}: the grid is flat within noise: its cells differ by"
            f" {_pct(choice.best, choice.worst):.0f} %, and less than {choice.least_difference_pct:.0f} % is noise."
            " Keep the default."
        )
    cell = named_cell(choice.recommended)
    if choice.flat is None:
        return f"{what}{where}: {cell} was fastest; without repeats nothing is known of the noise."
    gain = _pct(choice.recommended, choice.worst)
    if choice.as_good == 1:
        flatness = "no other cell is as good"
    else:
        flatness = f"{choice.as_good} of {counted(choice.cells, 'cell')} are as good within noise"
    fewest = ", and this one has the fewest stripes" if choice.recommended != choice.best else ""
    return f"{what}{where}: {cell}, {gain:.0f} % faster than the worst cell; {flatness}{fewest}."


def named_cell(cell: StripeCell) -> str:
    """`4 stripes of 1 MiB, blocks of 1 MiB`."""
    parts = []
    if cell.stripe_count is not None:
        size = f" of {format_bytes(cell.stripe_bytes)}" if cell.stripe_bytes else ""
        parts.append(f"{counted(cell.stripe_count, 'stripe')}{size}")
    if cell.block_bytes is not None:
        parts.append(f"blocks of {format_bytes(cell.block_bytes)}")
    return ", ".join(parts)


def _pct(cell: StripeCell, reference: StripeCell) -> float:
    return 100.0 * (cell.bytes_per_s - reference.bytes_per_s) / reference.bytes_per_s


# Figures of a stripe study: those of the bandwidth behind it ----------------------------------------------------------

FIGURES: Final = ("grid", "blocks", "improvement")


def figures(result: StripeRecommendation) -> dict[str, Callable[[], Figure]]:
    """By name."""
    drawn = bandwidth.figures(result.bandwidth)
    return {name: drawn[name] for name in FIGURES}
