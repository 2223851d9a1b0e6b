"""Runs of a study: what a kill cut short was not measured, a point counts once, and what is not ours is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from iolens.errors import InputError
from iolens.records import Problem, Row
from iolens.sources import ReadOptions, get_source
from iolens.sources.benchmarks.study_runs import LONGEST, RUNS_FORMAT, journal_of, read_journal, study_rows
from iolens.units import MIB

HEAD = json.dumps({"format": RUNS_FORMAT}) + "\n"


def run(key: str = "lake/block=1MiB/0", **values: Any) -> dict[str, Any]:
    """A row as `bench sequential` writes it."""
    usual = {"run_id": f"s/{key}/0", "sweep": "s", "study": "sequential", "direction": "write", "bytes": MIB}
    return {**usual, "duration_s": 0.5, "time": 1_700_000_000_000_000, **values}


def point(key: str = "lake/block=1MiB/0", *rows: dict[str, Any]) -> str:
    return json.dumps({"point": key, "rows": list(rows) or [run(key)]}) + "\n"


def written(folder: Path, text: str) -> Path:
    (folder / "runs.jsonl").write_text(text)
    return folder / "runs.jsonl"


def items(path: Path, **options: Any) -> list[Any]:
    captures = get_source("study").captures([path], ReadOptions(**options))
    return [item for capture in captures for item in capture.items()]


def rows(path: Path, **options: Any) -> list[dict[str, Any]]:
    return [dict(item.values) for item in items(path, **options) if isinstance(item, Row)]


def test_a_file_and_its_folder_are_recognised_and_read_alike(tmp_path: Path) -> None:
    path = written(tmp_path, HEAD + point())
    source = get_source("study")
    assert source.recognises(path, path.read_bytes()[:100])
    assert source.recognises(tmp_path, b"")
    assert not source.recognises(tmp_path / "other", b'{"format": "iolens sweep"}')
    assert rows(path) == rows(tmp_path) == [run()]


def test_a_line_that_was_cut_is_as_if_the_point_had_not_been_measured(tmp_path: Path) -> None:
    whole, cut = HEAD + point("a"), point("b")
    for length in range(len(cut)):
        journal = read_journal((whole + cut[:length]).encode(), "runs.jsonl")
        assert list(journal.rows) == ["a"]
        assert (journal.whole_bytes, journal.cut_bytes) == (len(whole), length)
    problems = [item.reason for item in items(written(tmp_path, whole + cut[:-1])) if isinstance(item, Problem)]
    assert problems == ["the last line was cut: its point was not measured"]


def test_a_first_line_that_was_cut_is_an_empty_record() -> None:
    for length in range(len(HEAD)):
        assert read_journal(HEAD[:length].encode(), "runs.jsonl").whole_bytes == 0


def test_a_point_that_is_there_twice_counts_once(tmp_path: Path) -> None:
    text = HEAD + point("a", run("a")) + point("b") + point("a", run("a", bytes=7)) + point("b")
    assert [row["run_id"] for row in rows(written(tmp_path, text))] == ["s/a/0", "s/b/0"]
    assert rows(tmp_path)[0]["bytes"] == MIB


@pytest.mark.parametrize(
    "line",
    [
        "", "{", "garbage", "[1]", "5", "null", '{"point": "a"', '{"point": "a"}', '{"point": 5, "rows": []}',
        '{"point": "a", "rows": [5]}', '{"rows": []}', '{"directory": 5}', '{"unknown": 1}', "{}", "\x00\x00",
        '{"point": "a", "rows": ' + "[" * 5000, '{"point": "a", "rows": [{"bytes": ' + "9" * 5000 + "}]}",
    ],
)  # fmt: skip
def test_a_line_in_the_middle_that_is_none_of_ours_is_refused_with_its_number(line: str) -> None:
    with pytest.raises(InputError, match=r"^/s/runs\.jsonl:3: .*expected a line of `iolens bench`$"):
        read_journal((HEAD + point("a") + line + "\n" + point("b")).encode(), "/s/runs.jsonl")


@pytest.mark.parametrize(
    "text",
    [
        "hello", "hello\n", '{"format": "iolens sweep, version 1"}\n', '{"format": "iolens study runs, version 2"}\n',
        point("a"), '{"format": 5}\n', "\n",
    ],
)  # fmt: skip
def test_another_format_is_refused_and_stays_as_it_is(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InputError, match=r"runs\.jsonl:1: "):
        journal_of(path)
    with pytest.raises(InputError, match="expected a line of `iolens bench`"):
        items(path)
    assert path.read_text() == text


def test_directories_that_were_made_and_are_not_known_to_be_gone() -> None:
    lines = [{"directory": "/a"}, {"directory": "/b"}, {"directory": "/a"}, {"removed": "/a"}, {"removed": "/never"}]
    text = HEAD + "".join(json.dumps(line) + "\n" for line in lines)
    assert read_journal(text.encode(), "x").directories == [Path("/b")]


def test_a_file_longer_than_any_study_is_refused_not_read_in_part(tmp_path: Path) -> None:
    path = written(tmp_path, HEAD)
    with path.open("r+b") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(InputError, match=f"longer than {LONGEST >> 20} MiB"):
        journal_of(path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("duration_s", "fast"), ("duration_s", None), ("bytes", -1), ("bytes", 1.5), ("bytes", 2**63), ("bytes", True),
        ("direct", 1), ("direction", 5), ("duration_s", float("nan")), ("duration_s", float("inf")), ("nonsense", 1),
        ("source", "me"),
    ],
)  # fmt: skip
def test_a_value_that_its_column_cannot_hold_is_left_out_and_said(tmp_path: Path, name: str, value: Any) -> None:
    path = written(tmp_path, HEAD + point("a", run("a", **{name: value})) + point("b"))
    read = items(path)
    (reason, *_) = [item.reason for item in read if isinstance(item, Problem)]
    assert name in reason
    assert all(name not in item.values or item.values[name] != value for item in read if isinstance(item, Row))
    with pytest.raises(InputError, match=rf"point a: {name} = "):
        study_rows(journal_of(path), str(path))


def test_a_run_without_identity_is_left_out_and_said(tmp_path: Path) -> None:
    nameless = {name: value for name, value in run().items() if name != "run_id"}
    (problem,) = items(written(tmp_path, HEAD + point("a", nameless)))
    assert problem.reason == "a run without identity or direction: left out"


def test_the_file_system_may_be_named_when_it_is_loaded(tmp_path: Path) -> None:
    path = written(tmp_path, HEAD + point())
    assert rows(path, filesystem="lake")[0]["filesystem"] == "lake"
    assert "filesystem" not in rows(path)[0]


def test_a_copy_elsewhere_has_the_same_identity_and_a_point_more_is_one_more(tmp_path: Path) -> None:
    def identities(path: Path) -> list[str]:
        return [capture.identity for capture in get_source("study").captures([path], ReadOptions())]

    first = written(tmp_path, HEAD + point("a"))
    before = identities(first)
    (tmp_path / "copy").mkdir()
    copy = written(tmp_path / "copy", HEAD + point("a") + point("b"))
    assert identities(copy)[0] == before[0]
    assert len(set(identities(copy))) == 2


def test_a_directory_of_studies_is_read_study_by_study(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "plan.toml").write_text("not a run")
        written(tmp_path / name, HEAD + point(name))
    assert [row["run_id"] for row in rows(tmp_path)] == ["s/a/0", "s/b/0"]
    with pytest.raises(InputError, match="cannot be read"):
        items(tmp_path / "a" / "nothing")
