"""`iolens plan` and `iolens plan capacity`: published values, ranges, grids, the store, errors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from iolens.questions import declarations
from iolens.store.store import Store
from tests.analyses.capacity_rows import readings, table_of
from tests.cli.command import iolens


def plan(*arguments: object) -> dict:
    done = iolens("plan", "capacity", *arguments, "--format", "json")
    assert done.code == 0, done.err
    result: dict = json.loads(done.out)
    return result


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    used = [100, 110, 130, 120, 150, 190, 240, *[300] * 13]
    Store(folder).append("target_capacity", table_of(readings(range(20), used)))
    return folder


def test_plans_are_found_by_their_declarations_and_not_among_the_verbs() -> None:
    listed = iolens("plan", "--help").out
    names = [words.removeprefix("plan ") for words in declarations() if words.startswith("plan ")]
    assert "capacity" in names
    for name in names:
        assert f"\n  {name} " in listed
    verbs = iolens("--help").out
    assert "\n  plan " in verbs
    assert "plan_" not in verbs
    assert "lazy" not in verbs
    assert iolens("plan", "holidays").code == 2


def test_listing_plans_imports_none() -> None:
    program = (
        "import sys\nfrom iolens.cli.main import iolens\n"
        "iolens.main(['plan', '--help'], standalone_mode=False)\nprint('LOADED', *sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = done.stdout.partition("LOADED")[2].split()
    assert not {"numpy", "iolens.questions.plan.question"} & set(loaded)


def test_published_capacities() -> None:
    """133 TB/day, 28 days, half purged, SSI 3 and 4: 22.3 and 29.8 PB."""
    cases = plan("--ssi", "3,4", "--purge-days", "28", "--purge-fraction", "0.5", "--daily-growth", "133TB")["cases"]
    assert [round(case["capacity_bytes"] / 1e15, 1) for case in cases] == [22.3, 29.8]
    assert [case["ci95"] for case in cases] == [None, None]


def test_given_growth_needs_no_store(tmp_path: Path) -> None:
    done = iolens("plan", "capacity", "--daily-growth", "133TB", cwd=tmp_path)
    assert done.code == 0, done.err
    assert "7.45 PB" in done.out


def test_ranges_and_grids() -> None:
    result = plan("--ssi", "3..4", "--daily-growth", "100TB..150TB", "--what-if", "purge-days=14,28,56")
    assert [case["purge_days"] for case in result["cases"]] == [14, 28, 56]
    case = result["cases"][1]
    assert (case["low_bytes"], case["high_bytes"]) == (168 * 100 * 10**12, 224 * 150 * 10**12)
    assert case["low_bytes"] < case["ci95"][0] < case["ci95"][1] < case["high_bytes"]
    origins = {item["name"]: item["origin"] for item in result["inputs"]}
    assert origins == {
        "ssi": "option --ssi",
        "purge_days": "option --what-if purge-days",
        "purge_fraction": "default",
        "daily_growth_bytes": "option --daily-growth",
    }


def test_growth_comes_from_the_store(store: Path) -> None:
    result = plan("--store", store, "--cutoff", "2020-09-17")
    growth = result["growth"]
    assert (growth["method"], growth["days_with_growth"], growth["days_excluded"]) == ("strict", 4, 13)
    assert growth["mean_bytes_per_day"] == 45
    assert growth["days_before_cutoff"] == 2
    assert result["cases"][0]["capacity_bytes"] == 56 * 45
    assert result["inputs"][-1]["kind"] == "distribution"
    paper = plan("--store", store, "--method", "paper", "--capacity", "4MB")["growth"]
    assert paper["method"] == "paper"
    assert paper["mean_bytes_per_day"] == pytest.approx(
        2 * (10 + 20 + 30 + 40 + 50 + 60) / 18
    )  # days without any count too


def test_growth_beside_a_given_one(store: Path) -> None:
    result = plan("--store", store, "--daily-growth", "1kB", "--purge-every", "7")
    assert result["cases"][0]["daily_growth_bytes"] == 1000
    assert result["growth"]["days_with_growth"] == 6
    assert result["purges"][0]["every_days"] == 7


@pytest.mark.parametrize(
    "wrong",
    [
        ("--ssi", "fast", "--daily-growth", "1TB"),
        ("--ssi", ",", "--daily-growth", "1TB"),
        ("--ssi", "0", "--daily-growth", "1TB"),
        ("--daily-growth", "1TB", "--purge-fraction", "2"),
        ("--daily-growth", "much"),
        ("--daily-growth", "1TB", "--what-if", "colour=red"),
        ("--daily-growth", "1TB", "--what-if", "ssi"),
        ("--daily-growth", "2TB..1TB"),
        ("--daily-growth", "1TB", "--purge-every", "0"),
    ],
)
def test_wrong_questions_are_refused(wrong: tuple[str, ...]) -> None:
    done = iolens("plan", "capacity", *wrong)
    assert (done.code, done.out) == (2, "")
    assert "Traceback" not in done.err


def test_a_store_without_growth_says_so(tmp_path: Path) -> None:
    Store(tmp_path).append("target_capacity", table_of(readings(range(20), range(400, 200, -10))))
    done = iolens("plan", "capacity", "--store", tmp_path)
    assert done.code == 2
    assert "no day of growth among 20 readings" in done.err
    assert iolens("plan", "capacity", "--store", tmp_path / "none").code == 1


def test_figures(store: Path, tmp_path: Path) -> None:
    done = iolens("plan", "capacity", "--store", store, "--figure", tmp_path / "fig1.svg", "-o", tmp_path / "plan.md",
                  "--format", "markdown")  # fmt: skip
    assert done.code == 0, done.err
    assert (tmp_path / "fig1.svg").stat().st_size > 1000
    assert (tmp_path / "plan.md").read_text().startswith("## Capacity of the new system")
    assert iolens("plan", "capacity", "--store", store, "--figure", "list").out.split() == [
        "growth", "cases", "purges", "ages"
    ]  # fmt: skip


def test_what_the_store_knows_is_held_against_the_answer(store: Path) -> None:
    """300 bytes are used; half a day's growth is to be kept: 28.6 · 0.5 / 0.5 · 1 is less."""
    less = ("--store", store, "--purge-days", "0.5")
    refused = iolens("plan", "capacity", *less)
    assert (refused.code, refused.out) == (2, "")
    assert "less than the 300 B that scratch held on 2020-10-03" in refused.err
    assert "say that a smaller system is meant" in refused.err
    result = plan(*less, "--smaller")
    growth = result["growth"]["mean_bytes_per_day"]
    assert growth < 300
    said = {item["code"]: item for item in result["warnings"]}
    assert set(said) == {"capacity_below_used", "growth_window_short"}
    assert said["capacity_below_used"]["facts"]["used_bytes"] == 300
    assert said["growth_window_short"]["facts"]["window_days"] == 19
    printed = iolens("plan", "capacity", *less, "--smaller").out
    assert f"Warning: {said['capacity_below_used']['message']}" in " ".join(printed.split())
    assert plan("--daily-growth", "1TB")["warnings"] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["plan", "capacity", "--daily-growth", "133"], "133 of what? write 133TB"),
        (["plan", "capacity", "--daily-growth", "100..150TB"], "100 of what? write 100TB"),
        (["plan", "capacity", "--daily-growth", "1TB", "--what-if", "daily-growth=1,2"], "1 of what? write 1TB"),
        (["plan", "capacity", "--daily-growth", "1TB", "--capacity", "30"], "30 of what? write 30TB"),
        (["plan", "endurance", "--waf", "2", "--fswpd", "0.1", "--new-capacity", "30"], "30 of what? write 30TB"),
        (["plan", "endurance", "--waf", "2", "--fswpd", "0.1", "--usable", "10=3.2"], "3.2 of what? write 3.2TB"),
        (["plan", "endurance", "--waf", "2", "--fswpd", "0.1", "--drive-sizes", "4"], "4 of what? write 4TB"),
        (["plan", "metadata", "--capacity", "30"], "30 of what? write 30TB"),
        (["plan", "performance", "--demand", "bytes_per_s=35"], "35 of what? write 35GB/s"),
        (["plan", "rationale", "--capacity", "30"], "30 of what? write 30TB"),
        (["plan", "rationale", "--daily-growth", "133"], "133 of what? write 133TB"),
        (["workload", "--peak", "35"], "35 of what? write 35GB/s"),
        (["utilization", "--peak", "35"], "35 of what? write 35GB/s"),
        (["imbalance", "--threshold", "112"], "112 of what? write 112GB/s"),
    ],
)
def test_a_number_without_a_unit_is_asked_for_one(arguments: list[str], message: str, tmp_path: Path) -> None:
    done = iolens(*arguments, cwd=tmp_path)
    assert done.code == 2
    assert message in done.err
    assert done.out == ""


def test_operations_and_transfer_sizes_need_no_unit(tmp_path: Path) -> None:
    assert iolens("plan", "performance", "--demand", "ops_per_s=2e6", cwd=tmp_path).code == 0
    known = ("--waf", "2", "--fswpd", "0.1", "--rmw", "1.5")
    assert iolens("plan", "endurance", *known, "--raid-block", "131072", cwd=tmp_path).code == 0


def test_a_number_without_a_unit_is_reported_by_its_option(tmp_path: Path) -> None:
    done = iolens("plan", "capacity", "--daily-growth", "133", cwd=tmp_path)
    assert (done.code, done.err) == (2, "iolens: --daily-growth: 133 of what? write 133TB\n")
