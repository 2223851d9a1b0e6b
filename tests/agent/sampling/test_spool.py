"""The spool directory: segments, recovery, one writer, a limit that thins and never cuts."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest

from iolens.agent.sampling import spool as spool_module
from iolens.agent.sampling.spool import RESERVE, SegmentWriter, Spool, waiting
from iolens.errors import IolensError
from iolens.records import CounterSet, Item, Sample
from tests.agent.sampling.test_thinning import sums
from tests.agent.truth import spooled, spooled_ticks

S = 1_000_000
T0 = 1_700_000_000 * S


def items(number: int, targets: int = 4) -> list[Item]:
    """Counters that do not deflate to nothing."""
    time_us = T0 + number * 5 * S
    counters = {f"write_ios_{2**power}": number * (power * 7919 % 1013 + 1) for power in range(3, 27)}
    return [
        Sample("target_sizes", "fs", f"fs-OST{item:04x}", time_us, time_us, {"": CounterSet(counters)})
        for item in range(targets)
    ]


def test_segments_are_named_by_host_run_and_number(tmp_path: Path) -> None:
    with Spool.open(tmp_path, 1 << 30, host="oss1") as spool:
        for number in range(3):
            assert spool.append(T0 + number, items(number))
            spool.close_segment()
        names = [path.name for path in waiting(tmp_path)]
        assert names == [f"oss1~{spool.run}~{number:08d}.seg" for number in (1, 2, 3)]
        assert spool.close_segment() is None


def test_a_segment_that_is_full_is_followed_by_another(tmp_path: Path) -> None:
    with Spool.open(tmp_path, 16 * 8192) as spool:
        for number in range(60):
            spool.append(T0 + number, items(number))
    sizes = [path.stat().st_size for path in waiting(tmp_path)]
    assert len(sizes) > 2
    assert max(sizes) <= 8192
    assert len(spooled(tmp_path)) == 240


def test_what_a_killed_writer_left_open_is_finished_by_the_next(tmp_path: Path) -> None:
    with Spool.open(tmp_path, 1 << 30) as spool:
        spool.append(T0, items(0))
        writer = spool.writer
        assert writer is not None
        os.write(writer.descriptor, b"0badc0de torn")
        spool.writer = None  # killed
    assert waiting(tmp_path) == []
    (tmp_path / "oss~r~00000009.open").write_bytes(b"")
    with Spool.open(tmp_path, 1 << 30):
        assert len(waiting(tmp_path)) == 1
        assert len(list(tmp_path.glob("*.open"))) == 0


def test_runs_sort_by_their_start_even_within_a_second() -> None:
    runs = [spool_module.new_run() for _ in range(50) if not time.sleep(1e-4)]  # type: ignore[func-returns-value]
    assert runs == sorted(runs)


def test_two_writers_are_one_too_many(tmp_path: Path) -> None:
    refusal = pytest.raises(IolensError, match="another `iolens collect` writes here")
    with Spool.open(tmp_path, 1 << 30), refusal, Spool.open(tmp_path, 1 << 30):
        pass


def test_a_full_spool_is_thinned_and_loses_no_count(tmp_path: Path) -> None:
    limit = 16 * 8192
    everything: list[Item] = []
    with Spool.open(tmp_path, limit) as spool:
        for number in range(900):
            everything += items(number)
            assert spool.append(T0 + number * 5 * S, items(number))
            assert spool.size() < limit + 8192
        assert spool.thinned_samples > 500
        assert spool.lost_ticks == 0
    assert sums(spooled(tmp_path)) == sums(everything)
    newest = max(time_us for _, time_us in spooled_ticks(tmp_path, "target_sizes"))
    assert newest == T0 + 899 * 5 * S


def test_when_nothing_can_be_thinned_a_tick_is_lost_and_counted(tmp_path: Path) -> None:
    with Spool.open(tmp_path, 16 * 4096) as spool:
        (tmp_path / "bad").mkdir()
        (tmp_path / "bad" / "big").write_bytes(bytes(16 * 4096))
        assert not spool.append(T0, items(0))
        assert spool.lost_ticks == 1
        assert "has reached its limit" in spool.trouble


def test_segments_being_shipped_are_not_thinned(tmp_path: Path) -> None:
    with Spool.open(tmp_path, 1 << 30) as spool:
        for number in range(20):
            spool.append(T0 + number, items(number))
        path = spool.close_segment()
        assert path is not None
        taken = path.rename(path.with_suffix(".taken"))
        before = taken.read_bytes()
        assert not spool.thin()
        assert taken.read_bytes() == before


def test_a_full_disk_thins_in_the_space_of_the_reserve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Spool.open(tmp_path, 1 << 20) as spool:
        for number in range(40):
            spool.append(T0 + number * 5 * S, items(number))
        spool.close_segment()
        before = sums(spooled(tmp_path))
        write = SegmentWriter.write
        held = []

        def no_space_until_thinned(writer: SegmentWriter, line: bytes) -> None:
            if not spool.thinned_samples:
                held.append((tmp_path / RESERVE).exists())
                raise OSError(errno.ENOSPC, "No space left on device")
            write(writer, line)

        monkeypatch.setattr(spool_module.SegmentWriter, "write", no_space_until_thinned)
        assert spool.append(T0 + 40 * 5 * S, items(40))
        assert held == [True]
        assert spool.thinned_samples
        assert (tmp_path / RESERVE).stat().st_size == spool.segment_bytes
    after = sums(spooled(tmp_path))
    assert after - before == sums([*items(39), *items(40)])


def test_no_space_for_the_thinned_copy_is_not_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Spool.open(tmp_path, 16 * 4096) as spool:
        for number in range(20):
            spool.append(T0 + number * S, items(number))
        spool.close_segment()
        spool.limit_bytes = 1

        def no_space(path: Path) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(spool_module, "thin_segment", no_space)
        assert not spool.append(T0 + 21 * S, items(21))
        assert spool.lost_ticks == 1


def test_a_line_that_did_not_fit_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Spool.open(tmp_path, 1 << 30) as spool:
        spool.append(T0, items(0))
        real = os.write

        def half(descriptor: int, rest: bytes) -> int:
            if len(rest) > 100:
                return real(descriptor, rest[:100])
            raise OSError(errno.EIO, "Input/output error")

        with monkeypatch.context() as patched:
            patched.setattr(os, "write", lambda descriptor, rest: half(descriptor, rest))
            assert not spool.append(T0 + S, items(1))
        assert spool.append(T0 + 2 * S, items(2))
    assert len(spooled(tmp_path)) == 8
    assert spool.lost_ticks == 1
