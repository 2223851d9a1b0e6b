"""Rows as they come, for whoever watches: from a server's own files, or from the spool of an agent that runs here.

Counters become intervals by the same rule as in the store (`counters/differences`). Reading a spool takes no lock and
changes no file.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from iolens.agent.sampling.sampler import STATUS_FILE
from iolens.config import DeviceRule
from iolens.counters.differences import Baseline, CounterStep, Outcome, advance
from iolens.errors import InputError
from iolens.histogram_names import IO_TIME
from iolens.records import Item, Problem, Row, Sample
from iolens.sources.devices.diskstats import DISKSTATS, BlockDevices
from iolens.sources.lustre.lustre_proc import read_tree
from iolens.sources.lustre.parameters import SLOW_LEAVES
from iolens.sources.spool import CLOSED, OPEN, TAKEN, SegmentLine, decode_tick, lines

TABLES: Final = frozenset({"target_io", "target_sizes", "target_histograms", "metadata_ops", "target_capacity"})
HISTOGRAM: Final = IO_TIME
NOT_READ: Final = SLOW_LEAVES
SEGMENTS_BACK: Final = 3  # per agent, at the start: the slow tables need two samples a minute apart

Reader = Callable[[Path, int, str | None, frozenset[str]], Iterator[Item]]


@dataclass(slots=True)
class Differences:
    """Turns raw samples into the rows the store would make of them; the first sample of a target gives none."""

    baselines: dict[tuple[str, str, str], Baseline] = field(default_factory=dict)

    def rows(self, items: Iterable[Item]) -> Iterator[Row | Problem]:
        """Intervals, finished rows and problems of the tables that are watched."""
        for item in items:
            if isinstance(item, Problem) or (isinstance(item, Row) and item.table in TABLES):
                yield item
            elif isinstance(item, Sample) and item.table in TABLES:
                key = (item.filesystem, item.target, item.table)
                step = advance(self.baselines.get(key), item)
                self.baselines[key] = step.baseline
                if step.outcome is Outcome.INTERVAL:
                    yield from _interval_rows(item, step)


def device_reader(root: Path, rule: DeviceRule) -> Reader:
    """Reads the block devices of the machine below a root, under the machine's own name."""
    devices = BlockDevices(root, rule)
    return lambda root, tick_us, filesystem, skip: devices.read(tick_us) if (root / DISKSTATS).exists() else iter(())


def _interval_rows(sample: Sample, step: CounterStep) -> Iterator[Row]:
    common: dict[str, object] = {
        "time": step.time_us,
        "start": step.start_us,
        "duration_s": step.duration_s,
        "filesystem": sample.filesystem,
        "target": sample.target,
        **sample.labels,
    }
    for name, movement in step.movements.items():
        row = {**common, "after_reset": movement.after_reset}
        if sample.table != "target_histograms":
            yield Row(sample.table, row | dict(movement.moved))
        elif name == HISTOGRAM:
            for counter, count in movement.moved.items():
                if count:
                    direction, _, label = counter.partition(":")
                    of_bin = {"histogram": name, "direction": direction, "bin": int(label), "count": count}
                    yield Row(sample.table, row | of_bin)


@dataclass(slots=True)
class TreeFeed:
    """A server's files below a root, read by whoever watches: every poll is one sample."""

    root: Path
    interval_s: float = 5.0
    filesystem: str | None = None
    readers: Sequence[Reader] = (read_tree,)
    now_us: Callable[[], int] = lambda: time.time_ns() // 1000
    differences: Differences = field(default_factory=Differences)
    has_begun: bool = False

    @property
    def origin(self) -> str:
        """For people."""
        return str(self.root)

    def poll(self) -> list[Item]:
        """One sample now; the rows of the intervals it ends."""
        now = self.now_us()
        interval_us = round(self.interval_s * 1e6)
        tick = now // interval_us * interval_us if self.has_begun else now
        items = [item for read in self.readers for item in read(self.root, tick, self.filesystem, NOT_READ)]
        if not any(isinstance(item, Sample) for item in items):
            problem = next((item for item in items if isinstance(item, Problem)), None)
            raise InputError(str(self.root), str(problem) if problem else "no Lustre target and no disk to watch here")
        self.has_begun = True
        return list(self.differences.rows(items))

    def trouble(self) -> str:
        """What the agent says is wrong: there is none here."""
        return ""


@dataclass(slots=True)
class SpoolFeed:
    """The spool of a running agent, read while it is written."""

    directory: Path
    interval_s: float = 1.0
    differences: Differences = field(default_factory=Differences)
    read_to: dict[str, int] = field(default_factory=dict)  # bytes, by segment
    has_begun: bool = False

    @property
    def origin(self) -> str:
        """For people."""
        return f"agent at {self.directory}"

    def poll(self) -> list[Item]:
        """Rows of everything spooled since the last time."""
        samples: list[Item] = []
        for path in self._segments():
            samples += self.differences.rows(self._new_items(path))
        self.has_begun = True
        return samples

    def trouble(self) -> str:
        """What the agent says is wrong with itself."""
        try:
            said = json.loads((self.directory / STATUS_FILE).read_bytes())
            return str(said.get("trouble") or "")
        except (OSError, ValueError, AttributeError):
            return ""

    def _segments(self) -> list[Path]:
        """Segments in the order they were written; of those there are at the start, the last few of each agent."""
        try:
            files = {path.stem: path for path in self.directory.iterdir() if path.suffix in (OPEN, CLOSED, TAKEN)}
        except OSError as error:
            raise InputError(
                str(self.directory), error.strerror or "cannot be read", "the spool of an agent"
            ) from error
        if not self.has_begun:
            self.read_to = {stem: _size(files[stem]) for stem in _all_but_last(sorted(files))}
        self.read_to = {stem: size for stem, size in self.read_to.items() if stem in files}
        return [files[stem] for stem in sorted(files)]

    def _new_items(self, path: Path) -> Iterator[Item]:
        """What was appended to a segment; a line that is still being written waits for the next time."""
        begin = self.read_to.get(path.stem, 0)
        if _size(path) <= begin:  # a segment that was thinned has been read before it shrank
            return
        try:
            for line in lines(path, begin):
                if line.is_torn:
                    return
                self.read_to[path.stem] = line.offset + line.length
                yield from _items(path, line)
        except FileNotFoundError:
            return  # renamed or shipped since the directory was listed: the next poll finds it, or a gap
        except OSError as error:  # a symbolic link or a pipe in its place
            yield Problem(str(path), None, error.strerror or "cannot be read")


def _items(path: Path, line: SegmentLine) -> Iterator[Item]:
    if line.payload is None:
        yield Problem(str(path), line.number, f"byte {line.offset}: damaged line, {line.length} bytes skipped")
    elif not line.payload.startswith(b"{"):
        try:
            yield from decode_tick(line.payload).items
        except ValueError as error:
            yield Problem(str(path), line.number, f"byte {line.offset}: {error}")


def _size(path: Path) -> int:
    """Bytes of a file; 0 for one that has just gone."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _all_but_last(stems: Sequence[str]) -> Iterator[str]:
    by_host: dict[str, list[str]] = {}
    for stem in stems:
        by_host.setdefault(stem.partition("~")[0], []).append(stem)
    for own in by_host.values():
        yield from own[:-SEGMENTS_BACK]
