"""CSV histograms of sizes of both conventions, and damaged ones."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from iolens.analyses.inode_sizes import InodeSizes, sizes_of_rows
from iolens.errors import InputError
from iolens.records import Problem, Row
from iolens.sources.size_bins_csv import size_rows

BY_END = "bin_size,num_files,num_dirs,num_symlinks\n0,3,0,1\n1,5,0,0\n2,0,0,0\n4,7,2,0\n"
BY_START = "bin num,object count,object size sum (bytes),bin start\n0,4,0,0\n1,2,2,1\n2,3,8,2\n3,1,100,4\n"


def read(path: Path) -> tuple[InodeSizes, list[Problem]]:
    items = list(size_rows(path))
    rows = [item.values for item in items if isinstance(item, Row)]
    return sizes_of_rows(rows, str(path)), [item for item in items if isinstance(item, Problem)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "sizes.csv"


@pytest.mark.parametrize("text", [BY_END, BY_END.replace("\n", "\r\n"), BY_END + "\n\n"])
def test_a_bin_named_by_its_end(file: Path, text: str) -> None:
    file.write_bytes(text.encode())
    found, problems = read(file)
    assert problems == []
    assert found.files.low.tolist() == [0, 1, 3]
    assert found.files.high.tolist() == [0, 1, 4]
    assert found.files.count.tolist() == [3, 5, 7]
    assert not found.files.has_bytes.any()
    assert {name: bins.total for name, bins in found.others.items()} == {"dir": 2, "symlink": 1}


def test_a_bin_named_by_its_start_with_bytes(tmp_path: Path) -> None:
    path = tmp_path / "sizes.csv.gz"
    path.write_bytes(gzip.compress(BY_START.encode()))
    found, problems = read(path)
    assert problems == []
    assert found.files.low.tolist() == [0, 1, 2, 4]
    assert found.files.high.tolist() == [0, 1, 3, 100]  # the last bin is open: its one file has all its bytes
    assert found.files.bytes.tolist() == [0, 2, 8, 100]


def test_lines_that_cannot_be_read_are_named_and_the_others_count(file: Path) -> None:
    file.write_text(BY_END + "8,-3,0,0\n16,1e3,0,0\n32,1\n64,99999999999999999999,0,0\n128,1,0,0\n")
    found, problems = read(file)
    assert [problem.line for problem in problems] == [6, 7, 8, 9]
    assert found.files.total == 16


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "empty file"), (b"a,b\n1,2\n", "heading 'a,b'"), (b"\x00\xff\xfe rubbish", "heading")],
)
def test_rubbish_is_refused(file: Path, content: bytes, message: str) -> None:
    file.write_bytes(content)
    with pytest.raises(InputError, match=message):
        list(size_rows(file))


def test_a_heading_alone_is_a_problem(file: Path) -> None:
    file.write_text(BY_END.splitlines()[0] + "\n")
    (problem,) = size_rows(file)
    assert isinstance(problem, Problem)
    assert "no row" in problem.reason


def test_published_histograms(shared_data: Path) -> None:
    lustre, problems = read(shared_data / "fsstats" / "cscratch_20190115_sizebytype_hist.csv")
    assert problems == []
    assert lustre.files.total == 1_179_109_385
    assert lustre.others["dir"].total == 108_701_768
    archive, problems = read(shared_data / "fsstats" / "hpss_file_size_hist_20201016.csv")
    assert problems == []
    assert archive.files.has_bytes.all()
