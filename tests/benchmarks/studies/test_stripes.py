"""Stripes: `lfs setstripe` is asked for exactly what the plan says, and where there is no Lustre that is said."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from iolens.benchmarks.studies import sequential_study, stripe_study
from iolens.benchmarks.studies import sequential_study as stripes
from iolens.benchmarks.studies.ior_study import IorStudy, IorStudyParameters
from iolens.benchmarks.studies.plan import StudyPlan, new_folder
from iolens.benchmarks.studies.run import check_study, run_study
from iolens.benchmarks.studies.sequential_study import (
    FileStripes,
    SequentialParameters,
    can_stripe,
    make_striped,
    refuse_stripes,
)
from iolens.benchmarks.studies.stripe_study import StripeStudyParameters
from iolens.errors import IolensError, UsageError
from iolens.sources.benchmarks.study_runs import StudyJournal
from iolens.units import KIB, MIB
from tests.benchmarks.studies.made_studies import NO_LIMITS, made_place, sequential_plan

LFS = """#!{python}
import json, sys
with open({log!r}, "a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\\n")
if sys.argv[3] == "99":
    sys.exit("error: setstripe: stripe count 99 is too many")
open(sys.argv[-1], "ab").close()
"""


@pytest.fixture
def lfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A made-up `lfs` on PATH that makes an empty file; its calls are in the log that is given."""
    (tmp_path / "bin").mkdir()
    program, log = tmp_path / "bin" / "lfs", tmp_path / "lfs.log"
    program.write_text(LFS.format(python=sys.executable, log=str(log)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    for module in (stripes, stripe_study, sequential_study):
        monkeypatch.setattr(module, "filesystem_kind", lambda path, *_: "lustre" if "lake" in path.name else "nfs4")
    return log


def calls(log: Path) -> list[list[str]]:
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def test_a_striping_in_keys_and_for_people() -> None:
    assert FileStripes().is_default
    assert [FileStripes(*values).key() for values in ((), (4,), (None, MIB), (16, MIB))] == [
        "", "/stripes=4xdefault", "/stripes=defaultx1048576", "/stripes=16x1048576",
    ]  # fmt: skip
    assert str(FileStripes(1)) == "1 stripe"
    assert str(FileStripes(16, 4 * MIB)) == "16 stripes of 4 MiB"
    assert str(FileStripes(None, MIB)) == "default stripes of 1 MiB"


@pytest.mark.parametrize(
    ("striping", "options"),
    [
        (FileStripes(4, MIB), ["-c", "4", "-S", "1048576"]),
        (FileStripes(4), ["-c", "4"]),
        (FileStripes(None, MIB), ["-S", "1048576"]),
    ],
)
def test_lfs_is_asked_for_what_is_wanted(tmp_path: Path, lfs: Path, striping: FileStripes, options: list[str]) -> None:
    make_striped(tmp_path / "a b;c", striping)
    assert calls(lfs) == [["setstripe", *options, str(tmp_path / "a b;c")]]


def test_nothing_is_asked_for_where_nothing_is_wanted(tmp_path: Path, lfs: Path) -> None:
    make_striped(tmp_path / "data", FileStripes())
    assert calls(lfs) == []


def test_what_lfs_says_when_it_fails_is_the_error(tmp_path: Path, lfs: Path) -> None:
    with pytest.raises(IolensError, match="lfs failed with code 1: error: setstripe: stripe count 99 is too many"):
        make_striped(tmp_path / "data", FileStripes(99))


def test_a_sequential_study_stripes_every_file_before_it_is_written(tmp_path: Path, lfs: Path) -> None:
    place = made_place(tmp_path, "lake")
    parameters = SequentialParameters(16 * KIB, (4 * KIB,), stripe_counts=(1, 4), stripe_bytes=(64 * KIB, MIB))
    folder = new_folder(tmp_path / "study", sequential_plan(place, parameters=parameters, repeats=1))
    assert run_study(folder).is_whole
    data = str(place.path / "iolens-bench-small" / "data")
    assert calls(lfs) == [
        ["setstripe", "-c", str(count), "-S", str(size), data] for count in (1, 4) for size in (64 * KIB, MIB)
    ]
    rows = [row for rows in folder.journal().rows.values() for row in rows]
    assert [(row["stripe_count"], row["stripe_bytes"]) for row in rows[::2]] == [
        (1, 64 * KIB), (1, MIB), (4, 64 * KIB), (4, MIB),
    ]  # fmt: skip
    assert list(place.path.iterdir()) == []


@pytest.mark.parametrize(
    "parameters", [SequentialParameters(stripe_counts=(2,)), SequentialParameters(stripe_bytes=(MIB,))]
)
def test_where_there_is_no_lustre_stripes_are_not_applicable(
    tmp_path: Path, parameters: SequentialParameters, lfs: Path
) -> None:
    plan = sequential_plan(made_place(tmp_path, "home"), parameters=parameters)
    with pytest.raises(UsageError, match=r"home is nfs4: stripes are not applicable; leave out --stripe-count and"):
        check_study(plan, StudyJournal())


def test_lustre_without_its_program_is_said(tmp_path: Path, lfs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    place = made_place(tmp_path, "lake").path
    assert not can_stripe(place)
    with pytest.raises(UsageError, match="lake is Lustre, but `lfs` is not on PATH"):
        refuse_stripes(place)


def test_the_kind_of_a_file_system_is_that_of_its_mount(tmp_path: Path) -> None:
    number = tmp_path.stat().st_dev
    (tmp_path / "proc/self").mkdir(parents=True)
    line = f"36 25 {number >> 8 & 0xFFF}:{number & 0xFF} / /lake rw - lustre 10.0.0.1@tcp:/lake rw\n"
    (tmp_path / "proc/self/mountinfo").write_text(line)
    assert stripes.filesystem_kind(tmp_path, tmp_path) == "lustre"


def stripe_plan(*names: str, folder: Path) -> StudyPlan:
    grid = StripeStudyParameters(64 * KIB, (1, 4), (MIB,), (4 * KIB, 16 * KIB))
    return StudyPlan("grid", "stripe", tuple(made_place(folder, name) for name in names), grid, 2, NO_LIMITS)


def test_the_stripe_study_varies_only_blocks_where_stripes_cannot_be_set_and_says_so(tmp_path: Path, lfs: Path) -> None:
    plan = stripe_plan("lake", "home", folder=tmp_path)
    assert stripe_study.KIND.check(plan) == ["home is nfs4: stripes are not applicable, only blocks are varied"]
    keys = [point.key for point in stripe_study.KIND.points(plan) if point.iteration == 0]
    assert keys == [
        "lake/block=4KiB/stripes=1x1048576/0", "lake/block=16KiB/stripes=1x1048576/0",
        "lake/block=4KiB/stripes=4x1048576/0", "lake/block=16KiB/stripes=4x1048576/0",
        "home/block=4KiB/0", "home/block=16KiB/0",
    ]  # fmt: skip
    folder = new_folder(tmp_path / "study", plan)
    assert run_study(folder).is_whole
    assert len(calls(lfs)) == 8
    assert len(folder.journal().rows) == 12


def test_repeats_of_a_grid_are_made_in_turn(tmp_path: Path, lfs: Path) -> None:
    points = stripe_study.KIND.points(stripe_plan("lake", "home", folder=tmp_path))
    assert [point.iteration for point in points] == [0] * 6 + [1] * 6
    assert len({point.key for point in points}) == 12


@pytest.mark.parametrize("files", ["per-process", "shared"])
def test_ior_s_directory_is_striped_for_a_file_per_process_and_the_file_for_a_shared_one(
    tmp_path: Path, lfs: Path, monkeypatch: pytest.MonkeyPatch, files: str
) -> None:
    from iolens.benchmarks.studies import ior_study
    from iolens.benchmarks.studies.plan import PointSite

    seen = []
    monkeypatch.setattr(ior_study, "run_ior", lambda command, *_, **__: (seen.append(command), [])[1])
    parameters = IorStudyParameters((1,), (MIB,), (MIB,), (files,), stripe_counts=(4,))
    plan = StudyPlan("i", "ior", (made_place(tmp_path, "lake"),), parameters, 1)
    (point,) = IorStudy().points(plan)
    own = tmp_path / "own"
    own.mkdir()
    if files == "per-process":  # the made-up program makes files only
        monkeypatch.setattr(stripes, "run_program", lambda words: lfs.write_text(json.dumps(words[1:])))
    assert list(IorStudy().run(plan, point, PointSite(own))) == []
    expected = own if files == "per-process" else own / "data"
    assert calls(lfs) == [["setstripe", "-c", "4", str(expected)]]
    assert seen[0].use_existing == (files == "shared")  # else IOR would make the file anew


def test_a_size_that_is_no_whole_number_of_blocks_is_refused(tmp_path: Path) -> None:
    plan = sequential_plan(made_place(tmp_path))
    for parameters, words in (
        (SequentialParameters(10 * KIB, (4 * KIB,)), "not a whole number of blocks of 4096 bytes"),
        (SequentialParameters(4 * KIB, (8 * KIB,)), "not a whole number of blocks"),
        (SequentialParameters(4 * KIB, (0,)), "not a whole number of blocks of 0 bytes"),
        (SequentialParameters(0, (4,)), "not a whole number of blocks"),
        (SequentialParameters(1000, (100,), direct=True), "O_DIRECT moves multiples of 512 bytes, not blocks of 100"),
    ):
        with pytest.raises(UsageError, match=words):
            check_study(replace(plan, parameters=parameters), StudyJournal())


def test_o_direct_that_does_not_work_is_refused_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sequential_study, "direct_io_trouble", lambda _: "Invalid argument")
    plan = sequential_plan(made_place(tmp_path), parameters=SequentialParameters(4 * KIB, (4 * KIB,), direct=True))
    with pytest.raises(UsageError, match=r"O_DIRECT does not work here \(Invalid argument\); leave out --direct"):
        check_study(plan, StudyJournal())


def test_a_place_in_memory_is_measured_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequential_study, "filesystem_kind", lambda _: "tmpfs")
    notes = check_study(sequential_plan(made_place(tmp_path)), StudyJournal())
    assert notes == ["scratch is memory: there is no disk below, and nothing is dropped"]


def test_two_places_are_measured_in_turn(tmp_path: Path) -> None:
    plan = sequential_plan(made_place(tmp_path), made_place(tmp_path, "home"), repeats=1)
    folder = new_folder(tmp_path / "study", plan)
    assert run_study(folder).is_whole
    rows = [row for rows in folder.journal().rows.values() for row in rows]
    assert [row["place"] for row in rows] == ["scratch"] * 4 + ["home"] * 4
    assert {row["bytes"] for row in rows} == {64 * KIB}
    assert [row["operations"] for row in rows] == [16, 16, 4, 4] * 2
    assert {row.get("page_cache") for row in rows if row["direction"] == "read"} == {"dropped"}
    assert {row["fsync"] for row in rows if row["direction"] == "write"} == {True}
