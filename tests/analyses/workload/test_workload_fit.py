"""From a characterisation to a model: Pareto where it is, quantiles where it is not, refusals where little is known."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from iolens.analyses.workload.analysis import Workload, workload
from iolens.analyses.workload.fit import fit_workload, quantiles_of
from iolens.errors import UsageError
from iolens.models.tails import TailSample
from iolens.models.workload_model import SHARES
from iolens.store.frames import FrameSelection
from tests.analyses.telemetry import table_of

T0_US = 1_767_571_200_000_000  # 2026-01-05, a Monday
TICK_US = 10_000_000
TICKS = 4000


def selection(columns: dict[str, np.ndarray], targets: int = 2, **frames: pa.Table) -> FrameSelection:
    """Ticks × targets of every column as rows of `target_io`."""
    ends = np.repeat(T0_US + (np.arange(TICKS) + 1) * TICK_US, targets)
    rows = [
        {
            "time": int(end), "start": int(end) - TICK_US, "duration_s": TICK_US / 1e6, "date": (int(end) - TICK_US) //
            86_400_000_000, "filesystem": "fs", "source": "made-up", "target": f"c{place % targets}",
            "target_kind": "controller", "after_reset": False,
            **{name: int(values.reshape(-1)[place]) for name, values in columns.items()},
        }
        for place, end in enumerate(ends.tolist())
    ]  # fmt: skip
    return FrameSelection({"target_io": table_of("target_io", rows), **frames}, "fs")


def made_up(seed: int = 1, **changes: np.ndarray) -> dict[str, np.ndarray]:
    """Reads are Pareto, writes lognormal; a third of the samples have none."""
    random = np.random.default_rng(seed)
    shape = (TICKS, 2)
    busy = random.random(shape) < 0.67
    read = 1e6 * (1.0 - random.random(shape)) ** (-1 / 1.5)
    write = np.exp(random.normal(15.0, 0.5, shape))
    result = {
        "read_bytes": np.where(busy, 10 * read, 0.0),
        "read_ops": np.where(busy, np.ceil(read / 1e6), 0),
        "write_bytes": np.where(busy[::-1], 10 * write, 0.0),
        "write_ops": np.where(busy[::-1], 1 + random.poisson(20, shape), 0),
    }
    return result | changes


def characterised(columns: dict[str, np.ndarray]) -> tuple[FrameSelection, Workload]:
    chosen = selection(columns)
    return chosen, workload(chosen)


def test_pareto_where_it_is_and_quantiles_where_it_is_not() -> None:
    columns = made_up()
    fitted = fit_workload(*characterised(columns))
    model = fitted.model
    assert model.read.bandwidth.alpha == pytest.approx(1.5, rel=0.05)
    assert model.read.bandwidth.xm == pytest.approx(1e6, rel=0.01)
    assert model.read.bandwidth.maximum == pytest.approx(columns["read_bytes"].max() / 10)
    written = columns["write_bytes"][columns["write_bytes"] > 0] / 10
    assert model.write.bandwidth.model == "quantiles"
    for share in (0.05, 0.5, 0.95):
        result = model.write.bandwidth.quantile(np.array([share]))[0]
        assert result == pytest.approx(np.quantile(written, share), rel=0.01)
    assert "write bandwidth: as observed, by quantiles (of the five families lognormal is best)" in fitted.notes
    assert (model.filesystem, model.targets, model.tick_s, model.timezone) == ("fs", 2, 10.0, "UTC")
    assert model.read_requests_pct == pytest.approx(
        100 * columns["read_ops"].sum() / (columns["read_ops"].sum() + columns["write_ops"].sum())
    )


def test_the_share_of_samples_with_traffic_is_kept() -> None:
    columns = made_up()
    model = fit_workload(*characterised(columns)).model
    for direction in ("read", "write"):
        observed = (columns[f"{direction}_ops"] > 0).mean()
        assert model.of(direction).busy_share(10.0) == pytest.approx(observed, abs=1e-6)


def test_without_sizes_the_mean_stands_for_all() -> None:
    columns = made_up()
    fitted = fit_workload(*characterised(columns))
    ((size, share),) = fitted.model.write.sizes
    mean = columns["write_bytes"].sum() / columns["write_ops"].sum()
    assert share == 1.0
    assert size % 16384 == 0
    assert mean * 0.97 <= size <= mean * 1.03 + 16384
    assert any(note.startswith("write sizes are not known") for note in fitted.notes)


def test_sizes_are_those_observed() -> None:
    counts = histogram({("read", 16384): 30, ("read", 32768): 10, ("write", 1 << 20): 5})
    chosen = selection(made_up(), target_histograms=counts)
    model = fit_workload(chosen, workload(chosen)).model
    assert model.read.sizes == ((16384, 0.75), (32768, 0.25))
    assert model.write.sizes == ((1 << 20, 1.0),)


def histogram(counts: dict[tuple[str, int], int]) -> pa.Table:
    rows = [
        {
            "time": T0_US + 60_000_000, "start": T0_US, "duration_s": 60.0, "date": T0_US // 86_400_000_000,
            "filesystem": "fs", "source": "made-up", "target": "c0", "target_kind": "controller",
            "histogram": "request_size", "direction": direction, "bin": size, "count": count, "after_reset": False,
        }
        for (direction, size), count in counts.items()
    ]  # fmt: skip
    return table_of("target_histograms", rows)


def test_a_direction_that_is_never_idle() -> None:
    columns = made_up()
    ops = np.maximum(columns["read_ops"], 1)
    fitted = fit_workload(
        *characterised(columns | {"read_ops": ops, "read_bytes": np.maximum(columns["read_bytes"], 9)})
    )
    assert fitted.model.read.idle is None
    assert "read idle: 0 silences, too few to model" in fitted.notes
    assert fitted.model.read.busy_share(10.0) == 1.0


def test_a_target_without_any_traffic_is_one_long_silence() -> None:
    """Its silence begins before the window and ends after it; the samples without traffic are kept nevertheless."""
    columns = {name: np.maximum(values, 9.0) for name, values in made_up().items()}
    for values in columns.values():
        values[:, 1] = 0
    fitted = fit_workload(*characterised(columns))
    assert fitted.model.read.idle is not None
    assert fitted.model.read.idle.quantile(np.array([0.5]))[0] == pytest.approx(TICKS * 10.0)
    assert fitted.model.read.busy_share(10.0) == pytest.approx(0.5)
    assert any("no silence both begins and ends" in note for note in fitted.notes)


def test_a_mix_out_of_reach_gives_way() -> None:
    """Never idle, and the observed share of reads is not that of the mean requests: nothing can be stretched."""
    chosen, result = characterised({name: np.maximum(values, 9.0) for name, values in made_up().items()})
    assert result.aggregate is not None
    odd = replace(result, aggregate=replace(result.aggregate, write_requests_pct=10.0))
    fitted = fit_workload(chosen, odd)
    assert fitted.model.read_requests_pct == pytest.approx(100 * fitted.model.read_share())
    assert fitted.notes[-1].startswith("90 % reads cannot come of these arrivals and silences, only")
    fitted.model.balanced()


@pytest.mark.parametrize("direction", ["read", "write"])
def test_a_model_needs_both_directions_and_their_requests(direction: str) -> None:
    columns = made_up()
    nothing = np.zeros((TICKS, 2))
    with pytest.raises(UsageError, match=f"fs: no {direction}s in this window"):
        fit_workload(*characterised(columns | {f"{direction}_bytes": nothing, f"{direction}_ops": nothing}))
    del columns[f"{direction}_ops"]
    with pytest.raises(UsageError, match=f"{direction} requests are not counted"):
        fit_workload(*characterised(columns))


def test_all_sections_are_needed() -> None:
    chosen = selection(made_up())
    with pytest.raises(UsageError, match="a model needs all sections"):
        fit_workload(chosen, workload(chosen, sections=["bandwidth"]))


def test_maintenance_that_was_left_out_stays_out() -> None:
    columns = {name: values.copy() for name, values in made_up().items()}
    for values in columns.values():
        values[1000:2000] = 0  # almost three hours
    chosen = selection(columns)
    fits = [fit_workload(chosen, workload(chosen, without_maintenance=out)).model for out in (False, True)]
    assert fits[0].read.busy_share(10.0) == pytest.approx(0.67 * 0.75, abs=0.02)
    assert fits[1].read.busy_share(10.0) == pytest.approx(0.67, abs=0.02)


def test_a_pareto_fit_that_is_best_but_not_near_is_not_taken() -> None:
    chosen, result = characterised(made_up())
    tail = result.models["read_bandwidth"]
    families = [
        replace(family, parameters=family.parameters | {"alpha": 3.0}) if "pareto" in family.model else family
        for family in tail.families
    ]
    models = result.models | {"read_bandwidth": replace(tail, families=families)}
    fitted = fit_workload(chosen, replace(result, models=models))
    assert fitted.model.read.bandwidth.model == "quantiles"
    assert (
        "read bandwidth: as observed, by quantiles (Pareto is the best of five families, but not near)" in fitted.notes
    )


def test_quantiles_of_bins_are_inside_their_bins() -> None:
    counts = Counter({1: 500, 2: 300, 7: 200})
    keys = np.array([1.0, 2.0, 7.0])
    sample = TailSample.of_multiples(keys, 1.0, "nearest", np.array(list(counts.values())))
    result = quantiles_of(sample)
    rounded = np.rint(result)
    shares = np.array(SHARES)
    assert result.size == shares.size
    assert np.all(np.diff(result) >= 0)
    assert set(rounded[shares < 0.5].tolist()) == {1.0}
    assert set(rounded[(shares > 0.5) & (shares < 0.8)].tolist()) == {2.0}
    assert set(rounded[shares > 0.8].tolist()) <= {7.0, 8.0}
