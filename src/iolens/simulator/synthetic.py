"""What a workload model does, tick by tick, and the model as a readable TOML file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from iolens.arrays import Booleans, Floats, Integers
from iolens.errors import InputError
from iolens.models.workload_model import (
    GRID,
    HOURS,
    SHARES,
    STEP,
    DirectionModel,
    Marginal,
    WorkloadModel,
    factors_of_week,
    hour_of_week,
    local_hours,
    mixture_cdf,
    mixture_survival,
    week_shifts,
)
from iolens.schema import DIRECTIONS
from iolens.simulator.toml_section import TomlSection, read_toml
from iolens.simulator.workload import FOLDER
from iolens.units import parse_bytes

# A workload model as a readable TOML file (`kind = "synthetic"`) ------------------------------------------------------
# `synthesize model` writes it, people may edit it.
#
# Shares of sizes may have any scale. An unknown key is refused, never ignored.

KIND: Final = "synthetic"
BANDWIDTH, SECONDS = "_bytes_per_s", "_s"  # how the keys of a marginal end
LARGEST: Final = 1e18
SMALLEST: Final = 1e-9
_ANY_NAME: Final = re.compile(r"[^\x00-\x1f\x7f]{1,200}")
_PER_LINE: Final = 10  # quantiles


def shipped_models() -> list[str]:
    """Names of the models that come with iolens."""
    return sorted(path.stem for path in FOLDER.glob("*.toml") if read_toml(path).get("kind") == KIND)


def is_model(name: str) -> bool:
    """Whether a shipped name or a file is a workload model, and not a workload of disks."""
    if name in shipped_models():
        return True
    path = Path(name)
    return path.is_file() and "kind" in read_toml(path)


def load_model(name: str) -> WorkloadModel:
    """A shipped model by name, else the one in the file of that name."""
    if name in shipped_models():
        return read_model(FOLDER / f"{name}.toml")
    path = Path(name)
    if not path.is_file():
        raise InputError(name, "no such model", f"a TOML file, or one of: {', '.join(shipped_models())}")
    return read_model(path)


def read_model(path: Path) -> WorkloadModel:
    """Parse and check one file; that its mix can be reached, too."""
    top = TomlSection(path, "", read_toml(path))
    top.matching("kind", re.compile(KIND), f'"{KIND}"')
    rhythm = top.section("rhythm")
    model = WorkloadModel(
        filesystem=top.matching("filesystem", _ANY_NAME, "a name"),
        targets=top.whole("targets", 1, 65535),
        tick_s=_tick(top),
        timezone=_timezone(top),
        read_requests_pct=top.number("read_requests_pct", 0.01, 99.99),
        correlation=top.number("correlation", 0, 0.999),
        hours=rhythm.numbers("hours", 24),
        days=rhythm.numbers("days", 7),
        **{direction: _direction(top.section(direction)) for direction in DIRECTIONS},
    )
    top.finish()
    for key, factors in (("hours", model.hours), ("days", model.days)):
        if not sum(factors):
            rhythm.refuse(key, 0, "a factor above zero")
    try:
        model.balanced()
    except ValueError as error:
        raise InputError(
            str(path), str(error), "another read_requests_pct, interarrival, idle or busy_run_s"
        ) from error
    return model


def model_text(model: WorkloadModel, origin: str) -> str:
    """The file; `origin` says in one line where its numbers come from."""
    return "\n".join(_lines(model, origin)) + "\n"


def _lines(model: WorkloadModel, origin: str) -> Iterator[str]:
    yield from (f"# {line}" for line in origin.splitlines())
    yield f'kind = "{KIND}"'
    yield f"filesystem = {json.dumps(model.filesystem, ensure_ascii=False)}"
    yield f"targets = {model.targets}"
    yield f"tick_s = {_shown(model.tick_s)}  # how often every target is sampled"
    yield f'timezone = "{model.timezone}"  # of the rhythm'
    yield f"read_requests_pct = {_shown(model.read_requests_pct)}  # busy runs are stretched until this comes out"
    yield f"correlation = {_shown(model.correlation)}  # of the bandwidth of two targets: 0 none, towards 1 all alike"
    for direction in DIRECTIONS:
        yield from _direction_lines(direction, model.of(direction))
    yield ""
    yield "[rhythm]  # factors of the bandwidth, 1 is usual"
    yield f"hours = [{', '.join(_shown(hour, 4) for hour in model.hours)}]"
    yield f"days = [{', '.join(_shown(day, 4) for day in model.days)}]  # Monday first"


def _direction_lines(direction: str, model: DirectionModel) -> Iterator[str]:
    yield ""
    yield f"[{direction}]"
    yield f"busy_run_s = {_shown(model.busy_run_s)}  # samples with {direction}s come in runs of this mean length"
    yield from _marginal_lines(f"{direction}.bandwidth", model.bandwidth, BANDWIDTH, "of samples with traffic")
    yield from _marginal_lines(
        f"{direction}.interarrival", model.interarrival, SECONDS, "tick ÷ requests of such samples"
    )
    if model.idle is not None:
        yield from _marginal_lines(f"{direction}.idle", model.idle, SECONDS, f"runs of samples without {direction}s")
    yield ""
    yield f"[{direction}.sizes]  # upper end of a bin = share of the requests"
    for size, share in model.sizes:
        yield f"{_size(size)} = {_shown(share)}"


def _marginal_lines(name: str, marginal: Marginal, unit: str, meaning: str) -> Iterator[str]:
    yield ""
    yield f"[{name}]  # {meaning}"
    if marginal.alpha is None:
        yield f"quantiles{unit} = [  # at 0, 0.01, 0.05, 0.1, 0.2 … 0.9, 1, 2 … 99, 99.1 … 99.9, 99.95, 99.99, 100 %"
        shown = [_shown(quantile) for quantile in marginal.quantiles]
        yield from (f"  {', '.join(part)}," for part in _parts(shown, _PER_LINE))
        yield "]"
        return
    yield f"alpha = {_shown(marginal.alpha)}"
    yield f"xm{unit} = {_shown(marginal.xm)}"
    if marginal.maximum < inf:
        yield f"maximum{unit} = {_shown(marginal.maximum)}"


def _parts(words: Sequence[str], length: int) -> Iterator[Sequence[str]]:
    return (words[first : first + length] for first in range(0, len(words), length))


def _shown(value: float, digits: int = 7) -> str:
    return f"{value:.{digits}g}"


def _size(size: int) -> str:
    for factor, unit in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)


def _tick(top: TomlSection) -> float:
    seconds = top.number("tick_s", 1e-3, 86400)
    if round(seconds * 1e6) != seconds * 1e6:
        top.refuse("tick_s", seconds, "whole microseconds")
    return seconds


def _timezone(top: TomlSection) -> str:
    name = top.matching("timezone", _ANY_NAME, expected := "a time zone such as Europe/Berlin")
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        top.refuse("timezone", name, expected)
    return name


def _direction(section: TomlSection) -> DirectionModel:
    return DirectionModel(
        bandwidth=_marginal(section.section("bandwidth"), BANDWIDTH),
        interarrival=_marginal(section.section("interarrival"), SECONDS),
        idle=_marginal(section.section("idle"), SECONDS) if "idle" in section.left else None,
        busy_run_s=section.number("busy_run_s", SMALLEST, LARGEST),
        sizes=_sizes(section.section("sizes")),
    )


def _marginal(section: TomlSection, unit: str) -> Marginal:
    if f"quantiles{unit}" in section.left:
        quantiles = section.numbers(f"quantiles{unit}", len(SHARES), LARGEST)
        try:
            return Marginal.of_quantiles(quantiles)
        except ValueError as error:
            raise InputError(str(section.path), f"{section.full('quantiles' + unit)}: {error}") from error
    alpha, xm = section.number("alpha", 0.05, 50), section.number(f"xm{unit}", SMALLEST, LARGEST)
    if f"maximum{unit}" not in section.left:
        return Marginal.pareto(alpha, xm)
    maximum = section.number(f"maximum{unit}", xm, LARGEST)
    if maximum <= xm:
        section.refuse(f"maximum{unit}", maximum, f"more than xm{unit}")
    return Marginal.pareto(alpha, xm, maximum)


def _sizes(section: TomlSection) -> tuple[tuple[int, float], ...]:
    values: dict[int, float] = {}
    for key in list(section.left):
        try:
            size = parse_bytes(key)
        except ValueError:
            size = 0
        if size <= 0 or size in values:
            section.refuse(key, section.left[key], "sizes such as 16KiB, each once")
        values[size] = section.number(key, 0, 1e18)
    total = sum(values.values())
    if total <= 0:
        raise InputError(
            str(section.path), f"{section.where}: no share is above zero", "shares of the requests by size"
        )
    return tuple((size, share / total) for size, share in sorted(values.items()) if share)


# What a workload model does, tick by tick -----------------------------------------------------------------------------
# Bytes and requests of every target, drawn from its distributions (S12).
#
# Each target and direction alternates between silences and busy runs of its own; within busy samples, bandwidth and
# requests come of one normal score, so that fast samples have many requests. Scores share a common factor across
# targets and are shifted by the hour of the week (`week_rhythm`).

ROWS_AT_ONCE: Final = 400_000  # ticks × targets in memory
SIZES_EVERY_S: Final = 60.0
SPARE_RUNS: Final = 16
MOST: Final = 1e18  # bytes or requests of one sample
LONGEST_RUN: Final = 1 << 40  # ticks of a run that never ends


@dataclass(frozen=True, slots=True, eq=False)
class SyntheticBlock:
    """Consecutive ticks, tick n being [n, n + 1) × tick since 1970: bytes and requests are ticks × targets."""

    first_tick: int
    bytes_: dict[str, Integers]
    requests: dict[str, Integers]

    @property
    def ticks(self) -> int:
        """How many it spans."""
        return len(self.bytes_["read"])


class SyntheticActivity:
    """The activity of one window, from its first tick to its last; the same for the same model, window and seed."""

    def __init__(self, model: WorkloadModel, targets: int, seed: int, first_tick: int, ticks: int) -> None:
        self.model, self.targets = model.balanced(), targets
        self.tick_us = round(model.tick_s * 1e6)
        self.first_tick, self.ticks = first_tick, ticks
        self._seed = seed
        weights = self._hours_of_window()
        factors = factors_of_week(model.hours, model.days)
        self._draws = {
            direction: _Draw.of(self.model.of(direction), model.tick_s, factors, weights) for direction in DIRECTIONS
        }

    @property
    def group_ticks(self) -> int:
        """Ticks between two counts of request sizes."""
        return max(1, -(-round(SIZES_EVERY_S * 1e6) // self.tick_us))

    @property
    def block_ticks(self) -> int:
        """Whole counts of request sizes, as many as memory allows."""
        return max(1, ROWS_AT_ONCE // (self.targets * self.group_ticks)) * self.group_ticks

    def blocks(self) -> Iterator[SyntheticBlock]:
        """One after the other, in flat memory; request sizes are counted within blocks."""
        runs = {
            direction: _Runs.settled(
                self._random(number, -1), self.model.of(direction), self.model.tick_s, self.targets
            )
            for number, direction in enumerate(DIRECTIONS)
        }
        first, end = self.first_tick, self.first_tick + self.ticks
        while first < end:
            last = min(end, (first // self.block_ticks + 1) * self.block_ticks)
            yield self._block(runs, first, last - first)
            first = last

    def _block(self, runs: dict[str, _Runs], first: int, ticks: int) -> SyntheticBlock:
        ends = (np.arange(first, first + ticks, dtype=np.int64) + 1) * self.tick_us
        hours = hour_of_week(local_hours(ends, self.model.timezone))
        block = SyntheticBlock(first, {}, {})
        for number, direction in enumerate(DIRECTIONS):
            random = self._random(number, first)
            busy = np.flatnonzero(runs[direction].next(random, ticks).T.reshape(-1))
            scores = self._scores(random, busy // self.targets, hours)
            scores += self._draws[direction].shifts[hours][busy // self.targets]
            bytes_, requests = (np.zeros(ticks * self.targets, np.int64) for _ in range(2))
            bytes_[busy], requests[busy] = self._draws[direction].values(scores)
            block.bytes_[direction], block.requests[direction] = (
                request.reshape(ticks, -1) for request in (bytes_, requests)
            )
        return block

    def _scores(self, random: np.random.Generator, tick: Integers, hours: Integers) -> Floats:
        """Normal, and correlated between targets of the same tick."""
        from scipy.special import ndtri

        share = self.model.correlation
        scores: Floats = np.sqrt(1.0 - share) * random.standard_normal(tick.size)
        scores += np.sqrt(share) * ndtri(_even_shares(random, hours))[tick]
        return scores

    def _random(self, value: int, place: int) -> np.random.Generator:
        return np.random.Generator(np.random.SFC64(np.random.SeedSequence((self._seed, value, place + 1))))

    def _hours_of_window(self) -> Floats:
        """How many ticks of the window are in each hour of the week."""
        values = np.zeros(HOURS)
        for first in range(self.first_tick, self.first_tick + self.ticks, 1_000_000):
            last = min(first + 1_000_000, self.first_tick + self.ticks)
            ends = (np.arange(first, last, dtype=np.int64) + 1) * self.tick_us
            values += np.bincount(hour_of_week(local_hours(ends, self.model.timezone)), minlength=HOURS)
        return values


@dataclass(frozen=True, slots=True, eq=False)
class _Draw:
    """From a score to bytes and requests: logarithms of both on the grid of scores, straight in between."""

    shifts: Floats
    log_bytes: Floats
    log_requests: Floats

    @classmethod
    def of(cls, model: DirectionModel, tick_s: float, factors: Floats, weights: Floats) -> _Draw:
        shifts = week_shifts(model.bandwidth, factors, weights)
        present = weights > 0
        below = mixture_cdf(shifts[present], weights[present])
        above = mixture_survival(shifts[present], weights[present])
        return cls(
            shifts,
            np.log(np.minimum(model.bandwidth.upper_quantile(above), MOST / tick_s) * tick_s),
            np.log(np.clip(tick_s / model.interarrival.upper_quantile(below), 1.0 / MOST, MOST)),
        )

    def values(self, scores: Floats) -> tuple[Integers, Integers]:
        """At least one byte and one request: these samples have traffic."""
        place = np.clip((scores - GRID[0]) / STEP, 0.0, GRID.size - 2.0)
        left = place.astype(np.int64)
        place -= left
        result = []
        for logs in (self.log_bytes, self.log_requests):
            value = np.exp(logs[left] + place * (logs[left + 1] - logs[left]))
            result.append(np.maximum(np.rint(value), 1.0).astype(np.int64))
        return result[0], result[1]


@dataclass(slots=True, eq=False)
class _Runs:
    """Silences and busy runs of all targets in one direction, from block to block."""

    model: DirectionModel
    tick_s: float
    busy: Booleans  # what each target is in
    left: Integers  # ticks left of it

    @classmethod
    def settled(cls, random: np.random.Generator, model: DirectionModel, tick_s: float, targets: int) -> _Runs:
        """As if it had gone on for ever: long silences are the likelier ones to be in."""
        if model.idle is None:
            return cls(model, tick_s, np.ones(targets, np.bool_), np.full(targets, LONGEST_RUN))
        busy = random.random(targets) < model.busy_share(tick_s)
        lengths, likely = model.idle_lengths(tick_s)
        met = np.cumsum(lengths * likely)
        silence = lengths[np.minimum(np.searchsorted(met, random.random(targets) * met[-1]), lengths.size - 1)]
        passed = (random.random(targets) * silence).astype(np.int64)
        runs = cls(model, tick_s, busy, silence - passed)
        runs.left = np.where(busy, runs._busy_lengths(random, (targets,)), runs.left)
        return runs

    def next(self, random: np.random.Generator, ticks: int) -> Booleans:
        """Whether each target is busy in each of the next ticks: targets × ticks."""
        if self.model.idle is None:
            return np.ones((self.busy.size, ticks), np.bool_)
        turns = self._turns(random, ticks)
        targets, places = np.nonzero(turns < ticks)
        changes = np.zeros((self.busy.size, ticks), np.bool_)
        changes[targets, turns[targets, places]] = True
        changes[:, 0] ^= self.busy
        values: Booleans = np.logical_xor.accumulate(changes, axis=1)
        number = (turns <= ticks).sum(axis=1)  # a run that ends with the block is over
        self.busy = self.busy ^ (number % 2 == 1)
        self.left = turns[np.arange(turns.shape[0]), number] - ticks
        return values

    def _turns(self, random: np.random.Generator, ticks: int) -> Integers:
        """Ticks, counted from the block's first, at which each target turns: rising, and the last beyond the block."""
        cycle = max(self.model.busy_run_s / self.tick_s / max(self.model.busy_share(self.tick_s), 1e-9), 2.0)
        turns = self.left[:, None]
        number = 2 * int(ticks / cycle + 4.0 * np.sqrt(ticks / cycle) + SPARE_RUNS)
        while (turns[:, -1] <= ticks).any():
            busy, idle = (
                self._busy_lengths(random, (self.busy.size, number // 2)),
                self._idle_lengths(random, number // 2),
            )
            pairs = np.stack([busy, idle], axis=2)
            ordered = np.where(self.busy[:, None, None], pairs[:, :, ::-1], pairs).reshape(self.busy.size, -1)
            turns = np.concatenate([turns, turns[:, -1:] + np.cumsum(ordered, axis=1)], axis=1)
        return turns

    def _busy_lengths(self, random: np.random.Generator, shape: tuple[int, ...]) -> Integers:
        values: Integers = random.geometric(min(1.0, self.tick_s / self.model.busy_run_s), shape)
        return values

    def _idle_lengths(self, random: np.random.Generator, number: int) -> Integers:
        lengths, _ = self.model.idle_lengths(self.tick_s)
        if self.model.idle is None:
            raise ValueError("a direction that is never idle has no silences")
        shares = _even_shares(random, np.zeros(self.busy.size * number, np.int64)).reshape(-1, number)
        drawn = np.rint(self.model.idle.quantile(shares) / self.tick_s)
        values: Integers = np.clip(drawn, lengths[0], lengths[-1]).astype(np.int64)
        return values


def _even_shares(random: np.random.Generator, group: Integers) -> Floats:
    """Shares in random order, one from every n-th part of a group of n.

    Drawn freely, heavy tails would miss their mean for weeks, and the common factor the mean of its hour.
    """
    key = random.random(group.size)
    order = np.lexsort((key, group))
    _, starts, sizes = np.unique(group[order], return_index=True, return_counts=True)
    place = np.empty(group.size)
    place[order] = np.arange(group.size) - np.repeat(starts, sizes)
    number = np.empty(group.size)
    number[order] = np.repeat(sizes, sizes)
    return (place + random.random(group.size)) / number


def dealt_out(random: np.random.Generator, requests: Integers, shares: Floats) -> Integers:
    """Requests by size: one axis more, systematically sampled, so that they add up exactly."""
    offset = random.random(requests.shape)[..., None]
    upto = np.floor(requests[..., None] * np.cumsum(shares) + offset)
    upto[..., -1] = requests
    upto = np.minimum(upto, requests[..., None])
    return np.diff(upto, prepend=0.0, axis=-1).astype(np.int64)
