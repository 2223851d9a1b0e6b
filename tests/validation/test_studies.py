"""Every study: its checks are well formed, and the equations come out without any data."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from iolens.errors import UsageError
from iolens.validation import Validation, chosen_studies, get_study, study_tags, validate
from iolens.validation.checks import VERDICTS
from tests.console_examples import examples, missing, run
from tests.test_docs import DOCS
from tests.validation.all_studies import AllStudies
from tests.views.documented import undocumented


@pytest.fixture(scope="module")
def without_data(studies_without_data: AllStudies) -> Validation:
    return studies_without_data.result


def test_studies_are_found_by_their_modules() -> None:
    assert study_tags() == ["D", "N", "P", "S", "U"]
    assert get_study("p").tag == "P"
    assert [study.tag for study in chosen_studies(["u", "P", "U"])] == ["U", "P"]
    with pytest.raises(UsageError, match="no study is called 'Q'; there are: D, N, P, S, U"):
        chosen_studies(["P", "Q"])


@pytest.mark.parametrize("tag", study_tags())
def test_every_number_has_its_place_its_reason_and_a_tolerance_with_a_reason(tag: str) -> None:
    checks = get_study(tag).checks
    names = Counter((check.where, check.quantity) for check in checks)
    assert [name for name, count in names.items() if count > 1] == []
    for check in checks:
        assert check.where
        assert check.reason
        if check.recompute is None:
            assert not check.needs
        else:
            assert check.published.why
            assert check.published.least <= check.published.most
        if check.otherwise is not None:
            number = float(check.otherwise.recomputed)
            assert not check.published.admits(number), f"{check.quantity}: nothing needs explaining"


@pytest.mark.parametrize("tag", study_tags())
def test_every_file_is_documented(tag: str) -> None:
    page = (DOCS / "validation.md").read_text("utf-8")
    for file in {file for check in get_study(tag).checks for file in check.needs}:
        assert f"`{file.path}`" in page
        assert file.origin.partition(",")[0] in page


def test_every_key_is_documented() -> None:
    assert undocumented(Validation, "validation.md") == []


def test_every_verdict_is_documented() -> None:
    page = (DOCS / "validation.md").read_text("utf-8")
    assert [verdict for verdict in VERDICTS if f"| {verdict} |" not in page] == []


def test_every_explained_difference_is_documented() -> None:
    page = (DOCS / "validation.md").read_text("utf-8").partition("\n## What differs, and why\n")[2]
    explained = [check.otherwise for study in chosen_studies() for check in study.checks if check.otherwise is not None]
    assert len(explained) >= 10
    assert [item.recomputed for item in explained if not re.search(rf"\b{re.escape(item.recomputed)}\b", page)] == []


def test_the_example_prints_what_it_says(tmp_path: Path) -> None:
    for command, shown in examples(DOCS / "validation.md"):
        assert missing(shown, run(command, tmp_path).stdout.splitlines()) == [], command


def test_equations_need_no_data(without_data: Validation) -> None:
    assert without_data.passed
    computed = [line for line in without_data.checks if line.recomputed is not None]
    assert len(computed) >= 25
    assert {line.verdict for line in computed} == {"agrees", "differs, explained"}
    assert {line.study for line in computed} == {"D", "N", "P", "S", "U"}
    assert without_data.verdicts["no data"] >= 40
    assert without_data.verdicts["failed"] == without_data.verdicts["differs"] == 0
    assert sum(without_data.verdicts.values()) == len(without_data.checks)
    assert [file.present for file in without_data.inputs] == [False] * len(without_data.inputs)


def test_published_equations(without_data: Validation) -> None:
    values = {(line.study, line.quantity): line.recomputed for line in without_data.checks}
    assert values["P", "capacity for SSI 3"] == pytest.approx(22.344)
    assert values["P", "capacity for SSI 4"] == pytest.approx(29.792)
    assert values["P", "smallest DWPD"] == pytest.approx(0.2316, abs=1e-4)
    assert values["P", "largest DWPD"] == pytest.approx(0.3804, abs=1e-4)
    assert values["P", "capacity gained from 10 to 3 DWPD"] == pytest.approx(25)
    assert values["U", "write rate"] == pytest.approx(551.26, abs=0.01)
    assert values["U", "read rate"] == pytest.approx(775.34, abs=0.01)
    assert values["U", "share of the bytes read that was discarded"] == pytest.approx(15.79, abs=0.01)
    assert values["U", "FSU of a second with 100 writes of 4 KiB and 50 reads of 1 MiB"] == pytest.approx(
        20.93, abs=0.005
    )


def test_progress_is_reported_for_every_number() -> None:
    seen: list[str] = []
    result = validate(None, ["U"], seen.append)
    assert len(seen) == len(result.checks)
    assert seen[0] == "U Table I"


def test_an_empty_folder_is_no_data(tmp_path: Path) -> None:
    result = validate(tmp_path, ["P"])
    assert result.passed
    assert result.data == str(tmp_path)
    assert result.verdicts["no data"] >= 40
