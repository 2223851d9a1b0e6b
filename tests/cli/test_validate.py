"""`iolens validate`: exit codes, studies, formats, where the data are looked for."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from tests.cli.command import iolens
from tests.validation.all_studies import AllStudies
from tests.validation.made_up import made_up


def test_the_public_data_bear_out_the_studies(studies_with_data: AllStudies) -> None:
    done = studies_with_data.finished
    assert (done.code, done.out, done.err) == (0, "", "")
    result = json.loads(studies_with_data.written)
    assert result["passed"]
    assert result["verdicts"]["differs"] == result["verdicts"]["failed"] == result["verdicts"]["no data"] == 0
    assert result["verdicts"]["agrees"] >= 65
    assert all(file["present"] and file["refused_lines"] == 0 for file in result["inputs"])


def test_numbers_that_differ_are_an_error(tmp_path: Path) -> None:
    done = iolens("validate", "--study", "P", "--data", made_up(tmp_path), "--format", "csv")
    assert done.code == 1
    assert done.err == ""
    lines = {row["quantity"]: row for row in csv.DictReader(io.StringIO(done.out))}
    growth = lines["mean daily growth"]
    assert (growth["published"], growth["verdict"]) == ("133", "differs")
    assert float(growth["recomputed"]) == pytest.approx(0.2048)


def test_the_first_line_says_whose_data_it_is_about() -> None:
    done = iolens("validate", "--study", "U")
    assert done.out.splitlines()[0] == "Published studies, recomputed from their own data (not from yours)"
    assert "this is not about your data" in " ".join(iolens("validate", "--help").out.split())


@pytest.mark.parametrize("named", [True, False], ids=["environment", "beside"])
def test_data_are_looked_for_in_the_usual_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: bool) -> None:
    made_up(tmp_path / "shared" / "data")
    monkeypatch.delenv("IOLENS_SHARED", raising=False)
    if named:
        monkeypatch.setenv("IOLENS_SHARED", str(tmp_path / "shared"))
    folder = tmp_path if named else tmp_path / "work"
    folder.mkdir(exist_ok=True)
    done = iolens("validate", "--study", "p", "--format", "json", cwd=folder)
    assert done.code == 1
    assert json.loads(done.out)["verdicts"]["no data"] == 0


def test_without_data_the_equations_are_recomputed(studies_without_data: AllStudies) -> None:
    assert studies_without_data.finished.code == 0
    assert "No data were given: only what needs none is recomputed." in studies_without_data.written
    assert "22.34" in studies_without_data.written
    assert "551.3" in studies_without_data.written


def test_one_study_as_markdown(tmp_path: Path) -> None:
    done = iolens("validate", "--study", "U", "--format", "markdown", cwd=tmp_path)
    assert done.code == 0
    assert "| U | Table I | write rate | printed | 551 | 551.3 | MiB/s | 0.0 | agrees |" in done.out
    assert "| P |" not in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--study", "P,X"], "no study is called 'X'; there are: D, N, P, S, U"),
        (["--data", "/no/such/folder"], "does not exist"),
    ],
)
def test_what_is_wrong_is_said(arguments: list[str], message: str) -> None:
    done = iolens("validate", *arguments)
    assert done.code == 2
    assert message in done.err
