"""Saved parts of scans: put together exactly, or refused with the reason."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from iolens.errors import InputError
from iolens.records import Note, Problem, Rows
from iolens.scan.findings import Findings
from iolens.scan.parts import PartHeader, WholeScan, merged, packed, saved
from iolens.scan.walk import ScanPart
from iolens.sources import get_source, recognise
from iolens.sources.reading.options import ReadOptions
from iolens.store.readers import guarded
from tests.sources.trees import NOW_S, grow, histogram_of, listed_inodes, scanned

NOW_US = NOW_S * 1_000_000


def save(path: Path, findings: Findings, part: ScanPart = ScanPart(), **changes: Any) -> Path:  # noqa: B008 # immutable
    header = PartHeader("scratch", "/scratch", NOW_US, f"scan-{part.number}", part)._replace(**changes)
    path.write_bytes(packed(path, saved(header, findings)))
    return path


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    grow(tmp_path / "tree", 21, directories=50)
    return tmp_path / "tree"


@pytest.fixture
def parts(tmp_path: Path, tree: Path) -> list[Path]:
    return [
        save(tmp_path / f"part-{number}.json.gz", scanned(tree, part=ScanPart(number, 3)), ScanPart(number, 3))
        for number in (1, 2, 3)
    ]


def sums(whole: WholeScan) -> dict[Any, int]:
    """What was put together, as `histogram_of` has it."""
    counts: dict[Any, int] = {}
    for item in whole.items():
        assert isinstance(item, Rows)
        columns = {
            name: column if isinstance(column, list) else [column] * item.count for name, column in item.columns.items()
        }
        for place in range(item.count):
            row = {name: column[place] for name, column in columns.items()}
            for what in ("count", "bytes", "allocated_bytes"):
                key = row["owner"], row["inode_type"], row["histogram"], row["bin"], what
                counts[key] = counts.get(key, 0) + (row[what] or 0)
    return {key: value for key, value in counts.items() if value}


def test_parts_in_any_order_are_the_whole(tree: Path, parts: list[Path]) -> None:
    names = listed_inodes(tree)
    for order in (parts, parts[::-1]):
        whole = merged(order)
        assert sums(whole) == histogram_of(names)
        assert whole.findings.names == len(names)
        assert whole.roots == ("/scratch",)
    assert merged(parts).scan == merged(parts[::-1]).scan


def test_a_part_is_packed_as_its_name_says(tmp_path: Path, tree: Path) -> None:
    findings = scanned(tree, workers=1)
    plain = save(tmp_path / "a.json", findings).read_bytes()
    assert plain.startswith(b'{"iolens_scan":1,')
    small = save(tmp_path / "a.json.gz", findings).read_bytes()
    assert gzip.decompress(small) == plain
    assert small[4:8] == bytes(4)  # no time of packing: the same part is the same bytes


def test_parts_keep_no_path_and_only_links_that_others_may_have(tmp_path: Path) -> None:
    (tmp_path / "tree" / "secret-name").mkdir(parents=True)
    inside = tmp_path / "tree" / "secret-name" / "one"
    inside.touch()
    (tmp_path / "tree" / "two").hardlink_to(inside)
    (tmp_path / "outside").touch()
    (tmp_path / "tree" / "three").hardlink_to(tmp_path / "outside")
    text = save(tmp_path / "part.json", scanned(tmp_path / "tree")).read_text()
    assert "secret" not in text
    links = [json.loads(line)["links"] for line in text.splitlines() if '"links"' in line]
    assert [link["inode"] for link in links] == [[(tmp_path / "outside").stat().st_ino]]


def test_sub_trees_are_parts_too(tmp_path: Path, tree: Path) -> None:
    """Scans of places that do not overlap, hard links between them included."""
    for name in ("a", "b"):
        (tmp_path / "both" / name).mkdir(parents=True)
    (tmp_path / "both" / "a" / "file").write_bytes(bytes(700))
    (tmp_path / "both" / "b" / "file").hardlink_to(tmp_path / "both" / "a" / "file")
    files = [
        save(tmp_path / f"{name}.json", scanned(tmp_path / "both" / name), root=f"/both/{name}", scan=name)
        for name in ("a", "b")
    ]
    whole = merged(files)
    assert whole.roots == ("/both/a", "/both/b")
    assert whole.links == (1, 2)
    counts = {key[1]: value for key, value in sums(whole).items() if key[2] == "mtime" and key[4] == "count"}
    assert counts == {"dir": 2, "file": 1}


def test_what_was_not_readable_is_reported_without_its_path(tmp_path: Path, tree: Path) -> None:
    findings = scanned(tree)
    findings.cannot_read("/scratch/secret", "Permission denied")
    findings.vanished = 4
    problem, note, *_ = merged([save(tmp_path / "part.json", findings)]).items()
    assert isinstance(problem, Problem)
    assert "1 place could not be read" in problem.reason
    assert isinstance(note, Note)
    assert "secret" not in f"{problem} {note}"
    assert merged([tmp_path / "part.json"]).findings.unreadable_places == [("/scratch/secret", "Permission denied")]


def test_ingest_reads_all_parts_as_one(parts: list[Path]) -> None:
    source = recognise(parts[0])
    assert source.name == "scan"
    (capture,) = source.captures(parts, ReadOptions())
    (again,) = source.captures(parts[::-1], ReadOptions())
    assert capture.identity == again.identity
    items = list(guarded(pickle.loads(pickle.dumps(capture))))
    assert [type(item) for item in items] == [Rows]


def test_parts_of_several_scans_are_distinguished(tmp_path: Path, tree: Path) -> None:
    files = [save(tmp_path / f"{day}.json", scanned(tree), time_us=NOW_US + day) for day in (0, 1)]
    assert len(list(get_source("scan").captures(files, ReadOptions()))) == 2


# What does not belong together.


def refusal(paths: list[Path]) -> str:
    with pytest.raises(InputError) as raised:
        merged(paths)
    return str(raised.value)


def test_a_missing_part(parts: list[Path]) -> None:
    assert "part-1.json.gz: of 3 parts, part 2 is missing" in refusal([parts[0], parts[2]])
    (capture,) = get_source("scan").captures(parts[:2], ReadOptions())
    (problem,) = guarded(capture)
    assert "part 3 is missing" in str(problem)


def test_a_part_twice(tmp_path: Path, parts: list[Path]) -> None:
    (tmp_path / "copy.json.gz").write_bytes(parts[1].read_bytes())
    assert "the same part of /scratch as" in refusal([*parts, tmp_path / "copy.json.gz"])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"time_us": NOW_US + 1}, "not of the same file system and time"),
        ({"filesystem": "home"}, "not of the same file system and time"),
        ({"part": ScanPart(1, 2)}, "cut differently"),
        ({"part": ScanPart(3, 3, 5)}, "cut differently"),
        ({"root": "/scratch/inner", "part": ScanPart()}, "lies in /scratch"),
    ],
)
def test_parts_that_do_not_fit(
    tmp_path: Path, tree: Path, parts: list[Path], changes: dict[str, Any], reason: str
) -> None:
    other = save(tmp_path / "other.json", scanned(tree), **changes)
    assert reason in refusal([*parts, other])


# Damage.


def test_a_part_cut_anywhere_is_refused(tmp_path: Path, tree: Path) -> None:
    whole = save(tmp_path / "part.json", scanned(tree)).read_bytes()
    for length in range(0, len(whole) - 1, max(1, len(whole) // 50)):
        (tmp_path / "cut.json").write_bytes(whole[:length])
        assert "cut.json" in refusal([tmp_path / "cut.json"])


def test_a_gzip_cut_or_damaged_is_refused(parts: list[Path]) -> None:
    content = parts[0].read_bytes()
    parts[0].write_bytes(content[: len(content) // 2])
    assert "part-1" in refusal(parts)
    parts[0].write_bytes(content[:200] + bytes(50) + content[250:])
    assert "part-1" in refusal(parts)


@pytest.mark.parametrize(
    "wrong",
    [
        {"groups": [["ada", None, "door"]]},
        {"groups": [["ada", None, "file"], ["ada", None, "file"]]},
        {"groups": [[1, None, "file"]]},
        {"groups": [["ada", None, "file"]], "sums": [[1, "size", 0, 1, 1, 1]]},
        {"groups": [["ada", None, "file"]], "sums": [[0, "shape", 0, 1, 1, 1]]},
        {"groups": [["ada", None, "file"]], "sums": [[0, "size", 400, 1, 1, 1]]},
        {"groups": [["ada", None, "file"]], "sums": [[0, "size", 0, -1, 1, 1]]},
        {"groups": [["ada", None, "file"]], "sums": [[0, "size", 0, 1.5, 1, 1]]},
        {"groups": [["ada", None, "file"]], "sums": [[0, "size", 0, True, 1, 1]]},
        {"groups": [["ada", None, "file"]], "sums": [[0, ["size"], 0, 1, 1, 1]]},
        {"groups": [["ada", None, "file"]], "links": {"inode": [1]}},
        {"groups": [], "links": {}},
        {"groups": 5},
        {"names": 7},
        {"groups": [], "names": "many"},
        {"groups": [], "unreadable_places": [["only a path"]]},
        {
            "groups": [["ada", None, "file"]],
            "links": {
                name: [2**70] for name in
                ("device", "inode", "links", "seen", "code", "size", "allocated", "atime", "mtime")
            } | {"code": [0]},
        },
    ],
)  # fmt: skip
def test_pieces_that_are_wrong_are_refused_with_their_line(tmp_path: Path, wrong: dict[str, Any]) -> None:
    header = {"iolens_scan": 1, "filesystem": "s", "root": "/s", "time_us": 0, "scan": "x", "part": [1, 1, 2]}
    lines = [header, {"groups": []}, wrong, {"end": 2}]
    (tmp_path / "part.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert "part.json:3: " in refusal([tmp_path / "part.json"])


@pytest.mark.parametrize(
    "changes",
    [
        {"iolens_scan": 2}, {"part": [0, 1, 2]}, {"part": [2, 1, 2]}, {"part": [1, 1]}, {"part": "1/1"},
        {"part": [1, 1, 0]}, {"time_us": "now"}, {"time_us": 1.5}, {"time_us": 2**70}, {"root": 5},
        {"filesystem": None},
    ],
)  # fmt: skip
def test_headers_that_are_wrong_are_refused(tmp_path: Path, changes: dict[str, Any]) -> None:
    header = {"iolens_scan": 1, "filesystem": "s", "root": "/s", "time_us": 0, "scan": "x", "part": [1, 1, 2]}
    (tmp_path / "part.json").write_text(json.dumps(header | changes) + '\n{"end":0}\n')
    assert "part.json" in refusal([tmp_path / "part.json"])


def test_lines_may_end_as_on_windows(tmp_path: Path, tree: Path) -> None:
    path = save(tmp_path / "part.json", scanned(tree))
    names = merged([path]).findings.names
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert merged([path]).findings.names == names


def test_an_end_that_counts_otherwise_is_refused(tmp_path: Path, tree: Path) -> None:
    path = save(tmp_path / "part.json", scanned(tree))
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], *lines[2:]]))
    assert "pieces" in refusal([path])
