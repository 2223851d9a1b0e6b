"""How much metadata capacity the next system needs (paper P, Eqs. 8 to 10; SPEC P4)."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import numpy as np

from iolens.analyses.contents.scans import InodeSizes
from iolens.analyses.demand import SystemUsage
from iolens.analyses.results import not_in_json
from iolens.errors import UsageError
from iolens.models.dom import (
    INODE_BYTES,
    METHODS,
    AnswerRange,
    Method,
    SizeBins,
    dom_band,
    inode_band,
    knee,
    resampled_totals,
    thresholds_of,
)
from iolens.models.resampling import SEED, interval95
from iolens.plans.cases import DomThreshold, Input, value
from iolens.plans.plausibility import PlanWarning, metadata_warnings
from iolens.units import format_bytes, parse_bytes

# Over how many drives a stripe is spread, and how many of them hold parity --------------------------------------------
# `8+2`.

_LAYOUT: Final = re.compile(r"\s*([0-9]{1,4})\s*\+\s*([0-9]{1,4})\s*")


@dataclass(frozen=True, slots=True)
class StripeLayout:
    """Blocks of data and of parity in a stripe."""

    data: int
    parity: int

    @property
    def overhead(self) -> float:
        """Raw bytes per byte of data: (D + P) ÷ D."""
        return (self.data + self.parity) / self.data

    def __str__(self) -> str:
        return f"{self.data}+{self.parity}"


def layout(data: int, parity: int) -> StripeLayout:
    """A stripe of at least one block of data."""
    if data < 1 or parity < 0:
        raise UsageError(f"a stripe of {data} data and {parity} parity blocks: it needs data, and 0 or more of parity")
    return StripeLayout(data, parity)


def parse_layout(text: str) -> StripeLayout:
    """`8+2`."""
    match = _LAYOUT.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} is not a stripe; write data and parity blocks, such as 8+2")
    return layout(int(match[1]), int(match[2]))


# How much metadata capacity the next system needs (paper P, Eqs. 5–11; SPEC P4, P5) -----------------------------------
# C_MDT = C_DOM + C_inode: the first S0 bytes of every file, and the inodes of every type, for a file system of capacity
# C_new that is filled like the reference system. As a function of S0, with its band, its knee and its price.

EQUATION: Final = "C_MDT = C_DOM(S0) + C_inode"
THRESHOLDS: Final = (65_536, 1_048_576)
VISIBLE_SHARE: Final = 0.001  # of all bytes, in one file: worth a name
SMALL_FILES_SHARE: Final = 0.95
TB: Final = 1e12
NO_PRICES: Final = (
    "which threshold pays is not decided without the price of a raw TB on MDTs (cost-mdt) and on OSTs (cost-ost)"
)


@dataclass(frozen=True, slots=True)
class Prices:
    """What a raw terabyte costs on either kind of target, in whatever money, and how they are striped."""

    mdt_per_tb: float
    ost_per_tb: float
    mdt_layout: StripeLayout
    ost_layout: StripeLayout


@dataclass(frozen=True, slots=True)
class InodeType:
    """One type of inode on the reference system."""

    inode_type: str
    count: int
    bytes_min: int
    bytes_avg: int
    bytes_max: int
    largest_bin_bytes: int


@dataclass(frozen=True, slots=True)
class HugeFiles:
    """A few files that carry a visible share of all bytes: one more or less of them moves every answer."""

    count: int
    from_bytes: int
    to_bytes: int
    bytes_pct: float


@dataclass(frozen=True, slots=True)
class SmallFiles:
    """The smallest files up to the bin that holds the 95th percentile: how many, and how little they hold."""

    size_bytes: int
    files_pct: float
    bytes_pct: float


@dataclass(frozen=True, slots=True)
class SizeDistribution:
    """Figures 4 and 5: every type of inode by bins, for figures."""

    files: SizeBins
    others: dict[str, SizeBins]


@dataclass(frozen=True, slots=True)
class MetadataPlan:
    """Metadata capacity for each threshold, and where more of it stops paying: the knee, by prices alone.

    `undecided` says why none of several thresholds is chosen.
    """

    equation: str
    filesystem: str | None
    scanned: datetime | None
    capacity_bytes: int
    warnings: list[PlanWarning]
    thresholds: list[DomThreshold]
    knee: DomThreshold | None
    undecided: str | None
    inodes: list[InodeType]
    small_files: SmallFiles | None
    huge_files: list[HugeFiles]
    prices: Prices | None
    inputs: list[Input]
    notes: list[str]
    curve: list[DomThreshold] | None = not_in_json()
    distribution: SizeDistribution | None = not_in_json()


def plan_metadata(
    sizes: InodeSizes,
    capacity: Input,
    thresholds: Sequence[int] = THRESHOLDS,
    *,
    methods: Sequence[Method] = METHODS[:1],
    inode_bytes: int = INODE_BYTES,
    prices: Prices | None = None,
    usage: SystemUsage | None = None,
) -> MetadataPlan:
    """Capacity of the MDTs of a file system of that capacity, for each threshold and method.

    `usage` is what the reference system holds: inputs are held against it.
    """
    if not capacity.low > 0:
        raise UsageError(f"the new file system must have a capacity above 0, not {capacity.low:g}")
    wrong = [threshold for threshold in thresholds if threshold < 0]
    if not thresholds or wrong or inode_bytes < 0:
        raise UsageError("give one or more DOM thresholds of 0 bytes or more, and inodes of 0 bytes or more")
    ask = _MetadataInputs(sizes, capacity, inode_bytes, prices)
    if not sizes.files.mass.low:
        raise UsageError(f"{sizes.origin}: no file holds a byte for certain; sizes are not known well enough")
    curve = [ask.answer(threshold, method) for method in methods for threshold in thresholds_of(sizes.files)]
    huge = _huge_files(sizes.files)
    answers = [ask.answer(threshold, method, resample=True) for method in methods for threshold in thresholds]
    return MetadataPlan(
        equation=EQUATION,
        filesystem=sizes.filesystem,
        scanned=sizes.time,
        capacity_bytes=round(capacity.expected),
        warnings=metadata_warnings(sizes, capacity, answers, usage),
        thresholds=answers,
        knee=_knee(ask, [threshold for threshold in curve if threshold.method == methods[0]]) if prices else None,
        undecided=NO_PRICES if prices is None and len(set(thresholds)) > 1 else None,
        inodes=_types(sizes),
        small_files=_small_files(sizes.files),
        huge_files=huge,
        prices=prices,
        inputs=_inputs(sizes, capacity, inode_bytes, prices),
        notes=_notes(sizes, methods, huge),
        curve=curve,
        distribution=SizeDistribution(sizes.files, dict(sizes.others)),
    )


@dataclass(frozen=True, slots=True)
class _MetadataInputs:
    """What stays the same over all thresholds."""

    sizes: InodeSizes
    capacity: Input
    inode_bytes: int
    prices: Prices | None

    @property
    def band(self) -> AnswerRange:
        return AnswerRange(self.capacity.low, self.capacity.expected, self.capacity.high)

    def answer(self, s0: int, method: Method, *, resample: bool = False) -> DomThreshold:
        files, others = self.sizes.files, self.sizes.others
        dom = dom_band(method, files, self.band, float(s0))
        inodes = inode_band(method, files, others, self.band, self.inode_bytes)
        total = AnswerRange(*(a + b for a, b in zip(dom, inodes, strict=True)))
        parts = {"dom": dom, "inode": inodes, "total": total}
        measures: dict[str, Any] = {
            f"{part}_{end}_bytes": _whole(getattr(band, "low" if end == "min" else "high" if end == "max" else end))
            for part, band in parts.items()
            for end in ("min", "avg", "max")
        }
        return DomThreshold(
            dom_bytes=s0,
            method=method,
            **measures,
            total_ci95=self._interval(s0) if resample else None,
            files_whole_pct=100.0 * files.at_most(s0),
            capacity_pct=100.0 * total.avg / self.capacity.expected if math.isfinite(total.avg) else None,
            **self._costs(dom, total, inodes),
        )

    def _interval(self, s0: int) -> tuple[float, float]:
        capacities = self.capacity.draws(np.random.default_rng(SEED))
        drawn = resampled_totals(self.sizes.files, self.sizes.others, capacities, float(s0), self.inode_bytes)
        return interval95(drawn[np.isfinite(drawn)])

    def _costs(self, dom: AnswerRange, total: AnswerRange, inodes: AnswerRange) -> dict[str, Any]:
        if self.prices is None:
            return {}
        pairs = zip(self.band, dom, total, strict=True)
        low, avg, high = (self._price(capacity, on_dom, on_mdt) for capacity, on_dom, on_mdt in pairs)
        bare = self._price(self.band.avg, 0.0, inodes.avg)
        values = {"cost_min": low, "cost_avg": avg, "cost_max": high, "cost_over_inodes_only": avg - bare}
        return {name: number if math.isfinite(number) else None for name, number in values.items()}

    def _price(self, capacity: float, on_dom: float, on_mdt: float) -> float:
        """Raw terabytes of both kinds; what DOM holds needs no space on OSTs."""
        assert self.prices is not None
        mdt = on_mdt * self.prices.mdt_layout.overhead * self.prices.mdt_per_tb
        ost = max(capacity - on_dom, 0.0) * self.prices.ost_layout.overhead * self.prices.ost_per_tb
        return (mdt + ost) / TB


def _whole(amount: float) -> int | None:
    return round(amount) if math.isfinite(amount) else None


def _knee(ask: _MetadataInputs, curve: list[DomThreshold]) -> DomThreshold | None:
    """The threshold at which the share of whole files is furthest ahead of the money they take."""
    known = [threshold for threshold in curve if threshold.cost_avg is not None]
    benefit = np.array([threshold.files_whole_pct for threshold in known])
    cost = np.array([threshold.cost_avg or 0.0 for threshold in known])
    place = knee(benefit, cost)
    return None if place is None else ask.answer(known[place].dom_bytes, known[place].method, resample=True)


def _types(sizes: InodeSizes) -> list[InodeType]:
    result = []
    for name, bins in {"file": sizes.files, **sizes.others}.items():
        mass = bins.mass
        ends = (round(mass.low), round(mass.avg), round(mass.high))
        result.append(InodeType(name, round(bins.total), *ends, round(float(bins.high.max(initial=0)))))
    return result


def _small_files(files: SizeBins) -> SmallFiles | None:
    mass = files.count * files.average
    counts = np.cumsum(files.count) / files.total
    place = int(np.searchsorted(counts, SMALL_FILES_SHARE))
    shares = np.cumsum(mass) / mass.sum()
    return SmallFiles(round(float(files.high[place])), 100.0 * float(counts[place]), 100.0 * float(shares[place]))


def _huge_files(files: SizeBins) -> list[HugeFiles]:
    share = files.average / files.mass.avg
    return [
        HugeFiles(
            round(float(files.count[place])),
            round(float(files.low[place])),
            round(float(files.high[place])),
            100.0 * float(files.count[place] * share[place]),
        )
        for place in np.flatnonzero(share >= VISIBLE_SHARE)
    ]


def _inputs(sizes: InodeSizes, capacity: Input, inode_bytes: int, prices: Prices | None) -> list[Input]:
    parameters = [
        capacity,
        value("inode_bytes", inode_bytes, "default" if inode_bytes == INODE_BYTES else "option --inode-size"),
        value("files", sizes.files.total, sizes.origin),
        *(value(f"inodes_{name}", bins.total, sizes.origin) for name, bins in sizes.others.items()),
    ]
    if prices is not None:
        parameters += [
            value("cost_mdt_per_raw_tb", prices.mdt_per_tb, "option --cost-mdt"),
            value("cost_ost_per_raw_tb", prices.ost_per_tb, "option --cost-ost"),
        ]
    return parameters


def _notes(sizes: InodeSizes, methods: Sequence[Method], huge: list[HugeFiles]) -> list[str]:
    notes = [
        f"{files.count:,} file{'s' * (files.count > 1)} of {format_bytes(files.from_bytes)} to "
        f"{format_bytes(files.to_bytes)} "
        f"{'carry' if files.count > 1 else 'carries'} {files.bytes_pct:.1f} % of all bytes: without "
        f"{'them' if files.count > 1 else 'it'} every answer would be {_rise(files.bytes_pct)} % higher"
        for files in huge
    ]
    if sizes.files.has_bytes.all() and "tight" in methods:
        notes.append("the bytes of every bin are known: a threshold at the edge of a bin has no band of its own")
    if not sizes.others:
        notes.append("only files are counted in the histogram: directories and links take space that is not here")
    if "paper" in methods:
        notes.append("method paper counts neither empty files nor inodes in bins without files (Eqs. 8, 10)")
    return notes


def _rise(pct: float) -> str:
    return f"{100.0 * pct / (100.0 - pct):.1f}" if pct < 100 else "∞"


# The inputs of a metadata plan ----------------------------------------------------------------------------------------
# Thresholds of Data-on-MDT, and prices of both kinds of targets.


def dom_thresholds(texts: Sequence[str]) -> list[int]:
    """DOM thresholds in bytes, each once."""
    try:
        return list(dict.fromkeys(parse_bytes(text) for text in texts))
    except ValueError as error:
        raise UsageError(f"--dom: {error}") from error


def prices_of(mdt: float | None, ost: float | None, layout_mdt: str, layout_ost: str) -> Prices | None:
    """Prices of a raw TB on both kinds of targets, or on neither."""
    layouts = parse_layout(layout_mdt), parse_layout(layout_ost)
    if mdt is None and ost is None:
        return None
    if mdt is None or ost is None:
        raise UsageError("a price needs both --cost-mdt and --cost-ost")
    return Prices(mdt, ost, *layouts)
