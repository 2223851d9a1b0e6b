"""How much a workload model asks for at once: bytes and requests per second of targets together (SPEC S12, B10).

Times are drawn from the model's own distributions: which targets are busy, and how fast, with their correlation. The
rhythm of the week is left out: its hours are already in the distributions, only their coincidence is not.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from math import erfc, sqrt
from typing import Final, Literal

import numpy as np

from iolens.arrays import Floats
from iolens.models.workload_model import WorkloadModel

DIRECTIONS: Final = ("read", "write")
SEED: Final = 20100
MOST_TIMES: Final = 20_000
FEWEST_TIMES: Final = 2_000
MOST_TARGETS: Final = 2_000  # drawn; more than these are as even as these
DRAWS: Final = MOST_TARGETS * FEWEST_TIMES  # targets × times
AT_ONCE: Final = 1_000_000
_GRID: Final = np.linspace(-6.0, 6.0, 1201)  # normal scores


@dataclass(frozen=True, slots=True, eq=False)
class DrawnDemand:
    """Times of all targets together, in no order: [bytes/s] and [requests/s] by direction."""

    bytes_per_s: dict[str, Floats]
    requests_per_s: dict[str, Floats]

    def percentile(self, measure: Literal["bytes", "requests"], direction: str | None, percent: float) -> float:
        """Of bytes or requests per second over all times, silent ones too; of both directions together for None."""
        arrays = self.bytes_per_s if measure == "bytes" else self.requests_per_s
        values = arrays["read"] + arrays["write"] if direction is None else arrays[direction]
        return float(np.percentile(values, percent))

    @property
    def silent_share(self) -> float:
        """Share of the times without any request."""
        return float((self.requests_per_s["read"] + self.requests_per_s["write"] == 0).mean())


def drawn_demand(model: WorkloadModel, targets: float, seed: int = SEED) -> DrawnDemand:
    """What so many targets ask for; less than one is a part of one target's load, as bursty as the whole.

    Busy runs are stretched, as for telemetry, until the share of reads is the model's; what that cannot reach, requests
    are scaled for.
    """
    with suppress(ValueError):
        model = model.balanced()
    whole = min(max(1, round(targets)), MOST_TARGETS)
    times = min(MOST_TIMES, DRAWS // whole)
    drawn = {
        direction: _direction(model, direction, whole, times, seed + number)
        for number, direction in enumerate(DIRECTIONS)
    }
    part = targets / whole
    reads, writes = (float(drawn[direction][1].mean()) for direction in DIRECTIONS)
    wanted = model.read_requests_pct / 100.0
    mixed = {"read": 1.0, "write": 1.0}
    if reads and writes:  # a direction may be so rare that no time has it
        mixed = {"read": wanted * (reads + writes) / reads, "write": (1.0 - wanted) * (reads + writes) / writes}
    return DrawnDemand(
        {direction: part * drawn[direction][0] for direction in DIRECTIONS},
        {direction: part * mixed[direction] * drawn[direction][1] for direction in DIRECTIONS},
    )


def _direction(model: WorkloadModel, direction: str, targets: int, times: int, seed: int) -> tuple[Floats, Floats]:
    """Bytes and requests per second, added up over targets, tick by tick."""
    direction_model = model.of(direction)
    below = normal_cdf(_GRID)
    speed = direction_model.bandwidth.quantile(below)
    # Fast samples have many requests: the same score, from the other end of the times between them.
    requests = direction_model.requests(direction_model.interarrival.quantile(1.0 - below), model.tick_s) / model.tick_s
    busy_share = direction_model.busy_share(model.tick_s)
    random = np.random.default_rng(seed)
    common = np.sqrt(model.correlation) * random.standard_normal(times)
    own = np.sqrt(1.0 - model.correlation)
    pair = np.zeros(times), np.zeros(times)
    step = max(1, AT_ONCE // targets)
    for first in range(0, times, step):
        shape = (min(step, times - first), targets)
        scores = common[first : first + step, None] + own * random.standard_normal(shape)
        busy = random.random(shape) < busy_share
        for total, level in zip(pair, (speed, requests), strict=True):
            total[first : first + step] = (np.interp(scores, _GRID, level) * busy).sum(axis=1)
    return pair


def normal_cdf(scores: Floats) -> Floats:
    """Share of a normal distribution below each score."""
    return np.array([0.5 * erfc(-score / sqrt(2.0)) for score in scores])
