"""The whole of `workload` against plain NumPy on a made-up centre, and what it says when something is missing."""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import iolens
from iolens.analyses.workload.analysis import SECTIONS, Workload
from iolens.analyses.workload.bandwidth import Maintenance
from iolens.api import OpenStore
from iolens.errors import NotKnownError, UsageError
from iolens.store.store import Store
from iolens.views.render.json_text import to_json
from tests.analyses.telemetry import made_up, made_up_metadata, table_of
from tests.analyses.utilization.test_utilization import assert_same
from tests.analyses.workload_rows import T0_US, Centre, made_up_centre

DIRECTIONS = ("read", "write")


def of(centre: Centre, **options) -> Workload:
    answer = iolens.workload(filesystem="spider", **{**centre.tables, **options})
    assert isinstance(answer, Workload)
    return answer


@pytest.fixture(scope="module")
def centre() -> Centre:
    return made_up_centre(1, targets=4, ticks=5400, missing=0.02)


@pytest.fixture(scope="module")
def result(centre: Centre) -> Workload:
    return of(centre, timezone="Europe/Berlin")


def without(table: pa.Table, *names: str) -> pa.Table:
    """With columns of nothing but NULL."""
    for name in names:
        place = table.column_names.index(name)
        table = table.set_column(place, name, pa.nulls(table.num_rows, table.schema.field(name).type))
    return table


def rates(centre: Centre, direction: str) -> np.ndarray:
    """Bytes per second; a sample after a missed one is twice as long."""
    bytes_ = centre.measures[f"{direction}_bytes"]
    length = np.full(bytes_.shape, centre.tick_s)
    for line in range(1, len(length)):
        gone = np.isnan(bytes_[line - 1])
        length[line, gone] = length[line - 1, gone] + centre.tick_s
    return bytes_ / length


# The numbers.


def test_every_target_equals_plain_numpy(centre: Centre, result: Workload) -> None:
    for place, line in enumerate(result.targets):
        assert line.target == centre.targets[place]
        for direction in DIRECTIONS:
            mine = rates(centre, direction)[:, place]
            mine = mine[~np.isnan(mine)]
            answer = [getattr(line, f"{direction}_{name}_bytes_per_s") for name in ("p95", "p99", "max")]
            assert answer == pytest.approx(np.quantile(mine, [0.95, 0.99, 1.0]))
            assert getattr(line, f"{direction}_bytes") == np.nansum(centre.measures[f"{direction}_bytes"][:, place])
        assert line.samples == (~np.isnan(centre.measures["read_ops"][:, place])).sum()


def test_the_mix_equals_plain_numpy(centre: Centre, result: Workload) -> None:
    sums = {name: np.nansum(values, axis=0) for name, values in centre.measures.items()}
    for place, line in enumerate(result.targets):
        for share, what in ((line.write_requests_pct, "ops"), (line.write_bytes_pct, "bytes")):
            written, read = sums[f"write_{what}"][place], sums[f"read_{what}"][place]
            assert share == pytest.approx(100 * written / (written + read))
    assert result.aggregate is not None
    assert result.aggregate.write_requests_pct == pytest.approx(
        100 * sums["write_ops"].sum() / (sums["write_ops"].sum() + sums["read_ops"].sum())
    )
    idle = (centre.measures["read_ops"] == 0) & (centre.measures["write_ops"] == 0)
    known = ~np.isnan(centre.measures["read_ops"])
    assert result.aggregate.idle_pct == pytest.approx(100 * idle.sum() / known.sum())
    assert [line.idle_pct for line in result.targets] == pytest.approx(100 * idle.sum(axis=0) / known.sum(axis=0))


def test_peaks_together_and_alone_equal_plain_numpy(centre: Centre, result: Workload) -> None:
    assert result.aggregate is not None
    for line in result.peak_vs_sum:
        mine = rates(centre, line.direction)
        whole = mine[~np.isnan(mine).any(axis=1)].sum(axis=1)  # nine in ten of four are four
        assert line.aggregate_bytes_per_s == pytest.approx(np.quantile(whole, line.percentile / 100))
        alone = sum(np.nanquantile(mine[:, column], line.percentile / 100) for column in range(4))
        assert line.sum_of_targets_bytes_per_s == pytest.approx(alone)
        if line.percentile == 100:
            assert line.aggregate_bytes_per_s < line.sum_of_targets_bytes_per_s
            assert getattr(result.aggregate, f"{line.direction}_max_bytes_per_s") == line.aggregate_bytes_per_s
    left_out = np.isnan(centre.measures["read_ops"]).any(axis=1).sum()
    assert result.coverage.ticks_left_out == left_out


def idle_one_by_one(requests: np.ndarray) -> tuple[Counter[int], int, int]:
    """Whole idle runs by length, and how many touch an end of the window or a missing sample."""
    whole: Counter[int] = Counter()
    at_ends = at_gaps = 0
    for column in requests.T:
        states = ["?" if np.isnan(item) else "0" if item == 0 else "1" for item in column]
        for match in re.finditer("0+", "".join(states)):
            first, last = match.span()
            if first == 0 or last == len(states):
                at_ends += 1
            elif "?" in (states[first - 1], states[last]):
                at_gaps += 1
            else:
                whole[last - first] += 1
    return whole, at_ends, at_gaps


def test_spacings_and_silences_are_what_the_samples_say(centre: Centre, result: Workload) -> None:
    for direction in DIRECTIONS:
        requests = centre.measures[f"{direction}_ops"]
        model = result.models[f"{direction}_bandwidth"]
        assert model.samples == (requests > 0).sum()
        assert model.zero_share_pct == pytest.approx(100 * (requests == 0).sum() / (~np.isnan(requests)).sum())
        assert result.silences is not None
        whole, at_ends, at_gaps = idle_one_by_one(requests)
        censored = next(item for item in result.censored_idle if item.direction == direction)
        assert result.silences[direction] == whole
        assert (censored.runs, censored.runs_at_gaps) == (at_ends, at_gaps)
        assert at_gaps > 100  # two in a hundred samples are missing
        assert result.models[f"{direction}_idle"].samples == sum(whole.values())
        after_missed = np.isnan(requests[:-1]) & ~np.isnan(requests[1:])
        assert result.models[f"{direction}_interarrival"].off_tick_samples == after_missed.sum()
        on_tick = np.concatenate([requests[:1], np.where(after_missed, np.nan, requests[1:])])
        assert result.models[f"{direction}_interarrival"].samples == (on_tick > 0).sum()


def test_parameters_come_back() -> None:
    """Pareto bandwidth in, Pareto bandwidth out."""
    random = np.random.default_rng(1)
    rows = 20_000
    read = np.rint(2e6 * random.random(rows) ** (-1 / 1.24))
    time = T0_US + (np.arange(rows) + 1) * 1_000_000
    table = pa.table({
        "time": pa.array(time, pa.timestamp("us", "UTC")), "duration_s": np.ones(rows), "target": ["a"] * rows,
        "read_bytes": read, "write_bytes": np.where(random.random(rows) < 0.5, 0.0, read),
    })  # fmt: skip
    answer = iolens.workload(target_io=table, sections=["bandwidth"], resamples=20)
    model = answer.models["read_bandwidth"]
    assert model.paper is not None
    assert model.mle is not None
    assert model.paper.alpha == pytest.approx(1.24, rel=0.05)
    assert model.mle.alpha == pytest.approx(1.24, rel=0.05)
    assert model.paper.r2 > 0.98
    assert model.mle.p_value is not None
    assert (model.unit, model.best_model) == ("bytes/s", "pareto")
    assert answer.models["write_bandwidth"].zero_share_pct == pytest.approx(50, abs=2)


def test_json_has_the_keys_that_are_promised(result: Workload) -> None:
    answer = json.loads(to_json(result))
    assert set(answer["models"]) == {
        f"{direction}_{what}" for direction in DIRECTIONS for what in ("bandwidth", "interarrival", "idle")
    }
    for model in answer["models"].values():
        assert {"paper", "mle", "unit", "zero_share_pct", "best_model", "verdict"} <= set(model)
        assert set(model["paper"]) == {"alpha", "xm", "r2"}
        assert set(model["mle"]) == {"alpha", "xm", "ks", "n_tail", "p_value", "xm_candidates", "xm_values"}
    promised = {f"{direction}_{name}_bytes_per_s" for direction in DIRECTIONS for name in ("p95", "p99", "max")}
    promised |= {"target", "write_requests_pct", "write_bytes_pct", "idle_pct"}
    assert promised <= set(answer["targets"][0])
    assert promised <= set(answer["aggregate"])
    assert set(answer["peak_vs_sum"][0]) == {
        "percentile", "direction", "aggregate_bytes_per_s", "sum_of_targets_bytes_per_s",
    }  # fmt: skip
    assert {"direction", "size_bytes", "pdf", "cdf"} <= set(answer["sizes"][0])
    assert [len(answer["rhythm"][name]) for name in ("weekday", "hour")] == [7, 24]
    assert {"mean_bytes_per_s", "peak_bytes_per_s", "below_third_of_peak_pct"} <= set(answer["throughput"])
    assert set(answer["throughput"]["idle_periods"][0]) == {
        "from_min", "to_min", "count", "minutes", "share_pct", "wall_share_pct",
    }  # fmt: skip
    assert "NaN" not in to_json(result)


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_alone_says_the_same(centre: Centre, result: Workload, section: str) -> None:
    alone, whole = (
        json.loads(to_json(item)) for item in (of(centre, sections=[section], timezone="Europe/Berlin"), result)
    )
    keys = {
        "bandwidth": ["peak_vs_sum"], "mix": [], "sizes": ["sizes", "size_peaks"], "arrivals": [],
        "idle": ["censored_idle"], "rhythm": ["rhythm"], "throughput": ["throughput"],
    }  # fmt: skip
    for key in keys[section]:
        assert alone[key]
        assert_same(alone[key], whole[key])
    for name, model in alone["models"].items():
        assert_same(model, whole["models"][name])
    models = {"bandwidth": "bandwidth", "arrivals": "interarrival", "idle": "idle"}
    assert {name.partition("_")[2] for name in alone["models"]} == ({models[section]} if section in models else set())
    others = [key for name, several in keys.items() if name != section for key in several]
    assert not any(alone[key] for key in others)
    assert [line["write_bytes_pct"] for line in alone["targets"]] == [
        line["write_bytes_pct"] for line in whole["targets"]
    ]


def test_by_requests_busy_samples_count_more(centre: Centre, result: Workload) -> None:
    weighted = of(centre, sections=["arrivals"], weight_by_requests=True)
    for direction in DIRECTIONS:
        name = f"{direction}_interarrival"
        assert weighted.models[name].samples > 2 * result.models[name].samples


# Whatever cuts the window.


def stored(folder: Path, *centres: Centre) -> OpenStore:
    store = Store(folder)
    for centre in centres:
        for name, table in centre.tables.items():
            store.append(name, table)
    return iolens.open(str(folder))


@pytest.mark.parametrize("rows_for_workers", [1 << 40, 1], ids=["here", "workers"])
def test_midnights_parts_and_workers_do_not_change_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_for_workers: int
) -> None:
    centre = made_up_centre(2, targets=3, ticks=2 * 4320, tick_s=20.0, first_us=T0_US - 86_400_000_000, missing=0.03)
    whole = json.loads(to_json(of(centre)))
    with stored(tmp_path, centre) as opened:
        monkeypatch.setattr("iolens.store.selection.ROWS_OF_DAYS", 5000)
        monkeypatch.setattr("iolens.store.selection.ROWS_AT_ONCE", 1000)
        monkeypatch.setattr("iolens.store.parts.FEWEST_ROWS", rows_for_workers)
        parts = json.loads(to_json(opened.workload(resamples=0)))
        since = opened.workload(since="2020-09-14", sections=["mix"])
    for part in (whole, parts):
        del part["coverage"]["sources"]
    assert_same(parts, whole)
    assert since.samples < whole["samples"]
    assert since.window_start == datetime(2020, 9, 14, tzinfo=UTC)


# What is missing.


def test_metadata_targets_are_not_missed(tmp_path: Path) -> None:
    part = made_up(1, ticks=50, targets=2)
    store = Store(tmp_path)
    store.append("target_io", part.table("target_io"))
    store.append("metadata_ops", table_of("metadata_ops", made_up_metadata(1, 20, 1)))
    store.append("target_io", made_up(2, ticks=5, targets=3, first_tick=-5000).table("target_io"))
    with iolens.open(str(tmp_path)) as opened:
        answer = opened.workload(since="2020-09-14", sections=["mix"]).coverage
    assert answer.missing_targets == ["scratch-OST0002"]
    assert (answer.targets_known, answer.targets_reporting) == (3, 2)


def test_missing_samples_are_those_of_the_whole_window() -> None:
    """100 ticks of two targets, half an hour of nothing, and 100 ticks of one."""
    rows = made_up(1, 100, 2, missing=0.0).io + made_up(2, 100, 1, first_tick=460, missing=0.0).io
    table = table_of("target_io", rows)
    inside = iolens.workload(target_io=table, sections=["mix"])
    assert (inside.samples, inside.coverage.missing_samples) == (300, 2 * 560 - 300)
    until = datetime(2020, 9, 14, 1, tzinfo=UTC)
    assert iolens.workload(target_io=table, sections=["mix"], until=until).coverage.missing_samples == 2 * 720 - 300
    windows = [
        Maintenance(
            datetime(2020, 9, 14, 0, start, tzinfo=UTC), datetime(2020, 9, 14, 0, end, tzinfo=UTC), "x", "configured"
        )
        for start, end in ((10, 25), (20, 35))
    ]
    rest = iolens.workload(target_io=table, sections=["mix"], maintenance=windows, without_maintenance=True)
    assert rest.coverage.missing_samples == 2 * (560 - 25 * 12) - 300


def test_without_counts_of_requests_bytes_tell_idleness(centre: Centre) -> None:
    answer = of(centre, target_io=without(centre.tables["target_io"], "read_ops", "write_ops"))
    assert not any("interarrival" in name for name in answer.models)
    assert {"read_idle", "write_idle"} <= set(answer.models)
    assert answer.aggregate is not None
    assert answer.aggregate.write_requests_pct is None
    assert answer.aggregate.write_bytes_pct is not None
    assert any("requests are not counted" in note for note in answer.coverage.notes)
    with_counts = of(centre)
    assert answer.aggregate.idle_pct == pytest.approx(with_counts.aggregate.idle_pct)  # bytes and requests go together
    assert answer.silences == with_counts.silences


def test_a_target_without_counts_among_others_is_reported_by_its_bytes(centre: Centre, result: Workload) -> None:
    table = centre.tables["target_io"]
    mine = np.array(table.column("target").to_pylist()) == centre.targets[0]
    for name in ("read_ops", "write_ops"):
        column = pa.array(table.column(name).to_numpy(), mask=mine)
        table = table.set_column(table.column_names.index(name), name, column)
    answer = of(centre, target_io=table, sections=["idle", "mix"])
    assert answer.targets[0].write_requests_pct is None
    assert answer.targets[0].idle_pct == pytest.approx(result.targets[0].idle_pct)
    assert answer.targets[1].write_requests_pct == result.targets[1].write_requests_pct
    assert answer.silences == result.silences


def test_only_reads(centre: Centre) -> None:
    answer = of(centre, target_io=without(centre.tables["target_io"], "write_ops", "write_bytes"))
    assert {name.partition("_")[0] for name in answer.models} == {"read"}
    line = answer.targets[0]
    assert (line.write_bytes, line.write_bytes_pct, line.write_p95_bytes_per_s, line.idle_pct) == (None,) * 4
    assert {item.direction for item in answer.peak_vs_sum} == {"read"}
    assert [item.direction for item in answer.censored_idle] == ["read"]
    assert answer.throughput is not None
    assert answer.throughput.write_bytes_per_day is None
    assert answer.throughput.read_bytes_per_day is not None
    assert answer.rhythm is not None
    assert {item.write_bytes_per_hour for item in answer.rhythm.hour} == {None}
    assert "no target tells the bytes of its writes" in answer.coverage.notes


def test_a_single_target(tmp_path: Path) -> None:
    centre = made_up_centre(3, targets=1, ticks=600)
    answer = of(centre)
    for line in answer.peak_vs_sum:
        assert line.aggregate_bytes_per_s == pytest.approx(line.sum_of_targets_bytes_per_s)
    assert answer.aggregate is not None
    assert answer.aggregate.read_bytes == answer.targets[0].read_bytes


def test_no_traffic_at_all() -> None:
    centre = made_up_centre(1, targets=2, ticks=3600 * 3 // 2, idle=1.0)
    answer = of(centre)
    line = answer.targets[0]
    assert (line.read_max_bytes_per_s, line.idle_pct, line.write_requests_pct) == (0.0, 100.0, None)
    assert {model.best_model for model in answer.models.values()} == {None}
    assert all("too few" in model.verdict for model in answer.models.values())
    assert answer.sizes == []
    assert answer.throughput is not None
    assert (answer.throughput.idle_pct, answer.throughput.below_third_of_peak_pct) == (100.0, None)
    assert [item.runs for item in answer.censored_idle] == [2, 2]  # each target, from end to end
    assert [item.origin for item in answer.maintenance] == ["found"]
    json.loads(to_json(answer))


@pytest.mark.parametrize("tick_s", [60.0, 300.0])
def test_long_ticks(tick_s: float) -> None:
    centre = made_up_centre(1, targets=3, ticks=500, tick_s=tick_s)
    answer = of(centre)
    assert answer.tick_s == tick_s
    assert answer.throughput is not None
    assert answer.throughput.observed_minutes == 500 * tick_s / 60
    assert answer.rhythm is not None
    assert sum(item.observed_hours for item in answer.rhythm.hour) == pytest.approx(500 * tick_s / 3600)
    per_day = np.nansum(centre.measures["read_bytes"]) / (500 * tick_s) * 86400
    assert answer.throughput.read_bytes_per_day == pytest.approx(per_day)


def test_a_gap_is_not_idle() -> None:
    """Two busy hours around three that were not observed."""
    item = made_up_centre(1, targets=2, ticks=1800, idle=0.0)
    two = made_up_centre(2, targets=2, ticks=1800, idle=0.0, first_us=T0_US + 4 * 3600 * 1_000_000)
    table = pa.concat_tables([item.tables["target_io"], two.tables["target_io"]])
    answer = of(item, target_io=table)
    assert answer.throughput is not None
    assert (answer.throughput.observed_minutes, answer.throughput.wall_minutes) == (120, 300)
    assert answer.throughput.zero_pct == 0
    assert (answer.maintenance, answer.targets[0].idle_pct) == ([], 0.0)
    assert sum(answer.silences["read"].values()) == 0


def test_nothing_to_tell_is_said(centre: Centre) -> None:
    with pytest.raises(NotKnownError, match="no target's bytes"):
        of(centre, target_io=centre.tables["target_io"].slice(0, 0))
    with pytest.raises(NotKnownError):
        of(centre, target_io=without(centre.tables["target_io"], "read_bytes", "write_bytes"))


def test_an_unknown_section_and_a_peak_of_nothing_are_refused(centre: Centre) -> None:
    with pytest.raises(UsageError, match="no section is called 'colour'"):
        of(centre, sections=["colour"])
    with pytest.raises(UsageError, match="above zero"):
        of(centre, peak_bytes_per_s=0.0)
    with pytest.raises(UsageError, match="Mars"):
        of(centre, timezone="Mars/Base")


def test_targets_of_another_kind_tell_of_the_same_bytes(centre: Centre, result: Workload) -> None:
    table = centre.tables["target_io"]
    osts = table.set_column(
        table.column_names.index("target"), "target", pa.array([f"x{name}" for name in table["target"].to_pylist()])
    ).set_column(table.column_names.index("target_kind"), "target_kind", pa.array(["ost"] * table.num_rows))
    answer = of(centre, target_io=pa.concat_tables([table, osts]), sections=["mix"])
    assert answer.aggregate is not None
    assert result.aggregate is not None
    assert answer.aggregate.read_bytes == result.aggregate.read_bytes
    assert answer.coverage.target_kinds == ["ost"]
    assert "4 targets of other kinds" in answer.coverage.notes[0]


# Maintenance, and what the configuration knows.


@pytest.fixture(scope="module")
def quiet() -> Centre:
    """Six hours, of which the third and fourth are without a byte."""
    centre = made_up_centre(5, targets=2, ticks=6 * 360, tick_s=10.0, idle=0.3)
    table = centre.tables["target_io"]
    time = table.column("time").cast(pa.int64()).to_numpy()
    silent = (time > T0_US + 2 * 3_600_000_000) & (time <= T0_US + 4 * 3_600_000_000)
    for name in centre.measures:
        values = pa.array(np.where(silent, 0, table.column(name).to_numpy()))
        table = table.set_column(table.column_names.index(name), name, values)
    return Centre(centre.tick_s, centre.end_us, centre.targets, {}, {**centre.tables, "target_io": table})


START = datetime(2020, 9, 14, tzinfo=UTC)


def window(first: float, last: float, name: str = "planned") -> Maintenance:
    return Maintenance(START + timedelta(hours=first), START + timedelta(hours=last), name, "configured")


def test_maintenance_is_found_and_left_out_on_request(quiet: Centre) -> None:
    whole, rest = of(quiet), of(quiet, without_maintenance=True)
    assert [(item.start, item.end, item.origin) for item in whole.maintenance] == [
        (START + timedelta(hours=2), START + timedelta(hours=4), "found")
    ]
    assert rest.maintenance == whole.maintenance
    assert (whole.maintenance_left_out, rest.maintenance_left_out) == (False, True)
    assert whole.throughput is not None
    assert rest.throughput is not None
    assert (whole.throughput.observed_minutes, rest.throughput.observed_minutes) == (360, 240)
    assert whole.throughput.longest_zero_min >= 120
    assert rest.throughput.longest_zero_min < 5
    assert whole.aggregate is not None
    assert rest.aggregate is not None
    assert rest.aggregate.idle_pct < whole.aggregate.idle_pct
    assert rest.aggregate.read_bytes == whole.aggregate.read_bytes


def test_a_configured_window_has_a_name_and_what_is_found_inside_it_is_that(quiet: Centre) -> None:
    answer = of(quiet, maintenance=[window(1.5, 4.5)], without_maintenance=True)
    assert [(item.name, item.origin) for item in answer.maintenance] == [("planned", "configured")]
    assert answer.throughput is not None
    assert answer.throughput.observed_minutes == 180


def test_what_is_found_beside_configured_windows_counts_too(quiet: Centre) -> None:
    answer = of(quiet, maintenance=[window(5, 5.5), window(-100, -90)], without_maintenance=True)
    assert [item.origin for item in answer.maintenance] == ["found", "configured"]  # none of another year
    assert answer.throughput is not None
    assert answer.throughput.observed_minutes == 360 - 120 - 30


def test_nothing_left_is_said(quiet: Centre) -> None:
    with pytest.raises(UsageError, match="nothing is left"):
        of(quiet, maintenance=[window(-1, 7)], without_maintenance=True)


@pytest.fixture(scope="module")
def configured(quiet: Centre, tmp_path_factory: pytest.TempPathFactory) -> OpenStore:
    folder = tmp_path_factory.mktemp("store")
    stored(folder, quiet).close()
    settings = folder / "iolens.toml"
    settings.write_text("""
        [filesystems.spider]
        peak = "2GB/s"
        timezone = "America/New_York"
        [[filesystems.spider.maintenance]]
        from = 2020-09-13T21:30:00
        to = 2020-09-14T00:30:00
        name = "new disks"
    """)
    return iolens.open(str(folder), config=str(settings))


def test_the_configuration_gives_peak_zone_and_maintenance(configured: OpenStore) -> None:
    answer = configured.workload(sections=["rhythm", "throughput"])
    assert answer.throughput.peak_bytes_per_s == 2e9
    assert answer.throughput.peak_origin == "configured"
    assert answer.rhythm.timezone == "America/New_York"
    assert [item.name for item in answer.rhythm.weekday if item.observed_hours] == ["Monday", "Sunday"]
    assert [(item.name, item.start) for item in answer.maintenance] == [
        ("new disks", datetime(2020, 9, 14, 1, 30, tzinfo=UTC))
    ]


def test_what_is_given_wins(configured: OpenStore) -> None:
    answer = configured.analyse(
        "workload", sections=["rhythm", "throughput"], peak="1GB/s", timezone="Asia/Tokyo", maintenance=[]
    )
    assert (answer.throughput.peak_bytes_per_s, answer.throughput.peak_origin) == (1e9, "given")
    assert answer.rhythm.timezone == "Asia/Tokyo"
    assert [item.origin for item in answer.maintenance] == ["found"]


def test_without_a_configuration_the_zone_is_utc(quiet: Centre, tmp_path: Path) -> None:
    with stored(tmp_path, quiet) as opened:
        answer = opened.workload(sections=["rhythm", "throughput"], timezone=None, peak=None)
    assert answer.rhythm.timezone == "UTC"
    assert answer.throughput.peak_origin == "largest minute"


# Real data.


def test_a_real_h5lmt_file_equals_h5py(shared_data: Path, tmp_path: Path) -> None:
    """24 OSTs over five minutes at 5 s: bytes per second, of which the first step is a baseline."""
    import h5py

    from tests.cli.command import iolens as command

    capture = shared_data / "h5lmt" / "snx11025_2018-01-28.h5lmt"
    done = command("ingest", "h5lmt", capture, "--store", tmp_path, "--timezone", "America/Los_Angeles")
    assert done.code == 0, done.err
    with iolens.open(str(tmp_path)) as opened:
        answer = opened.workload()
    with h5py.File(capture) as file:
        moved = {
            "read": file["OSTReadGroup/OSTBulkReadDataSet"][:, 1:] * 5.0,
            "write": file["OSTWriteGroup/OSTBulkWriteDataSet"][:, 1:] * 5.0,
        }
    assert (answer.tick_s, answer.samples, len(answer.targets)) == (5.0, 24 * 60, 24)
    for direction, bytes_ in moved.items():
        shown = sorted(getattr(line, f"{direction}_p99_bytes_per_s") for line in answer.targets)
        assert shown == pytest.approx(sorted(np.quantile(bytes_ / 5.0, 0.99, axis=1)))
        together = np.quantile(bytes_.sum(axis=0) / 5.0, [0.95, 0.99, 1.0])
        mine = [getattr(answer.aggregate, f"{direction}_{name}_bytes_per_s") for name in ("p95", "p99", "max")]
        assert mine == pytest.approx(together)
    total = moved["read"].sum() + moved["write"].sum()
    assert answer.aggregate.write_bytes_pct == pytest.approx(100 * moved["write"].sum() / total)
    by_minute = (moved["read"] + moved["write"]).sum(axis=0).reshape(5, 12).sum(axis=1) / 60.0
    assert answer.throughput.peak_bytes_per_s == pytest.approx(by_minute.max())
    assert answer.aggregate.write_requests_pct is None  # LMT counts no requests here
    assert answer.coverage.missing_targets == []
