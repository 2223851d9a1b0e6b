"""`iolens blame`: what it prints, its figures, and what it refuses."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from iolens.analyses.attribution.whose import KINDS
from iolens.questions.blame import question
from iolens.store.store import Store
from tests.analyses.blame.test_blame import job, made_up
from tests.chosen_calibration import choose_grace
from tests.cli.command import iolens
from tests.hostile_names import SOURCES_OF_TROUBLE
from tests.store.samples import capture


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    rows = made_up(1)
    rows.jobs += [job("101", "ana", "climate", "wrf"), job("102", SOURCES_OF_TROUBLE[0], "climate", "lammps")]
    Store(folder).ingest([capture(list(rows.items()), "made up")], "test")
    choose_grace(folder)
    return folder


def test_every_kind_of_name_is_an_option() -> None:
    assert question.KINDS == KINDS


def test_the_sentence_says_what_the_first_line_says(store: Path) -> None:
    done = iolens("blame", "--store", store)
    assert done.code == 0, done.err
    answer = json.loads(iolens("blame", "--store", store, "--format", "json").out)
    first = answer["who"][0]
    assert f"took {first['share_pct']:.1f} % of the disk time" in done.out
    assert "unattributed" in done.out
    assert "1 job id cut short or without a field" in done.out


def test_csv_has_a_line_for_each_name_and_for_the_rest(store: Path) -> None:
    done = iolens("blame", "--store", store, "--by", "user", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert rows[-1]["name"] == "unattributed"
    assert sum(float(row["share_pct"]) for row in rows) == pytest.approx(100)


def test_figures(store: Path, tmp_path: Path) -> None:
    done = iolens(
        "blame", "--store", store, "--figure", f"shares={tmp_path}/a.svg", "--figure", f"targets={tmp_path}/b.html"
    )
    assert done.code == 0, done.err
    assert "101" in (tmp_path / "a.svg").read_text()
    assert "OST0001" in (tmp_path / "b.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--busiest", "1h", "--plateau", "1"), "give one of them"),
        (("--plateau", "9"), "no plateau 9 in this window"),
        (("--resolution", "60s"), "job_stats are not rolled up"),
        (("--target", "OST0099"), "no target 'OST0099'"),
        (("--from", "2030-01-01", "--to", "2030-01-02"), "nothing is stored of this window"),
    ],
)
def test_what_cannot_be_asked(store: Path, arguments: tuple[str, ...], message: str) -> None:
    done = iolens("blame", "--store", store, *arguments)
    assert done.code in (1, 2)
    assert message in done.err
    assert len(done.err.splitlines()) <= 5
