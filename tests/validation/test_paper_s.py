"""Study S: there and back through the shipped model, and really computed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from iolens.models.workload_model import Marginal, WorkloadModel
from iolens.simulator.synthetic import load_model
from iolens.validation import Validation, paper_s, validate
from iolens.validation.checks import CheckedNumber
from tests.validation.all_studies import AllStudies

UNREACHED = "not reachable"


def rows(result: Validation) -> dict[tuple[str, str], CheckedNumber]:
    return {(check.where, check.quantity): check for check in result.checks}


@pytest.fixture(scope="module")
def checked_numbers(studies_without_data: AllStudies) -> dict[tuple[str, str], CheckedNumber]:
    return rows(studies_without_data.of("S"))


def test_the_printed_parameters_come_back(checked_numbers: dict[tuple[str, str], CheckedNumber]) -> None:
    alphas = {key[1]: item for key, item in checked_numbers.items() if key[1].startswith("alpha of")}
    assert len(alphas) == 6
    assert {alpha.verdict for alpha in alphas.values()} == {"agrees"}
    assert alphas["alpha of the write bandwidth"].recomputed == pytest.approx(2.6, rel=0.05)
    reads = checked_numbers["section 5", "reads among the requests"]
    assert reads.verdict == "agrees"
    assert reads.recomputed == pytest.approx(42.2, abs=0.5)


def test_nothing_differs_without_a_reason(checked_numbers: dict[tuple[str, str], CheckedNumber]) -> None:
    assert {item.verdict for item in checked_numbers.values()} == {"agrees", "differs, explained", UNREACHED}
    computed = [item for item in checked_numbers.values() if item.verdict != UNREACHED]
    assert len(computed) >= 20
    assert all(item.recomputed is not None for item in computed)


def test_another_model_gives_other_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    original = load_model

    def other(name: str) -> WorkloadModel:
        model = original(name)
        idle = Marginal.pareto(1.8, 2.0, 3600.0)
        return replace(model, read=replace(model.read, idle=idle))

    monkeypatch.setattr(paper_s, "load_model", other)
    changed = rows(validate(None, ["S"]))["section 6.3", "alpha of the read idle time"]
    assert changed.recomputed == pytest.approx(1.8, rel=0.05)
    assert changed.verdict == "differs"
