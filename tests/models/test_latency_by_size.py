"""Times of single I/Os by size: the likelihood against a grid, and a capture of a known law."""

from __future__ import annotations

import json
import os
import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from iolens.models.latency_by_size import TimedIos, latency_by_size, log_likelihood

CAPTURE = Path(os.environ.get("IOLENS_SHARED", "../shared")) / "data" / "lustre-2.17" / "SYNTHETIC-oss"
PAGES = (1, 2, 16, 256, 512)  # smallest of each bin of sizes
LAW = (200e-6, 2e-9, 0.3)


def drawn(ios: int, seed: int = 1, pages: tuple[int, ...] = PAGES, blocks: int = 8) -> TimedIos:
    """Counts of so many I/Os of each bin of sizes."""
    random = np.random.default_rng(seed)
    rows: dict[tuple[int, int, int, int], int] = {}
    for low in pages:
        sizes = random.integers(low, 2 * low, ios) * 4096
        times = (LAW[0] + LAW[1] * sizes) * np.exp(LAW[2] * random.normal(size=ios))
        powers = np.ceil(np.log2(times / 1.024e-6)).astype(int)
        for power, block in zip(powers, np.arange(ios) * blocks // ios, strict=True):
            rows[low, 2 * low - 1, int(power), int(block)] = rows.get((low, 2 * low - 1, int(power), int(block)), 0) + 1
    keys = np.array(list(rows))
    ends = 1.024e-6 * 2.0 ** keys[:, 2]
    return TimedIos(keys[:, 0], keys[:, 1], ends / 2, ends, np.array(list(rows.values()), float), keys[:, 3])


def test_a_known_law_comes_back() -> None:
    result = latency_by_size(drawn(3000))
    assert result is not None
    assert result.latency_s == pytest.approx(LAW[0], rel=0.02)
    assert result.s_per_byte == pytest.approx(LAW[1], rel=0.02)
    assert (result.identified, result.one_at_a_time, result.upper_bound) == (("latency", "s_per_byte"), True, False)
    assert result.latency_interval_s is not None
    assert result.latency_interval_s[0] < LAW[0] < result.latency_interval_s[1]


def test_no_law_of_a_grid_is_likelier() -> None:
    ios = drawn(300)
    result = latency_by_size(ios)
    assert result is not None
    sigma = float(result.note.partition("sigma ")[2].partition(";")[0])
    best = max(
        log_likelihood(ios, result.latency_s or 0, result.s_per_byte or 0, sigma * scale) for scale in (0.98, 1, 1.02)
    )
    steps = (0.9, 0.95, 1.05, 1.1)
    for a0, a1, scale in product((*steps, 1.0), (*steps, 1.0), (0.9, 1.0, 1.1)):
        if (a0, a1) != (1.0, 1.0):
            assert (
                log_likelihood(ios, (result.latency_s or 0) * a0, (result.s_per_byte or 0) * a1, sigma * scale) < best
            )


def test_sizes_that_are_alike_and_few_ios_identify_nothing() -> None:
    result = latency_by_size(drawn(500, pages=(256,)))
    assert result is not None
    assert result.identified == ()
    assert latency_by_size(drawn(5)) is None


def true_count(printed: int) -> int:
    """The count that Lustre 2.17 prints so."""
    return next(count for count in range(printed + 1) if count // 1000 * 1024 + count % 1000 * 1024 // 1000 == printed)


def counts(path: Path) -> dict[tuple[str, int, int], int]:
    """I/Os by direction, smallest size in KiB and lower end of time in units of 1,024 ns."""
    rows = re.findall(r"(rd|wr)_(\d+)K: \{ (.*) \}", path.read_text())
    bins = ((row, re.findall(r"(\d+)us: (\d+)", row[2])) for row in rows)
    return {(row[0], int(row[1]), int(time)): true_count(int(count)) for row, result in bins for time, count in result}


@pytest.mark.skipif(not CAPTURE.exists(), reason="no captures")
@pytest.mark.parametrize(("name", "truth"), [("rd", "a0_read_us"), ("wr", "a0_write_us")])
def test_the_law_of_a_capture_of_lustre_2_17_comes_back(name: str, truth: str) -> None:
    """The largest I/O is of 4 MiB, so that the last bin holds that size alone."""
    before, after = counts(CAPTURE / "oss-1.txt"), counts(CAPTURE / "oss-2.txt")
    known = json.loads((CAPTURE / "truth.json").read_text())
    rows = [
        (size, time, count - before.get((side, size, time), 0))
        for (side, size, time), count in after.items()
        if side == name
    ]
    size, time, count = np.array(rows).T
    ends = 2 * time * 1.024e-6
    ios = TimedIos(
        size // 4, np.minimum(size // 2 - 1, 1024), ends / 2, ends, count.astype(float), np.zeros(len(rows), int)
    )
    result = latency_by_size(ios)
    assert result is not None
    assert sum(after[key] for key in after if key[0] == name) == sum(known["true_counts_in_all"][name].values())
    assert result.latency_s == pytest.approx(known[truth] * 1e-6, rel=0.05)
    assert result.s_per_byte == pytest.approx(known["a1_ns_per_KiB"] * 1e-9 / 1024, rel=0.05)
