"""When jobs moved their bytes, where no server counted by job: stretches of time with bytes, spread evenly (B1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from iolens.arrays import Columns
from iolens.schema import DIRECTIONS


class MovedBytes(NamedTuple):
    """Bytes of one job from one time to another, in microseconds since 1970."""

    job_id: str
    start_us: int
    end_us: int
    read_bytes: float
    write_bytes: float


def spread(stretches: Sequence[MovedBytes], bucket_us: int, extent_us: tuple[int, int]) -> Columns:
    """Rows of `job_id` and `bucket` with `read_bytes` and `write_bytes`, of the buckets that meet the extent."""
    ids: list[str] = []
    buckets, moved = [np.empty(0, np.int64)], {direction: [np.empty(0)] for direction in DIRECTIONS}
    first, last = extent_us[0] // bucket_us, (extent_us[1] - 1) // bucket_us
    for stretch in stretches:
        end_us = max(stretch.end_us, stretch.start_us + 1)
        numbers = np.arange(max(stretch.start_us // bucket_us, first), min((end_us - 1) // bucket_us, last) + 1)
        overlap = np.minimum((numbers + 1) * bucket_us, end_us) - np.maximum(numbers * bucket_us, stretch.start_us)
        share = overlap / (end_us - stretch.start_us)
        ids += [stretch.job_id] * len(numbers)
        buckets.append(numbers)
        moved["read"].append(share * stretch.read_bytes)
        moved["write"].append(share * stretch.write_bytes)
    return {
        "job_id": np.array(ids, object),
        "bucket": np.concatenate(buckets),
        **{f"{direction}_bytes": np.concatenate(parts) for direction, parts in moved.items()},
    }
