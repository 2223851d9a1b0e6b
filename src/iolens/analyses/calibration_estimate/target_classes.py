"""Classes of targets: configured ones, else found by behaviour.

Targets of one class reach like rates at like sizes. Where the rates of busy targets fall into groups with a gap
between, and each group has at least two targets, each is a class; else disks and flash are apart, or targets of
different size; else all are one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from iolens.arrays import Booleans, Columns, Floats, Integers
from iolens.models.frontier import DEEP, FEWEST_QUEUED
from iolens.target_names import members_by_pattern

FEWEST_TARGETS: Final = 2  # in a class that is found
GAP: Final = float(np.log(1.4))  # between the rates of two classes
GAP_TO_SPREAD: Final = 3.0  # and so much wider than any step within them
BUSIEST: Final = 0.9  # of a target's deep ticks of a size: the rate that it achieves
SMALL, LARGE = 4 * 16, 4 * 19  # quarter-octaves: up to 64 KiB, from 512 KiB on


@dataclass(frozen=True, slots=True)
class TargetClass:
    """Targets that cost the same; the name is None where all are one class."""

    name: str | None
    targets: list[str]
    is_configured: bool = False


@dataclass(frozen=True, slots=True)
class TargetTraits:
    """What is known of targets beside their rates: bytes of each, and whether its device rotates."""

    capacity_bytes: Mapping[str, float]
    is_rotational: Mapping[str, bool]


UNKNOWN_TRAITS: Final = TargetTraits({}, {})


def target_classes(
    configured: Mapping[str, Sequence[str]], cells: Columns, targets: Sequence[str], traits: TargetTraits
) -> tuple[list[TargetClass], list[str]]:
    """The classes of these targets, and what to know about them."""
    if configured:
        members = members_by_pattern(configured, targets)
        classes = [TargetClass(name, names, True) for name, names in members.items() if names]
        rest = sorted(set(targets) - {name for known in classes for name in known.targets})
        return [*classes, TargetClass(None, rest)] if rest else classes, []
    for what, groups in (
        ("the rates they reach", by_rates(cells, targets)),
        ("whether their devices rotate", by_rotation(targets, traits.is_rotational)),
        ("their size", by_capacity(targets, traits.capacity_bytes)),
    ):
        if groups is not None:
            return _named(groups, targets, what)
    return [TargetClass(None, sorted(targets))], []


def _named(groups: Sequence[Sequence[str]], targets: Sequence[str], by: str) -> tuple[list[TargetClass], list[str]]:
    classes = [TargetClass(f"class-{place}", sorted(names)) for place, names in enumerate(groups, 1)]
    rest = sorted(set(targets) - {name for names in groups for name in names})
    notes = [f"classes of targets were found by {by}; [filesystems.NAME.classes] gives them other members and names"]
    if rest:
        notes.append(f"of no class, and left out: {', '.join(rest[:5])}{' …' * (len(rest) > 5)}")
    return classes, notes


def by_rates(cells: Columns, targets: Sequence[str]) -> list[list[str]] | None:
    """Groups of targets by the rates they achieve with a queue, slowest first; None: there is one."""
    best: tuple[float, list[list[str]]] | None = None
    for chosen in _kinds_of_ticks(cells):
        scores = _scores(cells, chosen, len(targets))
        groups = gapped(scores)
        if groups is not None and (best is None or groups[0] > best[0]):
            best = groups[0], [[targets[place] for place in group] for group in groups[1]]
    return None if best is None else best[1]


def by_rotation(targets: Sequence[str], is_rotational: Mapping[str, bool]) -> list[list[str]] | None:
    """Targets on disks, then those on flash; None: there is one kind, or it is not known of all."""
    if any(is_rotational.get(name) is None for name in targets):
        return None
    groups = [[name for name in targets if is_rotational[name] is kind] for kind in (True, False)]
    return groups if min(len(group) for group in groups) >= FEWEST_TARGETS else None


def by_capacity(targets: Sequence[str], capacity: Mapping[str, float]) -> list[list[str]] | None:
    """Groups of targets by their size; None: they are alike, or it is not known of all."""
    if not all(capacity.get(name) for name in targets) or not len(targets):
        return None
    groups = gapped(np.log([capacity[name] for name in targets]))
    return None if groups is None else [[targets[place] for place in group] for group in groups[1]]


def gapped(scores: Floats) -> tuple[float, list[list[int]]] | None:
    """Places of scores on either side of each gap, and the widest gap; None where there is no gap. NaN: not known."""
    known = np.flatnonzero(np.isfinite(scores))
    order = known[np.argsort(scores[known], kind="stable")]
    if order.size < 2 * FEWEST_TARGETS:
        return None
    steps = np.diff(scores[order])
    cuts = np.flatnonzero(steps > GAP)
    inside = np.delete(steps, cuts)
    cuts = cuts[steps[cuts] > GAP_TO_SPREAD * (inside.max() if inside.size else 0.0)]
    groups = [group.tolist() for group in np.split(order, cuts + 1)]
    if not cuts.size or min(len(group) for group in groups) < FEWEST_TARGETS:
        return None
    return float(steps[cuts].max()), groups


def _kinds_of_ticks(cells: Columns) -> Iterator[Booleans]:
    """Queued ticks of each direction, with small I/Os, and with large ones: classes may differ in either cost."""
    deep = cells["depth"] >= DEEP * cells["ticks"]
    for direction in np.unique(cells["direction"]):
        same = deep & (cells["direction"] == direction)
        yield same & (cells["size_bin"] <= SMALL)
        yield same & (cells["size_bin"] > LARGE)


def _scores(cells: Columns, chosen: Booleans, targets: int) -> Floats:
    """How fast each target is, as a logarithm: log rate = target + size, by least squares; NaN: not known."""
    target, size, rate = _achieved({name: values[chosen] for name, values in cells.items()})
    scores = np.full(targets, np.nan)
    if not target.size:
        return scores
    sizes, places = np.unique(size, return_inverse=True)
    several = np.bincount(places) > 1
    kept = several[places]
    target, places, rate = target[kept], places[kept], rate[kept]
    if not target.size:
        return scores
    design = np.zeros((target.size, targets + sizes.size))
    row = np.arange(target.size)
    design[row, target] = design[row, targets + places] = 1.0
    fitted = np.linalg.lstsq(design, rate, rcond=1e-9)[0]
    seen = np.unique(target)
    scores[seen] = fitted[seen]
    return scores


def _achieved(cells: Columns) -> tuple[Integers, Integers, Floats]:
    """Logarithm of the high rate of each target and size with enough ticks."""
    rate = np.log(np.maximum(cells["n"], 1e-300) / cells["duration_s"])
    order = np.lexsort([rate, cells["size_bin"], cells["target"]])
    target, size, rate, ticks = (values[order] for values in (cells["target"], cells["size_bin"], rate, cells["ticks"]))
    if not target.size:
        return target, size, rate
    starts = np.flatnonzero(np.concatenate([[True], (np.diff(target) != 0) | (np.diff(size) != 0)]))
    group = np.repeat(np.arange(starts.size), np.diff([*starts, target.size]))
    whole = np.add.reduceat(ticks, starts)
    before = np.cumsum(ticks) - np.concatenate([[0.0], np.cumsum(whole)[:-1]])[group]
    reached = np.flatnonzero(before >= BUSIEST * whole[group] * (1 - 1e-12))
    first = reached[np.unique(group[reached], return_index=True)[1]]
    first = first[whole >= FEWEST_QUEUED]
    return target[first], size[first], rate[first]
