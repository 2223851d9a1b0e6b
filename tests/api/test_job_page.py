"""The page of a job from made-up stores: shares against counts by hand, any layer missing, nobody else named."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

from iolens.analyses.job_page import JobPage
from iolens.api import OpenStore
from iolens.api.job_page import JobPageOptions, job_page
from iolens.errors import InputError, UsageError
from iolens.models.transaction_time import GRACE_2012
from iolens.store.scope import Scope
from iolens.store.store import Store
from iolens.units import MIB, from_epoch_us
from tests.analyses.client_rows import client_rows, fill
from tests.analyses.explain.centre import OSTS
from tests.analyses.page_centre import OWN, RUN_S, STRANGE_PROGRAM, STRANGE_PROJECT, STRANGER, filled, page_centre
from tests.analyses.run_rows import T0_S, fill_runs, job_row, run_row
from tests.cli.command import iolens

COST_S = GRACE_2012.write.seconds(MIB)
STRANGE = (STRANGER, STRANGE_PROGRAM, STRANGE_PROJECT, "90002", "90004")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    filled(Store(folder), page_centre())
    return folder


def page_of(folder: Path, job_id: str, scope: Scope | None = None, **options: object) -> JobPage:
    with OpenStore(str(folder)) as opened:
        return job_page(opened, job_id, scope, JobPageOptions(**options))  # type: ignore[arg-type]


def missing(page: JobPage) -> str:
    return "\n".join(f"{item.what}: {item.reason}" for item in page.missing)


@pytest.fixture(scope="module")
def page(folder: Path) -> JobPage:
    return page_of(folder, "101")


def test_who_when_and_where(page: JobPage) -> None:
    assert (page.user, page.project, page.name, list(page.programs)) == (OWN, "earth", "wrf", ["wrf.exe"])
    assert (page.nodes, page.cores, page.processes, page.state) == (2, 60, 4, "COMPLETED")
    assert page.start == from_epoch_us(T0_S * 1_000_000)
    assert page.end is not None
    assert (page.end - page.start).total_seconds() == RUN_S
    assert page.core_hours == pytest.approx(60 * RUN_S / 3600)
    assert page.io_core_hours == pytest.approx(0.5)


def test_disk_time_is_its_share_of_all_and_of_its_own_targets(page: JobPage) -> None:
    """200 of 1,300 I/Os per tick; on its two OSTs 200 of 500, beside 300 of a stranger."""
    (use,) = page.uses
    assert use.cost is not None
    assert use.cost.method == "job_stats"
    assert use.cost.disk_seconds == pytest.approx(10 * 200 * COST_S)
    assert use.cost.share_pct == pytest.approx(100 * 200 / 1300)
    assert use.cost.others_pct == pytest.approx(100 * 900 / 1300)
    assert use.cost.unattributed_pct == pytest.approx(100 * 200 / 1300)
    assert use.cost.bytes_share_pct == pytest.approx(100 * 200 / 1100)
    assert use.cost.fsu_pct == pytest.approx(100 * 1300 * COST_S / (60 * len(OSTS)))
    assert use.company is not None
    assert list(use.company.targets) == list(OSTS[:2])
    assert use.company.own_pct == pytest.approx(40)
    assert [line.share_pct for line in use.company.neighbours] == [pytest.approx(60)]


def test_every_layer_has_a_line(page: JobPage) -> None:
    moved = 200 * 10 * MIB
    lines = [(line.layer, line.write_bytes, line.opens, line.requests) for line in page.uses[0].layers]
    assert lines == [("log", moved, 32, None), ("servers", moved, None, 2000)]
    assert "no samples of its nodes" in missing(page)


def test_what_to_change_comes_from_its_log(page: JobPage) -> None:
    assert page.is_judged
    assert "small-accesses" in [line.code for line in page.advice]
    assert page.explanation is not None
    assert page.explanation.verdict == "too little history"


def test_nobody_else_is_in_the_result_unless_names_are_asked_for(folder: Path, page: JobPage) -> None:
    text = str(asdict(page))
    assert [word for word in STRANGE if word in text] == []
    (named,) = page_of(folder, "101", names=True).uses
    assert named.company is not None
    (neighbour,) = named.company.neighbours
    assert (neighbour.job_id, neighbour.user, neighbour.executable) == ("90002", STRANGER, STRANGE_PROGRAM)


def test_another_job_of_the_same_user_is_named(tmp_path: Path) -> None:
    tables = page_centre(logs=False)
    for row in tables["jobs"]:
        row["user"] = OWN
    (use,) = page_of(_stored(tmp_path, tables), "101").uses
    assert use.company is not None
    assert [(line.is_of_same_user, line.job_id) for line in use.company.neighbours] == [(True, "90002")]


def test_jobs_that_shared_its_nodes_are_counted_and_not_named(tmp_path: Path) -> None:
    records = [job_row("101", node_list="n1", nodes=1), job_row("90002", node_list="n1", nodes=1, user=STRANGER)]
    fill(Store(tmp_path), [client_rows("n1", 0, 100, read_bytes=5, write_bytes=7)], records)
    assert "its nodes were shared with 1 other job" in "\n".join(page_of(tmp_path, "101").notes)
    assert "its nodes were shared with job 90002" in "\n".join(page_of(tmp_path, "101", names=True).notes)


def test_without_job_stats_the_share_is_by_bytes(tmp_path: Path) -> None:
    page = page_of(_stored(tmp_path, page_centre(job_stats=False)), "101")
    (use,) = page.uses
    assert use.cost is not None
    assert use.cost.method == "overlap"
    assert use.cost.share_pct == pytest.approx(100 * 200 / 1300)
    assert use.company is not None
    assert list(use.company.targets) == []
    assert "what the servers counted of it: job_stats" in missing(page)


def test_only_a_log(tmp_path: Path) -> None:
    fill_runs(Store(tmp_path), [run_row("a" * 64, job_id="7", filesystem="home", write_bytes=1000, opens=3)])
    page = page_of(tmp_path, "7")
    (use,) = page.uses
    assert (use.filesystem, use.cost, use.layers[0].write_bytes) == ("home", None, 1000)
    assert (page.user, page.processes, page.times_from) == ("ada", 4, "log")
    for words in ("no scheduler's record", "no samples of its nodes", "its disk time on home: nothing of its servers"):
        assert words in missing(page)


def test_only_job_stats(tmp_path: Path) -> None:
    page = page_of(_stored(tmp_path, page_centre(records=False, logs=False)), "101")
    (use,) = page.uses
    assert use.cost is not None
    assert use.cost.share_pct == pytest.approx(100 * 200 / 1300)
    assert (page.user, page.times_from, page.explanation) == (None, "servers", None)
    assert use.company is not None
    assert [line.is_of_same_user for line in use.company.neighbours] == [None]
    assert "90002" not in missing(page)
    assert "no Darshan log" in missing(page)


@pytest.mark.parametrize("rpcs", [{}, {("read", 1): 3}], ids=["no targets", "targets"])
def test_only_counters_of_its_nodes(tmp_path: Path, rpcs: dict[tuple[str, int], int]) -> None:
    counts = {"read_bytes": 5, "write_bytes": 7, "metadata": {"open": 9}, "rpcs": rpcs}
    fill(Store(tmp_path), [client_rows("n1", 0, 600, job_id="55", **counts)])  # type: ignore[arg-type]
    page = page_of(tmp_path, "55")
    (use,) = page.uses
    (layer,) = use.layers
    assert (layer.layer, layer.read_bytes, layer.write_bytes, layer.opens) == ("nodes", 5, 7, 9)
    assert page.times_from == "nodes"
    assert "no Darshan log" in missing(page)


def test_only_a_record_says_what_is_missing(tmp_path: Path) -> None:
    fill_runs(Store(tmp_path), [], [job_row("5")])
    page = page_of(tmp_path, "5")
    assert (page.user, list(page.uses), list(page.advice), page.is_judged) == ("ada", [], [], False)
    for words in ("no Darshan log", "no samples of its nodes", "job_stats do not name it"):
        assert words in missing(page)


def test_an_id_that_was_used_again(tmp_path: Path) -> None:
    records = [job_row("5", user="first"), job_row("5", 1000, 1100, user="second")]
    runs = [run_row("a" * 64, 0, 100, job_id="5"), run_row("b" * 64, 1000, 1100, job_id="5")]
    fill_runs(Store(tmp_path), runs, records)
    last, first = page_of(tmp_path, "5"), page_of(tmp_path, "5", Scope(until=from_epoch_us((T0_S + 500) * 1_000_000)))
    assert [(page.user, page.runs) for page in (last, first)] == [("second", 1), ("first", 1)]
    assert list(last.notes) == ["the id was used 2 times: this is the last"]


def test_job_stats_before_and_after_its_time_are_of_another_start(tmp_path: Path) -> None:
    """The servers name the id half an hour earlier as well: that is not in the window."""
    tables = page_centre()
    for row in [row for row in tables["job_io"] if row["job_id"] == "101"][:3]:
        early = {name: row[name] - 1_800_000_000 for name in ("start", "time")}
        tables["job_io"].append({**row, **early, "date": early["start"] // 86_400_000_000})
    (use,) = page_of(_stored(tmp_path, tables), "101").uses
    assert use.cost is not None
    assert use.cost.disk_seconds == pytest.approx(10 * 200 * COST_S)


def test_a_run_whose_id_begins_like_the_job_is_not_its_own(tmp_path: Path) -> None:
    runs = [run_row(f"{number}{'5678':0<63}", user=STRANGER, executable=STRANGE_PROGRAM) for number in range(3)]
    fill_runs(Store(tmp_path), runs, [job_row("15678")])
    page = page_of(tmp_path, "15678")
    assert (page.runs, page.explanation, list(page.programs)) == (0, None, [])
    assert STRANGER not in str(asdict(page))


def test_several_clusters_with_such_an_id(tmp_path: Path) -> None:
    fill_runs(Store(tmp_path), [], [job_row("5", cluster="a", user="x"), job_row("5", cluster="b", user="y")])
    with pytest.raises(UsageError, match="several clusters have a job 5: a, b; choose with --cluster"):
        page_of(tmp_path, "5")
    assert page_of(tmp_path, "5", cluster="b").user == "y"


def test_one_section_for_each_file_system(tmp_path: Path) -> None:
    tables = page_centre()
    tables["runs"].append(run_row("f" * 64, 5, 50, job_id="101", filesystem="home", write_bytes=5))
    folder = _stored(tmp_path, tables)
    assert [use.filesystem for use in page_of(folder, "101").uses] == ["home", "scratch"]
    assert [use.filesystem for use in page_of(folder, "101", filesystems=("scratch",)).uses] == ["scratch"]
    with pytest.raises(UsageError, match="no file system is called 'scrach'; did you mean scratch"):
        page_of(folder, "101", filesystems=("scrach",))


def test_an_unknown_job_is_one_line_with_the_nearest(folder: Path) -> None:
    with pytest.raises(InputError, match="no job '1011'; did you mean 101"):
        page_of(folder, "1011")
    finished = iolens("report", "--store", folder, "--job", "1011", "-o", folder / "x.html")
    assert (finished.code, len(finished.err.splitlines())) == (1, 1)
    assert not (folder / "x.html").exists()


def test_the_verb_writes_a_page_that_loads_nothing(folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "job.html"
    finished = iolens("report", "--store", folder, "--job", "101", "--timezone", "Europe/Berlin", "-o", output)
    assert (finished.code, finished.out) == (0, "")
    text = output.read_text("utf-8")
    assert "It took 15.4\N{NO-BREAK SPACE}% of the disk time of scratch while it ran" in text
    assert "2023-11-15 01:00 to 2023-11-15 01:10 Europe/Berlin" in text
    assert "another user&#39;s job" in text
    assert [word for word in STRANGE if word in text] == []
    assert len(text) < 60_000
    assert "<script" not in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--job", "1", "--user", "a"), "--job and --user are two pages"),
        (("--names",), "--names goes with --job only"),
        (("--user", "a", "--cluster", "c"), "--cluster goes with --job only"),
        (("--job", "1", "--peak", "1GB/s"), "--peak does not go with --job and --user"),
        (("--job", "1", "--timezone", "Nowhere/There"), "no time zone is called"),
    ],
)
def test_options_that_do_not_go_together(folder: Path, tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    finished = iolens("report", "--store", folder, "-o", tmp_path / "x.html", *options)
    assert finished.code == 2
    assert message in finished.err


def _stored(folder: Path, tables: dict[str, list[dict[str, object]]]) -> Path:
    filled(Store(folder), tables)
    return folder
