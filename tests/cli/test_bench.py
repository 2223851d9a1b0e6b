"""`iolens bench`: plan, run, show, list, compare and store studies; what is wrong is one line."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from iolens.benchmarks.studies.plan import StudyFolder, journal_writer
from iolens.units import KIB
from tests.analyses.study_rows import cache_rows, grid, metadata_rows, repeats
from tests.benchmarks.studies.made_studies import made_place, sequential_folder
from tests.cli.command import Finished, iolens

SMALL = ("--size", "64KiB", "--blocks", "4KiB,16KiB", "--repeats", "2", "--max-fullness", "100")
VERBS = ("sequential", "ior", "stripe", "cache", "metadata", "run", "show", "list", "compare", "clean")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return made_place(tmp_path).path


def study(place: Path, folder: Path, *options: object) -> Finished:
    done = iolens("bench", "sequential", place, *SMALL, "--folder", folder, *options)
    assert done.code == 0, done.err
    return done


def recorded(folder: Path, rows: list[dict[str, Any]]) -> Path:
    """The folder of a study that somebody else measured, without its plan."""
    folder.mkdir()
    with journal_writer(StudyFolder(folder)) as (_, writer):
        for number, row in enumerate(rows):
            known = {name: value for name, value in row.items() if value is not None}
            writer.add_point(str(number), [{"run_id": f"{row['sweep']}/{number}", **known}])
    return folder


def one_line(done: Finished) -> str:
    assert done.code == 2, done.err
    (line,) = done.err.splitlines()
    assert line.startswith("iolens: ")
    return line.removeprefix("iolens: ")


def test_a_study_is_made_run_and_shown(place: Path, tmp_path: Path) -> None:
    done = study(place, tmp_path / "study")
    assert "Bandwidth" in done.out
    assert "4 points to measure" in done.err
    assert list(place.iterdir()) == []
    shown = iolens("bench", "show", tmp_path / "study")
    assert shown.out == done.out
    for file in ("plan.toml", "runs.jsonl"):
        assert iolens("bench", "show", tmp_path / "study" / file).out == done.out


def test_without_a_folder_it_is_named_after_the_study(place: Path, tmp_path: Path) -> None:
    assert iolens("bench", "sequential", place, *SMALL, cwd=tmp_path).code == 0
    (folder,) = tmp_path.glob("sequential-*")
    assert StudyFolder(folder).plan().name == folder.name


def test_a_dry_run_prints_a_plan_that_bench_run_takes_and_writes_nothing(place: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    done = iolens("bench", "sequential", f"lake={place}", *SMALL, "--dry-run", cwd=tmp_path)
    assert done.code == 0
    assert sorted(tmp_path.rglob("*")) == before
    assert "# 4 points: 256 KiB written, 256 KiB read, 4 files, at most 64 KiB at once" in done.out
    assert "# about " in done.out
    assert "nothing was written" in done.out
    plan = tmp_path / "blocks.toml"
    plan.write_text(done.out)
    (planned,) = tomllib.loads(done.out)["places"]
    assert (planned["name"], planned["path"]) == ("lake", str(place))
    assert iolens("bench", "run", plan, "--folder", tmp_path / "blocks").code == 0
    assert len(StudyFolder(tmp_path / "blocks").journal().rows) == 4


@pytest.mark.parametrize("verb", VERBS)
def test_help_has_an_example(verb: str) -> None:
    done = iolens("bench", verb, "--help")
    assert done.code == 0
    assert f"iolens bench {verb}" in done.out.partition("Example")[2]


def test_wrong_inputs_are_one_line(place: Path, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    assert one_line(iolens("bench", "sequential", gone, *SMALL)) == f"{gone}: no such directory"
    odd = iolens("bench", "sequential", place, "--size", "10KiB", "--blocks", "4KiB", "--max-fullness", "100")
    assert one_line(odd) == "a file of 10 KiB is not a whole number of blocks of 4096 bytes"
    assert "two places are called" in one_line(iolens("bench", "sequential", f"a={place}", f"a={tmp_path}", *SMALL))
    assert "a place is DIR or NAME=DIR" in one_line(iolens("bench", "sequential", "a=", *SMALL))
    assert "stripes are not applicable" in one_line(iolens("bench", "sequential", place, *SMALL, "--stripe-count", "2"))
    assert "more than --max-bytes" in one_line(iolens("bench", "sequential", place, *SMALL, "--max-bytes", "1KiB"))
    assert one_line(iolens("bench", "clean", gone)) == f"{gone}: no study"
    assert "neither a study nor results of a benchmark" in one_line(iolens("bench", "show", place))
    assert not list(tmp_path.glob("sequential-*"))


def test_a_folder_that_is_there_is_not_overwritten(place: Path, tmp_path: Path) -> None:
    study(place, tmp_path / "study")
    again = iolens("bench", "sequential", place, *SMALL, "--folder", tmp_path / "study")
    assert "exists; go on with it by `iolens bench run" in one_line(again)


@pytest.mark.parametrize("option", [("--size", "five"), ("--blocks", "4KiB,-1"), ("--repeats", "0"), ("--blocks", "")])
def test_wrong_options_name_the_option(place: Path, option: tuple[str, str]) -> None:
    done = iolens("bench", "sequential", place, *option)
    assert done.code == 2
    assert option[0] in done.err
    assert "Traceback" not in done.err


def test_a_directory_whose_name_no_plan_can_say_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    hostile = tmp_path / "a\nb"
    hostile.mkdir()
    done = iolens("bench", "sequential", hostile, *SMALL, cwd=tmp_path)
    assert "no name for a place in a plan" in one_line(done)
    assert [path.name for path in tmp_path.iterdir()] == ["a\nb"]


def test_nothing_measured_yet_is_said(tmp_path: Path) -> None:
    folder = sequential_folder(tmp_path)
    assert f"nothing was measured yet; `iolens bench run {folder.path}`" in one_line(
        iolens("bench", "show", folder.path)
    )


def test_a_value_that_was_edited_is_refused_not_computed_with(place: Path, tmp_path: Path) -> None:
    study(place, tmp_path / "study")
    runs = tmp_path / "study" / "runs.jsonl"
    runs.write_text(runs.read_text().replace('"operations": 16', '"operations": "many"', 1))
    done = iolens("bench", "show", tmp_path / "study")
    assert done.code == 1
    assert f"{runs}: point {place}/block=4KiB/0: operations = 'many'; expected" in done.err


# Stores


def benchmark_runs(store: Path) -> list[dict[str, Any]]:
    from iolens.store.store import Store

    return list(Store(str(store)).benchmark_runs())


def test_a_study_stored_twice_is_there_once_also_from_another_path(place: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    done = study(place, tmp_path / "study", "--store", store)
    assert "stored in" in done.err
    assert len(benchmark_runs(store)) == 8
    assert iolens("bench", "run", tmp_path / "study", "--store", store).code == 0
    (tmp_path / "study").rename(tmp_path / "moved")
    assert iolens("ingest", "study", tmp_path / "moved", "--store", store).code == 0
    assert len(benchmark_runs(store)) == 8


def test_a_stored_study_is_listed_and_shown_by_its_name(place: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    first = study(place, tmp_path / "first", "--store", store, "--format", "json")
    name = StudyFolder(tmp_path / "first").plan().name
    study(place, tmp_path / "second", "--store", store)
    newest = StudyFolder(tmp_path / "second").plan().name
    listed = json.loads(iolens("bench", "list", "--store", store, "--format", "json").out)["studies"]
    assert [(line["name"], line["kind"], line["runs"]) for line in listed] == [
        (newest, "sequential", 8), (name, "sequential", 8),
    ]  # fmt: skip
    shown = iolens("bench", "show", name, "--store", store, "--format", "json")
    assert json.loads(shown.out)["cases"] == json.loads(first.out)["cases"]
    assert f"has no study '{name[:-1]}'; " in one_line(iolens("bench", "show", name[:-1], "--store", store))


def test_an_empty_store_lists_none_and_says_how_to_make_one(place: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    iolens("calibrate", "add", "a", "--write", "1e-3,4e-9", "--read", "8e-4,1e-9", "-f", "x", "--store", store)
    assert "There is none" in iolens("bench", "list", "--store", store).out


def test_a_calibration_leaves_studies_alone(place: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    study(f"lake={place}", tmp_path / "study", "--store", store)  # type: ignore[arg-type]
    done = iolens("calibrate", "fit", "--store", store, "-f", "lake")
    assert done.code != 0
    assert "Traceback" not in done.err
    assert "sequential" not in done.out


# Comparison


def test_two_folders_are_compared(tmp_path: Path) -> None:
    before = recorded(tmp_path / "before", repeats("write", [100e6, 101e6]))
    after = recorded(tmp_path / "after", repeats("write", [150e6, 151e6]))
    done = iolens("bench", "compare", before, after)
    assert done.code == 0
    assert "write: 50 % faster in the only case; beyond noise in 1." in done.out


def test_no_case_in_common_is_one_line(tmp_path: Path) -> None:
    before = recorded(tmp_path / "before", repeats("write", [100e6]))
    after = recorded(tmp_path / "after", repeats("write", [100e6], transfer_bytes=4 * KIB))
    assert "have no case in common" in one_line(iolens("bench", "compare", before, after))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (repeats("write", [1e8, 2e8]), "Bandwidth"),
        (grid({(1, None, 1): [1e8, 1.1e8], (4, None, 1): [3e8, 3.1e8]}), "Recommended"),
        (cache_rows(small=(1e9, 1e8, 9e9, 1e8), large=(1e8,) * 4), "Memory and disk"),
        (metadata_rows({("file_stat", 1): [1000.0]}), "Metadata operations"),
    ],
    ids=["sequential", "stripe", "cache", "metadata"],
)
def test_every_kind_has_its_own_answer(tmp_path: Path, rows: list[dict[str, Any]], words: str) -> None:
    done = iolens("bench", "show", recorded(tmp_path / "study", rows))
    assert done.code == 0, done.err
    assert done.out.startswith(words)


def test_a_study_of_stripes_that_is_stopped_early_is_no_error(tmp_path: Path, place: Path) -> None:
    options = ("--size", "64KiB", "--blocks", "4KiB", "--max-fullness", "100", "--max-seconds", "0s")
    done = iolens("bench", "stripe", place, *options, "--folder", tmp_path / "study")
    assert done.code == 3
    plan = tmp_path / "study" / "plan.toml"
    with journal_writer(StudyFolder(tmp_path / "study")) as (_, writer):
        rows = grid({(None, None, 4 * KIB): [1e8]})
        known = {name: value for name, value in rows[0].items() if value is not None}
        writer.add_point("one", [{"run_id": "x", **known}])
    assert "max_seconds = 0.0" in plan.read_text()
    again = iolens("bench", "run", tmp_path / "study")
    assert again.code == 3
    assert "no result yet: a recommendation needs at least two cells" in again.err
