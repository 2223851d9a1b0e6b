"""The one opener: lines, gzip and padding within bounds, and what came before damage is kept."""

from __future__ import annotations

import gzip
import io
import os
import random
import re
import subprocess
import sys
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iolens.errors import InputError
from iolens.records import Problem
from iolens.sources import recognise
from iolens.sources.reading import bounded_input
from iolens.sources.reading.bounded_input import (
    Line,
    LongLine,
    bounded_lines,
    head_of,
    numbered_lines,
    opened,
    parameter_bytes,
    whole_text,
)

TEXT = b"".join(b"line %d of a text\n" % number for number in range(30_000))


def content(path: Path) -> bytes:
    with opened(path) as stream:
        return stream.read()


def numbered(path: Path, longest: int = 1 << 20) -> list[Any]:
    return list(numbered_lines(path, longest))


@pytest.mark.parametrize("text", [b"", b"x", TEXT])
def test_gzip_of_any_kind_is_unpacked(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "a.gz"
    for packed in (
        gzip.compress(text),
        gzip.compress(text[:7]) + gzip.compress(text[7:]),  # members, as `cat a.gz b.gz` makes them
        gzip.compress(text) + bytes(513),  # padded, as a tape or a block device leaves it
        with_header(text, name=b"some name.txt", comment=b"a remark", extra=b"BC\x02\x00xy"),
    ):
        path.write_bytes(packed)
        assert content(path) == text
        assert [item.text for item in numbered(path)] == text.decode().splitlines()


def with_header(text: bytes, *, name: bytes, comment: bytes, extra: bytes) -> bytes:
    """All that a header may have."""
    plain = gzip.compress(text, mtime=0)
    head = plain[:3] + bytes([2 | 4 | 8 | 16]) + plain[4:10]
    return head + len(extra).to_bytes(2, "little") + extra + name + b"\0" + comment + b"\0" + b"\0\0" + plain[10:]


@settings(max_examples=150, derandomize=True)
@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=4))
def test_it_is_what_the_standard_library_reads(text: bytes, cuts: list[int]) -> None:
    ends = sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})
    packed = b"".join(gzip.compress(text[begin:end]) for begin, end in pairwise(ends))
    packed = packed or gzip.compress(b"")
    assert bounded_input.inflated(io.BytesIO(packed)).read() == gzip.decompress(packed) == text


def test_what_came_before_damage_is_kept_and_the_damage_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    packed = gzip.compress(TEXT)
    damages = {
        "ends within its gzip data": packed[: len(packed) * 2 // 3],
        "checksum": packed[:-6] + b"\0" + packed[-5:],
        "not gzip data": packed + b"and something else",
    }
    for reason, damaged in damages.items():
        path.write_bytes(damaged)
        *lines, problem = numbered(path)
        assert isinstance(problem, Problem)
        assert reason in problem.reason
        assert len(lines) > (10_000 if reason.startswith("ends") else 29_999)
        assert lines[5_000] == Line(5001, "line 5000 of a text")


def test_a_line_that_is_too_long_is_skipped_with_its_number(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\n" + b"x" * 5000 + b"\nthree\n" + b"y" * 1_000_000 + b"\nfive\n" + b"z" * 1001)
    result = numbered(path, longest=1000)
    assert [item.text for item in result if isinstance(item, Line)] == ["one", "three", "five"]
    assert [(item.line, re.findall(r"\d+", item.reason)[0]) for item in result if isinstance(item, Problem)] == [
        (2, "5001"),
        (4, "1000001"),
        (6, "1001"),
    ]


@settings(max_examples=300, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 3))), st.integers(1, 50), st.integers(0, 1000))
def test_lines_are_cut_alike_however_the_blocks_fall(shape: list[tuple[int, int]], longest: int, seed: int) -> None:
    text = b"".join(b"a" * length + b"\n" * ends for length, ends in shape)
    expected = [line if len(line) <= longest else LongLine(len(line)) for line in io.BytesIO(text)]
    assert list(bounded_lines(Trickle(text, random.Random(seed)), longest)) == expected  # type: ignore[arg-type]


class Trickle:
    """A stream that gives a few bytes at a time."""

    def __init__(self, text: bytes, chance: random.Random) -> None:
        self.stream, self.chance = io.BytesIO(text), chance

    def read1(self, size: int) -> bytes:
        return self.stream.read(self.chance.randint(1, 30))

    read = read1


def test_zeros_around_lines_are_padding(tmp_path: Path) -> None:
    path = tmp_path / "kbytesfree"
    path.write_bytes(b"61016632\n" + bytes(4087))
    assert parameter_bytes(path) == b"61016632\n"
    assert [item.text for item in numbered(path)] == ["61016632", ""]
    path.write_bytes((b"a=1\n" + bytes(100)) * 2)  # two such copies, one after the other
    assert [item.text for item in numbered(path)] == ["a=1", "a=1", ""]
    path.write_bytes(b"a=1\0\0\nb=2\0\0\0")
    assert [item.text for item in numbered(path)] == ["a=1", "b=2"]


def test_zeros_within_a_line_stay(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"1\x002\n")
    assert numbered(path) == [Line(1, "1\x002")]


def test_a_text_that_is_held_whole_has_an_end(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"ab\r\ncd\xff\0\0")
    assert whole_text(path) == ("ab\ncd\\xff", None)
    path.write_bytes(b"x" * (3 << 20))
    text, trouble = whole_text(path, 1 << 20)
    assert (len(text), trouble) == (1 << 20, "longer than 1 MiB: the rest is not read")


@pytest.mark.parametrize("kind", ["pipe", "directory", "device", "missing"])
def test_what_is_no_regular_file_is_refused_and_never_waited_for(tmp_path: Path, kind: str) -> None:
    path = {"device": Path("/dev/zero")}.get(kind, tmp_path / "a")
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    for read in (opened, head_of):
        with pytest.raises(InputError, match=r"regular file|Is a directory|No such file"):
            read(path)
    with pytest.raises(OSError, match=r"regular file|Is a directory|No such file"):
        parameter_bytes(path)
    if kind == "pipe":
        with pytest.raises(InputError, match="not a regular file: save it to one first"):
            recognise(path)


def test_a_parameter_longer_than_any_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_input, "LONGEST_PARAMETER", 1 << 20)
    path = tmp_path / "job_stats"
    path.write_bytes(bytes(2 << 20))
    with pytest.raises(OSError, match="longer than 1 MiB"):
        parameter_bytes(path)


# --- bombs


def bomb(path: Path, size: int, piece: bytes) -> Path:
    """A gzip file of `piece` again and again: each is flushed, so that its packed bytes can be repeated as they are."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = packer.compress(piece) + packer.flush(zlib.Z_FULL_FLUSH)
    path.write_bytes(gzip.compress(b"")[:10] + packed * (size // len(piece)) + packer.flush() + bytes(8))
    return path


def test_what_inflates_beyond_reason_is_refused_early(tmp_path: Path) -> None:
    path = bomb(tmp_path / "bomb.gz", 200 << 20, bytes(1 << 20))
    given: list[int] = []
    with opened(path) as stream, pytest.raises(OSError, match="inflates beyond 800 times its size: unpack it first"):
        given.extend(len(block) for block in iter(lambda: stream.read(1 << 16), b""))
    assert sum(given) <= bounded_input.RATIO_FROM


def test_a_repetitive_capture_is_no_bomb(tmp_path: Path) -> None:
    """An idle server, snapshot by snapshot: the most repetitive thing that is real."""
    names = ["statfs", "ping", "connect", "getattr", "open", "close"]
    counters = b"".join(f"{name:25} 0 samples [reqs]\n".encode() for name in names)
    path = tmp_path / "idle.gz"
    stamps = range(1_600_000_000, 1_600_000_000 + 5 * 30_000, 5)
    text = b"".join(
        b"obdfilter.a-OST0000.stats=\nsnapshot_time %d.0 secs.nsecs\n%b" % (stamp, counters) for stamp in stamps
    )
    path.write_bytes(gzip.compress(text))
    assert content(path) == text
    assert len(text) / path.stat().st_size < bounded_input.LARGEST_RATIO / 5


def test_members_and_bytes_have_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"") * 1001)
    assert content(path) == b""
    monkeypatch.setattr(bounded_input, "MOST_MEMBERS", 1000)
    with pytest.raises(OSError, match="more than 1000 gzip members"):
        content(path)
    monkeypatch.setattr(bounded_input, "LARGEST_INFLATED", 10_000)
    path.write_bytes(gzip.compress(random.Random(1).randbytes(20_000)))
    with pytest.raises(OSError, match="inflates beyond"):
        content(path)


PEAK = """
import re, sys
from pathlib import Path
from iolens.records import Problem
from iolens.sources.reading.options import ReadOptions
from iolens.sources import get_source
from iolens.store.readers import guarded, listed
options = ReadOptions("scratch", "scratch-OST0000", "UTC", 5.0)
for name in sys.argv[2:]:
    items = [item for one in listed(get_source(name).captures([Path(sys.argv[1])], options)) for item in guarded(one)]
    assert items and all(isinstance(item, Problem) for item in items), (name, items)
    assert not any("please report" in item.reason for item in items), (name, items)
    peak = re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())  # ru_maxrss begins at the parent's
    print(name, int(peak[1]) >> 10, flush=True)
"""
LINE_BY_LINE = (
    "lustre-lctl", "ltop", "lfs-df", "mmperfmon", "collectd", "controller", "diskstats", "iostat", "smartctl", "find",
    "gpfs-policy", "size-histogram", "rbh-report", "tokio-csv", "spool", "lmt-db", "h5lmt",
)  # fmt: skip
AS_A_WHOLE = ("ior", "mdtest", "fio", "nvme", "isdct", "scan")


@pytest.mark.parametrize(("sources", "most_mib"), [(LINE_BY_LINE, 300), (AS_A_WHOLE, 500)])
def test_two_megabytes_that_inflate_to_one_line_of_two_gibibytes_take_little_memory(
    tmp_path: Path, sources: tuple[str, ...], most_mib: int
) -> None:
    """Peak memory of a process that reads it with one source after the other; its libraries take 200 MiB of that."""
    path = bomb(tmp_path / "two-gibibytes.gz", 2 << 30, b" " * (1 << 20))
    assert path.stat().st_size < 3 << 20
    done = subprocess.run([sys.executable, "-c", PEAK, path, *sources], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert int(done.stdout.split()[-1]) < most_mib, done.stdout
