"""A metadata plan for people."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from iolens.models.dom import METHODS
from iolens.plans.metadata import MetadataPlan, Prices, StripeLayout, plan_metadata
from iolens.views.plan_metadata import DOM_BAND, INODE_BAND
from iolens.views.render import figures as f
from iolens.views.render import tables as t
from iolens.views.render.formats import draw_figures, figures_of, tables_of
from iolens.views.render.matplotlib_figure import to_bytes
from tests.plans.test_metadata import PB30, made_up
from tests.views.test_figures import pixels

PRICES = Prices(400, 100, StripeLayout(5, 5), StripeLayout(8, 2))


def plan(**settings: object) -> MetadataPlan:
    sizes = made_up(dir={4096: 500, 1 << 16: 20, 1 << 24: 1}, fifo={0: 3})
    return plan_metadata(sizes, PB30, methods=METHODS, **settings)  # type: ignore[arg-type]


def test_the_knee_and_the_bands_are_printed() -> None:
    text = t.to_terminal(tables_of(plan()), 140)
    assert "Which threshold pays is not decided without the price of a raw TB on MDTs" in text
    assert "MDTs, highest" in text
    assert "Cost" not in text
    priced = t.to_terminal(tables_of(plan(prices=PRICES)), 140)
    assert "The knee is at 1 MiB" in priced
    assert "Cost, average" in priced
    assert "option --cost-mdt" in priced


def test_csv_has_the_keys_of_json() -> None:
    heading = t.to_csv(tables_of(plan())[0]).splitlines()[0].split(",")
    assert heading[:5] == ["dom_bytes", "method", "dom_min_bytes", "dom_avg_bytes", "dom_max_bytes"]


def test_figure_6_has_the_bands_of_both_methods_and_the_knee() -> None:
    figure = figures_of(plan(prices=PRICES))["mdt"]()
    assert len(figure.panels) == 2
    whole, inodes = (mark for mark in figure.panels[0].marks if isinstance(mark, f.BandMark))
    (average, _) = (mark for mark in figure.panels[0].marks if isinstance(mark, f.LineMark))
    assert (whole.low <= average.y).all()
    assert (average.y <= whole.high).all()
    assert np.ptp(inodes.low) == 0  # inodes do not depend on the threshold
    assert any(mark.text == "knee 1 MiB" for mark in figure.panels[0].marks if isinstance(mark, f.Rule))


def test_bands_are_filled() -> None:
    picture = to_bytes(figures_of(plan())["mdt"](), "png")
    assert pixels(picture, DOM_BAND) > 20_000
    assert pixels(picture, INODE_BAND) > 5_000


def test_figure_4_adds_up_to_a_hundred_twice() -> None:
    for panel in figures_of(plan())["files"]().panels:
        (bars,) = (mark for mark in panel.marks if isinstance(mark, f.Bars))
        assert bars.heights.sum() == pytest.approx(100)


def test_figure_5_has_every_other_type() -> None:
    marks = [mark for mark in figures_of(plan())["inodes"]().panels[0].marks if isinstance(mark, f.Bars)]
    assert [mark.label for mark in marks] == ["dir", "fifo"]
    assert sum(mark.heights.sum() for mark in marks) == pytest.approx(100)
    alone = figures_of(plan_metadata(made_up(), PB30))["inodes"]()
    assert alone.panels[0].message == "only files are in the histogram"


@pytest.mark.parametrize("suffix", ["png", "svg", "html", "pdf"])
def test_figures_are_drawn(tmp_path: Path, suffix: str) -> None:
    names = list(figures_of(plan()))
    assert names == ["mdt", "files", "inodes"]
    for path in draw_figures(plan(), [f"{name}={tmp_path}/{name}.{suffix}" for name in names]):
        assert path.stat().st_size > 5000
