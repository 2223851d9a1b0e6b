"""What holds for every source, whoever wrote it: names, recognition, damage, and that worker processes can take it."""

from __future__ import annotations

import gzip
import pickle
from pathlib import Path

import pytest

from iolens.errors import InputError, IolensError
from iolens.records import Problem, Row, Rows, Sample, Samples
from iolens.schema import TABLES
from iolens.sources import get_source, recognise, source_names
from iolens.sources.reading.captures import read_each
from iolens.sources.reading.options import ReadOptions
from iolens.store.readers import guarded

REPOSITORY = Path(__file__).parent.parent.parent
RUBBISH = {
    "empty": b"",
    "one byte": b"\x00",
    "zeros": bytes(4096),
    "picture": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20,
    "program": b"\x7fELF\x02\x01\x01" + bytes(range(256)) * 20,
    "prose": b"It was a dark and stormy night; the disks spun.\n" * 50,
    "latin": "Größe: 17 Öre\n".encode("latin-1") * 50,
    "json": b'{"name": "something else", "values": [1, 2, 3]}\n',
    "csv": b"colour,shape\nred,round\nblue,square\n",
    "cut gzip": gzip.compress(b"words " * 1000, mtime=0)[:60],
    "hdf5 start": b"\x89HDF\r\n\x1a\n" + bytes(100),
    "sqlite start": b"SQLite format 3\x00" + bytes(100),
}
SUPPLIED = ReadOptions(filesystem="scratch", target="scratch-OST0000", timezone="UTC", interval_s=5.0)

SOURCES = source_names()


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_says_what_it_is(name: str) -> None:
    source = get_source(name)
    assert source.name == name
    assert source.summary
    assert "\n" not in source.summary
    assert f"`{name}`" in (REPOSITORY / "docs" / "sources.md").read_text()


@pytest.mark.parametrize("name", SOURCES)
def test_rubbish_is_not_recognised(tmp_path: Path, name: str) -> None:
    source = get_source(name)
    for what, content in RUBBISH.items():
        path = tmp_path / what
        path.write_bytes(content)
        assert not source.recognises(path, content[:65536]), what
    (tmp_path / "folder").mkdir()
    assert not source.recognises(tmp_path / "folder", b"")


@pytest.mark.parametrize("name", SOURCES)
def test_rubbish_given_by_name_is_refused_with_its_place(tmp_path: Path, name: str) -> None:
    """Whatever is wrong inside, the user reads which file and why; nothing is made of it."""
    source = get_source(name)
    for what, content in RUBBISH.items():
        path = tmp_path / what
        path.write_bytes(content)
        try:
            items = [item for capture in source.captures([path], SUPPLIED) for item in guarded(capture)]
        except IolensError as error:
            items = [Problem(str(error), None, "refused as a whole")]
        assert items, what
        assert all(isinstance(item, Problem) for item in items), what
        assert any(what in item.place for item in items), what


@pytest.mark.parametrize("name", SOURCES)
def test_a_missing_file_does_not_stop_the_others(tmp_path: Path, name: str) -> None:
    try:
        captures = list(get_source(name).captures([tmp_path / "a", tmp_path / "b"], SUPPLIED))
        problems = [item for capture in captures for item in guarded(capture)]
    except InputError as error:
        problems = [Problem(error.place, None, error.problem)]
    assert problems
    assert all(isinstance(item, Problem) for item in problems)


def test_a_file_on_which_listing_fails_is_refused_and_the_others_are_opened(tmp_path: Path) -> None:
    def read(path: Path) -> str:
        if path.name == "odd":
            raise IndexError("index 0 is out of bounds")
        if path.name == "locked":
            raise PermissionError(13, "Permission denied")
        return path.name

    opened, refused = read_each([tmp_path / name for name in ("a", "odd", "locked", "b")], read)
    assert opened == ["a", "b"]
    reasons = [str(item) for capture in refused for item in guarded(capture)]
    assert reasons[0].startswith(f"{tmp_path}/odd: not read; please report this: IndexError at ")
    assert reasons[1] == f"{tmp_path}/locked: cannot be read: Permission denied"


def test_a_source_that_fails_to_recognise_does_not_hide_the_one_that_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(path: Path, head: bytes) -> bool:
        raise OverflowError("too large")

    monkeypatch.setattr(type(get_source("controller")), "recognises", lambda self, path, head: fails(path, head))
    path = tmp_path / "histogram.csv"
    path.write_text("bin_size,num_files\n0,1\n")
    assert recognise(path).name == "size-histogram"
    path.write_text("colour,shape\n")
    with pytest.raises(InputError, match=r"not recognised .controller: please report this: OverflowError"):
        recognise(path)


def real_captures(shared_data: Path, name: str) -> list[Path]:
    """Some real files of that source, as `iolens ingest` would find them."""
    folders = [
        "lustre-lctl", "lmt-db", "h5lmt", "ltop-record", "iostat", "pcp", "mmperfmon", "collectd", "lfs-df",
        "nersc-fs-design", "ior", "fio", "mdtest", "isdct", "nvme-smart", "fsstats", "robinhood",
        "slurm",
    ]  # fmt: skip
    if name == "lustre-client-proc":  # a directory is one capture
        return sorted(path for path in (shared_data / name).iterdir() if get_source(name).recognises(path, b""))
    files = sorted(file for folder in folders for file in (shared_data / folder).rglob("*") if file.is_file())
    result = []
    for file in files:
        with file.open("rb") as stream:
            head = stream.read(65536)
        if get_source(name).recognises(file, head):
            result.append(file)
    return result[:4]


@pytest.mark.parametrize("name", [name for name in SOURCES if name not in ("spool", "lustre-proc")])
def test_real_captures_can_be_read_again_and_by_another_process(shared_data: Path, name: str) -> None:
    """Called twice, the same items in the same order; sent through a pipe, the same again; all of declared tables."""
    files = real_captures(shared_data, name)
    if not files:
        pytest.skip(f"no capture of {name} here")
    for capture in get_source(name).captures(files, SUPPLIED):
        first, second = list(guarded(capture)), list(guarded(capture))
        travelled = list(guarded(pickle.loads(pickle.dumps(capture))))
        assert [plain(item) for item in first] == [plain(item) for item in second]
        assert [plain(item) for item in first] == [plain(item) for item in travelled]
        for item in first:
            if isinstance(item, Row | Rows | Sample | Samples):
                names = {column.name for column in TABLES[item.table].columns}
                given = set(item.values if isinstance(item, Row) else item.columns if isinstance(item, Rows) else ())
                assert given <= names, given - names


def plain(item: object) -> str:
    if isinstance(item, Rows):
        return repr((item.table, item.count, {name: list_of(column) for name, column in item.columns.items()}))
    if isinstance(item, Samples):
        counters = {name: list_of(counter) for name, counter in item.counters.items()}
        return repr((item.table, item.filesystem, item.target, list_of(item.time_us), counters, item.labels))
    return repr(item)


def list_of(column: object) -> object:
    return column.tolist() if hasattr(column, "tolist") else column
