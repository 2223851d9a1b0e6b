import json
from dataclasses import dataclass, fields, replace
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest

from iolens.analyses.results import not_in_json, only_if_present
from iolens.analyses.utilization.analysis import Utilization
from iolens.views.render.json_text import to_json, to_plain

from .results import busy_day, compared, empty, minutes

KEYS = [
    "calibration_state", "calibration_evidence", "fsu_band_pct", "fsu_is_upper_bound",
    "resolution", "days_only_in_rollups",
    "filesystem", "window_start", "window_end", "model", "targets", "samples", "target_samples", "mean_fsu_pct",
    "mean_fsu_bytes_pct", "mean_util_pct",
    "busy_time_pct", "optimal_busy_time_pct", "under_report_factor", "bandwidth_busy_time_pct", "peak_bytes_per_s",
    "peak_origin", "categories",
    "histogram", "io_sizes", "daily", "daily_summary", "plateaus", "per_target", "target_outliers",
    "calibration", "coverage",
]  # fmt: skip


@dataclass(frozen=True)
class Anything:
    value: Any
    hidden: Any = not_in_json()
    maybe: Any = only_if_present()


def test_the_keys_of_utilization_are_an_interface():
    assert list(to_plain(minutes())) == KEYS
    assert list(to_plain(empty())) == KEYS


def test_a_window_in_which_ticks_cannot_be_seen_apart_has_an_envelope():
    plain = to_plain(busy_day())
    assert list(plain) == [*KEYS, "envelope"]
    envelope = plain["envelope"]
    assert list(envelope) == [
        "bucket_s", "bucket_starts", "fsu_pct", "read_bytes_per_s", "write_bytes_per_s", "util_pct",
    ]  # fmt: skip
    assert envelope["util_pct"] is None
    for name in ("fsu_pct", "read_bytes_per_s", "write_bytes_per_s"):
        assert list(envelope[name]) == ["median", "p5", "p95", "max"]
        assert {len(values) for values in envelope[name].values()} == {len(envelope["bucket_starts"])} == {288}
    assert None in envelope["fsu_pct"]["median"]  # half an hour is missing


def test_compare_appears_only_when_asked_for():
    plain = to_plain(compared())
    assert list(plain) == [*KEYS, "envelope", "compare"]
    assert list(plain["compare"]) == [*KEYS, "envelope"]
    assert plain["compare"]["filesystem"] == "scratch2"


def test_figure_fields_stay_out_of_json():
    left_out = {field.name for field in fields(Utilization)} - set(KEYS)
    assert left_out == {
        "calibration_refuted", "calibrations", "compare", "days_from_parts", "envelope", "servers", "series",
        "heat_map", "since_start",
    }  # fmt: skip


def test_calibration_keys():
    coefficients = {"latency_s": 1.04e-3, "s_per_byte": 1.73e-9}
    plain = to_plain(busy_day())["calibration"]
    assert list(plain) == ["name", "write", "read"]
    assert plain["write"] == coefficients


def test_undefined_is_null_never_nan():
    result = replace(busy_day(), mean_fsu_pct=float("nan"), under_report_factor=float("inf"), busy_time_pct=None)
    text = to_json(result)
    assert "NaN" not in text
    assert "Infinity" not in text
    plain = json.loads(text)
    assert [plain[key] for key in ("mean_fsu_pct", "under_report_factor", "busy_time_pct")] == [None, None, None]


def test_times_are_utc_with_z():
    plain = json.loads(to_json(busy_day()))
    assert plain["window_start"] == "2012-10-22T00:00:00Z"
    assert plain["daily"][0]["date"] == "2012-10-22"


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.float64("nan"), None),
        (np.float64(0.1), 0.1),
        (np.int64(2**62), 2**62),
        (np.bool_(True), True),
        (np.array([1.5, np.nan]), [1.5, None]),
        ((1, 2), [1, 2]),
        ({"a": float("-inf")}, {"a": None}),
        (date(2012, 10, 22), "2012-10-22"),
        (datetime(2012, 10, 22, 19, 0, 5), "2012-10-22T19:00:05Z"),
        (datetime(2012, 10, 22, 19, tzinfo=timezone(timedelta(hours=-7))), "2012-10-23T02:00:00Z"),
        (datetime(2012, 10, 22, 19, 0, 0, 250, tzinfo=UTC), "2012-10-22T19:00:00.000250Z"),
    ],
)
def test_a_value_in_json(value, plain):
    result = to_plain(Anything(value))
    assert result == {"value": plain}
    assert type(result["value"]) is type(plain)


def test_present_field_is_shown_even_when_false():
    assert to_plain(Anything(1, maybe=0, hidden=5)) == {"value": 1, "maybe": 0}


def test_full_precision_and_a_final_newline():
    text = to_json(Anything(0.1 + 0.2))
    assert "0.30000000000000004" in text
    assert text.endswith("}\n")


def test_what_has_no_json_form_is_refused():
    with pytest.raises(TypeError, match="object has no JSON form"):
        to_json(Anything(object()))
    with pytest.raises(TypeError, match="a result is a dataclass"):
        to_plain([1])
