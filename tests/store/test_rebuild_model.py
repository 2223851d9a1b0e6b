"""Random histories against a model: whatever is late, cut off, rebuilt or compacted, the sums stay true.

Never more than moved, never less after a rebuild than before, and all of it where every sample is known and no clock or
counter was set back.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from iolens.records import Capture, CounterSet, Sample
from iolens.store.maintenance import compact_store
from iolens.store.store import Store
from iolens.store.tables import Tables, data_files
from tests.store.samples import sample

COUNTERS = {
    "target_io": ("", ("read_bytes", "write_bytes")),
    "target_histograms": ("io_time_ms", ("read:1", "write:2")),
    "job_io": ("7@host", ("read_bytes", "write_bytes")),
}


@dataclass(frozen=True)
class History:
    """Samples in the order in which they were taken, and what had moved in truth up to each."""

    samples: list[Sample]
    moved: list[int]

    @classmethod
    def of(cls, chance: random.Random, kind: Kind) -> History:
        clock, count, began, true = 10_000.0, chance.choice([0, 10**6]), 10**12, 0
        samples, moved = [], []
        for _ in range(chance.randint(12, 24)):
            clock += chance.choice([5, 5, 5, 10]) + 0.003
            if kind.steps and chance.random() < 0.15:
                clock += chance.choice([-8, -20, -60, 45])
            more = chance.choice([0, 1, 10, 50, 200])
            if kind.resets and chance.random() < 0.15:
                true += chance.choice([0, 30])  # before the reset, which nobody sees
                count, began = 0, began + 10**10
            count, true = count + more, true + more
            name, counters = COUNTERS[kind.table]
            values = dict(zip(counters, (count, 2 * count), strict=True))
            samples.append(sample(kind.table, clock, {name: CounterSet(values, began if kind.starts else None)}))
            moved.append(true)
        return cls(samples, moved)

    def segments(self, chance: random.Random) -> list[range]:
        """Cut into pieces of one to six samples."""
        cuts = [0]
        while cuts[-1] < len(self.samples):
            cuts.append(min(cuts[-1] + chance.randint(1, 6), len(self.samples)))
        return [range(begin, end) for begin, end in pairwise(cuts)]

    def most(self, known: set[int]) -> int:
        """What can be known at most from these samples."""
        return self.moved[max(known)] - self.moved[min(known)]


class Cut(Exception):
    """A power cut in a test."""


@dataclass
class Run:
    """One history on its way into a store."""

    store: Store
    history: History
    chance: random.Random
    kind: Kind
    monkeypatch: pytest.MonkeyPatch
    known: set[int]
    _sums: dict[int, int] = field(default_factory=dict)  # by version of the table

    def capture(self, number: int, piece: range) -> Capture:
        samples = [self.history.samples[place] for place in piece]
        return Capture(f"{number}", f"agent/oss1/run/{number}", lambda: iter(samples), numbered=self.kind.numbered)

    def total(self) -> int:
        """What the first of the two counters has moved, by all rows."""
        handle = self.store.tables.load(self.kind.table)
        if handle is None:
            return 0
        version = handle.version()
        if version not in self._sums:
            folder = self.store.tables.folder / self.kind.table
            self._sums[version] = sum(self._sum(folder / path) for path in data_files(handle))
        return self._sums[version]

    def _sum(self, file: Path) -> int:
        columns = ["direction", "count"] if self.kind.table == "target_histograms" else ["read_bytes"]
        rows = pq.ParquetFile(file).read(columns).to_pylist()
        return sum(row[columns[-1]] for row in rows if row.get("direction", "read") == "read")

    def send(self, pieces: dict[int, range], *, rebuild: bool) -> None:
        """Load segments; now and then the power goes in between, and they are sent again."""
        before = self.total()
        self.known |= {place for piece in pieces.values() for place in piece}
        captures = [self.capture(number, piece) for number, piece in pieces.items()]
        try:
            with self.monkeypatch.context() as patch:
                if self.chance.random() < 0.4:
                    cut_after(patch, self.chance.randint(0, 3))
                self.store.ingest(captures, "agent", rebuild=rebuild)
        except Cut:
            assert self.total() <= self.history.most(self.known)
            assert not rebuild or self.total() >= before
            self.store.ingest(captures, "agent", rebuild=rebuild)
        assert self.total() <= self.history.most(self.known)
        assert not rebuild or self.total() >= before


def cut_after(monkeypatch: pytest.MonkeyPatch, commits: int) -> None:
    """Let that many commits through, then die before the next."""
    done: list[int] = []
    for name in ("commit", "replace_days"):
        real = getattr(Tables, name)

        def commit(self: Tables, *args: object, real=real, **options: object) -> list[str]:
            if len(done) == commits:
                raise Cut
            done.append(1)
            return real(self, *args, **options)

        monkeypatch.setattr(Tables, name, commit)


def play(folder: Path, monkeypatch: pytest.MonkeyPatch, kind: Kind, seed: int) -> Run:
    """Send the segments in any order, rebuild some in between, and all of them twice at the end."""
    chance = random.Random(seed)
    history = History.of(chance, kind)
    run = Run(Store(folder / "store"), history, chance, kind, monkeypatch, set())
    pieces = dict(enumerate(history.segments(chance)))
    order = list(pieces)
    if chance.random() < 0.7:
        chance.shuffle(order)
    for number in order:
        run.send({number: pieces[number]}, rebuild=chance.random() < 0.2)
        if chance.random() < 0.3:
            some = chance.sample(order, chance.randint(1, len(order)))
            run.send({item: pieces[item] for item in sorted(some)}, rebuild=True)
        if chance.random() < 0.1:
            compact_store(run.store)
    run.send(pieces, rebuild=True)
    after = run.total()
    run.send(pieces, rebuild=True)
    assert run.total() == after
    return run


@dataclass(frozen=True)
class Kind:
    """What happens in a history, and whether its segments are numbered as an agent's are."""

    numbered: bool
    steps: bool = False
    resets: bool = False
    starts: bool = False
    table: str = "target_io"


KINDS = {
    "late segments of an agent": Kind(numbered=True),
    "late captures": Kind(numbered=False),
    "resets": Kind(numbered=False, resets=True),
    "resets with their times": Kind(numbered=True, resets=True, starts=True),
    "clock steps": Kind(numbered=True, steps=True),
    "clock steps and resets": Kind(numbered=True, steps=True, resets=True),
    "clock steps and resets with their times": Kind(numbered=True, steps=True, resets=True, starts=True),
    "late histograms": Kind(numbered=False, table="target_histograms"),
    "histograms with everything": Kind(numbered=True, steps=True, resets=True, table="target_histograms"),
    "late counts of a job": Kind(numbered=True, table="job_io"),
    "counts of a job with everything": Kind(True, True, True, True, table="job_io"),
}


@pytest.mark.parametrize("seed", range(300, 302))  # in the tests; `make soak` takes more
@pytest.mark.parametrize("kind", KINDS)
def test_sums_stay_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, seed: int) -> None:
    check_history(tmp_path, monkeypatch, KINDS[kind], seed)


def check_history(folder: Path, monkeypatch: pytest.MonkeyPatch, kind: Kind, seed: int) -> None:
    """Play one history; where only the order of arrival is wrong, all that moved is stored in the end."""
    run = play(folder, monkeypatch, kind, seed)
    if not kind.steps and not kind.resets:
        assert run.total() == run.history.moved[-1] - run.history.moved[0]
