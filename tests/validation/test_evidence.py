"""Public data are loaded once, into a store that vanishes."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolens.errors import InputError
from iolens.sources import ReadOptions
from iolens.validation.evidence import PublicData, PublicFile, remembered
from iolens.validation.paper_p_evidence import FULLNESS
from tests.validation.made_up import fullness, place

OPTIONS = ReadOptions(filesystem="scratch")


def test_a_file_is_loaded_once_and_the_store_is_gone_afterwards(tmp_path: Path) -> None:
    place(tmp_path, FULLNESS).write_text(fullness() + "1,2\n", "utf-8")
    with PublicData(tmp_path) as evidence:
        evidence.load("tokio-csv", FULLNESS, OPTIONS)
        (tmp_path / FULLNESS.path).write_text("something else", "utf-8")
        evidence.load("tokio-csv", FULLNESS, OPTIONS)
        assert evidence.refused == {FULLNESS.path: 1}
        url = Path(evidence.store.url)
        assert len(evidence.select("scratch").frame("target_capacity").collect()) == 21
        assert url.is_dir()
    assert not url.parent.exists()


@pytest.mark.parametrize("text", ["", "one,two\n1,2\n", "\x00\x01\x02", fullness().splitlines()[0] + "\n"])
def test_a_file_without_a_line_that_can_be_read_is_refused(tmp_path: Path, text: str) -> None:
    place(tmp_path, FULLNESS).write_text(text, "utf-8")
    with PublicData(tmp_path) as evidence, pytest.raises(InputError, match="cscratch_fullness"):
        evidence.load("tokio-csv", FULLNESS, OPTIONS)


def test_a_file_that_is_not_here_says_where_it_was_published(tmp_path: Path) -> None:
    absent = PublicFile("a/b.csv", "https://example.org")
    assert PublicData(tmp_path).digest(absent) is None
    with pytest.raises(InputError, match=r"a/b\.csv: no such file; expected the one published at https://example\.org"):
        PublicData(tmp_path).path(absent)


def test_a_question_is_asked_once_of_each_evidence() -> None:
    asked = []

    @remembered
    def question(evidence: PublicData, number: int) -> int:
        asked.append(number)
        return 2 * number

    item, two = PublicData(None), PublicData(None)
    assert [question(item, 3), question(item, 3), question(item, 4), question(two, 3)] == [6, 6, 8, 6]
    assert asked == [3, 4, 3]
