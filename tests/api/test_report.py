"""A report from Python: the page that the verb writes, and what it says of itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import iolens
from iolens.errors import UsageError
from iolens.store.store import Store
from tests.analyses.capacity_rows import readings, table_of
from tests.cli.command import iolens as verb

MADE = re.compile(r"20\d\d-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(Z| UTC)?|\bi\d+\b|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""When the page was made, and the names that its figures have in it."""


def test_the_page_is_that_of_the_verb(tmp_path: Path) -> None:
    url = tmp_path / "store"
    Store(url).append("target_capacity", table_of(readings(range(8), [100, 110, 130, 120, 150, 190, 240, 300])))
    window = ("--from", "2020-09-15", "--to", "2020-09-20")
    assert verb("report", "--store", url, *window, "-o", tmp_path / "verb.html").code == 0
    with iolens.open(str(url)) as store:
        written = store.report(tmp_path / "python.html", "scratch", since="2020-09-15", until="2020-09-20")
        with pytest.raises(UsageError, match="holds no file system 'home'"):
            store.report(tmp_path / "none.html", ["home"])
    assert (written.filesystems, written.refused) == (("scratch",), ())
    assert written.bytes == (tmp_path / "python.html").stat().st_size
    by_verb, by_python = (MADE.sub("", (tmp_path / f"{name}.html").read_text("utf-8")) for name in ("verb", "python"))
    assert by_python == by_verb
