"""Side by side: what deviates is flagged, what does not is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from iolens.analyses.workload.analysis import Workload
from iolens.analyses.workload.fit import fit_workload
from iolens.analyses.workload.match import MatchedQuantity, WorkloadMatch, match_workloads
from iolens.models.workload_model import Marginal, WorkloadModel
from tests.analyses.workload.test_workload_fit import characterised, made_up


@pytest.fixture(scope="module")
def original() -> tuple[Workload, WorkloadModel]:
    chosen, result = characterised(made_up())
    return result, fit_workload(chosen, result).model


def line(match: WorkloadMatch, quantity: str, direction: str | None = None) -> MatchedQuantity:
    return next(item for item in match.quantities if (item.quantity, item.direction) == (quantity, direction))


def test_a_workload_is_like_itself(original: tuple[Workload, WorkloadModel]) -> None:
    result, model = original
    match = match_workloads(model, model, result, result)
    assert match.beyond == 0
    assert {quantity.deviation for quantity in match.quantities} == {0.0}
    assert (match.filesystem, match.original, match.original_targets, match.synthetic_targets) == ("fs", "model", 2, 2)
    assert line(match, "all targets p99", "read").limit == 10.0
    assert line(match, "bandwidth alpha", "read").limit == 5.0


@pytest.mark.parametrize(("factor", "beyond"), [(1.04, False), (0.96, False), (1.06, True), (0.94, True)])
def test_parameters_may_be_five_percent_off(
    original: tuple[Workload, WorkloadModel], factor: float, beyond: bool
) -> None:
    result, model = original
    bandwidth = model.read.bandwidth
    other = Marginal.pareto((bandwidth.alpha or 0.0) * factor, bandwidth.xm, bandwidth.maximum)
    again = replace(model, read=replace(model.read, bandwidth=other))
    mine = line(match_workloads(model, again, result, result), "bandwidth alpha", "read")
    assert mine.deviation == pytest.approx(100 * (factor - 1))
    assert mine.is_beyond is beyond


def test_percentiles_may_be_ten_percent_off(original: tuple[Workload, WorkloadModel]) -> None:
    result, model = original
    assert result.aggregate is not None
    faster = replace(result.aggregate, read_p99_bytes_per_s=1.2 * (result.aggregate.read_p99_bytes_per_s or 0.0))
    match = match_workloads(model, model, replace(result, aggregate=faster), result)
    assert line(match, "all targets p99", "read").deviation == pytest.approx(20.0)
    assert [quantity.quantity for quantity in match.quantities if quantity.is_beyond] == ["all targets p99"]
    assert match.beyond == 1


def test_shares_are_compared_in_points(original: tuple[Workload, WorkloadModel]) -> None:
    result, model = original
    match = match_workloads(model, replace(model, read_requests_pct=model.read_requests_pct + 0.6), result, result)
    mix = line(match, "reads among requests")
    assert (mix.deviation_unit, mix.is_beyond) == ("points", True)
    assert mix.deviation == pytest.approx(0.6)


def test_sizes_by_their_cumulative_shares(original: tuple[Workload, WorkloadModel]) -> None:
    result, model = original
    mine = replace(model, read=replace(model.read, sizes=((16384, 0.5), (65536, 0.5))))
    other = replace(model, read=replace(model.read, sizes=((16384, 0.4), (32768, 0.3), (65536, 0.3))))
    gap = line(match_workloads(mine, other, result, result), "size CDF, largest difference", "read")
    assert gap.synthetic == pytest.approx(20.0)
    assert gap.is_beyond


def test_distributions_of_another_kind_are_compared_by_quantiles(original: tuple[Workload, WorkloadModel]) -> None:
    result, model = original
    values = tuple(np.linspace(1e6, 9e6, len(model.write.bandwidth.quantiles)).tolist())
    again = replace(model, read=replace(model.read, bandwidth=Marginal.of_quantiles(values)))
    match = match_workloads(model, again, result, result)
    assert line(match, "bandwidth p50", "read").is_beyond
    never = replace(model, read=replace(model.read, idle=None))
    gone = line(match_workloads(model, never, result, result), "idle mean", "read")
    assert (gone.synthetic, gone.deviation, gone.is_beyond) == (None, None, True)


def test_without_a_characterisation_the_model_tells_the_percentiles(original: tuple[Workload, WorkloadModel]) -> None:
    result, model = original
    match = match_workloads(model, model, result)
    for percentile in (95, 99):
        assert abs(line(match, f"target p{percentile}, median", "read").deviation or 99.0) < 10.0
    assert not any(quantity.quantity.startswith("all targets") for quantity in match.quantities)


def test_other_numbers_of_targets_have_other_sums(original: tuple[Workload, WorkloadModel]) -> None:
    result, model = original
    match = match_workloads(model, model, replace(result, targets=result.targets[:1]), result)
    assert not any(quantity.quantity.startswith("all targets") for quantity in match.quantities)
    assert (match.original_targets, match.synthetic_targets) == (2, 1)
