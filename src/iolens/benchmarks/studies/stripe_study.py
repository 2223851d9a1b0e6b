"""`bench stripe` (SPEC N8): the grid of stripe count, stripe size and block size that a recommendation rests on.

The sequential test over a grid; where there is no Lustre only blocks are varied, and that is said.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from iolens.benchmarks.studies import sequential_study
from iolens.benchmarks.studies.plan import PointSite, StudyPlan, StudyPoint, Values
from iolens.benchmarks.studies.sequential_study import SequentialParameters, can_stripe, filesystem_kind
from iolens.units import GIB, KIB, MIB

COUNTS: Final = (1, 2, 4, 8, 16)
SIZES: Final = (MIB, 4 * MIB, 16 * MIB)
BLOCKS: Final = (64 * KIB, MIB, 4 * MIB, 16 * MIB)


@dataclass(frozen=True, slots=True)
class StripeStudyParameters:
    """The grid; stripes are left out in places that have none."""

    file_bytes: int = GIB
    stripe_counts: tuple[int, ...] = COUNTS
    stripe_bytes: tuple[int, ...] = SIZES
    block_bytes: tuple[int, ...] = BLOCKS
    direct: bool = False
    fsync: bool = True


class StripeStudy:
    """The sequential test over stripes and blocks."""

    name = "stripe"
    parameters = StripeStudyParameters

    def check(self, plan: StudyPlan) -> list[str]:
        """As the sequential study; places without stripes are named."""
        notes = [
            f"{place.name} is {filesystem_kind(place.path)}: stripes are not applicable, only blocks are varied"
            for place in plan.places
            if not can_stripe(place.path)
        ]
        for each in _by_place(plan):
            notes += sequential_study.KIND.check(each)
        return notes

    def points(self, plan: StudyPlan) -> list[StudyPoint]:
        """Of all places, repeat by repeat."""
        points = [point for each in _by_place(plan) for point in sequential_study.KIND.points(each)]
        return sorted(points, key=lambda point: point.iteration)

    def run(self, plan: StudyPlan, point: StudyPoint, site: PointSite) -> Iterable[Values]:
        """As the sequential study."""
        return sequential_study.KIND.run(
            next(each for each in _by_place(plan) if point.place in each.places), point, site
        )


KIND: Final = StripeStudy()


def _by_place(plan: StudyPlan) -> list[StudyPlan]:
    """The sequential study of each place, with stripes where they can be set."""
    asked: StripeStudyParameters = plan.parameters
    plans = []
    for place in plan.places:
        has_stripes = can_stripe(place.path)
        grid = SequentialParameters(
            file_bytes=asked.file_bytes,
            block_bytes=asked.block_bytes,
            stripe_counts=asked.stripe_counts if has_stripes else None,
            stripe_bytes=asked.stripe_bytes if has_stripes else None,
            direct=asked.direct,
            fsync=asked.fsync,
        )
        plans.append(replace(plan, places=(place,), parameters=grid))
    return plans
