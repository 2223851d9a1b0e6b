"""Listings of `find -printf`: against a count one by one, odd names, hard links, other formats, damage."""

from __future__ import annotations

import gzip
import os
import pickle
import re
import shutil
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from iolens.config import ProjectRule
from iolens.errors import InputError
from iolens.records import Note, Problem
from iolens.sources import get_source, recognise
from iolens.sources.contents.find import KNOWN, RECOMMENDED
from iolens.sources.contents.inode_counts import ENDS
from iolens.sources.contents.listings import TYPE_LETTERS
from iolens.sources.reading.options import ReadOptions
from tests.sources.contents_rows import Sums, sums_of, totals_of
from tests.sources.stored import ingest, items_of, problems_of, rows_of, stored

AT = datetime(2026, 1, 5, 12, tzinfo=UTC)
NOW = int(AT.timestamp())
OPTIONS = ReadOptions("scratch", at=AT)
PLAIN = r"%y %s %b %i %A@ %T@ %p\n"
SMALL = (
    "d 4096 8 11 1767600000.5 1767500000.0 /scratch\n"
    "f 0 0 12 1767600000.0 1767600000.0 /scratch/a name with blanks\n"
    "f 5000 16 13 1600000000.25 1500000000.0 /scratch/ada/x\n"
    "l 24 0 14 -5.5 1767600000.0 /scratch/ada/link\n"
)
Entry = dict[str, Any]


def one_by_one(entries: Iterable[Entry]) -> Sums:
    """The definition: a bin holds what is larger than the end before and at most its own; a linked file counts once."""
    numbers: dict[Any, list[int]] = {}
    seen = set()
    for entry in entries:
        if entry.get("inode") is not None and entry["type"] != "d":
            if entry["inode"] in seen:
                continue
            seen.add(entry["inode"])
        group = (entry.get("owner"), entry.get("project"), TYPE_LETTERS[entry["type"]])
        values: dict[str, int] = {"size": entry["size"]}
        values |= {name: NOW - entry[name] for name in ("atime", "mtime") if name in entry}
        for histogram, value in values.items():
            ends = [None, *ENDS[histogram], None]
            place = sum(value > end for end in ENDS[histogram])
            sums = numbers.setdefault((*group, histogram, ends[place], ends[place + 1]), [0, 0, 0])
            for position, number in enumerate((1, entry["size"], entry.get("space", 0))):
                sums[position] += number
    return {key: (sums[0], sums[1], sums[2]) for key, sums in numbers.items()}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "listing"


def test_a_listing_becomes_histograms_and_no_path(file: Path) -> None:
    file.write_text(SMALL)
    assert recognise(file).name == "find"
    items = items_of("find", file, OPTIONS)
    assert problems_of(items) == []
    assert sums_of(items) == one_by_one(
        [
            {"type": "d", "size": 4096, "space": 4096, "atime": 1767600000, "mtime": 1767500000},
            {"type": "f", "size": 0, "space": 0, "atime": 1767600000, "mtime": 1767600000},
            {"type": "f", "size": 5000, "space": 8192, "atime": 1600000000, "mtime": 1500000000},
            {"type": "l", "size": 24, "space": 0, "atime": -5, "mtime": 1767600000},
        ]
    )
    assert "blanks" not in repr([item.columns for item in items if hasattr(item, "columns")])


def test_a_real_listing_counted_line_by_line(shared_data: Path) -> None:
    path = shared_data / "fsstats" / "find_printf_usr_share.txt.gz"
    entries = []
    for line in gzip.decompress(path.read_bytes()).decode().splitlines():
        kind, size, blocks, inode, atime, mtime, _ = line.split(" ", 6)
        times = {"atime": int(atime.partition(".")[0]), "mtime": int(mtime.partition(".")[0])}
        entries.append({"type": kind, "size": int(size), "space": int(blocks) * 512, "inode": inode, **times})
    assert recognise(path).name == "find"
    items = items_of("find", path, OPTIONS)
    assert problems_of(items) == []
    assert sums_of(items) == one_by_one(entries)
    assert {name: count for name, (count, _) in totals_of(items).items()} == {
        "dir": 2144,
        "file": 17179,
        "symlink": 677,
    }


def test_a_real_list_of_sizes(shared_data: Path) -> None:
    path = shared_data / "fsstats" / "sizes_only_usr_include.txt.gz"
    sizes = [int(line) for line in gzip.decompress(path.read_bytes()).split()]
    assert recognise(path).name == "find"
    items = items_of("find", path, OPTIONS)
    assert totals_of(items) == {"file": (len(sizes), sum(sizes))}
    assert {key[3] for key in sums_of(items)} == {"size"}
    assert all(space is None for _, _, space in sums_of(items).values())


names = st.binary(min_size=1, max_size=12).map(lambda each: each.replace(b"\0", b"n").replace(b"/", b"s"))
entries_of_trees = st.lists(
    st.fixed_dictionaries(
        {
            "type": st.sampled_from("fdlbcps"),
            "size": st.integers(0, 2**63 - 1) | st.integers(0, 70_000),
            "blocks": st.integers(0, (2**63 - 1) // 512) | st.integers(0, 1000),
            "inode": st.integers(0, 2**64 - 1) | st.integers(1, 9),
            "owner": st.sampled_from(["ada", "bob", "a_user_with_a_long_name", "1234", "ünal"]),
            "atime": st.integers(-(10**9), 10**10),
            "mtime": st.integers(0, NOW + 10**6),
            "project": st.sampled_from(["climate", "fusion", None]),
            "name": names,
        }
    ),
    min_size=1,
    max_size=40,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(entries=entries_of_trees)
def test_any_names_and_numbers(tmp_path: Path, entries: list[Entry]) -> None:
    """With NUL at their ends records hold any name: newlines, tabs, bytes that are no text."""
    lines = []
    for entry in entries:
        entry["space"] = entry["blocks"] * 512
        place = b"/scratch/" + (entry["project"].encode() + b"/" if entry["project"] else b"")
        numbers = "\t".join(str(entry[name]) for name in ("type", "size", "blocks"))
        rest = "\t".join([str(entry["inode"]), entry["owner"], f"{entry['atime']}.25", f"{entry['mtime']}.0"])
        path = place if entry["project"] is None else place + entry["name"]
        lines.append(f"{numbers}\t2\t{rest}\t".encode() + path + b"\0")
    file = tmp_path / "listing.gz"
    file.write_bytes(gzip.compress(b"".join(lines)))
    options = ReadOptions("scratch", at=AT, projects=ProjectRule(("/scratch/{project}",)))
    items = items_of("find", file, options)
    assert sums_of(items) == one_by_one(entries)  # also those whose bytes are more than one row holds
    assert [item for item in items if isinstance(item, Problem) and not isinstance(item, Note)] == []


@pytest.mark.skipif(shutil.which("find") is None, reason="no find here")
def test_what_find_itself_prints(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "climate" / "deep").mkdir(parents=True)
    odd = [b"plain", b"two words", b"line\nbreak", b"tab\there", b"\xff\xfe", b"f 12 8 3 1.0 2.0 x", b"-- x"]
    for size, name in enumerate(odd):
        (tree / "climate" / os.fsdecode(name)).write_bytes(b"x" * size * 1000)
    os.link(tree / "climate" / "two words", tree / "climate" / "deep" / "again")
    (tree / "link").symlink_to("nowhere")
    os.mkfifo(tree / "pipe")
    listing = tmp_path / "listing"
    command = ["find", str(tree), "-xdev", "-printf", RECOMMENDED]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode != 0:
        pytest.skip("another find than GNU's")
    listing.write_bytes(done.stdout)
    entries = [entry_of(path, path.is_relative_to(tree / "climate")) for path in [tree, *tree.rglob("*")]]
    assert recognise(listing).name == "find"
    options = ReadOptions(
        "scratch", at=AT, projects=ProjectRule((f"{tree}/climate/{{project}}/none", f"{tree}/{{project}}"))
    )
    items = items_of("find", listing, options)
    assert {(None, *key[1:]): sums for key, sums in sums_of(items).items()} == one_by_one(entries)
    assert [str(item.reason) for item in items if isinstance(item, Note)] == [
        "1 more names of hard-linked files: each file counts once"
    ]


def entry_of(path: Path, in_project: bool) -> Entry:
    status = path.lstat()
    letter = {0o10: "f", 0o4: "d", 0o12: "l", 0o1: "p"}[status.st_mode >> 12]
    return {
        "type": letter,
        "size": status.st_size,
        "space": status.st_blocks * 512,
        "inode": status.st_ino,
        "atime": status.st_atime_ns // 10**9,
        "mtime": status.st_mtime_ns // 10**9,
        "project": "climate" if in_project else None,  # what lies beside the projects is in none
    }


def test_hard_links_count_once_across_the_parts_of_a_scan(tmp_path: Path) -> None:
    """With the number of links only linked files are remembered; without it, all."""
    linked = [
        ("a", "f\t10\t8\t2\t7\tada\t1.0\t1.0\t/s/one\0f\t10\t8\t1\t8\tada\t1.0\t1.0\t/s/two\0"),
        ("b", "f\t10\t8\t2\t7\tada\t1.0\t1.0\t/s/three\0f\t10\t8\t1\t8\tada\t1.0\t1.0\t/s/not a link\0"),
    ]
    for name, text in linked:
        (tmp_path / name).write_text(text)
    paths = [tmp_path / "a", tmp_path / "b"]
    (capture,) = get_source("find").captures(paths, OPTIONS)
    assert totals_of(list(capture.items())) == {"file": (3, 30)}
    assert capture.origin == f"{paths[0]} and 1 more"
    apart = [get_source("find").captures([path], OPTIONS) for path in paths]
    assert [totals_of(list(item.items())) for (item,) in apart] == [{"file": (2, 20)}] * 2

    (tmp_path / "a").write_text("f 1 8 7 1.0 1.0 /s/a\n" * 3)
    items = items_of("find", tmp_path / "a", OPTIONS)
    assert totals_of(items) == {"file": (1, 1)}
    assert "2 more names" in problems_of(items)[0]


def test_the_same_inode_number_on_two_devices_is_two_files(file: Path) -> None:
    file.write_text("".join(f"{device} 7 5\n" for device in (1, 2, 1)))
    options = ReadOptions("scratch", at=AT, settings={"format": "%D %i %s"})
    assert totals_of(items_of("find", file, options)) == {"file": (2, 10)}


@pytest.mark.parametrize(
    ("format_", "text", "expected"),
    [
        ("%s", "5\n7\n", {"file": (2, 12)}),
        (r"%p\t%s\t%y\n", "/a\tb\t5\tf\n/c\t6\td\n", {"file": (1, 5), "dir": (1, 6)}),
        (
            "%M|%s|%k",
            "-rw-r--r--|5|4\ndrwxr-xr-x|6|4\nprw-r--r--|0|0\n",
            {"file": (1, 5), "dir": (1, 6), "fifo": (1, 0)},
        ),
        ("%y,%m,%g,%s,%f", "f,644,staff,5,a,b\n", {"file": (1, 5)}),
        ("%s\t%T@\0", "5\t1.5\x006\t2\x00", {"file": (2, 11)}),
    ],
)
def test_other_formats(file: Path, format_: str, text: str, expected: dict[str, tuple[int, int]]) -> None:
    file.write_text(text)
    items = items_of("find", file, ReadOptions("scratch", at=AT, settings={"format": format_}))
    assert problems_of(items) == []
    assert totals_of(items) == expected
    spaces = {space for _, _, space in sums_of(items).values()}
    assert spaces == ({4096, 0} if "%k" in format_ else {None})


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"format": "%y %p"}, "%s among them"),
        ({"format": "%s %A+"}, "%A. cannot be read back"),
        ({"format": "%10s %p"}, "%s among them"),
        ({"format": "size=%s"}, "from its beginning"),
        ({"format": "%s %y\t%p"}, "one and the same character"),
        ({"format": "%s, %p"}, "one and the same character"),
        ({"format": "%s %p\\0 "}, "after the last directive"),
        ({"format": "%s %p %f"}, "names hold any character"),
        ({"format": "%s %k %b"}, "each field once"),
        ({"format": ""}, "%s among them"),
        ({"format": 7}, "in quotes"),
        ({"formt": "%s"}, "unknown setting"),
        ({"timezone": "Mars/Olympus"}, None),
    ],
)
def test_settings_that_make_no_sense(file: Path, settings_: dict[str, Any], message: str | None) -> None:
    file.write_text(SMALL)
    options = ReadOptions("scratch", at=AT, settings=settings_)
    if message is None:  # a zone is needed only where a name dates the listing
        assert items_of("find", file, options)
        return
    with pytest.raises(InputError, match=message):
        items_of("find", file, options)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("f 1 8 5 1.0 /short", "not a record of '%y %s %b %i %A@ %T@ %p"),
        ("x 1 8 5 1.0 1.0 /a", "type 'x' cannot be read"),
        ("ff 1 8 5 1.0 1.0 /a", "type 'ff'"),
        ("f 99999999999999999999 8 5 1.0 1.0 /a", "size '99999999999999999999'"),
        ("f 9223372036854775808 8 5 1.0 1.0 /a", "size '9223372036854775808'"),
        ("f 1 18014398509481984 5 1.0 1.0 /a", "allocation"),
        ("f -1 8 5 1.0 1.0 /a", "size '-1'"),
        ("f 1 8 5 yesterday 1.0 /a", "time of access 'yesterday'"),
        ("f 1 8 5 1.0 1.x /a", "time of modification '1.x'"),
        ("f 1 8  1.0 1.0 /a", "inode ''"),
        ("find: '/scratch/x': Permission denied", "not a record|cannot be read"),
    ],
)
def test_a_record_that_cannot_be_read_is_named_and_the_others_count(file: Path, line: str, reason: str) -> None:
    file.write_text(SMALL + line + "\n\n" + SMALL.splitlines()[0] + "\n")
    items = items_of("find", file, OPTIONS)
    (problem,) = [item for item in items if isinstance(item, Problem)]
    assert problem.line == 5
    assert re.search(reason, problem.reason), problem.reason
    assert totals_of(items) == {"dir": (2, 8192), "file": (2, 5000), "symlink": (1, 24)}


def test_names_with_newlines_cost_a_message_and_no_count(file: Path) -> None:
    file.write_text("f 1 8 5 1.0 1.0 /a\nb c\nf 2 8 6 1.0 1.0 /d\n")
    items = items_of("find", file, OPTIONS)
    assert totals_of(items) == {"file": (2, 3)}
    assert len(problems_of(items)) == 1


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_ends_of_lines(file: Path, ending: str) -> None:
    file.write_bytes(f"5{ending}17{ending}".encode())
    assert recognise(file).name == "find"
    assert totals_of(items_of("find", file, OPTIONS)) == {"file": (2, 22)}


def test_a_listing_that_was_cut(file: Path) -> None:
    """The last record may be cut anywhere, also within a number: it does not count."""
    file.write_text(SMALL[:-4])
    items = items_of("find", file, OPTIONS)
    assert totals_of(items) == {"dir": (1, 4096), "file": (2, 5000)}
    assert problems_of(items) == ["it ends in the middle of a record, which is left out"]
    file.write_bytes(gzip.compress((SMALL * 5000).encode())[:-2000])
    items = items_of("find", file, OPTIONS)
    assert any("cannot be read to its end" in problem for problem in problems_of(items))


def test_pieces_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "listing"
    file.write_text("".join(f"f {size} 8 {size} 1.0 {size}.0 /s/{'n' * (size % 90)}\n" for size in range(500)))
    whole = sums_of(items_of("find", file, OPTIONS))
    for size in (1, 7, 64, 1000):
        monkeypatch.setattr("iolens.sources.contents.record_fields.PIECE_BYTES", size)
        assert sums_of(items_of("find", file, OPTIONS)) == whole


def test_a_record_longer_than_any_path_is_skipped_and_what_follows_is_read(file: Path) -> None:
    file.write_bytes(SMALL.encode() + b"f" * (9 << 20) + b"\n" + b"f 7 0 99 1.0 1.0 /scratch/last\n")
    items = items_of("find", file, OPTIONS)
    assert problems_of(items) == [
        f"a record of {(9 << 20) + 1} bytes: longer than 1024 KiB, left out; is it ended by NUL?"
    ]
    assert totals_of(items)["file"] == (3, 5007)


def test_a_record_without_end_is_reported(file: Path) -> None:
    file.write_bytes(SMALL.encode() + b"f" * (5 << 20))
    items = items_of("find", file, OPTIONS)
    assert f"a record of {5 << 20} bytes" in problems_of(items)[0]
    assert totals_of(items)["file"] == (2, 5000)


@pytest.mark.parametrize("format_", KNOWN)
def test_every_known_format_is_recognised(file: Path, format_: str) -> None:
    values = {
        "%y": "f", "%s": "5", "%b": "8", "%n": "1", "%i": "9", "%u": "ada", "%A@": "1.5", "%T@": "2.5", "%p": "/a b"
    }  # fmt: skip
    record = format_.replace(r"\t", "\t").replace(r"\n", "\n").replace(r"\0", "\0")
    for directive, value in values.items():
        record = record.replace(directive, value)
    file.write_text(record * 3)
    assert recognise(file).name == "find"
    items = items_of("find", file, ReadOptions("scratch", at=AT))
    assert totals_of(items)["file"][0] == (1 if "%i" in format_ and "%n" not in format_ else 3)


def test_what_is_not_a_listing(file: Path) -> None:
    for text in ("12\n", "1\n2\nthree\n", "f 1\nf 2\n", "1.5\n2.5\n", "-1\n-2\n", "f 1 8 5 1.0 1.0 /a"):
        file.write_text(text)
        assert not get_source("find").recognises(file, text.encode()), text
    file.write_text("nothing of this kind\n")
    (capture,) = get_source("find").captures([file], OPTIONS)
    with pytest.raises(InputError, match="fit none of the known formats"):
        list(capture.items())


def test_the_time_of_a_listing(tmp_path: Path) -> None:
    """`--at`, else a day in the name, else when the file was written; what was not said is noted."""
    dated, undated = tmp_path / "scratch_20260104.txt", tmp_path / "scratch.txt"
    for path in (dated, undated):
        path.write_text(SMALL)
        os.utime(path, (1_700_000_000, 1_700_000_000))
    assert stored_times(dated, ReadOptions("scratch")) == {1767484800_000000}
    assert stored_times(dated, ReadOptions("scratch", timezone="America/Los_Angeles")) == {1767513600_000000}
    assert stored_times(undated, ReadOptions("scratch")) == {1_700_000_000_000000}
    assert stored_times(undated, OPTIONS) == {NOW * 1_000_000}
    assert "its name dates it 2026-01-04" in problems_of(items_of("find", dated, ReadOptions("scratch")))[0]
    assert "when the file was last written counts" in problems_of(items_of("find", undated, ReadOptions("scratch")))[0]
    captures = list(get_source("find").captures([undated, dated], ReadOptions("scratch")))
    assert [capture.origin for capture in captures] == [str(undated), str(dated)]  # in time order, not one scan


@pytest.mark.parametrize(
    ("name", "time"),
    [
        ("a_2026-01-04.txt", 1767484800), ("2026_01_04", 1767484800), ("x.2026.01.04.gz", 1767484800),
        ("20260104_20260104", 1767484800), ("20260104_20260105", None), ("20261304", None), ("120260104", None),
        ("2026-0104", None), ("18990101", None),
    ],
)  # fmt: skip
def test_days_in_names(tmp_path: Path, name: str, time: int | None) -> None:
    path = tmp_path / name
    path.write_text(SMALL)
    os.utime(path, (5, 5))
    assert stored_times(path, ReadOptions("scratch")) == {(5 if time is None else time) * 1_000_000}


def stored_times(path: Path, options: ReadOptions) -> set[int]:
    return {row["time"] for row in rows_of(items_of("find", path, options), "contents")}


def test_into_the_store_and_by_another_process(tmp_path: Path) -> None:
    path = tmp_path / "listing"
    path.write_text(SMALL)
    (capture,) = get_source("find").captures([path], OPTIONS)
    travelled = pickle.loads(pickle.dumps(capture))
    assert sums_of(list(travelled.items())) == sums_of(list(capture.items()))
    tally = ingest(tmp_path / "store", "find", [path], OPTIONS)
    assert tally.rows == {"contents": len(sums_of(list(capture.items())))}
    assert ingest(tmp_path / "store", "find", [path], OPTIONS).already_present == 1
    counts = stored(tmp_path / "store", "scratch", "contents", "histogram", "count")
    assert sum(count for histogram, count in counts if histogram == "size") == 4
    other = ReadOptions("scratch", at=AT, projects=ProjectRule(("/scratch/{project}",)))
    assert next(get_source("find").captures([path], other)).identity != capture.identity
    with pytest.raises(InputError, match="--filesystem"):
        list(next(get_source("find").captures([path], ReadOptions(at=AT))).items())
