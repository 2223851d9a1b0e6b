"""The report without a browser: what stands in it, that nothing leaves or enters the page, and the command."""

from __future__ import annotations

import base64
import json
import re
import sys
import types
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iolens.analyses import analysis_names
from iolens.analyses.utilization.analysis import Utilization
from iolens.analyses.utilization.targets import TargetUtilization, target_outliers
from iolens.store.store import Store
from iolens.views.render import figures as f
from iolens.views.render import tables as t
from iolens.views.render.bokeh_figure import json_for_script
from iolens.views.render.section import Answer, Fact, Notice, ReportSection
from iolens.views.render.view_names import view_module
from iolens.views.report.centre import report_html
from iolens.views.report.page import MOST_CELLS, ReportFigure, ReportInfo, report_figure
from iolens.views.utilization.report import report_answers, report_facts, report_notices, report_sections
from tests.analyses.telemetry import made_up
from tests.cli.command import iolens

from .results import START, busy_day, empty, long_window, minutes

ABOUT = ReportInfo("1.2.3", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
HOSTILE = """x"><script>alert(1)</script><img src=x onerror=alert(2)>'&$$\\frac{1}{2}$$"""


class Page(HTMLParser):
    """Headings, words, tables and addresses of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.closed: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.headings: list[str] = []
        self.scripts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.open.append(tag)
        if tag in ("h1", "h2", "h3"):
            self.headings.append("")
        if tag == "summary":
            self.closed.append("")
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        here = self.open[-1] if self.open else ""
        if here in ("h1", "h2", "h3"):
            self.headings[-1] += data
        if here == "summary":
            self.closed[-1] += data
        if here == "script":
            self.scripts[-1] += data
        elif here != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    def items(self) -> list[Any]:
        kinds = self.all("script")
        return [
            json.loads(text)
            for text, kind in zip(self.scripts, kinds, strict=True)
            if kind.get("type") == "application/json"
        ]


@pytest.fixture(scope="module")
def two() -> str:
    return report_html([busy_day("scratch", 60), busy_day("home", 60, seed=7)], ABOUT)


@pytest.fixture
def drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several file systems the figures of the first are drawn: the others have the same, of other numbers."""
    drawn: set[str] = set()

    def first(figure: f.Figure) -> ReportFigure:
        if figure.name in drawn:
            return ReportFigure(figure.title, figure.title, "data:image/svg+xml,", "{}")
        drawn.add(figure.name)
        return report_figure(figure)

    monkeypatch.setattr("iolens.views.report.page.report_figure", first)


def page(*results: Any, about: ReportInfo = ABOUT) -> Page:
    return Page(report_html(results, about))


def words_of(result: Utilization) -> list[str]:
    return [words for answer in report_answers(result) for words in answer.words]


def test_it_says_what_when_and_by_which_version(two: str) -> None:
    result = Page(two)
    assert result.headings[0] == "Storage report: scratch and home"
    assert "Window 2012-10-22 00:00:00 to 2012-10-23 00:00:00 UTC" in result.text
    assert "Generated 2026-01-02 03:04:05 UTC by iolens 1.2.3" in result.text


@pytest.mark.usefixtures("undrawn")
def test_times_are_those_of_the_zone() -> None:
    window = (START, START + timedelta(days=1))
    result = page(minutes(), about=replace(ABOUT, window=window, timezone="Europe/Berlin"))
    assert "2012-10-22 02:00:00 to 2012-10-23 02:00:00 Europe/Berlin" in result.text
    assert "Generated 2026-01-02 04:04:05 Europe/Berlin" in result.text
    assert " UTC" not in result.text.replace("Per UTC day", "").replace("no complete UTC day", "")


def test_every_file_system_has_every_section(two: str) -> None:
    headings = Page(two).headings
    appendix = "Appendix: how it was measured"
    assert headings == [
        "Storage report: scratch and home", "Overview", "scratch", "home", "Side by side", "How busy each one was",
        "scratch: load", "scratch: targets", "scratch: data quality",
        "home: load", "home: targets", "home: data quality", appendix,
    ]  # fmt: skip
    for title in (
        "What was measured, and how complete it is", "Steady and saturated stretches", "How busy it was",
        "Every target", "Targets that differ from their peers", "Sizes of disk I/Os", "Daily volumes",
    ):  # fmt: skip
        assert Page(two).closed.count(title) == 2, title


@pytest.mark.usefixtures("undrawn")
def test_the_full_report_has_every_figure_and_nothing_closed() -> None:
    brief, full = (Page(report_html([busy_day("scratch", 60)], ABOUT, full=full)) for full in (False, True))
    assert len(brief.all("figure")) == 2
    assert [name for name in full.closed if name] == []
    assert set(brief.closed) <= set(full.headings)
    left_out = sum(int(number) for number in re.findall(r"(\d+) more figures? with iolens report --full", brief.text))
    assert left_out == len(full.all("figure")) - len(brief.all("figure")) > 0


def test_the_contents_lead_to_every_section(two: str) -> None:
    result = Page(two)
    targets = {attributes["id"] for tag in ("section", "details") for attributes in result.all(tag)}
    links = [str(attributes["href"]) for attributes in result.all("a")]
    assert all(link.startswith("#") and link[1:] in targets for link in links)
    ids = [attributes["id"] for _, attributes in result.tags if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_the_summary_speaks_to_a_director() -> None:
    facts, reported = report_facts(busy_day()), page(busy_day()).text.replace("\N{NO-BREAK SPACE}", " ")
    assert facts[1] == Fact("8.2 %", "of the time busy with the same bytes as 1 MiB I/Os", "4.0× less")
    assert facts[2] == Fact("3.5 h", "saturated", "1 of 1 steady stretch")
    assert "Busy 32.9 % of the time by FSU; the same bytes as 1 MiB I/Os would have kept it busy 8.2 %" in reported
    assert "saturated once, for 3.5 h from 2012-10-22 14:00:00 UTC, when FSU stayed near 72 %" in reported
    assert "close to the ceiling of 70 % (calibration ours): the disks had no more to give" in reported
    assert "97.9 % complete. Missing or odd: nothing from scratch-OST0018" in reported


def test_only_a_known_peak_is_a_headline() -> None:
    """The largest tick of a window says nothing of what the hardware can do."""
    unknown, known = (
        replace(busy_day(), peak_origin=origin, peak_bytes_per_s=35e9) for origin in ("largest tick", "given")
    )
    assert "andwidth" not in f"{report_facts(unknown)} {words_of(unknown)}"
    assert Fact("4.3 %", "of the time above 30 % of peak bandwidth", "peak 35 GB/s, given") in report_facts(known)
    assert "Bandwidth was above 30 % of its peak (35 GB/s, given) 4.3 % of the time." in words_of(known)


def test_without_bytes_bandwidth_says_nothing() -> None:
    words = words_of(replace(busy_day(), bandwidth_busy_time_pct=None, peak_bytes_per_s=None))
    assert "Bytes moved were not recorded, so bandwidth has nothing to say." in words


def with_hot_target() -> Utilization:
    result = busy_day()
    targets = [replace(target, mean_fsu_pct=10 + place / 10) for place, target in enumerate(result.per_target)]
    targets[3] = TargetUtilization(targets[3].target, 44.0, 80.0, 10**12, 10**12)
    return replace(result, per_target=targets, target_outliers=target_outliers(targets))


def test_targets_far_from_their_peers_are_listed_with_evidence() -> None:
    result = with_hot_target()
    assert "1 of 24 targets is far from its peers: scratch-OST0003 (busier)." in words_of(result)
    (notice,) = [notice for notice in report_notices(result) if notice.question == "targets"]
    assert (notice.severity, notice.command) == ("info", ("imbalance",))
    section = next(
        report_section
        for report_section in report_sections(result)
        if report_section.title.startswith("Targets that differ")
    )
    table = next(part for part in section.parts if isinstance(part, t.TableView))
    assert [row[0] for row in table.rows] == ["scratch-OST0003"]


def test_what_to_do_next_is_what_can_be_done() -> None:
    """Without job_stats nobody can be blamed."""
    saturated = page(busy_day())
    assert "Record job_stats, as iolens collect does, to see whose I/O it is." in saturated.text
    assert "iolens blame" not in saturated.text


def test_missing_targets_are_named(two: str) -> None:
    assert "1 of 25 known targets did not report: scratch-OST0018." in Page(two).text


def test_nothing_is_fetched(two: str) -> None:
    result = Page(two)
    addresses = [
        str(value)
        for _, attributes in result.tags
        for name, value in attributes.items()
        if name in ("src", "href", "srcset", "action", "data", "poster", "xlink:href")
    ]
    assert addresses
    assert {address.partition(":")[0] if ":" in address else address[0] for address in addresses} == {"data", "#"}
    assert not result.all("link")
    assert not re.search(r"@import|url\((?!data:)", re.findall(r"<style>(.*?)</style>", two, re.DOTALL)[0])
    policy = next(a["content"] for a in result.all("meta") if a.get("http-equiv") == "Content-Security-Policy")
    assert str(policy).startswith("default-src 'none'; ")
    assert not re.search(r"https?:|unsafe-eval|\*|connect-src", str(policy))


def test_bokeh_is_there_once_and_every_figure_both_live_and_still(two: str) -> None:
    result = Page(two)
    assert len(result.all("figure")) == len(result.items()) == len(result.all("img")) == 4
    assert sum("BokehJS" in script for script in result.scripts) <= 1
    assert two.count("Copyright (c) Anaconda") == 1
    for picture in result.all("img"):
        kind, _, octets = str(picture["src"]).partition(",")
        assert kind == "data:image/svg+xml;base64"
        assert b"<svg" in base64.b64decode(octets)
        assert picture["alt"]


def test_it_is_small(two: str) -> None:
    day_and_night = [busy_day(name, 10, seed=seed) for name, seed in (("scratch", 1), ("home", 2))]
    assert len(report_html(day_and_night, ABOUT).encode()) < 6e6
    assert len(two.encode()) < 3e6


def hostile(name: str = HOSTILE) -> Utilization:
    result = busy_day(name, 300, targets=6)
    coverage = replace(result.coverage, notes=[f"note {name}"], sources=[name])
    return replace(result, coverage=coverage, calibration=replace(result.calibration, name=name))


def test_hostile_names_are_text() -> None:
    html = report_html([hostile(), minutes()], replace(ABOUT, refused=(f"blame of {HOSTILE} is not here",)))
    result = Page(html)
    assert result.headings[0] == f"Storage report: {HOSTILE} and scratch"
    assert f"blame of {HOSTILE} is not here" in " ".join(result.words)
    assert not [attributes for _, attributes in result.tags if any(name.startswith("on") for name in attributes)]
    assert all(str(picture["src"]).startswith("data:") for picture in result.all("img"))
    assert len(result.scripts) == len(result.items()) + 2  # the data, Bokeh and ours
    assert "alert" not in "".join(script for script in result.scripts[-2:])


def test_json_cannot_end_its_script_element() -> None:
    text = json_for_script({"a": "</script><!--&\u2028"})
    assert not set(text) & set("<>&\u2028")
    assert json.loads(text) == {"a": "</script><!--&\u2028"}


def test_names_are_never_mathematics() -> None:
    item = json.loads(report_figure(f.Figure("a", "b", (f.Panel("$$x$$", f.Axis("x"), f.Axis("y")),))).live_json)
    assert '"name":"PlainText"' in json.dumps(item, separators=(",", ":"))


@pytest.mark.usefixtures("undrawn")
def test_bytes_without_sizes_have_a_load_but_no_utilization() -> None:
    """As from LMT, which keeps no brw_stats."""
    moved = replace(busy_day(), samples=0, busy_time_pct=None, under_report_factor=None)
    result = page(moved)
    assert "nothing here counts disk I/Os by size" in result.text
    assert "Load" in result.headings
    assert len(result.all("figure")) == 1
    assert "Daily volumes" in result.closed
    assert "How busy it was" not in result.closed


def test_an_empty_window_is_reported_as_such() -> None:
    result = page(empty())
    assert "No data in this window." in result.text
    assert "nothing from OST0000, OST0001" in result.text
    assert "2 of 2 known targets did not report: OST0000, OST0001." in result.text
    assert "How busy it was" not in result.closed
    assert not result.all("figure")
    assert "complete: all" not in result.text


def test_no_results_at_all_are_reported_as_such() -> None:
    result = page()
    assert "This store holds no data to report on." in result.text
    assert result.headings == ["Storage report", "Overview", "Nothing to report"]


@pytest.mark.usefixtures("undrawn")
def test_one_of_two_file_systems_may_be_empty() -> None:
    result = page(minutes(), replace(empty(), filesystem="home"))
    assert len(result.all("figure")) == 2
    assert "Side by side" in result.headings


@pytest.mark.usefixtures("undrawn")
def test_what_failed_is_reported_on_top() -> None:
    result = page(minutes(), about=replace(ABOUT, refused=("blame of scratch is not in this report: no jobs",)))
    assert "blame of scratch is not in this report: no jobs" in result.text


def test_many_days_have_a_figure_of_daily_volumes() -> None:
    titles = [p.title for s in report_sections(long_window(days=20)) for p in s.parts if isinstance(p, f.Figure)]
    assert "Daily volumes" in titles


@pytest.mark.parametrize("targets", [4000])
def test_a_large_heat_map_is_merged(targets: int) -> None:
    values = np.tile(np.arange(400.0), (targets, 1))
    values[0] = np.nan
    names = tuple(f"OST{place:04x}" for place in range(targets))
    mark = f.HeatMapMark(0.0, 400e6, names, values, 0.1, 100.0, "FSU")
    figure = f.Figure("heat", "Heat", (f.Panel("", f.Axis("time", "time"), f.Axis("target"), (mark,)),))
    from iolens.views.report.page import _merged

    merged = _merged(mark)
    assert merged.values.size <= MOST_CELLS
    assert np.isnan(merged.values[0]).all()
    assert merged.values[1, 0] == np.mean(np.arange(merged.values.shape[1] and -(-400 // merged.values.shape[1])))
    assert merged.end >= mark.end
    assert figure.panels[0].marks == (mark,)


# Other analyses: found by their name.


@dataclass(frozen=True)
class Weather:
    filesystem: str
    window_start: datetime | None = None
    window_end: datetime | None = None


Weather.__module__ = "iolens.analyses.weather"


def install(monkeypatch: pytest.MonkeyPatch, name: str, **functions: Any) -> None:
    """A view that is not on disk."""
    module = types.ModuleType(f"iolens.views.{name}")
    module.__spec__ = ModuleSpec(module.__name__, None)
    vars(module).update(functions)
    monkeypatch.setitem(sys.modules, module.__name__, module)


@pytest.mark.usefixtures("undrawn")
def test_another_analysis_brings_its_sections(monkeypatch: pytest.MonkeyPatch) -> None:
    install(
        monkeypatch,
        "weather",
        REPORT_ORDER=5,
        report_answers=lambda result: [Answer("load", ("It rained.",))],
        report_notices=lambda result: [Notice("high", "load", "It is wet.", "Take an umbrella.", ("rain", "--stop"))],
        report_identity=lambda result: ["3 clouds"],
        report_sections=lambda result: [ReportSection("Rain", (f"on {result.filesystem}",), "load")],
        report_methods=lambda results: [ReportSection("Clouds", (f"{len(results)} results",))],
    )
    answer = page(minutes("a"), Weather("a"), Weather("b"))
    assert answer.closed.index("Rain") < answer.closed.index("How busy it was")
    assert answer.closed.count("Rain") == 2
    for words in ("It rained.", "on b", "2 results", "Urgent It is wet.", "Take an umbrella. iolens rain --stop -f b"):
        assert words in answer.text
    assert "3 clouds" in answer.text


@pytest.mark.usefixtures("undrawn")
def test_a_single_scan_ten_months_later_does_not_stretch_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Readings and scans are times: the report's window is that of its intervals."""
    install(monkeypatch, "weather", report_sections=lambda result: [])
    later = START + timedelta(days=300)
    answer = page(busy_day("a", 300), Weather("a", later, later))
    assert "Window 2012-10-22 00:00:00 to 2012-10-23 00:00:00 UTC Readings for weather" in answer.text
    assert "Readings for weather 2013-08-18 00:00:00 to 2013-08-18 00:00:00 UTC" in answer.text
    inside = page(busy_day("a", 300), Weather("a", START, START + timedelta(hours=3)))
    assert "Readings for" not in inside.text


@pytest.mark.usefixtures("undrawn")
def test_readings_alone_have_a_window_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "weather", report_sections=lambda result: [])
    nothing = replace(empty(), window_start=None, window_end=None)
    answer = page(nothing, Weather("scratch", START, START + timedelta(days=9)))
    assert "Window 2012-10-22 00:00:00 to 2012-10-31 00:00:00 UTC Generated" in answer.text


def test_a_view_without_sections_shows_its_tables_and_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    table = t.TableView("Drops", (t.count("drops", "Drops"),), [(12345,)], "wet")
    figure = f.Figure("rain", "Rain", (f.Panel("", f.Axis("x"), f.Axis("y"), message="dry"),))
    install(monkeypatch, "weather", tables=lambda result: [table], figures=lambda result: {"rain": lambda: figure})
    answer = page(Weather("a"))
    assert answer.closed == ["Weather"]
    assert "12,345" in answer.text
    assert "Other measurements" in answer.headings
    assert not answer.all("figure")  # it has only a message


def test_every_analysis_has_a_view() -> None:
    for name in analysis_names():
        assert hasattr(view_module(name, "tables"), "tables")


# The command.


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    opened = Store(folder)
    for part in (made_up(1, 300, 3), made_up(2, 300, 3, filesystem="scratch2")):
        for name in ("target_sizes", "target_io"):
            opened.append(name, part.table(name))
    return folder


@pytest.mark.usefixtures("drawn_once")
def test_the_command_writes_one_whole_file(store: Path, tmp_path: Path) -> None:
    done = iolens("report", "--store", store, "--peak", "35GB/s", "-o", tmp_path / "report.html")
    assert (done.code, done.out) == (0, "")
    assert "report.html, " in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]  # nothing half-written beside it
    result = Page((tmp_path / "report.html").read_text("utf-8"))
    assert result.headings[0] == "Storage report: scratch and scratch2"
    assert "peak 35 GB/s, given" in result.text


@pytest.mark.usefixtures("undrawn")
def test_file_systems_and_windows_may_be_chosen(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "one.html"
    window = ("--from", "2020-09-14T02:05", "--to", "2020-09-14T02:10", "--timezone", "Europe/Berlin")
    assert iolens("report", "--store", store, "-f", "scratch2", *window, "-o", out).code == 0
    result = Page(out.read_text("utf-8"))
    assert result.headings[0] == "Storage report: scratch2"
    assert "2020-09-14 02:05:00 to 2020-09-14 02:10:00 Europe/Berlin" in result.text


def test_a_window_without_data_gives_a_report_that_says_so(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "empty.html"
    assert iolens("report", "--store", store, "--from", "2019-01-01", "--to", "2019-01-02", "-o", out).code == 0
    assert Page(out.read_text("utf-8")).text.count("No data in this window.") == 4  # on the first page and in a chapter


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["-f", "nowhere"], 2, "there are: scratch, scratch2"),
        (["--from", "2020-09-15", "--to", "2020-09-14"], 2, "the window is empty"),
        (["--from", "soon"], 2, "not a time"),
        (["--timezone", "Mars/Olympus", "--from", "2020-09-14"], 2, "no time zone"),
        (["--calibration", "nobody"], None, "nobody"),
        (["--resolution", "1d"], 2, "1h"),
    ],
)
def test_errors_are_one_message_and_no_file(
    store: Path, tmp_path: Path, arguments: list[str], code: int | None, words: str
) -> None:
    done = iolens("report", "--store", store, *arguments, "-o", tmp_path / "no.html")
    assert done.code == code if code is not None else done.code in (1, 2)
    assert words in done.err
    assert "Traceback" not in done.err
    assert list(tmp_path.iterdir()) == []


def test_an_empty_store_and_an_unwritable_place_are_errors(store: Path, tmp_path: Path) -> None:
    done = iolens("report", "--store", tmp_path / "nothing", "-o", tmp_path / "no.html")
    assert (done.code, "holds no data yet" in done.err) == (1, True)
    done = iolens("report", "--store", store, "-f", "scratch", "-o", tmp_path / "absent" / "no.html")
    assert (done.code, "cannot be written" in done.err) == (1, True)


def test_an_old_report_survives_a_failure(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    out.write_text("old")
    assert iolens("report", "--store", store, "-f", "nowhere", "-o", out).code == 2
    assert out.read_text() == "old"


@pytest.mark.usefixtures("undrawn")
def test_one_failing_analysis_does_not_stop_the_others(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from click.testing import CliRunner

    from iolens.api import OpenStore
    from iolens.cli.main import iolens
    from iolens.errors import StoreError
    from iolens.store.scope import Scope

    analyse = OpenStore.analyse

    def broken(self: OpenStore, name: str, scope: Scope, **options: Any) -> Any:
        if scope.filesystem == "scratch2":
            raise StoreError("a file is damaged")
        return analyse(self, name, scope, **options)

    monkeypatch.setattr(OpenStore, "analyse", broken)
    out = tmp_path / "partly.html"
    done = CliRunner().invoke(iolens, ["report", "--store", str(store), "-o", str(out)], standalone_mode=False)
    assert done.return_value == 3
    assert "utilization of scratch2 is not in this report: a file is damaged" in Page(out.read_text("utf-8")).text
