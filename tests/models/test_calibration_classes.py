"""Shipped classes: each number is one that a study prints or that our own fit gives again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from iolens.analyses.calibration.fit import ConfidenceIntervals, calibration_fit
from iolens.benchmarks.sweep import rows_of_document
from iolens.errors import UsageError
from iolens.models.transaction_time import CALIBRATION_CLASSES, GRACE, GRACE_2012, VIRTUAL_DISK, fsu_pct
from iolens.sources import get_source
from iolens.sources.reading.options import ReadOptions
from iolens.units import KIB

EXAMPLES = Path(__file__).parents[2] / "docs/examples"


def test_every_class_names_its_evidence_and_what_that_lacks() -> None:
    assert list(CALIBRATION_CLASSES) == ["grace-2012", "virtual-disk-2026"]
    for shipped in CALIBRATION_CLASSES.values():
        assert shipped.about
        assert shipped.evidence
        assert shipped.unknown
        assert shipped.smallest_bytes < shipped.largest_bytes


@pytest.mark.parametrize("name", CALIBRATION_CLASSES)
@pytest.mark.parametrize("direction", ["write", "read"])
def test_coefficients_lie_between_their_ends(name: str, direction: str) -> None:
    shipped = CALIBRATION_CLASSES[name]
    cost, band = shipped.calibration.of(direction), shipped.band(direction)
    for low, value, high in (
        (band.latency_low_s, cost.latency_s, band.latency_high_s),
        (band.s_per_byte_low, cost.s_per_byte, band.s_per_byte_high),
    ):
        assert (low is None) == (high is None)
        assert low is None or high is None or low <= value <= high


def test_the_study_s_band_is_what_it_prints() -> None:
    """Table I as it stands; at its low end full writes of 4 KiB (FSU 70, Fig. 8) fill the disk; Hopper's 220 MB/s."""
    assert GRACE.calibration == GRACE_2012
    assert GRACE.write.latency_low_s is not None
    low_s = GRACE.write.latency_low_s + GRACE_2012.write.s_per_byte * 4 * KIB
    assert fsu_pct({("write", 4 * KIB): 1}, low_s, GRACE_2012) == pytest.approx(100 / 0.7)
    assert GRACE.write.s_per_byte_high == pytest.approx(1 / 220e6)
    assert (GRACE.read.latency_low_s, GRACE.read.s_per_byte_high) == (None, None)  # no figures


def published(name: str) -> list[dict[str, Any]]:
    rows = rows_of_document((EXAMPLES / f"{name}.json").read_text("utf-8"))
    assert rows is not None
    assert len(rows) == 16
    return rows


@pytest.mark.parametrize("direction", ["write", "read"])
def test_the_virtual_disk_is_the_fit_of_its_published_runs(direction: str) -> None:
    """Its coefficients are those of the first sweep; its ends hold the intervals of all three."""
    sweeps = [published(f"virtual-disk-2026{which}") for which in ("", "-b", "-c")]
    fits = [calibration_fit(rows) for rows in sweeps]
    fit, *others = (result.observed.of(direction) for result in fits)
    cost, band = VIRTUAL_DISK.calibration.of(direction), VIRTUAL_DISK.band(direction)
    assert fit is not None
    assert (cost.latency_s, cost.s_per_byte) == pytest.approx((fit.latency_s, fit.s_per_byte), rel=1e-5)
    intervals = [result.ci95 for result in (fit, *others) if result is not None]
    assert len(intervals) == 3
    lowest = [min(ends[0] or 0.0 for ends in of) for of in _by_coefficient(intervals)]
    highest = [max(ends[1] or 0.0 for ends in of) for of in _by_coefficient(intervals)]
    assert [band.latency_low_s, band.s_per_byte_low] == pytest.approx(lowest, rel=1e-5)
    assert [band.latency_high_s, band.s_per_byte_high] == pytest.approx(highest, rel=1e-5)
    assert {result.queue_depth for result in fits} == {VIRTUAL_DISK.queue_depth}
    asked = {row["transfer_bytes"] for row in sweeps[0] if row["direction"] == direction}
    assert (min(asked), max(asked)) == (VIRTUAL_DISK.smallest_bytes, VIRTUAL_DISK.largest_bytes)


def _by_coefficient(intervals: list[ConfidenceIntervals]) -> tuple[list[list[float | None]], list[list[float | None]]]:
    return [ends.latency_s for ends in intervals], [ends.s_per_byte for ends in intervals]


def test_the_public_flash_evaluation_is_no_class(shared_data: Path) -> None:
    """It varies the size of the files: one transfer size per direction does not tell two coefficients."""
    files = sorted((shared_data / "ior-vast-eval").glob("*.gz"))
    rows = [
        item.values
        for capture in get_source("ior").captures(files, ReadOptions())
        for item in capture.items()
        if hasattr(item, "values")
    ]
    assert {(row["direction"], row["transfer_bytes"]) for row in rows} == {("write", 1 << 27), ("read", 4096)}
    with pytest.raises(UsageError, match="all runs have the same size of I/O"):
        calibration_fit(rows, access="any")
