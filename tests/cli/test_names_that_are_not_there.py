"""Typing errors are reported, with what may have been meant: targets, figures, files, resolutions, engines."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from iolens.analyses.utilization.analysis import Utilization
from iolens.api import OpenStore
from iolens.cli.main import iolens as command
from iolens.errors import IolensError, UsageError
from iolens.nearest_names import not_among
from iolens.store.engines import check_engine
from iolens.store.rollup import roll_up
from iolens.store.selection import StoreSelection
from iolens.store.source_choice import chosen_targets
from iolens.store.store import Store
from iolens.views.render.view_names import view_module
from tests.analyses.telemetry import made_up
from tests.cli.command import iolens

TARGETS = {"scratch-OST0000", "scratch-OST0001", "scratch-OST000a", "scratch-MDT0000", "sda"}
VIEWS = (
    "calibration_fit", "capacity", "contents", "drives", "imbalance", "latency", "metadata", "plan_capacity",
    "plan_endurance", "plan_metadata", "plan_performance", "utilization", "workload",
)  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    part = made_up(1, 30, 3)
    for name in ("target_io", "target_sizes"):
        Store(folder).append(name, part.table(name))
    return folder


def refused(*arguments: object) -> str:
    """What an invocation is refused with; exit code 2."""
    done = CliRunner().invoke(command, [str(argument) for argument in arguments])
    if isinstance(done.exception, IolensError):
        assert done.exception.exit_code == 2
        return str(done.exception)
    assert done.exit_code == 2, done.output
    return done.output


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """No row of a table may be read."""

    def work(*_: object, **__: object) -> None:
        raise AssertionError("rows were read")

    for name in ("frame", "chunks", "live_columns", "holds"):
        monkeypatch.setattr(StoreSelection, name, work)


# Targets --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("scratch-OST0001", "scratch-OST0001"), ("OST0001", "scratch-OST0001"), ("ost0001", "scratch-OST0001"),
        ("SCRATCH-ost000A", "scratch-OST000a"), ("OST000A", "scratch-OST000a"), ("mdt0000", "scratch-MDT0000"),
        ("SDA", "sda"),
    ],
)  # fmt: skip
def test_short_names_of_targets_in_any_case(given: str, meant: str) -> None:
    assert chosen_targets([given, given], TARGETS, "scratch") == (meant,)


def test_an_unknown_target_names_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"scratch has no target 'OST0002'; did you mean OST000. or OST000"):
        chosen_targets(["OST0002"], TARGETS, "scratch")
    with pytest.raises(UsageError, match=r"no target 'nonsense'; there are: MDT0000, OST0000,"):
        chosen_targets(["nonsense"], TARGETS, "scratch")
    with pytest.raises(UsageError, match=r"no target 'scratch-OST0002'; did you mean scratch-OST000"):
        chosen_targets(["scratch-OST0002"], TARGETS, "scratch")
    with pytest.raises(UsageError, match=r"several targets of s may be meant by 'ost0': a-OST0, b-OST0"):
        chosen_targets(["ost0"], {"a-OST0", "b-OST0"}, "s")


def test_a_short_name_selects_the_target(store: Path) -> None:
    with OpenStore(str(store)) as opened:
        whole, short = (opened.utilization(targets=[name]) for name in ("scratch-OST0001", "ost0001"))
    assert [item.target for item in short.per_target] == ["scratch-OST0001"]
    (mine,), (reference,) = (asdict_of(result) for result in (short, whole))
    assert mine == pytest.approx(reference, rel=1e-12)  # the engine adds up in any order


def asdict_of(result: Utilization) -> list[dict[str, Any]]:
    lines = [asdict(target) for target in result.per_target]
    return [{name: value for name, value in line.items() if isinstance(value, int | float)} for line in lines]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--target", "OST0009"), "scratch has no target 'OST0009'; did you mean OST000"),
        (("-f", "scrach"), "holds no file system 'scrach'; did you mean scratch? There are: scratch"),
        (("--source", "made_up"), "scratch has no rows of source 'made_up'; did you mean made-up?"),
        (("--resolution", "1h"), "has no 1h rollup of target_"),
        (("--resolution", "2h"), "'2h' is not one of 'raw', '60s', '1h'"),
        (("--figure", "heatmp=x.png"), "no figure 'heatmp' here; did you mean heatmap? There are: bandwidth,"),
        (("--figure", "x.jpg"), "x.jpg: a figure is written to a file that ends in .html, .pdf, .png, .svg"),
        (("--figure", "heatmap=x"), "x: a figure is written to a file that ends in .html, .pdf, .png, .svg"),
        (("--format", "parquet"), "parquet is binary: name a file with --output"),
        (("--engine", "duckdbb"), "no engine is called 'duckdbb'; did you mean duckdb?"),
    ],
)
def test_what_is_not_there_is_reported_before_any_work(
    store: Path, no_work: None, arguments: tuple[str, ...], message: str
) -> None:
    assert message in refused("utilization", "--store", store, *arguments)


def test_a_figure_is_refused_even_without_a_store(tmp_path: Path) -> None:
    message = refused("imbalance", "--store", tmp_path / "nowhere", "--figure", "snapshots=x.png")
    assert "no figure 'snapshots' here; did you mean snapshot?" in message
    message = refused("plan", "capacity", "--store", tmp_path / "nowhere", "--figure", "growht=x.png")
    assert "no figure 'growht' here; did you mean growth?" in message


def test_a_rollup_that_was_made_is_there(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.append("target_io", made_up(1, 30, 2).table("target_io"))
    roll_up(store)
    assert store.select("scratch", resolution="60s").resolution == "60s"
    with pytest.raises(UsageError, match="no resolution is called '2h'"):
        store.select("scratch", resolution="2h")


def test_top_and_the_report_name_the_nearest_file_system(store: Path, tmp_path: Path) -> None:
    assert "did you mean scratch?" in refused("top", "--store", store, "-f", "scratc", "--once")
    assert "did you mean scratch?" in refused("report", "--store", store, "-f", "scratc", "-o", tmp_path / "r.html")


# Figures --------------------------------------------------------------------------------------------------------------


class Everything:
    """A result that has whatever a view asks for."""

    def __getattr__(self, name: str) -> Everything:
        return Everything()

    def __contains__(self, item: object) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_says_which_figures_it_can_draw(view: str) -> None:
    module: Any = view_module(view, "figures")
    drawn = list(module.figures(Everything()))
    more = ["throughput"] if view == "workload" else []  # the same series as `bandwidth`, where that is not asked for
    assert sorted(module.FIGURES) == sorted([*drawn, *more])
    assert module.FIGURES[0] == drawn[0]  # the default one


# Engines --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["local-spark", "spark://head:7077", "sc://head:15002"])
def test_without_pyspark_the_extra_is_named(store: Path, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    message = refused("utilization", "--store", store, "--engine", engine)
    assert message == f"engine {engine} needs PySpark: pip install 'iolens[spark]'"


NO_PYSPARK = """
import sys
from dataclasses import asdict

sys.modules["pyspark"] = None
from iolens.cli.main import main

main()
"""


def test_without_pyspark_the_command_ends_in_one_line(store: Path, tmp_path: Path) -> None:
    """As a user sees it: no traceback."""
    import subprocess

    (tmp_path / "run.py").write_text(NO_PYSPARK)
    line = [sys.executable, str(tmp_path / "run.py"), "utilization", "--store", str(store), "--engine", "local-spark"]
    done = subprocess.run(line, capture_output=True, check=False, text=True)
    assert done.returncode == 2
    assert done.stderr == "iolens: engine local-spark needs PySpark: pip install 'iolens[spark]'\n"


def test_engines_that_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iolens.store.engines.find_spec", lambda _: object())  # nothing is started
    for name in ("duckdb", "local-spark", "spark://a:1", "sc://a:1"):
        check_engine(name)


# Names ----------------------------------------------------------------------------------------------------------------


def test_the_nearest_names() -> None:
    assert not_among("scrach", ["home", "scratch"]) == "; did you mean scratch? There are: home, scratch"
    assert not_among("x", ["home", "scratch"]) == "; there are: home, scratch"
    assert not_among("x", []) == "; there is none"
    many = [f"scratch-OST{number:04x}" for number in range(248)]
    assert not_among("scratch-OST00F8", many).startswith("; did you mean scratch-OST00")
    assert "There are" not in not_among("scratch-OST00F8", many)
    assert not_among("zzz", many) == "; there are 248, such as scratch-OST0000, scratch-OST0001, scratch-OST0002"


def test_the_command_says_so_too(store: Path) -> None:
    done = iolens("utilization", "--store", store, "--target", "OST0009")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("iolens: scratch has no target 'OST0009'; did you mean OST000")
    assert "Traceback" not in done.err
