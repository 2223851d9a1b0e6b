"""Spool segments: every line stands alone, and a segment may come again, late, cut or damaged."""

from __future__ import annotations

import binascii
import json
import os
import time
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iolens.errors import InputError
from iolens.records import CounterSet, Item, Problem, Row, Sample
from iolens.sources import recognise
from iolens.sources.reading.options import ReadOptions
from iolens.sources.spool import (
    SOURCE,
    Segment,
    SegmentHeader,
    Tick,
    check,
    decode_tick,
    encode_header,
    encode_tick,
)
from iolens.store.readers import guarded
from iolens.store.store import Store

T0 = 1_700_000_000_000_000
S = 1_000_000


def sample(number: int, count: int, target: str = "fs-OST0000") -> Sample:
    time_us = T0 + number * 5 * S
    sets = {"": CounterSet({"write_bytes": count, "write_ops": number}, T0 - S)}
    return Sample("target_io", "fs", target, time_us, time_us + 1234, sets, {"target_kind": "ost"})


def tick(number: int, count: int | None = None) -> Tick:
    row = Row("target_capacity", {"time": T0 + number * 5 * S, "filesystem": "fs", "target": "x", "used_bytes": None})
    return Tick(T0 + number * 5 * S, [sample(number, 10 * number if count is None else count), row])


def segment(folder: Path, sequence: int, numbers: range, ending: str = ".seg", run: str = "r1") -> Path:
    header = SegmentHeader("oss1", run, sequence)
    path = folder / f"{header.stem}{ending}"
    path.write_bytes(encode_header(header) + b"".join(encode_tick(tick(number)) for number in numbers))
    return path


def items(path: Path) -> list[Item]:
    return list(Segment.open(path).items())


def samples(path: Path) -> list[int]:
    return [(item.time_us - T0) // (5 * S) for item in items(path) if isinstance(item, Sample)]


def problems(path: Path) -> list[str]:
    return [str(item) for item in items(path) if isinstance(item, Problem)]


def test_a_tick_comes_back_as_it_was() -> None:
    problem = Problem("/proc/x", None, "cannot be read: Permission denied")
    jobs = Sample(
        "job_io",
        "fs",
        "fs-MDT0000",
        T0,
        T0,
        {'a "job" é\\x00': CounterSet({"open": 1 << 63}), "": CounterSet({"open": 1})},
        {},
    )
    whole = Tick(T0, [*tick(3).items, problem, jobs])
    payload = encode_tick(whole)[9:-1]
    assert decode_tick(payload) == whole


def test_a_segment_and_a_directory_of_them_are_recognised(tmp_path: Path) -> None:
    path = segment(tmp_path, 1, range(3))
    assert recognise(path) is SOURCE
    assert recognise(tmp_path) is SOURCE


def test_cut_at_every_byte_of_the_last_line(tmp_path: Path) -> None:
    path = segment(tmp_path, 1, range(4))
    whole = path.read_bytes()
    last = len(encode_tick(tick(3)))
    begin = len(whole) - last
    for length in range(last + 1):
        path.write_bytes(whole[: begin + length])
        complete = length >= last - 1  # only the newline is missing
        assert samples(path) == ([0, 1, 2, 3] if complete else [0, 1, 2])
        torn = [] if complete or not length else [f"{path}:5: byte {begin}: torn last line, {length} bytes skipped"]
        assert problems(path) == torn


@settings(max_examples=300)
@given(place=st.integers(0, 10_000), value=st.integers(0, 255))
def test_a_damaged_byte_costs_its_line_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, place: int, value: int
) -> None:
    path = segment(tmp_path_factory.mktemp("spool"), 1, range(5))
    whole = bytearray(path.read_bytes())
    place %= len(whole)
    unchanged = whole[place] == value
    lines_before = bytes(whole[:place]).count(b"\n")
    newline = whole[place] == 0x0A
    whole[place] = value
    path.write_bytes(whole)
    hit = None if newline or lines_before == 0 else lines_before - 1  # the header is repeated by the file's name
    assert samples(path) == [number for number in range(5) if unchanged or number != hit]
    if not unchanged and not newline and hit is not None:
        assert f"{path}:{lines_before + 1}: byte " in problems(path)[0]
        assert check(path)[0] == 4


def test_lines_after_a_cut_one_are_found(tmp_path: Path) -> None:
    path = segment(tmp_path, 1, range(2))
    half = encode_tick(tick(2))[:50]
    path.write_bytes(path.read_bytes() + half + encode_tick(tick(3)) + encode_tick(tick(4)))
    assert samples(path) == [0, 1, 3, 4]
    assert len(problems(path)) == 1


def test_without_header_and_name_it_is_no_segment(tmp_path: Path) -> None:
    path = tmp_path / "something.seg"
    path.write_bytes(encode_tick(tick(1)))
    with pytest.raises(InputError, match="neither its first line nor its name"):
        Segment.open(path)


def test_an_item_of_an_unknown_table_is_a_problem(tmp_path: Path) -> None:
    path = segment(tmp_path, 1, range(2))
    path.write_bytes(path.read_bytes() + encode_tick(Tick(T0, [Row("of_tomorrow", {"time": T0})])))
    offset = sum(len(line) for line in path.read_bytes().splitlines(keepends=True)[:-1])
    assert problems(path) == [f"{path}:4: byte {offset}: table 'of_tomorrow' is not known"]


def raw_tick(text: bytes, *, repeated: int = 1) -> bytes:
    """A line with the right checksum around any text; repeated, it is deflated once and its packed bytes repeated."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    piece = packer.compress(text) + packer.flush(zlib.Z_FULL_FLUSH)
    packed = zlib.compress(text) if repeated == 1 else b"\x78\x9c" + piece * repeated + packer.flush() + bytes(4)
    payload = binascii.b2a_base64(packed, newline=False)
    return b"%08x %b\n" % (zlib.crc32(payload), payload)


def plain_tick(*items: object, at: object = T0) -> bytes:
    return raw_tick(json.dumps({"t": at, "i": items}).encode())


SETS = {"": [None, {"write_bytes": 1}]}
NOT_TICKS = {
    "RecursionError": raw_tick(b'["and so on", ' * 20_000),
    "nothing but brackets": raw_tick(b'{"t": 1, "i": [' + b"[]," * 30_000 + b"0]}"),
    "inflates beyond 32 MiB": raw_tick(bytes(1 << 20), repeated=33),
    "Exceeds the limit": raw_tick(b'{"t": ' + b"9" * 5000 + b', "i": []}'),
    "a counter of more than 64 bits": plain_tick([0, "target_io", "fs", "x", 0, 0, {"": [None, {"a": 2**64}]}, {}]),
    "a counter that is no count": plain_tick([0, "target_io", "fs", "x", 0, 0, {"": [None, {"a": "many"}]}, {}]),
    "a time that no clock shows": plain_tick([0, "target_io", "fs", "x", 10**18, 0, SETS, {}]),
    "a name that is no text": plain_tick([0, "target_io", ["fs"], "x", 0, 0, SETS, {}]),
    "a bin without direction": plain_tick([0, "target_histograms", "fs", "x", 0, 0, {"h": [None, {"a": 1}]}, {}]),
    "a value that no column holds": plain_tick([1, "target_capacity", {"time": T0, "used_bytes": 2**70}]),
    "TypeError": plain_tick(None),
    "not an item": plain_tick([7]),
}


@pytest.mark.parametrize("reason", NOT_TICKS)
def test_a_line_with_the_right_checksum_that_is_no_tick_costs_itself(tmp_path: Path, reason: str) -> None:
    path = segment(tmp_path, 1, range(2))
    path.write_bytes(path.read_bytes() + NOT_TICKS[reason] + encode_tick(tick(2)))
    assert samples(path) == [0, 1, 2]
    (problem,) = problems(path)
    assert reason in problem
    assert len(problem) < 600
    unread: list[Problem] = []
    assert len(list(Segment.open(path).items(unread))) == 7
    assert [str(item) for item in unread] == [problem]


def test_a_segment_is_read_itself_and_not_what_a_link_points_to(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    real = segment(tmp_path / "elsewhere", 1, range(2))
    link = tmp_path / real.name
    link.symlink_to(real)
    with pytest.raises(InputError, match="a symbolic link, which is not followed"):
        Segment.open(link)
    os.mkfifo(tmp_path / "oss1~r1~00000002.seg")
    refused = [str(item) for capture in SOURCE.captures([tmp_path], ReadOptions()) for item in guarded(capture)]
    assert len(refused) == 2
    assert all("symbolic link" in item or "not a regular file" in item for item in refused)


def test_a_header_longer_than_any_is_not_held(tmp_path: Path) -> None:
    path = tmp_path / "oss1~r1~00000001.seg"
    path.write_bytes(b"x" * 1_000_000 + b"\n" + encode_tick(tick(1)))
    assert samples(path) == [1]  # its name tells the segment


def load(store: Store, *paths: Path) -> dict[str, int]:
    tally = store.ingest(SOURCE.captures(paths, ReadOptions()), SOURCE.stored_as)
    return {"present": tally.already_present, "samples": tally.samples, "older": tally.older, "refused": tally.refused}


def written(store: Store) -> int:
    handle = store.tables.load("target_io")
    assert handle is not None
    return int(sum(handle.to_pyarrow_table().column("write_bytes").to_pylist()))


def test_segments_in_order_and_again(tmp_path: Path) -> None:
    paths = [segment(tmp_path, number, range(4 * number, 4 * number + 4)) for number in range(1, 4)]
    store = Store(tmp_path / "store")
    assert load(store, tmp_path) == {"present": 0, "samples": 12, "older": 0, "refused": 0}
    assert written(store) == 10 * 11
    assert load(store, *reversed(paths))["present"] == 3
    assert written(store) == 10 * 11


def test_segments_out_of_order_lose_no_byte_and_none_is_taken_for_another(tmp_path: Path) -> None:
    first, second, third = (segment(tmp_path, number, range(4 * number, 4 * number + 4)) for number in range(1, 4))
    store = Store(tmp_path / "store")
    load(store, first)
    load(store, third)
    late = load(store, second)  # its bytes are in the interval from first to third
    assert late == {"present": 0, "samples": 4, "older": 4, "refused": 0}
    assert written(store) == 10 * 11


def test_segments_of_another_run_begin_at_one_again(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    load(store, segment(tmp_path, 1, range(4)))
    assert load(store, segment(tmp_path, 1, range(4, 8), run="r2"))["present"] == 0
    assert written(store) == 70


def test_an_unfinished_segment_is_left_to_its_agent_unless_named(tmp_path: Path) -> None:
    segment(tmp_path, 1, range(4))
    growing = segment(tmp_path, 2, range(4, 6), ".open")
    store = Store(tmp_path / "store")
    assert load(store, tmp_path)["samples"] == 4
    assert load(store, growing)["samples"] == 2
    finished = segment(tmp_path, 2, range(4, 8))
    growing.unlink()
    assert load(store, finished) == {"present": 0, "samples": 4, "older": 0, "refused": 0}
    assert written(store) == 70


def test_an_unfinished_segment_nobody_writes_is_pointed_out(tmp_path: Path) -> None:
    growing = segment(tmp_path, 1, range(2), ".open")
    os.utime(growing, (time.time() - 7200,) * 2)
    captures = list(SOURCE.captures([tmp_path], ReadOptions()))
    assert [str(item) for capture in captures for item in capture.items()] == [
        f"{growing}: unfinished and no longer written: name this file itself to load it"
    ]
