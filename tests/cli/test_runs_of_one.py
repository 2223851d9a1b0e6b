"""`iolens runs summary`, `timeline`, `compare`, `advise` on real logs, and on a store that holds them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iolens.api.runs import record_of_log
from tests.analyses.runs import one_run
from tests.cli.command import Finished, iolens
from tests.sources.darshan.conftest import LogRows, read_logs
from tests.sources.darshan.log_copies import JOB_ID, START_S, SplitLog

LOGS = Path(one_run.__file__).parent / "logs"
OWN, COLLECTIVE, SMALL, SHARED = (
    next(LOGS.glob(f"*_id{job}-*.darshan")) for job in ("4400002", "4400006", "4400017", "4400024")
)


def asked(*words: object) -> Finished:
    return iolens("runs", *words)


def answer(*words: object) -> dict:  # type: ignore[type-arg]
    done = asked(*words, "--format", "json")
    assert done.code == 0, done.err
    result: dict = json.loads(done.out)  # type: ignore[type-arg]
    return result


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The four logs, and six more runs of the first program under other jobs; job 4711 has two runs."""
    folder = tmp_path_factory.mktemp("runs")
    logs = folder / "logs"
    logs.mkdir()
    for path in LOGS.glob("*.darshan"):
        (logs / path.name).write_bytes(path.read_bytes())
    whole = SplitLog.of(OWN.read_bytes())
    for number, job in enumerate((4711, 4711, 4712, 4713, 4714, 4715)):
        name = OWN.name.replace("4400002", str(job)).replace("-2667_", f"-{number}_")
        (logs / name).write_bytes(whole.copy({JOB_ID: job, START_S: 1_763_236_588 + number}))
    done = iolens("ingest", "darshan", logs, "--store", folder / "store")
    assert done.code == 0, done.err
    return folder / "store"


@pytest.mark.parametrize(
    ("log", "strategy"),
    [(OWN, "file_per_process"), (COLLECTIVE, "collective"), (SMALL, "shared"), (SHARED, "shared")],
)
def test_strategies_are_those_that_ior_was_asked_for(log: Path, strategy: str) -> None:
    assert answer("summary", log)["strategy"] == strategy


def test_a_summary_of_a_log_needs_no_store() -> None:
    done = asked("summary", OWN)
    assert done.code == 0
    assert "I/O of ior, job 4400002" in done.out
    assert "8 processes, nodes not known" in done.out
    assert max(map(len, done.out.splitlines())) <= 100
    plain = answer("summary", OWN, "--nodes", 4)
    assert plain["nodes"] == 4
    assert plain["mib_per_s_per_node"] == pytest.approx(plain["mib_per_s"] / 4)
    assert (plain["jobid"], plain["nprocs"], plain["file_kinds"]["unique"]) == ("4400002", 8, 8)
    assert plain["access_sizes"]["write"][3] == 256  # 64 KiB each
    assert plain["modules"]["POSIX"]["write_bytes"] == 8 * 32 * 65536


def test_a_summary_as_a_page(tmp_path: Path) -> None:
    done = asked("summary", OWN, "--html", tmp_path / "run.html", "-o", tmp_path / "run.txt")
    assert (done.code, done.out) == (0, "")
    assert "I/O of ior, job 4400002" in (tmp_path / "run.html").read_text()
    assert "I/O of ior, job 4400002" in (tmp_path / "run.txt").read_text()


@pytest.mark.parametrize(
    ("which", "code", "message"),
    [
        ("no-such.darshan", 1, "no such file"),
        (str(LOGS), 1, "a directory"),
        (str(LOGS / "README.md"), 1, "not a Darshan log"),
    ],
)
def test_what_is_no_log_is_refused_by_name(which: str, code: int, message: str) -> None:
    done = asked("summary", which)
    assert done.code == code
    assert message in done.err
    assert Path(which).name in done.err


def test_runs_of_the_store_by_job_and_by_the_beginning_of_their_id(store: Path) -> None:
    by_job = answer("summary", "4400006", "--store", store)
    assert by_job["strategy"] == "collective"
    again = answer("summary", by_job["run_id"][:12], "--store", store)
    assert again["jobid"] == "4400006"
    done = asked("summary", "999", "--store", store)
    assert done.code == 1
    assert "no run and no job '999'" in done.err


def test_a_job_with_several_runs_lists_them_and_takes_all(store: Path) -> None:
    done = asked("summary", "4711", "--store", store)
    assert done.code == 2
    assert "job 4711 has 2 runs; name one by its run id, or take --all" in done.err
    assert done.err.count("8 processes") == 2
    several = asked("summary", "4711", "--all", "--store", store, "--format", "json")
    assert [page["jobid"] for page in json.loads(several.out)] == ["4711", "4711"]


def test_a_stored_run_is_the_same_as_its_log(store: Path) -> None:
    of_log, of_store = answer("summary", OWN), answer("summary", "4400002", "--store", store)
    for key in of_log:
        if key not in ("like_runs", "filesystem"):
            assert of_store[key] == of_log[key], key


def test_like_runs_are_those_of_the_store_without_the_run_itself(store: Path) -> None:
    like = answer("summary", "4400002", "--store", store)["like_runs"]
    assert like["runs"] == 7  # six copies, and the collective run of as many processes
    assert like["best_quartile_mib_per_s"] == pytest.approx(answer("summary", OWN)["mib_per_s"])
    assert answer("summary", OWN, "--store", store)["like_runs"] == like
    assert answer("summary", SMALL, "--store", store)["like_runs"] is None


def test_a_timeline_of_a_log_and_of_its_stored_run(store: Path, tmp_path: Path) -> None:
    of_log = answer("timeline", OWN)
    assert of_log["origin"] == "heatmap"
    record = record_of_log(OWN)
    assert (
        sum(of_log["write_bytes"]) == record.series.sums("write_bytes")[record.series.texts("module") != "MPI-IO"].sum()
    )
    assert answer("timeline", "4400002", "--store", store)["write_bytes"] == of_log["write_bytes"]
    drawn = asked("timeline", OWN, "--figure", tmp_path / "a.svg", "--figure", f"writes={tmp_path / 'b.html'}")
    assert drawn.code == 0
    assert (tmp_path / "a.svg").stat().st_size > 5000
    assert (tmp_path / "b.html").stat().st_size > 5000


def test_a_trace_needs_the_log(store: Path) -> None:
    done = asked("timeline", "4400002", "--dxt", "--store", store)
    assert done.code == 2
    assert "--dxt needs the log" in done.err
    assert answer("timeline", OWN, "--dxt")["notes"] == ["the log has no traced access"]


def test_two_logs_or_groups_are_compared(store: Path, tmp_path: Path) -> None:
    result = answer("compare", OWN, COLLECTIVE)
    assert (result["before"]["strategies"], result["after"]["strategies"]) == (["file_per_process"], ["collective"])
    rates = {line["name"]: line for line in result["measures"]}
    assert rates["files"]["factor"] == pytest.approx(rates["files"]["after"] / rates["files"]["before"])
    groups = answer("compare", f"{OWN},4711,4712", "4713", "--store", store)
    assert (groups["before"]["runs"], groups["after"]["runs"]) == (4, 1)
    done = asked("compare", OWN, COLLECTIVE, "--figure", tmp_path / "rates.svg")
    assert done.code == 0
    assert "file_per_process" in done.out
    assert (tmp_path / "rates.svg").exists()


def test_advice_on_logs_and_on_stored_runs(store: Path, tmp_path: Path) -> None:
    config = tmp_path / "iolens.toml"
    config.write_text("[findings.small-accesses]\nfewest_accesses = 10\n")
    done = asked("advise", SMALL, "--config", config)
    assert done.code == 0
    assert "small-accesses: ior" in done.out
    many = answer("advise", "--executable", "io?", "--store", store, "--config", config)
    assert many["runs"] == 10
    assert {line["code"] for line in many["lines"]} == {"small-accesses"}
    assert max(line["runs"] for line in many["lines"]) >= 8
    few = answer("advise", "--executable", "ior", "--store", store, "--config", config, "--most", 3)
    assert (few["runs"], few["left_out"]) == (3, 7)
    assert asked("advise", "--executable", "nobody", "--store", store).code == 1
    assert asked("advise", "--store", store).code == 2
    assert asked("advise", SMALL, "--user", "x", "--store", store).code == 2


def test_runs_of_a_project_are_those_of_its_jobs(store: Path, tmp_path: Path) -> None:
    sacct = tmp_path / "sacct.txt"
    sacct.write_text(
        "JobID|User|Account|NNodes|NCPUS|NTasks|Start|End|Elapsed|State\n"
        "4400006|uchem|chemistry|4|8|8|2026-11-15T20:36:31|2026-11-15T20:36:34|00:00:03|COMPLETED\n"
    )
    assert iolens("ingest", "slurm", sacct, "--timezone", "UTC", "--store", store).code == 0
    result = answer("advise", "--project", "chemistry", "--store", store)
    assert result["runs"] == 1
    page = answer("summary", "4400006", "--store", store)
    assert (page["nodes"], page["project"]) == (4, "chemistry")


def test_of_every_corpus_log_the_strategy_is_the_one_its_readme_states(shared_data: Path) -> None:
    from iolens.analyses.runs.used_files import strategy_of

    corpus = shared_data / "darshan-corpus"
    if not corpus.is_dir():
        pytest.skip("darshan-corpus is not here")
    stated = {
        "climate": "file_per_process", "energy": "shared", "turbulence": "shared", "chemistry": "collective",
        "astro": "shared",
    }  # fmt: skip
    jobs = dict(line.split("|")[0:3:2] for line in (corpus / "sacct.txt").read_text().splitlines())
    logs = sorted((corpus / "logs").glob("*.darshan"))
    assert len(logs) == 53
    for path, rows in read_logs(logs).items():
        assert isinstance(rows, LogRows), rows
        assert strategy_of(rows.run)[0] == stated[jobs[rows.run["job_id"]]], path.name
