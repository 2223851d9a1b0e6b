import io
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from iolens.errors import UsageError
from iolens.units import MIB, epoch_us
from iolens.views.render import figures as f
from iolens.views.render import matplotlib_figure
from iolens.views.render.bokeh_figure import to_html
from iolens.views.render.matplotlib_figure import to_bytes
from iolens.views.render.window_axes import names_axis
from iolens.views.utilization.figures import figures

from .results import START, busy_day, compared, empty, histogram, long_window, minutes

NAMES = ["bandwidth", "histogram", "sizes", "heatmap"]
RESULTS = {"day": busy_day, "long": long_window, "minutes": minutes, "empty": empty, "compare": compared}


def described(result, name):
    return figures(result)[name]()


def marks(figure, kind, panel=0):
    return [mark for mark in figure.panels[panel].marks if isinstance(mark, kind)]


def pixels(png, colour, tolerance=12):
    """How many pixels of a picture are nearly of that colour."""
    picture = np.asarray(Image.open(io.BytesIO(png)).convert("RGB"), dtype=int)
    wanted = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return int((np.abs(picture - wanted).max(axis=2) <= tolerance).sum())


def svg_text(figure):
    return re.findall(r"<text[^>]*>([^<]*)</text>", to_bytes(figure, "svg").decode())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("result", RESULTS)
def test_every_figure_of_every_result_is_drawn(result, name, tmp_path):
    figure = described(RESULTS[result](), name)
    beginnings = {".svg": b"<?xml", ".png": b"\x89PNG", ".html": b"<!DOCTYPE html>"}
    for suffix, beginning in beginnings.items():
        path = tmp_path / f"figure{suffix}"
        f.draw(figure, path)
        assert path.read_bytes().lstrip().startswith(beginning)
    assert sorted(path.suffix for path in tmp_path.iterdir()) == sorted(beginnings)


@pytest.mark.parametrize("name", NAMES)
def test_pdf(name, tmp_path):
    f.draw(described(busy_day(), name), tmp_path / "figure.PDF")
    assert (tmp_path / "figure.PDF").read_bytes().startswith(b"%PDF")


def test_an_unknown_suffix_lists_the_known():
    with pytest.raises(UsageError, match=r"fsu\.jpg: .*\.html, \.pdf, \.png, \.svg"):
        f.draw(described(empty(), "sizes"), Path("fsu.jpg"))


@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_a_figure_is_drawn_once(kind, monkeypatch):
    """A layout engine of matplotlib would draw everything a second time."""
    drawn = []
    whole = matplotlib_figure.Canvas.draw
    monkeypatch.setattr(matplotlib_figure.Canvas, "draw", lambda *given: (drawn.append(kind), whole(*given)))
    to_bytes(described(minutes(), "bandwidth"), kind)
    assert drawn == [kind]


def test_the_same_figure_gives_the_same_bytes():
    for kind in ("svg", "png", "pdf"):
        assert to_bytes(described(minutes(), "bandwidth"), kind) == to_bytes(described(minutes(), "bandwidth"), kind)


def test_figure_10_has_fsu_black_above_reads_red_and_writes_blue():
    """Paper U has both on one panel with two axes; here they are apart, on one time axis."""
    figure = described(busy_day(), "bandwidth")
    fsu, rates = figure.panels
    assert figure.linked_x
    assert fsu.right is rates.right is None
    assert {mark.colour for mark in marks(figure, f.LineMark)} == {f.FSU}
    assert {mark.colour for mark in marks(figure, f.LineMark, 1)} == {f.READ, f.WRITE}
    assert (fsu.y.label, rates.y.label) == ("FSU (%)", "bandwidth (GB/s)")
    png = to_bytes(figure, "png")
    width, height = Image.open(io.BytesIO(png)).size
    assert width > 1200
    assert height > 600
    for colour in (f.READ, f.WRITE, f.FSU, f.SATURATED, f.NO_DATA):
        assert pixels(png, colour) > 200, colour


def test_a_long_window_is_an_envelope_and_shows_its_series_where_it_is_zoomed_into():
    result = busy_day()
    figure = described(result, "bandwidth")
    (band,) = marks(figure, f.BandMark)
    (dots,) = marks(figure, f.PointsMark)
    median, series = marks(figure, f.LineMark)
    assert [mark.label for mark in (band, dots, median)] == ["FSU 5–95 %", "FSU maximum", "FSU median"]
    assert series.label == "FSU, mean of 5 s"
    known = np.isfinite(median.y)
    assert (band.low[known] <= median.y[known]).all()
    assert (median.y[known] <= band.high[known]).all()
    assert (band.high[known] <= dots.y[known]).all()
    assert np.nanmax(dots.y) == pytest.approx(result.series.fsu_pct.max())
    assert [mark.zoom[0] for mark in (band, dots, median, series)] == ["out", "out", "out", "in"]
    assert len({mark.zoom[1] for mark in (band, dots, median, series)}) == 1
    first = result.envelope.bucket_starts[0]
    assert median.x[0] == epoch_us(first) + result.envelope.bucket_s * 5e5
    assert not any("mean of" in text for text in svg_text(figure))  # a still picture cannot be zoomed
    assert "mean of 5 s" in to_html(figure)


def test_a_short_window_has_every_tick_in_the_middle_of_its_interval_in_the_unit_of_the_axis():
    read = marks(described(minutes(), "bandwidth"), f.LineMark, 1)[0]
    series = minutes().series
    assert minutes().envelope is None
    assert read.zoom is None
    assert read.x[0] == series.time_us[0] - 2_500_000
    assert read.y[0] == pytest.approx(series.read_bytes_per_s[0] / 1e6)
    assert described(minutes(), "bandwidth").panels[1].y.label == "bandwidth (MB/s)"


def test_plateaus_and_gaps_are_shaded():
    saturated, gap = marks(described(busy_day(), "bandwidth"), f.Span)
    hour = 3_600_000_000
    assert (saturated.start - epoch_us(START), saturated.end - epoch_us(START)) == (14 * hour, 17.5 * hour)
    assert saturated.text == "FSU 72 %"
    assert gap.label == "no data"
    assert (gap.end - gap.start) / hour == pytest.approx(0.5, abs=0.01)


def test_a_gap_at_the_start_of_the_window_is_shaded_too():
    (gap,) = marks(described(minutes(), "bandwidth"), f.Span)
    assert (gap.start - epoch_us(START), gap.end - epoch_us(START)) == (0, 120e6)


def test_short_windows_have_a_line_that_breaks_at_gaps():
    result = minutes()
    kept = np.r_[0:40, 60:96]
    holed = replace(result.series, **{
        name: getattr(result.series, name)[kept]
        for name in ("time_us", "fsu_pct", "read_bytes_per_s", "write_bytes_per_s")
    })  # fmt: skip
    (line,) = marks(described(replace(result, series=holed), "bandwidth"), f.LineMark)
    assert np.flatnonzero(np.isnan(line.y)).tolist() == [40]
    assert len(line.x) == len(kept) + 1


def test_figure_11_has_every_observation_in_one_bar():
    fsu = np.array([0.0, 1.0, 2.0, 29.9, 30.0, 199.9, 200.0, 500.0])
    figure = described(replace(busy_day(), histogram=histogram(fsu)), "histogram")
    idle, moderate, busy = marks(figure, f.Bars)
    assert [bars.heights.sum() for bars in (idle, moderate, busy)] == [25.0, 25.0, 50.0]
    assert len(idle.heights) + len(moderate.heights) + len(busy.heights) == 101
    assert busy.names[-1] == "FSU above 200 %"
    assert busy.starts[-1] > 200
    assert [rule.at for rule in marks(figure, f.Rule)] == [2.0, 30.0]


def test_the_histogram_is_logarithmic_only_where_it_must_be():
    flat = described(replace(busy_day(), histogram=histogram(np.arange(0, 200, 0.5))), "histogram")
    steep = described(replace(busy_day(), histogram=histogram(np.r_[np.zeros(9000), np.arange(2, 200)])), "histogram")
    assert flat.panels[0].y.scale == "linear"
    assert steep.panels[0].y.scale == "log"
    assert 0 < steep.panels[0].y.low < 2 * 100 / 9198


def test_figure_12_is_labelled_by_size():
    figure = described(busy_day(), "sizes")
    read, write = marks(figure, f.Bars)
    assert (read.colour, write.colour) == (f.READ, f.WRITE)
    assert read.names == ("4 KiB", "8 KiB", "16 KiB", "32 KiB", "64 KiB", "128 KiB", "256 KiB", "512 KiB", "1 MiB")
    assert np.all(read.ends == write.starts)
    texts = svg_text(figure)
    assert {"4 KiB", "1 MiB", "read", "write", "optimal", "I/Os (millions)"} <= set(texts)
    png = to_bytes(figure, "png")
    assert pixels(png, f.READ) > 5000
    assert pixels(png, f.WRITE) > 5000


def test_sizes_up_to_64_mib_are_all_named():
    result = busy_day()
    result = replace(result, io_sizes=[replace(size, count=1000) for size in result.io_sizes])
    figure = described(result, "sizes")
    assert [name for _, name in figure.panels[0].x.ticks][-1] == "64 MiB"
    assert marks(figure, f.Rule)[0].at == result_bins(result).index(MIB) - 0.5
    assert svg_text(figure).count("MiB") == 7


def result_bins(result):
    return sorted({size.size_bytes for size in result.io_sizes})


def test_the_heat_map_keeps_missing_apart_from_idle():
    figure = described(busy_day(), "heatmap")
    (heat,) = marks(figure, f.HeatMapMark)
    assert heat.values.shape == (24, 288)
    assert np.isnan(heat.values[7, 160])
    assert heat.rows[7] == "OST0007"
    assert pixels(to_bytes(figure, "png"), f.NO_DATA) > 1000
    largest = np.nanmax(heat.values)
    assert {"OST0000", "no data", f"mean FSU (%), largest {largest:.3g}"} <= set(svg_text(figure))


def test_colours_of_a_heat_map_reach_the_99th_percentile_and_say_the_largest():
    result = busy_day()
    values = np.tile(np.linspace(0.0, 10.0, 288), (24, 1))
    values[3, 4] = 400.0
    figure = described(replace(result, heat_map=replace(result.heat_map, fsu_pct=values)), "heatmap")
    (heat,) = marks(figure, f.HeatMapMark)
    assert (heat.low, heat.linear) == (0.0, True)
    assert 9.5 < heat.high <= 10.0
    assert heat.label == "mean FSU (%), largest 400"


def test_missing_buckets_of_a_heat_map_are_filled_with_no_data():
    result = minutes()
    whole = result.heat_map
    kept = np.r_[0:10, 20:288]
    holed = replace(whole, time_us=whole.time_us[kept], fsu_pct=whole.fsu_pct[:, kept])
    (heat,) = marks(described(replace(result, heat_map=holed), "heatmap"), f.HeatMapMark)
    assert heat.values.shape == (4, 288)
    assert np.isnan(heat.values[:, 10:20]).all()


def test_the_first_target_is_on_top():
    result = busy_day()
    values = np.full_like(result.heat_map.fsu_pct, 0.1)
    values[0] = 400.0
    figure = described(replace(result, heat_map=replace(result.heat_map, fsu_pct=values)), "heatmap")
    picture = np.asarray(Image.open(io.BytesIO(to_bytes(figure, "png"))).convert("L"), dtype=int)
    dark = np.flatnonzero((picture[:, 300:900] < 30).mean(axis=1) > 0.9)
    assert dark.max() < picture.shape[0] / 2
    assert figure.panels[0].y.ticks[0] == (23.0, "OST0000")


def test_comparing_gives_two_panels_on_the_same_scales():
    for name in NAMES:
        panels = described(compared(), name).panels
        first, second = panels[0], panels[len(panels) // 2]
        assert (first.title.split(",")[0], second.title.split(",")[0]) == ("scratch", "scratch2")
        assert (first.y.scale, first.y.low, first.y.high) == (second.y.scale, second.y.low, second.y.high)


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_window_says_so(name):
    figure = described(empty(), name)
    assert figure.panels[0].marks == ()
    assert "no data in this window" in svg_text(figure)
    assert "no data in this window" in to_html(figure)


@pytest.mark.parametrize("name", NAMES)
def test_a_result_without_anything_to_draw_says_so(name):
    bare = replace(empty(), window_start=None, window_end=None, series=None, heat_map=None, histogram=[])
    assert "no data in this window" in svg_text(described(bare, name))
    assert "no data in this window" in to_html(described(bare, name))


@pytest.mark.parametrize("name", NAMES)
def test_html_fetches_nothing(name):
    html = to_html(described(compared(), name))
    tags = re.findall(r"<(?:script|link|img|iframe)\b[^>]*>", html.split("<body")[0] + html.rpartition("<body")[2])
    assert tags
    assert not [tag for tag in tags if re.search(r"(src|href)\s*=", tag)]
    assert "cdn.bokeh.org/bokeh/release" not in re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)
    assert not re.search(r"url\(\s*['\"]?https?:", html)
    assert "HoverTool" in html
    assert "BoxZoomTool" in html


def test_titles_are_shown_as_they_are():
    figure = described(replace(minutes(), filesystem="$a_b$<i>"), "bandwidth")
    assert any(text.startswith("$a_b$&lt;i&gt;, 2012-10-22 00:00 to 00:10 UTC") for text in svg_text(figure))
    assert "<i>," not in to_html(figure)


def test_bars_can_be_stacked():
    low, high = f.stacked([("a", f.READ, np.array([1.0, 2.0])), ("b", f.WRITE, np.array([3.0, 4.0]))], ("x", "y"))
    assert low.bottoms.tolist() == [0, 0]
    assert high.bottoms.tolist() == [1, 2]
    panel = f.Panel("", f.Axis(""), f.Axis(""), (low, high, f.Rule(2.5, "horizontal", "limit")))
    figure = f.Figure("stacked", "Stacked", (panel,))
    assert "limit" in svg_text(figure)
    assert "limit" in to_html(figure)


@pytest.mark.parametrize(
    ("lengths", "columns"),
    [
        ([], 1),
        ([10], 1),
        ([20, 20, 20], 3),
        ([8, 27, 31, 32], 2),
        ([34, 34, 34, 34], 2),
        ([40, 40, 40, 40], 1),
        ([100, 100], 1),
    ],
)
def test_a_legend_breaks_into_rows_where_it_would_be_wider_than_the_panel(lengths: list[int], columns: int) -> None:
    from iolens.views.render.matplotlib_figure import legend_columns

    assert legend_columns(lengths) == columns


def test_a_panel_is_as_wide_with_many_long_labels_as_with_one() -> None:
    """Labels in one row once squeezed the panel to a fifth of its width."""
    import matplotlib as mpl

    from iolens.views.render import matplotlib_figure

    def width(labels: int) -> float:
        marks = tuple(
            f.LineMark(np.arange(3.0), np.arange(3.0) + n, f"quantised: alpha 1.37, R² 1.000, {n}", "#000000")
            for n in range(labels)
        )
        panel = f.Panel("", f.Axis("x"), f.Axis("y"), marks)
        with mpl.rc_context(matplotlib_figure._STYLE):
            canvas = matplotlib_figure._canvas(f.Figure("one", "One", (panel,)))
            canvas.draw_without_rendering()
        return float(canvas.axes[0].get_position().width)

    assert width(1) > 0.85
    assert width(6) > 0.85


def test_a_figure_of_shades_and_rules_alone_has_no_content():
    shade, rule = f.Span(0.0, 1.0, "no data", f.NO_DATA), f.Rule(0.5, "horizontal", "limit")
    line = f.LineMark(np.arange(2.0), np.array([np.nan, np.nan]), "nothing", f.READ)
    bare = f.Panel("bare", f.Axis("x"), f.Axis("y"), (shade, rule, line))
    full = replace(bare, title="full", marks=(*bare.marks, replace(line, y=np.arange(2.0))))
    assert not f.Figure("a", "A", (bare, replace(bare, marks=(), message="nothing"))).has_content
    assert f.Figure("a", "A", (bare, full)).has_content


def test_a_panel_without_content_is_not_drawn_beside_others():
    empty_panel = f.Panel("bare", f.Axis("x"), f.Axis("y"), message="nothing to see")
    full = f.Panel("full", f.Axis("x"), f.Axis("y"), (f.LineMark(np.arange(2.0), np.arange(2.0), "a", f.READ),))
    both = f.Figure("a", "A", (empty_panel, full))
    assert "nothing to see" not in [*svg_text(both), to_html(both)]
    assert "nothing to see" not in to_html(both)
    assert "nothing to see" in svg_text(replace(both, panels=(empty_panel,)))
    assert matplotlib_figure.size_pt(both) == matplotlib_figure.size_pt(replace(both, panels=(full,)))


@pytest.mark.parametrize(
    ("first", "step", "labels"),
    [
        ("2026-01-05T22:00", "1h", ["22:00\n5 Jan 2026", "23:00", "00:00\n6 Jan 2026", "01:00"]),
        ("2026-01-05T00:00", "1D", ["5 Jan\n2026", "6 Jan", "7 Jan", "8 Jan"]),
        ("2026-12-30T00:00", "1D", ["30 Dec\n2026", "31 Dec", "1 Jan\n2027", "2 Jan"]),
        ("2026-11-01T00:00", "1M", ["Nov\n2026", "Dec", "Jan\n2027", "Feb"]),
        ("2026-01-05T00:00:00", "10s", ["00:00:00\n5 Jan 2026", "00:00:10", "00:00:20", "00:00:30"]),
    ],
)
def test_the_first_tick_has_its_date_and_the_others_where_it_changes(first, step, labels):
    unit = step[-1]
    kind = {"h": "h", "D": "D", "M": "M", "s": "s"}[unit]
    start = np.datetime64(first, "M" if unit == "M" else "s")
    times = start + np.arange(4) * np.timedelta64(int(step[:-1]), kind)
    days = times.astype("datetime64[s]").astype(float) / 86_400
    assert matplotlib_figure.DatedTicks().format_ticks(days) == labels


def test_few_short_lines_are_named_at_their_end_and_more_in_a_legend():
    def panel(count, name="line"):
        lines = (f.LineMark(np.arange(3.0), np.arange(3.0), f"{name} {n}", f.WRITE) for n in range(count))
        return f.Panel("", f.Axis("x"), f.Axis("y"), tuple(lines))

    assert len(matplotlib_figure._named_lines(panel(4))) == 4
    assert matplotlib_figure._named_lines(panel(5)) == []
    assert matplotlib_figure._named_lines(panel(2, "a name that would leave no place")) == []


@pytest.mark.parametrize("count", [1, 24, 500])
def test_names_below_an_axis_have_place(count):
    names = [f"OST{number:04x}" for number in range(count)]
    axis = names_axis("target", names)
    assert axis.ticks[0] == (0.0, "OST0000")
    assert sum(len(name) + 2 for _, name in axis.ticks) <= 62 + 9
    assert (axis.label == "target") == (len(axis.ticks) == count)


def test_colours_stand_in_the_palette_only():
    """One thing has one colour everywhere because no view has a colour of its own."""
    views = Path(f.__file__).parent.parent
    literal = re.compile(r'"#[0-9A-Fa-f]{6}"')
    own = {
        str(path.relative_to(views)) for path in views.glob("*/figures.py") if literal.search(path.read_text("utf-8"))
    }
    assert own == {"render/figures.py"}
