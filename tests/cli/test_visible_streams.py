"""What the command prints of others' names, in a process of its own: messages, tables, progress, warnings."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from iolens.cli.visible_streams import VisibleStream
from iolens.store.store import Store
from tests.analyses.telemetry import made_up, table_of
from tests.cli.command import iolens
from tests.hostile_names import HOSTILE, SOURCES_OF_TROUBLE
from tests.views.test_hostile_names import is_harmless

NOT_OF_FILES = (
    "zero byte",
    "half a pair",
    "three thousand characters",
    "markup of pages",
    "links",
    "markup of terminals",
)
FILES = [name for what, name in HOSTILE.items() if what not in NOT_OF_FILES and "/" not in name]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file system whose targets have every hostile name that text can hold; tables show the busiest of them."""
    folder = tmp_path_factory.mktemp("store")
    part = made_up(1, 20, 2)
    names = [name.encode("utf-8", "backslashreplace").decode() for name in SOURCES_OF_TROUBLE]
    for table, rows in (("target_sizes", part.sizes), ("target_io", part.io)):
        renamed = [{**row, "target": name} for name in names for row in rows if row["target"].endswith("0")]
        for row in renamed if table == "target_sizes" else ():
            busier = 2 if row["target"] == HOSTILE["clear the screen"] else 1
            row |= {column: busier * ios for column, ios in row.items() if "_ios_" in column}
        Store(folder).append(table, table_of(table, renamed))
    return folder


@pytest.mark.parametrize("format_", ["table", "csv", "markdown", "json"])
def test_a_verb_prints_nothing_that_is_obeyed(store: Path, format_: str) -> None:
    done = iolens("utilization", "--store", store, "--format", format_)
    assert done.code == 0, done.err
    assert is_harmless(done.out)
    if format_ == "json":
        targets = {line["target"] for line in json.loads(done.out)["per_target"]}
        assert HOSTILE["clear the screen"] in targets
    elif format_ != "csv":
        assert "a\\x1b[2J\\x1b[Hb" in done.out.replace("\\[", "[")


def test_problems_of_an_ingest_name_files_visibly(tmp_path: Path) -> None:
    files = []
    for name in FILES:
        files.append(tmp_path / name)
        files[-1].write_bytes(b"\x1b[31mno counters here\x07\n")
    done = iolens("ingest", *files, "--store", tmp_path / "store")
    assert done.code != 0
    assert is_harmless(done.err)
    assert is_harmless(done.out)
    assert "a\\x1b[2J\\x1b[Hb" in done.out + done.err
    forged = [line for line in (done.out + done.err).splitlines() if line.startswith("iolens: all is well")]
    assert forged == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("utilization", "--store", "nowhere", "-f", HOSTILE["clear the screen"]),
        ("ingest", HOSTILE["set the title"], "--store", "s"),
        ("scan", HOSTILE["new lines"], "--no-store"),
        (HOSTILE["clear the screen"],),
        ("latency", "--every", HOSTILE["colour by one byte"]),
    ],
)
def test_errors_show_what_they_were_given(arguments: tuple[str, ...], tmp_path: Path) -> None:
    for _ in range(2):  # the second time a scan names the one that was not finished
        done = iolens(*arguments, cwd=tmp_path)
        assert done.code != 0
        assert is_harmless(done.err)
        assert done.err
        assert not any(line.startswith("iolens: all is well") for line in done.err.splitlines())


def test_a_stream_lets_colours_of_tables_through_and_nothing_else() -> None:
    out = io.BytesIO()
    stream = VisibleStream(out, "utf-8", "strict", None, True)
    stream.colours = True
    assert stream.write("\x1b[1mTitle\x1b[0m \x1b[2J\x1b]0;x\x07\n") == 25
    stream.write("\x1b[8mhidden\n")
    stream.colours = False
    stream.write("\x1b[1mbold\tand\udcff\n")
    stream.flush()
    assert out.getvalue().decode().splitlines() == [
        "\x1b[1mTitle\x1b[0m \\x1b[2J\\x1b]0;x\\x07", "\\x1b[8mhidden", "\\x1b[1mbold\tand\\xff",
    ]  # fmt: skip
