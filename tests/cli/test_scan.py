"""`iolens scan` as a user runs it: summary, store, exit codes, interruption, parts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from iolens.cli.main import iolens as command
from iolens.cli.scan import ProgressLines, progress_text
from iolens.scan.workers import Advance
from iolens.store.store import Store
from tests.cli.command import Finished, iolens
from tests.sources.trees import grow, histogram_of, listed_inodes, once
from tests.views.documented import undocumented

AT = "2023-11-14T22:13:20Z"  # what the made-up trees take for now


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    grow(tmp_path / "tree", 31)
    return tmp_path / "tree"


@pytest.fixture
def scan(tmp_path: Path) -> Any:
    def run(*arguments: object) -> Finished:
        return iolens("scan", *arguments, cwd=tmp_path, XDG_STATE_HOME=str(tmp_path / "state"))

    return run


def stored(store: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = Store(store).tables.load("contents").to_pyarrow_table().to_pylist()  # type: ignore[union-attr]
    return rows


def sums(rows: list[dict[str, Any]]) -> dict[Any, int]:
    total: dict[Any, int] = {}
    for row in rows:
        for what in ("count", "bytes", "allocated_bytes"):
            key = row["owner"], row["inode_type"], row["histogram"], row["bin"], what
            total[key] = total.get(key, 0) + (row[what] or 0)
    return {key: value for key, value in total.items() if value}


def test_the_store_has_what_find_finds_and_no_path(tmp_path: Path, tree: Path, scan: Any) -> None:
    done = scan(tree, "--store", "centre", "-f", "scratch", "--at", AT, "--format", "json")
    assert done.code == 0, done.err
    names = listed_inodes(tree)
    result = json.loads(done.out)
    files = [item for item in once(names) if item.kind == "file"]
    assert result["files"] == len(files)
    assert result["bytes"] == sum(file.size for file in files)
    assert result["allocated_bytes"] == sum(file.allocated for file in files)
    assert result["inodes"] == len(once(names)) == sum(item["inodes"] for item in result["by_owner"])
    assert result["directories"] == sum(name.kind == "dir" for name in names)
    assert result["walk"]["names"] == len(names)
    assert result["time"] == "2023-11-14T22:13:20Z"
    rows = stored(tmp_path / "centre")
    assert len(rows) == result["stored_rows"]
    assert sums(rows) == histogram_of(names)
    assert {(row["source"], row["filesystem"]) for row in rows} == {("scan", "scratch")}
    assert len({row["scan"] for row in rows}) == 1
    assert str(tree) not in json.dumps([list(map(str, row.values())) for row in rows])
    assert not list((tmp_path / "state" / "iolens").iterdir())  # nothing is left behind


def test_two_scans_are_two(tmp_path: Path, tree: Path, scan: Any) -> None:
    for _ in range(2):
        assert scan(tree, "--store", "centre", "-f", "scratch", "--at", AT).code == 0
    assert len({row["scan"] for row in stored(tmp_path / "centre")}) == 2


def test_the_table_shows_owners_projects_and_how_the_name_is_known(tree: Path, scan: Any) -> None:
    done = scan(tree, "--no-store", "--project-rule", f"{tree}/{{project}}", "--top", "1")
    assert done.code == 0, done.err
    for text in ("Owners", "Projects", "known by", "The 1 largest of", "Inodes with several names"):
        assert text in done.out
    assert "Rows stored" not in done.out


def test_projects_of_the_configuration(tmp_path: Path, tree: Path, scan: Any) -> None:
    (tmp_path / "iolens.toml").write_text(f'[projects]\ndirectories = ["{tree}/{{project}}"]\n')
    result = json.loads(scan(tree, "--no-store", "--format", "json").out)
    assert len(result["by_project"]) > 2


def test_an_unreadable_directory_is_named_and_the_exit_code_says_partly(
    tmp_path: Path, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the kernel refused: root may read everything."""
    real = os.open
    (tree / "closed").mkdir()

    def refusing(path: Any, *arguments: Any, **more: Any) -> int:
        if path == "closed":
            raise PermissionError(13, "Permission denied", path)
        return real(path, *arguments, **more)

    monkeypatch.setattr(os, "open", refusing)
    monkeypatch.setattr("iolens.scan.workers._may_fork", lambda: True)  # with threads of other tests, too
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    words = ["scan", str(tree), "--store", "centre", "-f", "scratch"]
    done = CliRunner().invoke(command, words, standalone_mode=False, catch_exceptions=False)
    assert done.return_value == 3
    assert f"{tree}/closed" in done.output
    assert "Permission denied" in done.output
    (batch,) = Store(tmp_path / "centre").tables.load("batches").to_pyarrow_table().to_pylist()  # type: ignore[union-attr]
    assert batch["refused"] == 1
    assert "closed" not in batch["problems"]


def test_parts_of_two_nodes(tmp_path: Path, tree: Path, scan: Any) -> None:
    common = ("-f", "scratch", "--at", AT)
    for number in (1, 2):
        done = scan(tree, *common, "--part", f"{number}/2", "--save", f"part{number}.json.gz", "--format", "json")
        assert done.code == 0, done.err
        assert json.loads(done.out)["walk"]["part"] == f"{number}/2"
        assert json.loads(done.out)["stored_rows"] is None
    done = scan("--merge", "part1.json.gz", "part2.json.gz", "--store", "centre", "--format", "json")
    assert done.code == 0, done.err
    names = listed_inodes(tree)
    assert sums(stored(tmp_path / "centre")) == histogram_of(names)
    assert json.loads(done.out)["walk"]["names"] == len(names)
    again = iolens("ingest", "part1.json.gz", "part2.json.gz", "--store", "other", cwd=tmp_path)
    assert again.code == 0, again.err
    assert sums(stored(tmp_path / "other")) == histogram_of(names)
    alone = iolens("ingest", "scan", "part1.json.gz", "--store", "third", cwd=tmp_path)
    assert alone.code == 1
    assert "part 2 is missing" in alone.err


def test_entries_are_kept_only_where_asked(tmp_path: Path, tree: Path, scan: Any) -> None:
    import pyarrow.parquet as pq

    done = scan(tree, "--no-store", "--keep-entries", "entries.parquet", "--at", AT)
    assert done.code == 0, done.err
    rows = pq.read_table(tmp_path / "entries.parquet").to_pylist()
    root = os.fsencode(tree)
    expected = {
        (root + b"/" + item.path).rstrip(b"/").decode("utf-8", "backslashreplace"): item for item in listed_inodes(tree)
    }
    assert {row["path"] for row in rows} == set(expected)
    assert len(rows) == len(expected)
    for row in rows:
        entry = expected[row["path"]]
        assert (row["inode_type"], row["bytes"], row["allocated_bytes"]) == (entry.kind, entry.size, entry.allocated)
        assert (row["inode"], row["links"]) == (entry.inode, entry.links)
        assert int(row["mtime"].timestamp()) == entry.mtime
    assert sorted(path.name for path in tmp_path.iterdir()) == ["entries.parquet", "state", "tree"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_interrupted_and_resumed(tmp_path: Path, how: signal.Signals) -> None:
    """Stopped in the middle, it goes on where it was, with the entries it kept; the sums are those of `find`."""
    tree = tmp_path / "tree"
    grow(tree, 32, directories=120, files=500)
    arguments = [str(tree), "-f", "scratch", "--store", "centre", "--at", AT, "--keep-entries", "kept.parquet"]
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
    command = [sys.executable, "-m", "iolens.cli.main", "scan", *arguments]
    running = subprocess.Popen(
        [*command, "--max-rate", "60"], cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True,
        stdout=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    journal = Path("not yet")
    while (not journal.exists() or journal.read_bytes().count(b"\n") < 3) and running.poll() is None:
        journal = next((tmp_path / "state").glob("iolens/*/journal"), journal)
        time.sleep(0.01)  # until there is a step to go on from
    running.send_signal(how)
    _, err = running.communicate()
    if how != signal.SIGKILL:
        assert running.returncode == 130, err
        assert "go on with --resume" in err
    assert not (tmp_path / "centre").exists()

    again = iolens("scan", *arguments, cwd=tmp_path, XDG_STATE_HOME=str(tmp_path / "state"))
    assert again.code == 2
    assert "was interrupted" in again.err
    other = iolens(
        "scan", *arguments, "--resume", "--exclude", "x", cwd=tmp_path, XDG_STATE_HOME=str(tmp_path / "state")
    )
    assert other.code == 2
    assert "exclude was []" in other.err
    done = iolens("scan", *arguments, "--resume", cwd=tmp_path, XDG_STATE_HOME=str(tmp_path / "state"))
    assert done.code == 0, done.err
    assert "Resumed: " in done.out
    names = listed_inodes(tree)
    assert sums(stored(tmp_path / "centre")) == histogram_of(names)

    import pyarrow.parquet as pq

    assert pq.read_table(tmp_path / "kept.parquet").num_rows == len(names)
    assert not (tmp_path / "kept.parquet.pieces").exists()


def test_a_scan_whose_store_failed_is_not_lost(tmp_path: Path, tree: Path, scan: Any) -> None:
    (tmp_path / "centre").write_text("no store")
    assert scan(tree, "--store", "centre", "-f", "scratch", "--at", AT).code == 1
    (tmp_path / "centre").unlink()
    done = scan(tree, "--store", "centre", "-f", "scratch", "--at", AT, "--resume")
    assert done.code == 0, done.err
    assert sums(stored(tmp_path / "centre")) == histogram_of(listed_inodes(tree))


def test_restart_forgets(tmp_path: Path, tree: Path, scan: Any) -> None:
    (tmp_path / "centre").write_text("no store")
    scan(tree, "--store", "centre", "-f", "scratch", "--state", "here")
    assert (tmp_path / "here" / "journal").exists()
    done = scan(tree, "--no-store", "--state", "here", "--restart")
    assert done.code == 0, done.err
    assert "Resumed" not in done.out
    assert not (tmp_path / "here").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (("/nowhere/at/all",), 1, "/nowhere/at/all: cannot be scanned: No such file or directory"),
        ((".", "."), 2, "one PATH at a time"),
        ((".", "--part", "1/2"), 2, "--part needs --save FILE, and --at TIME"),
        ((".", "--part", "3/2"), 2, "is no part"),
        ((".", "--part", "x"), 2, "is no part"),
        ((".", "--save", "x.json", "--cross-filesystems"), 2, "device numbers differ"),
        ((".", "--resume", "--restart"), 2, "contradict"),
        ((".", "--max-rate", "0"), 2, "--max-rate"),
        ((".", "--lookups", "0"), 2, "--lookups"),
        ((".", "--project-rule", "relative"), 1, "no rule for projects"),
        (("--merge", "nothing.json"), 1, "nothing.json"),
        (("--merge", "x.json", "--save", "y.json"), 2, "--merge stores"),
    ],
)
def test_wrong_questions(scan: Any, arguments: tuple[str, ...], code: int, reason: str) -> None:
    done = scan(*arguments)
    assert done.code == code, done.err
    assert reason in done.err


def test_without_a_home_it_scans_all_the_same(tmp_path: Path, tree: Path) -> None:
    (tmp_path / "file").touch()
    done = iolens("scan", tree, "--no-store", cwd=tmp_path, XDG_STATE_HOME=str(tmp_path / "file"))
    assert done.code == 0, done.err
    assert "cannot be resumed" in done.err


# Progress.


def test_progress_tells_rate_and_estimate() -> None:
    assert progress_text(Advance(1000, 0, 2.0), 5000) == "1,000 of at most 5,000 inodes, 500/s, at most 8 s left"
    assert (
        progress_text(Advance(1000, 500, 1.0), 400_000) == "1,000 of at most 400,000 inodes, 500/s, at most 13 min left"
    )
    assert progress_text(Advance(1000, 0, 1.0), 90_000_000).endswith("at most 25.0 h left")
    assert progress_text(Advance(1000, 0, 2.0), None) == "1,000 inodes, 500/s"
    assert progress_text(Advance(1000, 0, 2.0), 900) == "1,000 inodes, 500/s"  # the file system knew of fewer
    assert progress_text(Advance(0, 0, 0.0), 900) == "0 of at most 900 inodes, 0/s"


def test_without_a_terminal_a_line_now_and_then() -> None:
    said: list[str] = []
    lines = ProgressLines(None, said.append)
    for second in range(100):
        lines.tell(Advance(second * 10, 0, float(second)))
    assert said == [f"scanning: {entries} inodes, 10/s" for entries in (300, 600, 900)]


def test_every_key_is_documented() -> None:
    from iolens.analyses.scan_summary import ScanSummary

    assert undocumented(ScanSummary, "scan.md") == []


def test_files_above_4_eib_are_in_the_summary_and_in_the_store(tmp_path: Path, scan: Any, endless_path: Path) -> None:
    """Three sparse files of 8 EiB less a byte: more than a column of the store holds, together."""
    for name in ("a", "b", "c"):
        with (endless_path / name).open("wb") as stream:
            stream.truncate(2**63 - 1)
    done = scan(endless_path, "--store", "centre", "-f", "scratch", "--format", "json")
    assert done.code == 0, done.err
    result = json.loads(done.out)
    assert (result["files"], result["bytes"]) == (3, 3 * (2**63 - 1))
    shown = json.loads(iolens("contents", "--store", tmp_path / "centre", "--format", "json").out)
    assert (shown["files"], shown["bytes"], shown["inodes"]) == (3, 3 * (2**63 - 1), 4)
