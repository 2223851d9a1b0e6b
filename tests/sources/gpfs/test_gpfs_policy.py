"""Lists of Spectrum Scale's policy engine, made up after its documentation: layouts, escapes, zones, damage."""

from __future__ import annotations

import gzip
import pickle
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from iolens.config import ProjectRule
from iolens.errors import InputError
from iolens.records import Note, Problem
from iolens.sources import get_source, recognise
from iolens.sources.gpfs.gpfs_policy import DEFAULT_FIELDS
from iolens.sources.reading.options import ReadOptions
from tests.sources.contents_rows import sums_of, totals_of
from tests.sources.stored import items_of, problems_of

AT = datetime(2026, 1, 5, 12, tzinfo=UTC)
OPTIONS = ReadOptions("gpfs1", at=AT)
DAY = 86_400
RULES = Path(__file__).parents[3] / "contrib" / "gpfs-policy.rules"
LIST = """\
11 65538 0  4096|0|3|drwxr-xr-x|0|root|2026-01-05 11:30:00.000000|2026-01-05 10:00:00.000000 -- /gpfs1
12 65539 0  0|0|1|-rw-r--r--|1001|climate|2026-01-04 12:00:00.000000|2026-01-03 12:00:00.000000 -- /gpfs1/climate/a%20b
13 65540 0  5000|8|2|-rw-r--r--|1001|climate|2025-01-05 12:00:00.000000|2025-01-05 12:00:00.000000 -- /gpfs1/climate/x
13 65540 0  5000|8|2|-rw-r--r--|1001|climate|2025-01-05 12:00:00.000000|2025-01-05 12:00:00.000000 -- /gpfs1/fusion/y
14 65541 0  9|0|1|lrwxrwxrwx|1002|fusion|2026-01-05 12:00:00|2026-01-05 12:00:01 -- /gpfs1/fusion/l -- m
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "scan.list.iolens"


def read(file: Path, text: str, options: ReadOptions = OPTIONS) -> list[Any]:
    file.write_text(text)
    assert recognise(file).name == "gpfs-policy"
    return items_of("gpfs-policy", file, options)


def test_a_list_becomes_histograms(file: Path) -> None:
    items = read(file, LIST)
    assert problems_of(items) == ["1 more names of hard-linked files: each file counts once"]
    result = sums_of(items)
    assert totals_of(items) == {"dir": (1, 4096), "file": (2, 5000), "symlink": (1, 9)}
    assert result["1001", "climate", "file", "size", 4096, 8192] == (1, 5000, 8192)
    assert result["1001", "climate", "file", "size", None, 0] == (1, 0, 0)
    assert result["1001", "climate", "file", "atime", 6 * 3600, DAY] == (1, 0, 0)
    assert result["1001", "climate", "file", "mtime", DAY, 2 * DAY] == (1, 0, 0)
    assert result["1001", "climate", "file", "mtime", 270 * DAY, 365 * DAY] == (1, 5000, 8192)
    assert result["0", None, "dir", "mtime", 3600, 6 * 3600] == (1, 4096, 0)  # the root fileset is no project
    assert result["1002", "fusion", "symlink", "mtime", None, 0] == (1, 9, 0)


def test_the_rules_that_are_shipped_print_the_default_layout() -> None:
    text = RULES.read_text()
    show = re.search(
        r"SHOW\s*\((.*?)\)\s*(?:;|\Z|RULE|WHERE|/\*)", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL), re.DOTALL
    )
    assert show is not None
    assert tuple(re.findall(r"[A-Z_]{4,}", show[1].replace("VARCHAR", ""))) == DEFAULT_FIELDS
    assert show[1].count("'|'") == len(DEFAULT_FIELDS) - 1
    assert "DIRECTORIES_PLUS" in text
    escape = re.search(r"ESCAPE '%([^']*)'", text)
    assert escape is not None
    assert set("/| :") <= set(escape[1])  # what makes up a line is not escaped


@pytest.mark.parametrize("change", ["gzip", "CRLF", "numbered", "messages", "one blank", "everything escaped"])
def test_the_same_list_written_otherwise(file: Path, change: str) -> None:
    expected = sums_of(read(file, LIST))
    content = {
        "gzip": gzip.compress(LIST.encode()),
        "CRLF": LIST.replace("\n", "\r\n").encode(),
        "numbered": re.sub("^", "<3> ", LIST.rstrip("\n"), flags=re.MULTILINE).encode() + b"\n",
        "messages": b"[I] 4 files scanned\n" + LIST.encode() + b"\n",
        "one blank": LIST.replace(" 0  ", " 0 ").encode(),
        "everything escaped": re.sub(
            r"(?<= 0  )(.*?)( -- )(.*)", lambda item: quoted(item[1]) + item[2] + quoted(item[3]), LIST
        ).encode(),
    }[change]
    file.write_bytes(content)
    assert recognise(file).name == "gpfs-policy"
    assert sums_of(items_of("gpfs-policy", file, OPTIONS)) == expected


def quoted(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.~%-]", lambda item: f"%{ord(item[0]):02X}", text)


@pytest.mark.parametrize(
    ("settings", "show"),
    [
        ({"fields": ["USER_ID", "FILE_SIZE", "KB_ALLOCATED"], "separator": ":"}, "1001:5000:8"),
        ({"fields": ["kb_allocated", "file_size", "user_id", "", ""], "separator": "*"}, "8*5000*1001*x*y"),
        (
            {"fields": ["", "FILE_SIZE", "KB_ALLOCATED", "ACCESS_TIME", "USER_ID", "POOL_NAME", ""]},
            "|size=5000|kballoc=8|access=2025-12-06 12:00:00.123456|uid=1001|pool=data|",
        ),
        (
            {"fields": ["FILE_SIZE", "CREATION_TIME", "KB_ALLOCATED", "ACCESS_TIME", "USER_ID"], "separator": " "},
            "s=5000 cr=2020-01-01 00:00:00 a=8 ac=2025-12-06 12:00:00 u=1001",
        ),
    ],
)
def test_other_rules(file: Path, settings: dict[str, Any], show: str) -> None:
    items = read(
        file,
        f"7 1 0  {show} -- /gpfs1/x\n" * 2 + f"8 1 0  {show} -- /gpfs1/x\n",
        ReadOptions("gpfs1", at=AT, settings=settings),
    )
    result = sums_of(items)
    assert result["1001", None, "file", "size", 4096, 8192] == (2, 10_000, 16_384)
    if "ACCESS_TIME" in settings["fields"]:
        assert result["1001", None, "file", "atime", 28 * DAY, 30 * DAY] == (2, 10_000, 16_384)
    assert problems_of(items) == ["1 more names of hard-linked files: each file counts once"]


def test_times_are_utc_unless_a_zone_is_stated(file: Path) -> None:
    line = "7 1 0  1|0|1|-rw-r--r--|0|root|{0}|{0} -- /x\n".format("2026-01-05 06:00:00")
    options = {
        (3600, 6 * 3600): OPTIONS,
        (None, 0): ReadOptions("gpfs1", at=AT, timezone="America/Los_Angeles"),
        (6 * 3600, DAY): ReadOptions("gpfs1", at=AT, settings={"timezone": "Asia/Tokyo"}),
    }
    for (above, up_to), option in options.items():
        result = sums_of(read(file, line, option))
        assert ("0", None, "file", "atime", above, up_to) in result


def test_projects_by_path_before_filesets(file: Path) -> None:
    rule = ProjectRule(("/gpfs1/{project}",), {"climate": "Climate", "fusion": "Fusion"})
    text = (
        LIST.replace("/gpfs1/climate/a%20b", "/gpfs1/big%20project/a")
        + LIST.splitlines()[-1].replace("14 ", "15 ").replace("/gpfs1/", "/other/")
        + "\n"
    )
    result = sums_of(read(file, text, ReadOptions("gpfs1", at=AT, projects=rule)))
    sizes = {key[:3]: item[0] for key, item in result.items() if key[3] == "size"}
    assert sizes == {
        ("0", None, "dir"): 1,
        ("1001", "big project", "file"): 1,
        ("1001", "climate", "file"): 1,
        ("1002", "fusion", "symlink"): 1,
        ("1002", "Fusion", "symlink"): 1,
    }
    raw = ReadOptions("gpfs1", at=AT, projects=rule, settings={"escaped": False})
    assert ("1001", "big%20project", "file") in {key[:3] for key in sums_of(read(file, text, raw))}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("12 65539 0  0|0|1|-rw-r--r--|1001|climate -- /a", "not a line of `inode generation snapshot  FILE_SIZE|"),
        ("12 65539 0  -- /a", "not a line of"),
        ("12 65539 0  1|0|1|-rw-r--r--|0|root|2026-01-04 12:00:00|2026-01-04 12:00:00 /a", "not a line of"),
        ("12 65539 0  x|0|1|-rw-r--r--|0|root|2026-01-04 12:00:00|2026-01-04 12:00:00 -- /a", "size 'x'"),
        ("12 65539 0  1|0|1|?rw-r--r--|0|root|2026-01-04 12:00:00|2026-01-04 12:00:00 -- /a", "type '.rw"),
        ("12 65539 0  1|0|1|-rw-r--r--|0|root|2026-02-30 12:00:00|2026-01-04 12:00:00 -- /a", "time of access"),
        ("12 65539 0  1|0|1|-rw-r--r--|0|root|2026-01-04|2026-01-04 12:00:00 -- /a", "time of access '2026-01-04'"),
        ("12 65539 0  1|0|1|-rw-r--r--|0|root|2026-01-04 12:00:00|2026-13-04 12:00:00 -- /a", "modification"),
        ("1x 65539 0  1|0|1|-rw-r--r--|0|root|2026-01-04 12:00:00|2026-01-04 12:00:00 -- /a", "inode '1x'"),
        ("[E] the scan failed here", "not a line of"),
        ("\x00\x01\x02", "not a line of"),
    ],
)
def test_a_line_that_cannot_be_read_is_named_and_the_others_count(file: Path, line: str, reason: str) -> None:
    items = read(file, LIST + line + "\n" + LIST.splitlines()[0] + "\n")
    (problem,) = [item for item in items if isinstance(item, Problem) and not isinstance(item, Note)]
    assert problem.line == 6
    assert re.search(reason.replace("|", r"\|"), problem.reason), problem.reason
    assert totals_of(items) == {"dir": (2, 8192), "file": (2, 5000), "symlink": (1, 9)}


def test_a_list_that_was_cut(file: Path) -> None:
    items = read(file, LIST[:-30])
    assert totals_of(items) == {"dir": (1, 4096), "file": (2, 5000)}
    assert "it ends in the middle of a record, which is left out" in problems_of(items)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"fields": "FILE_SIZE"}, "a list of attributes"),
        ({"fields": ["USER_ID"]}, "FILE_SIZE among them"),
        ({"fields": ["FILE_SIZE", "FILE_SIZE"]}, "each once"),
        ({"fields": ["FILE_SIZE", "FILESIZE"]}, "'FILESIZE' is not known"),
        ({"separator": "||"}, "one character"),
        ({"separator": "a"}, "one character"),
        ({"escaped": "yes"}, "true or false"),
        ({"timezone": "Mars/Olympus"}, "no time zone"),
        ({"field": []}, "unknown setting"),
    ],
)
def test_settings_that_make_no_sense(file: Path, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(file, LIST, ReadOptions("gpfs1", at=AT, settings=settings))


def test_files_of_one_time_are_parts_of_one_scan(tmp_path: Path) -> None:
    """The policy engine may write several lists; each file counts once over all of them."""
    lines = LIST.splitlines(keepends=True)
    parts = [tmp_path / "list.1", tmp_path / "list.2"]
    parts[0].write_text("".join(lines[:3]))
    parts[1].write_text("".join(lines[3:]))
    (tmp_path / "whole").write_text(LIST)
    (capture,) = get_source("gpfs-policy").captures(parts, OPTIONS)
    travelled = pickle.loads(pickle.dumps(capture))
    assert sums_of(list(travelled.items())) == sums_of(items_of("gpfs-policy", tmp_path / "whole", OPTIONS))


def test_what_is_not_a_list(file: Path) -> None:
    for text in ("1 2 3 4\n", "a -- /b\n", "1 2 0 -- b\n", "-- /x\n"):
        assert not get_source("gpfs-policy").recognises(file, text.encode()), text
    file.write_text("nothing of this kind\n")
    with pytest.raises(InputError, match="none of a policy list"):
        items_of("gpfs-policy", file, OPTIONS)
