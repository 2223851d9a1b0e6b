"""Each rule speaks beyond its threshold, is silent at it, and says what is missing when it cannot judge."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from iolens.cli.main import iolens
from iolens.errors import InputError
from iolens.findings import checked_thresholds, evaluate, get_rule, rule_codes
from iolens.findings.rule import INPUTS

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


def rpcs(*sizes: tuple[int, int, int]) -> dict[int, dict[str, int]]:
    return {size: {"read": reads, "write": writes} for size, reads, writes in sizes}


def nodes(first: int, other: int, count: int = 16) -> tuple[str, dict[str, int]]:
    return "nodes", {f"n{number}": other if number else first for number in range(count)}


# code → inputs that just trigger it, and those that just do not
CASES: Mapping[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "small-rpcs": (
        {"rpc_sizes": rpcs((64 * KIB, 501, 0), (MIB, 499, 0))},
        [
            {"rpc_sizes": rpcs((64 * KIB, 500, 0), (MIB, 500, 0))},  # exactly half
            {"rpc_sizes": rpcs((64 * KIB, 999, 999))},  # too few
            {"rpc_sizes": rpcs((128 * KIB, 5000, 5000))},  # not small
        ],
    ),
    "many-opens": (
        {"opens": 1601, "processes": 16},
        [{"opens": 1600, "processes": 16}],
    ),
    "metadata-bound": (
        {"metadata_s": 10.0, "io_s": 25.0},
        [{"metadata_s": 10.0, "io_s": 25.1}, {"metadata_s": 9.9, "io_s": 9.9}],
    ),
    "client-cache": (
        {"read_bytes": 2 * MIB + 1, "write_bytes": 0, "rpc_sizes": rpcs((MIB, 1, 0))},
        [{"read_bytes": 2 * MIB, "write_bytes": 0, "rpc_sizes": rpcs((MIB, 1, 0))}],
    ),
    "stat-storm": (
        {"stats_by_node": {"n1": (3001, 60.0), "n2": (10, 60.0)}},
        [{"stats_by_node": {"n1": (3000, 60.0)}}, {"stats_by_node": {"n1": (10_000, 59.0)}}],
    ),
    "single-writer": (
        {"written_by": nodes(91 * GIB // 10, GIB // 15)},
        [
            {"written_by": nodes(9 * 15 * GIB, GIB)},  # exactly 90 %
            {"written_by": nodes(9 * GIB, 0, count=15)},
            {"written_by": nodes(GIB - 1, 0)},
        ],
    ),
}  # fmt: skip


def test_every_rule_has_a_case_here() -> None:
    assert sorted(CASES) == rule_codes()


@pytest.mark.parametrize("code", rule_codes())
def test_it_speaks_just_beyond_its_threshold(code: str) -> None:
    (finding,) = evaluate(CASES[code][0], codes=[code]).findings
    assert (finding.code, finding.severity) == (code, get_rule(code).severity)
    assert finding.evidence
    assert "{" not in finding.message
    assert finding.remedy.endswith(".")
    assert finding.estimated_gain is None
    json.dumps(finding.evidence, allow_nan=False)


@pytest.mark.parametrize("code", rule_codes())
def test_it_is_silent_at_its_threshold(code: str) -> None:
    for inputs in CASES[code][1]:
        evaluation = evaluate(inputs, codes=[code])
        assert (evaluation.findings, evaluation.not_evaluated) == ((), ())


@pytest.mark.parametrize("code", rule_codes())
def test_without_an_input_it_is_not_evaluated_and_says_what_is_missing(code: str) -> None:
    for name in get_rule(code).inputs:
        inputs = {**CASES[code][0], name: None}
        evaluation = evaluate(inputs, codes=[code])
        assert evaluation.findings == ()
        (missing,) = evaluation.not_evaluated
        assert (missing.code, missing.missing) == (code, (name,))
        assert INPUTS[name] in missing.reason


def test_with_nothing_known_no_rule_is_passed_over() -> None:
    evaluation = evaluate({})
    assert evaluation.findings == ()
    assert [item.code for item in evaluation.not_evaluated] == rule_codes()


def test_zero_is_known() -> None:
    assert evaluate({"opens": 0, "processes": 4}, codes=["many-opens"]).not_evaluated == ()


def test_both_directions_are_judged_and_the_worst_comes_first() -> None:
    inputs = {"rpc_sizes": rpcs((4 * KIB, 5000, 7000)), "stats_by_node": {"n1": (100_000, 100.0)}}
    evaluation = evaluate(inputs)
    assert [finding.code for finding in evaluation.findings] == ["stat-storm", "small-rpcs", "small-rpcs"]
    assert [finding.evidence.get("direction") for finding in evaluation.findings] == [None, "read", "write"]
    assert evaluation.findings[1].message == "100 % of 5,000 read RPCs are 64 KiB or less"


def test_thresholds_come_from_the_configuration(tmp_path: Path) -> None:
    silent = CASES["many-opens"][1][0]
    assert len(evaluate(silent, {"many-opens": {"opens_per_process": 99}}, ["many-opens"]).findings) == 1
    config = tmp_path / "iolens.toml"
    config.write_text("[findings.many-opens]\nopens_per_process = 7\n")
    done = CliRunner().invoke(iolens, ["findings", "explain", "many-opens", "--config", str(config)])
    assert "more than 7 opens for each process" in done.output
    assert "opens_per_process = 7 (default 100)" in done.output
    listed = CliRunner().invoke(iolens, ["findings", "list", "--format", "json", "--config", str(config)])
    assert {rule["code"]: rule["thresholds"] for rule in json.loads(listed.output)}["many-opens"] == {
        "opens_per_process": 7
    }


@pytest.mark.parametrize(
    ("configured", "message"),
    [
        ({"smal-rpcs": {}}, "unknown section findings.smal-rpcs"),
        ({"many-opens": {"opens": 5}}, "unknown key findings.many-opens.opens; expected one of opens_per_process"),
    ],
)
def test_a_threshold_that_is_not_known_is_refused(configured: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        checked_thresholds(configured, "iolens.toml")


def test_a_threshold_that_is_no_number_is_refused(tmp_path: Path) -> None:
    (tmp_path / "iolens.toml").write_text('[findings.many-opens]\nopens_per_process = "many"\n')
    done = CliRunner().invoke(iolens, ["findings", "list", "--config", str(tmp_path / "iolens.toml")])
    assert isinstance(done.exception, InputError)
    assert "findings.many-opens.opens_per_process = 'many'" in str(done.exception)


def test_every_rule_is_listed() -> None:
    done = CliRunner().invoke(iolens, ["findings", "list"])
    assert [line.split()[0] for line in done.output.splitlines()] == rule_codes()
