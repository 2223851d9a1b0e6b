"""Writers that die: many processes load captures into one store, are killed at random times, and send again.

`python -m bench.soak --kills 200` exits non-zero when a row is lost or there twice. Every stream has targets of its own
whose counters only grow, so what the store must hold in the end is known exactly.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any, TextIO

from deltalake.exceptions import CommitFailedError

from iolens.records import Capture, CounterSet, Item, Row, Sample
from iolens.store.maintenance import verify_store
from iolens.store.snapshot import Snapshot
from iolens.store.store import Store

T0_US = 1_600_000_000_000_000
TICK_US = 5_000_000
TICKS_PER_CAPTURE = 3
TARGETS = 2
SOURCE = "soak"
TABLES = ("target_io", "target_histograms", "target_capacity")

RowKey = tuple[object, ...]


def capture(stream: int, number: int) -> Capture:
    """The `number`th file of a stream: raw counters of its targets and their fullness, tick by tick."""
    return Capture(f"stream {stream} file {number}", f"file/soak-{stream}-{number}", lambda: _items(stream, number))


def _items(stream: int, number: int) -> Iterator[Item]:
    for tick in range(number * TICKS_PER_CAPTURE, (number + 1) * TICKS_PER_CAPTURE):
        for target in _targets(stream):
            time_us = T0_US + tick * TICK_US
            io = {"": CounterSet({"read_bytes": _counter(target, tick), "write_bytes": 7 * tick})}
            sizes = {"io_time_ms": CounterSet({"read:1": 3 * tick, "write:4": tick})}
            yield Sample("target_io", "scratch", target, time_us, time_us, io)
            yield Sample("target_histograms", "scratch", target, time_us, time_us, sizes)
            fullness = {"time": time_us, "filesystem": "scratch", "target": target, "used_bytes": tick}
            yield Row("target_capacity", fullness)


def _targets(stream: int) -> list[str]:
    return [f"scratch-OST{stream * TARGETS + n:04x}" for n in range(TARGETS)]


def _counter(target: str, tick: int) -> int:
    """A counter that grows a little differently on each target and tick."""
    return 1000 * tick * (tick + 1) + int(target[-4:], 16) * tick


def expected_rows(captures: dict[int, int]) -> dict[str, Counter[RowKey]]:
    """What the store must hold when that many captures of each stream are in it."""
    rows: dict[str, Counter[RowKey]] = {name: Counter() for name in TABLES}
    for stream, count in captures.items():
        for target in _targets(stream):
            for tick in range(count * TICKS_PER_CAPTURE):
                time_us = T0_US + tick * TICK_US
                rows["target_capacity"][target, time_us, tick] += 1
                if tick:
                    moved = _counter(target, tick) - _counter(target, tick - 1)
                    rows["target_io"][target, time_us, moved, 7] += 1
                    rows["target_histograms"][target, time_us, "read", 1, 3] += 1
                    rows["target_histograms"][target, time_us, "write", 4, 1] += 1
    return rows


def stored_rows(store: Store) -> dict[str, Counter[RowKey]]:
    """What the store holds, read back through the engine."""
    values = {
        "target_io": ("read_bytes", "write_bytes"),
        "target_histograms": ("direction", "bin", "count"),
        "target_capacity": ("used_bytes",),
    }
    counts: dict[str, Counter[RowKey]] = {}
    for name in TABLES:
        columns = ("target", "epoch_us", *values[name])
        frame = store.select("scratch").frame(name).select(*columns).collect(backend="pyarrow").to_native()
        counts[name] = Counter(zip(*(frame.column(column).to_pylist() for column in columns), strict=True))
    return counts


def write_until_killed(url: str, stream: int, neighbour: int, journal: str) -> None:
    """Load the stream's captures one after another, and the neighbour's again; note each before and after."""
    store = Store(url)
    seen = read_journal(Path(journal))
    with Path(journal).open("a", buffering=1) as notes:
        notes.write(f"\nstarted {os.getpid()}\n")
        _note_conflicts(store, notes)
        for number in range(max(seen["done"] - 2, 0), 1_000_000):
            notes.write(f"begun {number + 1}\n")
            store.ingest([capture(stream, number)], SOURCE)
            notes.write(f"done {number + 1}\n")
            if number % 2:
                store.ingest([capture(neighbour, item) for item in range(max(number - 2, 0), number)], SOURCE)
                notes.write(f"lent {number}\n")


def _note_conflicts(store: Store, notes: TextIO) -> None:
    """Note every commit that another writer got ahead of; the store tries it again."""
    real = store.tables.commit

    def commit(*args: Any, **options: Any) -> list[str]:
        try:
            return real(*args, **options)
        except CommitFailedError:
            notes.write("conflict\n")
            raise

    store.tables.commit = commit  # type: ignore[method-assign]


def read_journal(path: Path) -> Counter[str]:
    """The highest number noted under each word, and how many conflicts; a line that a kill cut off is left out."""
    counts: Counter[str] = Counter()
    for line in _text(path).splitlines():
        word, _, number = line.partition(" ")
        counts["conflict"] += word == "conflict"
        if word in ("begun", "done", "lent") and number.isdecimal():
            counts[word] = max(counts[word], int(number))
    return counts


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


@dataclass(slots=True)
class Report:
    """What happened."""

    kills: int
    captures: int
    present_when_resent: int
    completed_by_resending: int
    rows: int
    lost: int
    too_many: int
    files: int
    unrecorded: int
    orphans: int
    commits: int
    conflicts: int
    seconds: float
    faults: list[str]

    @property
    def good(self) -> bool:
        """Every row exactly once, and no damaged file."""
        return not (self.lost or self.too_many or self.faults)

    def __str__(self) -> str:
        return (
            f"{self.kills} writers killed in {self.seconds:.0f} s, {self.commits} commits, "
            f"{self.conflicts} conflicts tried again\n"
            f"{self.captures} captures sent again: {self.present_when_resent} were whole, "
            f"{self.completed_by_resending} had been cut off and were completed\n"
            f"{self.rows} rows expected: {self.lost} lost, {self.too_many} too many\n"
            f"{self.files} files verified: {len(self.faults)} faults, {self.unrecorded} without a recorded checksum; "
            f"{self.orphans} orphans of killed writers"
        )


def soak(folder: Path, *, kills: int, writers: int, seed: int = 1, longest_s: float = 1.5) -> Report:
    """Kill writers `kills` times at random times, send everything again, and compare."""
    chance = random.Random(seed)
    began = time.monotonic()
    url = str(folder / "store")
    running = {stream: _start(folder, url, stream, writers) for stream in range(writers)}
    try:
        for _ in range(kills):
            stream = _pick_working(folder, running, chance)
            time.sleep(chance.uniform(0.0, longest_s))
            _kill(running[stream])
            running[stream] = _start(folder, url, stream, writers)
    finally:
        for process in running.values():
            _kill(process)
    return _settle(folder, Store(url), writers, kills, began)


def _pick_working(folder: Path, running: dict[int, ForkServerProcess], chance: random.Random) -> int:
    """A writer that has begun to load since it was started, so that the kill hits work and not the start."""
    while True:
        working = [
            stream
            for stream, process in running.items()
            if f"started {process.pid}\nbegun" in _text(folder / f"journal-{stream}")
        ]
        if working:
            return chance.choice(working)
        time.sleep(0.01)


def ready_processes() -> ForkServerContext:
    """Processes that have imported all they need: a writer that is killed soon should write, not import."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["iolens.store.maintenance", "iolens.store.store"])
    return context


def _start(folder: Path, url: str, stream: int, writers: int) -> ForkServerProcess:
    arguments = (url, stream, (stream + 1) % writers, str(folder / f"journal-{stream}"))
    process = ready_processes().Process(target=write_until_killed, args=arguments, daemon=True)
    process.start()
    return process


def _kill(process: ForkServerProcess) -> None:
    process.kill()
    process.join()
    process.close()


def _settle(folder: Path, store: Store, writers: int, kills: int, began: float) -> Report:
    begun: dict[int, int] = {}
    for stream in range(writers):
        mine, lender = (read_journal(folder / f"journal-{writer}") for writer in (stream, (stream - 1) % writers))
        begun[stream] = max(mine["begun"], lender["lent"], lender["done"])
    orphans = _orphans(store)
    tally = [store.ingest([capture(stream, n)], SOURCE) for stream, count in begun.items() for n in range(count)]
    whole = sum(item.already_present for item in tally)
    expected, result = expected_rows(begun), stored_rows(store)
    checked = verify_store(store)
    handles = [store.tables.load(name) for name in (*TABLES, "baselines", "batches")]
    return Report(
        kills=kills,
        captures=len(tally),
        present_when_resent=whole,
        completed_by_resending=len(tally) - whole,
        rows=sum(rows.total() for rows in expected.values()),
        lost=sum((expected[name] - result[name]).total() for name in TABLES),
        too_many=sum((result[name] - expected[name]).total() for name in TABLES),
        files=checked.files,
        unrecorded=checked.unrecorded,
        orphans=orphans,
        commits=sum(handle.version() for handle in handles if handle is not None),
        conflicts=sum(read_journal(folder / f"journal-{stream}")["conflict"] for stream in range(writers)),
        seconds=time.monotonic() - began,
        faults=checked.faults,
    )


def _orphans(store: Store) -> int:
    """Data files on disk that no snapshot names."""
    count = 0
    for name in (*TABLES, "baselines", "batches"):
        on_disk = {path.name for path in (Path(store.url) / name).rglob("*.parquet") if "_delta_log" not in path.parts}
        count += len(on_disk - {Path(path).name for path in Snapshot.of(store.tables.load(name)).paths})
    return count


def main() -> int:
    """Run, print the report, and tell by the exit code whether the store held."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="Work in this directory and leave the store there")
    given = parser.parse_args()
    folder = given.keep or Path(tempfile.mkdtemp(prefix="iolens-soak-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        report = soak(folder, kills=given.kills, writers=given.writers, seed=given.seed)
    finally:
        if given.keep is None:
            shutil.rmtree(folder)
    print(report)
    for fault in report.faults:
        print(fault)
    print("every row is there exactly once" if report.good else "THE STORE DID NOT HOLD")
    return 0 if report.good else 1


if __name__ == "__main__":
    sys.exit(main())
