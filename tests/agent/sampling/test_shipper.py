"""The shipper: a segment goes only when the store has it, or aside; a store that is away is waited for."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from iolens.agent.sampling.sampler import Health
from iolens.agent.sampling.shipper import UNREACHABLE, Shipment, ship, take
from iolens.agent.sampling.shipping import FIRST_PAUSE_S, Shipping
from iolens.agent.sampling.spool import SHIP_LOCK, Spool, locked, waiting
from iolens.errors import IolensError, StoreError
from iolens.records import CounterSet, Problem, Sample
from iolens.sources import ReadOptions
from iolens.sources.spool import SOURCE, SegmentHeader, Tick, encode_header, encode_tick
from iolens.store.store import Store
from tests.agent import truth
from tests.sources.test_spool import raw_tick

S = 1_000_000
T0 = 1_700_000_000 * S


def sample(number: int, target: str = "fs-OST0000") -> Sample:
    time_us = T0 + number * 5 * S
    sets = {"": CounterSet({"write_bytes": 10 * number, "write_ops": number})}
    return Sample("target_io", "fs", target, time_us, time_us, sets, {"target_kind": "ost"})


def fill(directory: Path, *segments: range, run: str = "r1") -> list[Path]:
    directory.mkdir(exist_ok=True)
    paths = []
    for sequence, numbers in enumerate(segments, 1):
        header = SegmentHeader("oss1", run, sequence)
        path = directory / f"{header.stem}.seg"
        ticks = (encode_tick(Tick(T0 + number * 5 * S, [sample(number)])) for number in numbers)
        path.write_bytes(encode_header(header) + b"".join(ticks))
        paths.append(path)
    return paths


def test_what_the_store_has_is_deleted(tmp_path: Path) -> None:
    spool, store = tmp_path / "spool", tmp_path / "store"
    fill(spool, range(4), range(4, 8), range(8, 12))
    done = ship(spool, str(store))
    assert (done.shipped, done.left, done.samples, done.rows) == (3, 0, 12, 11)
    assert waiting(spool) == []
    assert truth.total(store) == 110
    assert truth.breaks(store) == []


def test_no_more_than_so_many_per_run(tmp_path: Path) -> None:
    spool, store = tmp_path / "spool", tmp_path / "store"
    fill(spool, range(4), range(4, 8), range(8, 12))
    assert ship(spool, str(store), most=2).left == 1
    assert ship(spool, str(store), most=2).left == 0
    assert truth.total(store) == 110


def test_a_segment_sent_again_adds_nothing(tmp_path: Path) -> None:
    spool, store = tmp_path / "spool", tmp_path / "store"
    fill(spool, range(4), range(4, 8))
    ship(spool, str(store))
    fill(spool, range(4), range(4, 8))
    again = ship(spool, str(store))
    assert (again.shipped, again.samples) == (2, 0)
    assert truth.total(store) == 70


def test_a_segment_that_cannot_be_understood_goes_aside_and_stops_no_other(tmp_path: Path) -> None:
    spool, store = tmp_path / "spool", tmp_path / "store"
    _, second, _ = fill(spool, range(4), range(4, 8), range(8, 12))
    second.write_bytes(b"what is this\n" * 10)
    done = ship(spool, str(store))
    assert (done.shipped, done.bad, done.left) == (2, 1, 0)
    assert sorted(path.suffix for path in (spool / "bad").iterdir()) == [".reason", ".seg"]
    assert (spool / "bad" / second.name).read_bytes() == b"what is this\n" * 10
    assert "not one readable tick" in (spool / "bad" / second.name).with_suffix(".reason").read_text()
    assert "moved to bad/" in done.reasons[0]
    assert truth.total(store) == 110
    assert ship(spool, str(store)) == Shipment()


def test_a_tick_whose_values_are_no_counters_goes_aside_and_is_named(tmp_path: Path) -> None:
    """No agent writes such a tick: its checksum is right, and its content is not to be trusted."""
    spool, store = tmp_path / "spool", tmp_path / "store"
    fill(spool, range(4), range(4, 8))
    header = SegmentHeader("oss1", "r0", 1)
    poison = Sample("target_io", "fs", "fs-OST0001", T0, T0, {"": CounterSet({"write_bytes": "many"})})  # type: ignore[dict-item]
    later = Sample("target_io", "fs", "fs-OST0001", T0 + S, T0 + S, {"": CounterSet({"write_bytes": "more"})})  # type: ignore[dict-item]
    (spool / f"{header.stem}.seg").write_bytes(encode_header(header) + encode_tick(Tick(T0, [poison, later])))
    done = ship(spool, str(store))
    assert (done.shipped, done.bad, done.refused) == (2, 1, 1)
    assert "a counter that is no count" in "".join(done.reasons)
    assert truth.total(store) == 70


def test_a_small_segment_of_nested_json_does_not_block_the_others(tmp_path: Path) -> None:
    """413 bytes with the right checksum: the shipper failed on them at every start, and shipped nothing any more."""
    spool, store = tmp_path / "spool", tmp_path / "store"
    fill(spool, range(4), range(4, 8))
    header = SegmentHeader("oss1", "r0", 1)
    poisoned = spool / f"{header.stem}.seg"
    poisoned.write_bytes(encode_header(header) + raw_tick(b'["and so on", ' * 5000))
    assert poisoned.stat().st_size < 500
    done = ship(spool, str(store))
    assert (done.shipped, done.bad, done.left) == (2, 1, 0)
    assert truth.total(store) == 70
    assert "RecursionError" in (spool / "bad" / poisoned.name).with_suffix(".reason").read_text()
    assert ship(spool, str(store)) == Shipment()


def test_a_tick_that_cannot_be_read_is_kept_and_the_rest_of_its_segment_is_stored(tmp_path: Path) -> None:
    spool, store = tmp_path / "spool", tmp_path / "store"
    path = fill(spool, range(8))[0]
    path.write_bytes(path.read_bytes() + raw_tick(b"{}"))
    done = ship(spool, str(store))
    assert (done.shipped, done.bad, done.refused) == (1, 1, 1)
    assert truth.total(store) == 70
    assert (spool / "bad" / path.name).exists()


def test_four_megabytes_that_inflate_to_gigabytes_take_little_memory(tmp_path: Path) -> None:
    """Peak memory of the shipper, MiB; its libraries take about 200 of them."""
    spool, store = tmp_path / "spool", tmp_path / "store"
    fill(spool, range(4))
    header = SegmentHeader("oss1", "r0", 1)
    bomb = raw_tick(b'{"t": 1, "i": [' + b'"",' * (1 << 20), repeated=500)
    (spool / f"{header.stem}.seg").write_bytes(encode_header(header) + bomb + bomb)
    program = (
        "import sys\nfrom pathlib import Path\nfrom iolens.agent.sampling.shipper import ship\n"
        "done = ship(Path(sys.argv[1]), sys.argv[2])\n"
        "peak = next(line for line in open('/proc/self/status') if line.startswith('VmHWM'))\n"  # not the parent's
        "print(done.shipped, done.bad, int(peak.split()[1]) >> 10)"
    )
    ran = subprocess.run([sys.executable, "-c", program, spool, store], capture_output=True, text=True, check=True)
    shipped, bad, peak_mib = map(int, ran.stdout.split())
    assert (shipped, bad) == (1, 1)
    assert peak_mib < 600


# --- directories that are not the agent's own


def test_links_and_pipes_in_a_spool_are_put_aside_and_nothing_is_read_through_them(tmp_path: Path) -> None:
    spool, store = tmp_path / "spool", tmp_path / "store"
    fill(spool, range(4))
    secret = fill(tmp_path / "elsewhere", range(4, 8), run="r9")[0]
    (spool / secret.name).symlink_to(secret)
    os.mkfifo(spool / "oss1~r8~00000001.seg")
    done = ship(spool, str(store))
    assert (done.shipped, done.bad, done.left) == (1, 2, 0)
    assert truth.total(store) == 30
    assert secret.exists()


def test_a_link_in_place_of_a_file_of_the_spool_is_not_written_through(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for name in ("reserve", "health.json", "store.json", "health.json.new", "store.json.new"):
        spool, store = tmp_path / f"spool-{name}", tmp_path / f"store-{name}"
        fill(spool, range(4))
        (spool / name).symlink_to(victim)
        with Spool.open(spool, 1 << 20) as opened:
            opened.append(T0, [sample(0, "fs-OST0009")])
            Health("oss1", "r1").write(spool)
        ship(spool, str(store))
        assert victim.read_text() == "precious"
    for name in ("ship.lock", "sampler.lock"):
        spool = tmp_path / f"spool-{name}"
        fill(spool, range(4))
        (spool / name).symlink_to(victim)
        with pytest.raises(OSError, match="symbolic link"):
            ship(spool, str(tmp_path / "s")) if name == "ship.lock" else open_spool(spool)


def open_spool(directory: Path) -> None:
    with Spool.open(directory, 1 << 20):
        pass


def test_what_the_agent_makes_is_its_own(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with Spool.open(tmp_path / "a" / "spool", 1 << 20) as spool:
            spool.append(T0, [sample(0)])
            Health("oss1", "r1").write(spool.directory)
            spool.close_segment()
            (spool.directory / "oss1~r0~00000001.seg").write_bytes(b"damaged")
            ship(spool.directory, str(tmp_path / "store"))
            made = {path.name: path.stat().st_mode & 0o777 for path in spool.directory.rglob("*")}
            made.pop("oss1~r0~00000001.seg")
            assert spool.directory.stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(before)
    assert made.pop("bad") == 0o700
    assert {name: oct(mode) for name, mode in made.items() if mode != 0o600} == {}
    assert {"health.json", "store.json", "reserve", "sampler.lock", "ship.lock"} <= set(made)


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o775, 0o1777])
def test_a_spool_that_others_can_write_is_refused(tmp_path: Path, mode: int) -> None:
    spool = tmp_path / "spool"
    fill(spool, range(4))
    spool.chmod(mode)
    for use in (lambda: ship(spool, str(tmp_path / "store")), lambda: open_spool(spool)):
        with pytest.raises(IolensError, match=rf"others can write there .mode {mode:o}.: chmod go-w {spool}"):
            use()
    assert len(waiting(spool)) == 1
    done = truth.ship(spool, tmp_path / "store")
    assert (done.returncode, "chmod go-w" in json.loads(done.stdout)["error"]) == (UNREACHABLE, True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_spool_of_another_user_is_refused(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    fill(spool, range(4))
    os.chown(spool, 65534, 65534)
    with pytest.raises(IolensError, match=r"belongs to nobody, and this runs as root: chown root "):
        ship(spool, str(tmp_path / "store"))
    link = tmp_path / "link"
    link.symlink_to(fill(tmp_path / "own", range(4))[0].parent)
    os.lchown(link, 65534, 65534)
    with pytest.raises(IolensError, match="a symbolic link made by nobody"):
        open_spool(link)


def test_a_damaged_line_costs_itself_and_the_evidence_is_kept(tmp_path: Path) -> None:
    spool, store = tmp_path / "spool", tmp_path / "store"
    path = fill(spool, range(8))[0]
    content = path.read_bytes().splitlines(keepends=True)
    content[3] = content[3][:20] + b"?" + content[3][21:]
    path.write_bytes(b"".join(content))
    done = ship(spool, str(store))
    assert (done.shipped, done.bad, done.refused) == (1, 1, 1)
    assert truth.total(store) == 70
    assert (spool / "bad" / path.name).read_bytes() == b"".join(content)


def test_a_torn_end_is_reported_and_nothing_is_kept(tmp_path: Path) -> None:
    spool, store = tmp_path / "spool", tmp_path / "store"
    path = fill(spool, range(8))[0]
    path.write_bytes(path.read_bytes()[:-20])
    done = ship(spool, str(store))
    assert (done.shipped, done.bad, done.refused) == (1, 0, 1)
    assert "torn last line" in done.reasons[0]
    assert truth.total(store) == 60
    assert waiting(spool) == []


def test_samples_that_come_too_late_are_put_aside_for_a_rebuild(tmp_path: Path) -> None:
    spool, store = tmp_path / "spool", tmp_path / "store"
    _, second, _ = fill(spool, range(4), range(4, 8), range(8, 12))
    kept = second.read_bytes()
    second.unlink()
    ship(spool, str(store))
    second.write_bytes(kept)
    done = ship(spool, str(store))
    assert (done.late, done.older, done.left) == (1, 4, 0)
    assert truth.total(store) == 110
    assert (spool / "late" / second.name).read_bytes() == kept


def test_problems_alone_are_shipped_too(tmp_path: Path) -> None:
    spool, store = tmp_path / "spool", tmp_path / "store"
    spool.mkdir()
    header = SegmentHeader("oss1", "r1", 1)
    tick = Tick(T0, [Problem("/sys/kernel/debug", None, "cannot be read: Permission denied")])
    (spool / f"{header.stem}.seg").write_bytes(encode_header(header) + encode_tick(tick))
    done = ship(spool, str(store))
    assert (done.shipped, done.bad, done.refused) == (1, 0, 1)
    assert waiting(spool) == []


def test_a_store_that_is_gone_is_waited_for_and_not_begun_anew(tmp_path: Path) -> None:
    spool, store = tmp_path / "spool", tmp_path / "store"
    fill(spool, range(4))
    ship(spool, str(store))
    store.rename(tmp_path / "away")
    fill(spool, range(4, 8), run="r2")
    with pytest.raises(StoreError, match="the store that was here is gone"):
        ship(spool, str(store))
    done = truth.ship(spool, store)
    assert done.returncode == UNREACHABLE
    assert json.loads(done.stdout)["left"] == 1
    (tmp_path / "away").rename(store)
    assert ship(spool, str(store)).shipped == 1
    assert truth.total(store) == 70


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_store_that_may_not_be_written_is_waited_for(tmp_path: Path) -> None:
    spool, store = tmp_path / "spool", tmp_path / "store"
    fill(spool, range(4))
    store.mkdir(mode=0o500)
    with pytest.raises((StoreError, OSError)):
        ship(spool, str(store))
    assert len(waiting(spool)) == 1


def test_a_store_whose_place_is_a_file_is_waited_for(tmp_path: Path) -> None:
    spool, store = tmp_path / "spool", tmp_path / "store"
    fill(spool, range(4))
    store.write_text("not a directory")
    done = truth.ship(spool, store)
    assert done.returncode == UNREACHABLE, done.stderr
    store.unlink()
    assert truth.ship(spool, store).returncode == 0
    assert waiting(spool) == []


def test_a_second_shipper_leaves_the_first_alone(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    fill(spool, range(4))
    with locked(spool, SHIP_LOCK):
        assert ship(spool, str(tmp_path / "store")).left == 1


def test_a_taken_segment_stays_taken_until_it_is_in_the_store(tmp_path: Path) -> None:
    spool, store = tmp_path / "spool", tmp_path / "store"
    fill(spool, range(4), range(4, 8))
    assert [path.suffix for path in take(spool, 1)] == [".taken"]  # and then it was killed
    with Spool.open(spool, 1 << 20) as opened:
        opened.thin()
    assert ship(spool, str(store)).shipped == 2
    assert truth.total(store) == 70


def test_pauses_grow_while_the_store_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    shipping = Shipping(tmp_path, "store", 300.0, chance=random.Random(1))
    monkeypatch.setattr(Shipping, "command", lambda self: ["echo", '{"error": "store away", "left": 1}'])
    pauses: list[float] = []
    for _ in range(9):
        now[0] = shipping.next_at
        assert shipping.is_due
        shipping.start()
        assert not shipping.is_due
        shipping.wait()
        pauses.append(shipping.next_at - now[0])
    expected = [min(FIRST_PAUSE_S * 2**number, 900.0) for number in range(9)]
    assert all(0.8 * nominal <= pause <= 1.2 * nominal for nominal, pause in zip(expected, pauses, strict=True))
    assert len(set(pauses)) == 9
    monkeypatch.setattr(Shipping, "command", lambda self: ["echo", '{"error": "", "left": 0}'])
    shipping.start()
    shipping.wait()
    assert shipping.failures == 0


def test_a_shipper_that_dies_without_a_word_counts_as_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Shipping, "command", lambda self: ["sh", "-c", "kill -9 $$"])
    shipping = Shipping(tmp_path, "store", 300.0)
    shipping.start()
    said = shipping.wait()
    assert said is not None
    assert "ended with code -9" in said["error"]
    assert shipping.next_at > time.monotonic()


def at(number: int, second: float) -> Sample:
    """The sample of that number, by a clock that shows `second`."""
    time_us = T0 + round(second * S)
    return replace(sample(number), time_us=time_us, snapshot_us=time_us)


def write_segment(directory: Path, sequence: int, samples: list[Sample]) -> Path:
    directory.mkdir(exist_ok=True)
    header = SegmentHeader("oss1", "r1", sequence)
    path = directory / f"{header.stem}.seg"
    path.write_bytes(encode_header(header) + b"".join(encode_tick(Tick(item.time_us, [item])) for item in samples))
    return path


def test_a_clock_set_back_makes_no_segment_late_and_loses_nothing(tmp_path: Path) -> None:
    """Set back by 40 s inside the second segment: the third is behind what is stored as a whole, and is not late."""
    spool, store = tmp_path / "spool", tmp_path / "store"
    clocks = [*range(0, 60, 5), *range(20, 100, 5)]
    samples = [at(number, second) for number, second in enumerate(clocks)]
    for sequence, piece in enumerate((slice(8), slice(8, 15), slice(15, 19), slice(19, 28)), 1):
        write_segment(spool, sequence, samples[piece])
    done = ship(spool, str(store))
    assert (done.shipped, done.late, done.older, done.left) == (4, 0, 0, 0)
    assert truth.total(store) == 10 * (len(clocks) - 1)
    assert truth.breaks(store) == []
    assert sum(row["duration_s"] for row in truth.rows(store, "target_io")) == 5 * (len(clocks) - 1)


def test_segments_an_older_iolens_put_into_late_lower_nothing_when_rebuilt(tmp_path: Path) -> None:
    """It took a segment behind a clock that was set back for late; what moved was counted with the next later tick."""
    spool, store = tmp_path / "spool", tmp_path / "store"
    fill(spool, range(20), range(20, 26), range(26, 27))[1].unlink()
    ship(spool, str(store))
    before = truth.rows(store, "target_io")
    write_segment(spool / "late", 2, [at(number, 5 * (number - 10)) for number in range(20, 26)])
    tally = Store(store).ingest(SOURCE.captures([spool / "late"], ReadOptions()), "agent", rebuild=True)
    assert (tally.set_back, tally.unplaced, tally.resets) == (6, 0, 0)
    assert truth.rows(store, "target_io") == before
    assert truth.total(store) == 260


def test_one_whose_agent_was_killed_ends_quietly() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    words = "from iolens.agent.sampling.shipper import Shipment, tell; tell(Shipment(shipped=1))"
    done = subprocess.run([sys.executable, "-c", words], stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")
