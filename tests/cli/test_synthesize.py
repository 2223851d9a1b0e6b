"""`iolens synthesize` and `simulate telemetry --workload spider`, as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iolens.simulator.synthetic import read_model
from iolens.store.store import Store
from tests.cli.command import iolens


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Spider, small: three controllers for four hours."""
    place = tmp_path_factory.mktemp("spider") / "store"
    done = iolens("simulate", "telemetry", "--workload", "spider", "--osts", 3, "--days", 1 / 6, "--store", place)
    assert done.code == 0, done.err
    assert done.out.startswith("spider: 3 controllers, 2012-10-22T00:00:00Z to 2012-10-22T04:00:00Z, seed 1, in")
    return place


def test_simulated_controllers_are_the_synthetic_ones(store: Path, tmp_path: Path) -> None:
    done = iolens(
        "synthesize", "telemetry", "--model", "spider", "--targets", 3, "--days", 1 / 6, "--into", tmp_path / "again",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "spider: 3 targets, 2012-10-22T00:00:00Z" in done.err
    frames = (Store(place).select().frame("target_io") for place in (store, tmp_path / "again"))
    totals = [frame.collect(backend="pyarrow")["read_bytes"].sum() for frame in frames]
    assert totals[0] == totals[1] > 0
    again = iolens(
        "simulate", "telemetry", "--workload", "spider", "--osts", 3, "--days", 1 / 6, "--store", store,
        "--format", "json",
    )  # fmt: skip
    truth = json.loads(again.out)
    assert truth["read_bytes"] == totals[0]  # and asking again added nothing
    assert truth["model"]["read"]["bandwidth"]["alpha"] == 1.24


def test_a_model_of_a_store(store: Path, tmp_path: Path) -> None:
    done = iolens(
        "synthesize", "model", "--store", store, "-o", "model.toml", "--timezone", "America/New_York", cwd=tmp_path
    )
    assert done.code == 0, done.err
    assert done.out == ""
    model = read_model(tmp_path / "model.toml")
    assert (model.filesystem, model.targets, model.timezone) == ("spider", 3, "America/New_York")
    assert model.read.bandwidth.alpha == pytest.approx(1.24, rel=0.05)
    text = (tmp_path / "model.toml").read_text()
    assert text.startswith(
        f"# A workload model, from spider of {store}\n# Fitted to 2012-10-22T00:00:00Z to 2012-10-22T"
    )


def test_a_model_without_a_place_is_printed(store: Path, tmp_path: Path) -> None:
    done = iolens(
        "synthesize", "model", "--store", store, "--targets", 7, "--as", "other", "--to", "2012-10-22T02:00:00Z"
    )
    assert done.code == 0, done.err
    (tmp_path / "printed.toml").write_text(done.out)
    model = read_model(tmp_path / "printed.toml")
    assert (model.filesystem, model.targets) == ("other", 7)
    assert "to 2012-10-22T02:00:00Z" in done.out


def test_verification_of_a_store(store: Path, tmp_path: Path) -> None:
    done = iolens(
        "synthesize", "telemetry", "--store", store, "--verify", "--format", "json", "--seed", 4, cwd=tmp_path
    )
    assert done.code == 0, done.err
    result = json.loads(done.out)
    assert result["original"] == f"spider of {store}"
    assert (result["window_start"], result["window_end"]) == ("2012-10-22T00:00:00Z", "2012-10-22T04:00:00Z")
    names = {(item["quantity"], item["direction"]): item for item in result["quantities"]}
    assert names["bandwidth alpha", "read"]["is_beyond"] is False
    assert names["all targets p95", "write"]["limit"] == 10
    assert list(tmp_path.iterdir()) == []  # what was made for it is gone


def test_verification_of_a_model_in_a_table(tmp_path: Path) -> None:
    done = iolens(
        "synthesize", "telemetry", "--model", "spider", "--targets", 2, "--days", 0.1, "--verify", cwd=tmp_path
    )
    assert done.code == 0, done.err
    assert "spider: synthetic against the model spider" in done.out
    assert " quantities " in done.out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (
            ("model", "--store", "a", "--model", "spider"),
            2,
            "--store chooses telemetry of a store to fit; --model takes",
        ),
        (("fio", "-o", "x", "--from", "2012-10-22", "--model", "spider"), 2, "--from chooses telemetry of a store"),
        (("model", "--without-maintenance", "--model", "spider"), 2, "--without-maintenance chooses telemetry"),
        (("model", "--resolution", "60s"), 2, "fitted to raw rows"),
        (("model", "--model", "nothing"), 1, "no such model"),
        (("model", "--model", "scratch"), 1, "no such model"),
        (("model", "--store", "nowhere"), 1, "nowhere"),
        (("model", "--store", "s", "--from", "yesterdayish"), 2, "--from"),
        (("telemetry", "--model", "spider"), 2, "name a store with --into, or --verify"),
        (
            ("telemetry", "--model", "spider", "--into", "s", "--start", "2012-10-22T00:00:01Z"),
            2,
            "a whole tick of 2 s",
        ),
        (("telemetry", "--model", "spider", "--into", "s", "--days", "0"), 2, "--days"),
        (("fio", "--model", "spider"), 2, "--output"),
    ],
)
def test_refusals(tmp_path: Path, arguments: tuple[str, ...], code: int, said: str) -> None:
    done = iolens("synthesize", *arguments, cwd=tmp_path)
    assert (done.code, done.out) == (code, "")
    assert said in done.err
    assert "Traceback" not in done.err


def test_synthetic_hours_are_not_written_over_others(store: Path) -> None:
    done = iolens("synthesize", "telemetry", "--store", store, "--into", store, "--seed", 9)
    assert done.code == 2
    assert "another simulation of spider" in done.err


@pytest.mark.parametrize(
    ("words", "now"),
    [
        (("--from", "centre", "-f", "scratch", "-o", "m.toml"), "iolens synthesize model --store STORE"),
        (("--model", "spider", "--days", "2", "--store", "s"), "iolens synthesize telemetry --into STORE"),
        (("--model=spider", "--verify"), "iolens synthesize telemetry --verify"),
        (("--model", "spider", "--emit-fio", "jobs"), "iolens synthesize fio -o DIR"),
        (("--model", "spider", "--emit-ior", "ior"), "iolens synthesize ior -o DIR"),
        (("--model", "spider", "--acceptance", "suite"), "iolens synthesize acceptance -o DIR"),
    ],
)
def test_the_form_without_a_sub_command_is_answered_with_the_new_one(words: tuple[str, ...], now: str) -> None:
    done = iolens("synthesize", *words)
    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines()[-1] == (
        f"Error: say what to make: `{now}`; the store to fit is --store, its window --from and --to"
    )


def test_a_model_has_no_metadata_servers_and_no_tree(tmp_path: Path) -> None:
    done = iolens("simulate", "telemetry", "--workload", "spider", "--mdts", 1, "--store", tmp_path / "s")
    assert (done.code, "no MDTs" in done.err) == (2, True)
    tree = iolens("simulate", "lustre", "--workload", "spider", "--root", tmp_path / "root")
    assert tree.code == 1
    assert "no such workload" in tree.err
