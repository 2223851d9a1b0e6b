"""`iolens runs …` over many runs: JSON, tables, figures, limits, ceilings and errors; and the corpus of real logs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from iolens.api.run_analyses import NAMES
from iolens.store.store import Store
from iolens.units import MIB
from tests.analyses.run_rows import fill_runs, job_row, run_row
from tests.analyses.runs.test_run_analyses import made_up_runs
from tests.cli.command import iolens

FIGURES = {
    "projects": ["bytes", "performance", "sizes"], "coverage": ["coverage"], "interfaces": ["shares", "bytes"],
    "patterns": ["shares", "bytes"], "files": ["files", "categories"], "sizes": ["cdf", "counts"],
    "variance": ["times"], "scaling": ["performance", "bytes"],
}  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    runs, jobs = made_up_runs(2, 120)
    like = [run_row(f"like{k}", k, k + 50, job_id=str(9000 + k), read_bytes=5 * MIB, files=3, slowest_rank_s=2.0 + k)
            for k in range(6)]  # fmt: skip
    jobs += [job_row(str(9000 + k), k, k + 60, project="twins", nodes=2) for k in range(6)]
    fill_runs(Store(folder), [*runs, *like], jobs)
    return folder


def asked(store: Path, verb: str, *more: object) -> Any:
    wanted = ("--project", "*") if verb == "scaling" else ()
    done = iolens("runs", verb, "--store", store, "--format", "json", *wanted, *more)
    assert done.code == 0, done.err
    return json.loads(done.out)


@pytest.mark.parametrize("verb", NAMES)
def test_every_verb_has_json_a_table_and_figures(store: Path, verb: str, tmp_path: Path) -> None:
    result = asked(store, verb)
    assert result["runs"] == 126
    assert result["window_start"].startswith("2023-11-15")
    wanted = ("--project", "*") if verb == "scaling" else ()
    assert iolens("runs", verb, "--store", store, *wanted, "--figure", "list").out.split() == FIGURES[verb]
    figures = [part for name in FIGURES[verb] for part in ("--figure", f"{name}={tmp_path / name}.svg")]
    done = iolens("runs", verb, "--store", store, *wanted, *figures)
    assert done.code == 0, done.err
    assert "126 runs" in done.out
    for name in FIGURES[verb]:
        assert (tmp_path / f"{name}.svg").read_bytes().startswith(b"<?xml")


def test_an_interactive_figure(store: Path, tmp_path: Path) -> None:
    done = iolens("runs", "coverage", "--store", store, "--figure", tmp_path / "page.html")
    assert done.code == 0, done.err
    assert (tmp_path / "page.html").stat().st_size > 10_000


def test_keys_of_the_study(store: Path) -> None:
    project = asked(store, "projects", "--min-processes", "1", "--min-bytes", "0")["projects"][0]
    assert {
        "project", "runs", "read_bytes", "write_bytes", "mib_per_s_per_node", "io_time_pct", "metadata_time_pct",
        "files_per_proc", "creates_per_proc", "sequential_pct", "aligned_pct", "mib_per_proc",
    } <= set(project)  # fmt: skip
    assert set(project["mib_per_s_per_node_box"]) == {"min", "q1", "median", "q3", "max"}
    coverage = asked(store, "coverage")
    assert {"jobs", "jobs_with_log", "core_hours", "core_hours_with_log"} <= set(coverage)
    assert {"project", "jobs", "jobs_with_log", "core_hours", "core_hours_with_log", "apis"} <= set(
        coverage["projects"][0]
    )
    (group,) = asked(store, "variance", "--project", "twins")["groups"]
    expected = {"project": "twins", "executable": "app", "samples": 6, "nprocs": 4, "files": 3, "read_bytes": 5 * MIB,
                "write_bytes": 0, "mean_s": 4.5, "min_s": 2, "max_s": 7}  # fmt: skip
    assert {key: group[key] for key in expected} == expected
    assert {"stddev_s", "cv_pct"} <= set(group)


def test_limits_that_nothing_passes_say_how_to_lower_them(store: Path) -> None:
    done = iolens("runs", "projects", "--store", store, "--project", "twins")
    assert done.code == 0
    assert "0 of them with at least 1,024 processes and 500 MiB moved" in done.out
    assert "--min-processes 1 --min-bytes 0" in done.out
    result = asked(store, "projects", "--project", "twins")
    assert (result["projects"], result["top_projects"][0]["runs"]) == ([], 6)


def test_a_ceiling_is_an_option_or_configured(store: Path, tmp_path: Path) -> None:
    limits = ("--project", "twins", "--min-processes", "1", "--min-bytes", "0")
    configured = tmp_path / "iolens.toml"
    configured.write_text("[runs]\nceiling_mib_per_s_per_node = 1\n", "utf-8")
    result = asked(store, "projects", *limits, "--config", configured)  # 5 MiB in 2 to 7 s on 2 nodes
    assert (result["ceiling_mib_per_s_per_node"], result["runs_above_ceiling"]) == (1, 1)
    assert (result["projects"][0]["runs"], result["above_ceiling"][0]["run_id"]) == (5, "like0")
    result = asked(store, "projects", *limits, "--config", configured, "--ceiling", "0.6")
    assert (result["ceiling_mib_per_s_per_node"], result["runs_above_ceiling"]) == (0.6, 3)
    done = iolens("runs", "projects", "--store", store, *limits, "--ceiling", "0.6")
    assert "Runs above the ceiling" in done.out
    assert "3 runs above 0.6 MiB/s per node: left out" in done.out


def test_a_project_is_left_out_of_sizes(store: Path) -> None:
    whole, less = asked(store, "sizes"), asked(store, "sizes", "--without", "a,(unknown)")
    assert less["without_projects"] == ["a", "(unknown)"]
    assert 0 < less["runs"] < whole["runs"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["projects", "--from", "2001-01-01", "--to", "2001-01-02"], "holds no application run in this window"),
        (["projects", "-f", "nowhere"], "no run used file system 'nowhere'"),
        (["sizes", "--user", "nobody"], "has no application run of that kind"),
        (["files", "--target", "OST0000"], "--target does not go with runs"),
        (["scaling"], "--project or --executable"),
        (["projects", "--ceiling", "0"], "--ceiling"),
        (["variance", "--min-samples", "1"], "--min-samples"),
    ],
)
def test_errors_are_one_clear_message(store: Path, arguments: list[str], message: str) -> None:
    done = iolens("runs", *arguments, "--store", store)
    assert done.code == 2, done.err
    assert message in done.err


def test_a_store_without_runs_says_what_to_load(tmp_path: Path) -> None:
    fill_runs(Store(tmp_path), [], [job_row("1")])
    done = iolens("runs", "coverage", "--store", tmp_path)
    assert done.code == 2
    assert "load Darshan logs with `iolens ingest darshan`" in done.err


# Real logs of IOR runs by five made-up projects, and the scheduler's listing.


@pytest.fixture(scope="module")
def corpus(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = shared_data / "darshan-corpus"
    if not folder.is_dir():
        pytest.skip("darshan-corpus is not in the shared data")
    store = tmp_path_factory.mktemp("corpus") / "store"
    assert iolens("ingest", "darshan", folder / "logs", "--store", store).code == 0
    assert iolens("ingest", "slurm", folder / "sacct.txt", "--timezone", "UTC", "--store", store).code == 0
    return store


def listed_jobs(shared_data: Path) -> dict[str, tuple[int, float]]:
    """Jobs and core-hours by project, by the listing itself."""
    jobs: dict[str, tuple[int, float]] = {}
    for line in (shared_data / "darshan-corpus" / "sacct.txt").read_text().splitlines()[1:]:
        job_id, _, project, _, cores, _, _, _, elapsed, _ = line.split("|")
        if job_id.isdigit():
            hours, minutes, seconds = map(int, elapsed.split(":"))
            count, sum_h = jobs.get(project, (0, 0.0))
            jobs[project] = count + 1, sum_h + int(cores) * (hours + minutes / 60 + seconds / 3600)
    return jobs


def test_coverage_of_the_corpus(corpus: Path, shared_data: Path) -> None:
    result = asked(corpus, "coverage")
    expected = listed_jobs(shared_data)
    assert (result["runs"], result["jobs"], result["jobs_with_log"]) == (53, 81, 53)
    by_project = {line["project"]: line for line in result["projects"]}
    assert {name: line["jobs"] for name, line in by_project.items()} == {
        name: jobs for name, (jobs, _) in expected.items()
    }
    for name, (_, hours) in expected.items():
        assert by_project[name]["core_hours"] == pytest.approx(hours)
    assert (by_project["genomics"]["jobs_with_log"], by_project["genomics"]["apis"]) == (0, [])
    assert by_project["chemistry"]["apis"] == ["M"]
    assert result["joined"] == {"by_id": 53, "by_user_executable_time": 0, "without_job": 0}


def test_projects_of_the_corpus_do_what_its_description_says(corpus: Path) -> None:
    result = asked(corpus, "projects", "--min-processes", "1", "--min-bytes", "0")
    by_name = {line["project"]: line for line in result["projects"]}
    assert sorted(by_name) == ["astro", "chemistry", "climate", "energy", "turbulence"]
    assert by_name["climate"]["files_per_proc"] == 1  # a file per process
    assert all(by_name[name]["files_per_proc"] < 1 for name in ("energy", "turbulence", "chemistry", "astro"))
    assert (by_name["energy"]["read_bytes"], by_name["turbulence"]["read_bytes"]) == (0, 0)
    most = {
        name: max(line["access_sizes"], key=lambda item: item["writes"])["to_bytes"] for name, line in by_name.items()
    }
    assert (most["climate"], most["energy"], most["turbulence"], most["astro"]) == (102_400, 1 << 20, 1024, 4 << 20)
    assert all(line["mib_per_s_per_node"] > 0 for line in result["projects"])


def test_like_runs_and_patterns_of_the_corpus(corpus: Path) -> None:
    result = asked(corpus, "variance")
    assert (result["runs_grouped"], len(result["groups"])) == (51, 10)
    assert max(group["samples"] for group in result["groups"]) == 12
    patterns = asked(corpus, "patterns")["overall"]["uses"]
    assert {use["name"]: use["runs"] for use in patterns} == {"unique": 14, "shared": 39, "partially_shared": 0}
    interfaces = asked(corpus, "interfaces")["overall"]["uses"]
    assert {use["name"]: use["runs"] for use in interfaces if use["runs"]} == {"posix": 45, "mpiio": 8}
