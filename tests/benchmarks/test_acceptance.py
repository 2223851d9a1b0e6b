"""An acceptance suite: limits from the model's demand, written, read again, run with a stand-in, judged."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from iolens.benchmarks import light_probe as safety
from iolens.benchmarks.acceptance import SUITE, Suite, SuiteStep, read_suite, write_acceptance
from iolens.benchmarks.acceptance_run import run_acceptance
from iolens.benchmarks.synthetic_fio import TrafficBounds
from iolens.errors import InputError, UsageError
from iolens.models.acceptance import Acceptance, Limit
from iolens.models.workload_model import drawn_demand
from iolens.units import MIB
from tests.benchmarks.job_standins import put_job_fio
from tests.benchmarks.made_models import model
from tests.benchmarks.standins import put_ior

BOUNDS = TrafficBounds(max_bytes=64 * MIB, max_s=8.0, ssi=3.0)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setattr(safety, "mounted_kind", lambda *_: "ext4")  # temporary directories may be memory
    monkeypatch.setattr(safety, "direct_io_trouble", lambda directory: None)
    return folder


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    write_acceptance(model(), tmp_path / "suite", BOUNDS)
    return tmp_path / "suite"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "disk"
    folder.mkdir()
    return folder


def limit_of(suite: Suite, step: str, measure: str) -> Limit:
    (result,) = [
        limit for item in suite.steps if item.name == step for limit in item.limits if limit.measure == measure
    ]
    return result


def test_limits_are_demand_at_the_percentile_times_the_speed(suite: Path) -> None:
    read = read_suite(suite)
    demand = drawn_demand(model(), 1)
    for direction in ("read", "write"):
        bandwidth = limit_of(read, f"{direction}-bandwidth", f"{direction}_bytes_per_s")
        assert bandwidth.at_least == pytest.approx(3.0 * demand.percentile("bytes", direction, 95.0))
        operations = limit_of(read, f"{direction}-operations", f"{direction}_ops_per_s")
        assert operations.at_least == pytest.approx(3.0 * demand.percentile("requests", direction, 95.0))
        assert "95th percentile of demand × SSI 3" in bandwidth.reason
    rate = 3.0 * demand.percentile("requests", None, 95.0)
    assert limit_of(read, "workload", "read_p99_s").at_most == pytest.approx(math.log(100) * 16 / rate)


def test_what_is_written_is_read_again(suite: Path) -> None:
    read = read_suite(suite)
    assert (read.filesystem, read.ssi, read.share, read.percentile) == ("lake", 3.0, 0.125, 95.0)
    assert (read.file_bytes, read.jobs, read.direct) == (64 * MIB, 1, True)
    names = ["write-bandwidth", "read-bandwidth", "write-operations", "read-operations", "workload", "ior"]
    assert [step.name for step in read.steps] == names
    workload = read.steps[4]
    assert workload.requests is not None
    assert workload.sizes is not None
    reads, writes = workload.requests["read"], workload.requests["write"]
    assert 100 * reads / (reads + writes) == pytest.approx(42.2, abs=0.5)
    assert sum(workload.sizes["write"].values()) == pytest.approx(1.0)


def test_saturating_steps_use_the_sizes_that_matter(suite: Path) -> None:
    def size(job: str) -> int:
        return int((suite / job).read_text().partition("bs=")[2].partition("\n")[0])

    assert size("write-bandwidth.fio") == MIB  # 29.5 % of the writes, but nearly all bytes
    assert size("write-operations.fio") == 4096
    assert size("read-operations.fio") == 512 * 1024


def test_a_latency_may_be_given_and_a_percentile_must_mean_something(tmp_path: Path) -> None:
    write_acceptance(model(), tmp_path / "a", BOUNDS, percentile=99.0, latency_limit_s=0.05)
    read = read_suite(tmp_path / "a")
    assert limit_of(read, "workload", "write_p99_s") == Limit("write_p99_s", None, 0.05, "given")
    assert read.percentile == 99.0
    with pytest.raises(UsageError, match="at most 100"):
        write_acceptance(model(), tmp_path / "b", BOUNDS, percentile=101.0)
    with pytest.raises(UsageError, match="name a higher --percentile"):
        write_acceptance(model(), tmp_path / "b", BOUNDS, percentile=1.0)
    assert not (tmp_path / "b").exists()


def test_few_requests_are_allowed_their_chance(tmp_path: Path) -> None:
    few, many = (replace(BOUNDS, ssi=speed) for speed in (0.05, 100.0))
    limits = []
    for name, bounds in (("few", few), ("many", many)):
        write_acceptance(model(), tmp_path / name, bounds)
        read = read_suite(tmp_path / name)
        limits.append((limit_of(read, "workload", "served_pct"), limit_of(read, "workload", "size_deviation_points")))
    (few_served, few_mix), (many_served, many_mix) = limits
    assert few_served.at_least is not None
    assert few_served.at_least < 85 < (many_served.at_least or 0) < 95
    assert many_mix.at_most == 5.0
    assert (few_mix.at_most or 0) > 5.0


def run(suite: Path, place: Path, tmp_path: Path) -> Acceptance:
    return run_acceptance(suite, place, tmp_path / "results")


def test_a_system_that_is_fast_enough_passes(suite: Path, place: Path, programs: Path, tmp_path: Path) -> None:
    calls = put_job_fio(programs, ops=100_000.0)
    result = run(suite, place, tmp_path)
    assert result.passed
    assert {check.verdict for check in result.checks} == {"pass"}
    assert len(result.checks) == 8
    assert result.thousand_ops_per_s == pytest.approx(100.0)
    # 1 MiB writes and reads at 100,000/s are 97.66 GiB/s each; the score is the geometric mean of both.
    assert result.bandwidth_gib_per_s == pytest.approx(100_000 / 1024, rel=0.3)
    assert result.score == pytest.approx(math.sqrt(100.0 * (result.bandwidth_gib_per_s or 0)))
    workload = result.steps[4]
    assert workload.served_pct == pytest.approx(100.0, abs=1.0)
    assert workload.read_requests_pct == pytest.approx(42.2, abs=1.0)
    assert workload.write_p99_s == pytest.approx(0.001)
    assert (workload.size_deviation_points or 9) < 3.0
    assert list(place.iterdir()) == []
    assert calls.read_text().splitlines()[0].startswith(f"layout.fio {place}/iolens-acceptance-")
    assert (tmp_path / "results/workload/workload.json").is_file()
    assert "ior is not on PATH" in " ".join(result.notes)


@pytest.mark.parametrize(
    ("slow", "failing"),
    [
        ({"ops": 1.0}, {"write_bytes_per_s", "read_bytes_per_s", "write_ops_per_s", "read_ops_per_s"}),
        ({"ops": 1e5, "served": 0.6}, {"served_pct"}),
        ({"ops": 1e5, "delay_s": 5.0}, {"read_p99_s", "write_p99_s"}),
    ],
)
def test_a_system_that_is_too_slow_fails_by_name(
    slow: dict[str, float], failing: set[str], suite: Path, place: Path, programs: Path, tmp_path: Path
) -> None:
    put_job_fio(programs, **slow)  # type: ignore[arg-type]
    result = run(suite, place, tmp_path)
    assert not result.passed
    assert {check.measure for check in result.checks if check.verdict == "fail"} == failing


def test_a_step_that_fails_is_reported_and_the_others_go_on(
    suite: Path, place: Path, programs: Path, tmp_path: Path
) -> None:
    put_job_fio(programs, ops=1e5, fail="read-bandwidth.fio")
    result = run(suite, place, tmp_path)
    assert not result.passed
    assert [check.verdict for check in result.checks if check.step == "read-bandwidth"] == ["not measured"]
    assert "No space left on device" in (result.steps[1].trouble or "")
    assert result.steps[4].served_pct is not None
    assert result.score is None
    assert list(place.iterdir()) == []


def test_nothing_is_left_behind_when_the_layout_fails(suite: Path, place: Path, programs: Path, tmp_path: Path) -> None:
    put_job_fio(programs, fail="layout.fio")
    with pytest.raises(Exception, match="No space left"):
        run(suite, place, tmp_path)
    assert list(place.iterdir()) == []


def test_ior_runs_where_it_is(tmp_path: Path, place: Path, programs: Path) -> None:
    write_acceptance(model(), tmp_path / "suite", replace(BOUNDS, jobs=2))
    put_job_fio(programs, ops=1e5)
    put_ior(programs)
    result = run(tmp_path / "suite", place, tmp_path)
    script = result.steps[5]
    assert script.trouble is None
    assert (script.read_bytes_per_s or 0) > 0
    assert (script.write_ops_per_s or 0) > 0
    assert (tmp_path / "results/ior/output.txt").read_text().startswith("IOR-4")


def test_results_of_an_earlier_run_are_not_overwritten(
    suite: Path, place: Path, programs: Path, tmp_path: Path
) -> None:
    put_job_fio(programs)
    (tmp_path / "results").mkdir()
    (tmp_path / "results/kept").write_text("mine")
    with pytest.raises(UsageError, match="not empty"):
        run(suite, place, tmp_path)
    assert (tmp_path / "results/kept").read_text() == "mine"


def test_where_it_cannot_run_is_said_first(
    suite: Path, tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="no such directory"):
        run(suite, tmp_path / "nowhere", tmp_path)
    (tmp_path / "place").mkdir()
    monkeypatch.setenv("PATH", str(programs))
    with pytest.raises(UsageError, match="fio is not on PATH"):
        run(suite, tmp_path / "place", tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("version 1", "version 9", "format"),
        ('kind = "workload"', 'kind = "wörkload"', "kind"),
        ('job = "workload.fio"', 'job = "../workload.fio"', "job"),
        ('job = "workload.fio"', 'job = "gone.fio"', "job"),
        ('name = "workload"', 'name = "../../etc"', "name"),
        ('measure = "served_pct"', 'measure = "speed"', "measure"),
        ("ssi = 3.0", 'ssi = "fast"', "ssi"),
        ("ssi = 3.0", "ssi = nan", "ssi"),
        ("direct = true", "direct = 1", "direct"),
        ("read_sizes = {", "read_sizes = { big = 1.0, ", "read_sizes"),
        ("[[steps]]", "[[steps", "no TOML"),
    ],
)
def test_a_suite_with_an_error_is_refused_with_its_place(suite: Path, old: str, new: str, words: str) -> None:
    path = suite / SUITE
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")
    with pytest.raises(InputError, match=words) as error:
        read_suite(suite)
    assert str(path) in str(error.value)


def test_edited_limits_hold(suite: Path, place: Path, programs: Path, tmp_path: Path) -> None:
    path = suite / SUITE
    text = path.read_text("utf-8")
    limit = limit_of(read_suite(suite), "write-operations", "write_ops_per_s").at_least
    path.write_text(text.replace(f"at_least = {limit!r}", "at_least = 1e9"), "utf-8")
    put_job_fio(programs, ops=1e5)
    failed = [check.measure for check in run(suite, place, tmp_path).checks if check.verdict == "fail"]
    assert failed == ["write_ops_per_s"]


@pytest.mark.parametrize("content", [b"", b"\x00\xff\xfe", b"format = 3"])
def test_rubbish_is_no_suite(tmp_path: Path, content: bytes) -> None:
    (tmp_path / SUITE).write_bytes(content)
    with pytest.raises(InputError):
        read_suite(tmp_path)


def test_no_suite_at_all(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="synthesize acceptance"):
        read_suite(tmp_path)


def test_a_name_with_quotes_survives(tmp_path: Path) -> None:
    write_acceptance(model(filesystem='la"ke\\n € \x7f'), tmp_path / "suite", BOUNDS)
    assert read_suite(tmp_path / "suite").filesystem == 'la"ke\\n € \x7f'


def test_the_tool_follows_from_the_kind() -> None:
    assert SuiteStep("a", "script", "a.sh", ()).tool == "ior"
    assert SuiteStep("a", "bandwidth", "a.fio", ()).tool == "fio"
