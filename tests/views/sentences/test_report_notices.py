"""The first page of the report: notices agree with the numbers they are about, and are all that is wrong."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from iolens.analyses.capacity.analysis import Capacity
from iolens.analyses.drives.analysis import Drives
from iolens.analyses.imbalance.analysis import Imbalance
from iolens.analyses.imbalance.part import PeerTarget
from iolens.analyses.metadata import Metadata
from iolens.analyses.results import Coverage
from iolens.views import capacity, drives, metadata
from iolens.views.imbalance import report as imbalance
from iolens.views.render import tables as t
from iolens.views.render.section import QUESTIONS, SEVERITIES, Answer, Notice, OverviewLines
from iolens.views.report.centre import FINE, MOST_NOTICES, overview
from iolens.views.utilization import report as utilization

from .generated import QUICK, check_language, lists_of, numbers, results_of

STATES = st.sampled_from(["reached", "projected", "not growing", "unknown"])


@QUICK
@given(results_of(Capacity, threshold_pct=st.sampled_from([80.0, 90.0]), threshold_state=STATES))
def test_a_file_system_is_too_full_or_will_be_soon(result: Capacity) -> None:
    notices = capacity.report_notices(result)
    full = result.fullness_pct
    known = bool(result.samples) and result.window_end is not None and full is not None and not t.is_missing(full)
    of_bytes = [notice for notice in notices if "of the bytes" in notice.words]
    assert [notice.severity for notice in of_bytes if notice.severity == "high"] == (
        ["high"] if known and full >= result.threshold_pct else []
    )
    for notice in of_bytes:
        check_language(notice.words)
        assert t.show_percent(full) in numbers(notice.words)
        assert f"{result.threshold_pct:g}" in numbers(notice.words)
        if notice.severity == "warn":
            assert result.threshold_date is not None
            days = (result.threshold_date - result.window_end.date()).days
            assert f"in {days:,} day" in notice.words
            assert 0 <= days <= capacity.SOON_DAYS


@QUICK
@given(results_of(Drives))
def test_a_drive_is_worn(result: Drives) -> None:
    notices, worn = drives.report_notices(result), result.wear_pct.max
    expected = bool(result.drives) and worn is not None and worn >= drives.NEARLY_WORN_PCT
    assert len(notices) == expected
    for notice in notices:
        assert t.show_percent(worn) in notice.words
        assert (notice.severity == "high") == (worn >= drives.WORN_PCT)


@QUICK
@given(results_of(Metadata))
def test_metadata_servers_are_busy(result: Metadata) -> None:
    notices, busy = metadata.report_notices(result), result.busy_time_pct
    assert len(notices) == (bool(result.samples) and busy is not None and busy >= metadata.MUCH_PCT)
    assert all(t.show_percent(busy) in notice.words for notice in notices)


@QUICK
@given(results_of(Imbalance, peers=lists_of(PeerTarget, 6)))
def test_targets_that_move_nothing_are_named(result: Imbalance) -> None:
    notices = {notice.severity: notice for notice in imbalance.report_notices(result)}
    for finding, severity in (("dead", "high"), ("silent", "warn")):
        names = [line.target for line in result.peers if line.finding == finding]
        assert (severity in notices) == bool(names)
        if names:
            assert notices[severity].words.startswith(names[0])
            assert (" moves " in notices[severity].words) == (finding == "dead" and len(names) == 1)


@QUICK
@given(results_of(Coverage, missing_targets=st.lists(st.sampled_from(["OST0001", "OST0002"]), unique=True)))
def test_missing_data_are_reported(result: Coverage) -> None:
    notices = utilization._data_notices(result)
    missing = [notice for notice in notices if "did not report" in notice.words]
    assert len(missing) == bool(result.missing_targets)
    complete = result.complete_pct
    few = complete is not None and not t.is_missing(complete) and complete < utilization.ENOUGH_DATA_PCT
    assert len(notices) - len(missing) == few
    for notice in notices:
        check_language(notice.words)


NOTICES = st.builds(
    Notice,
    st.sampled_from(SEVERITIES),
    st.sampled_from(list(QUESTIONS)),
    st.sampled_from(["It is full.", "It is slow."]),
    st.sampled_from(["", "Purge.", "Look."]),
    st.sampled_from([(), ("capacity",), ("blame", "--busiest", "1h")]),
)


class Views:
    """A view with what was generated."""

    def __init__(self, notices: list[Notice], questions: list[str]) -> None:
        self.notices, self.questions = notices, questions

    def report_notices(self, result: object) -> list[Notice]:
        return self.notices

    def report_answers(self, result: object) -> list[Answer]:
        return [Answer(question, ("Busy 3 %.",)) for question in self.questions]  # type: ignore[arg-type]


@QUICK
@given(st.lists(NOTICES, max_size=9), st.lists(st.sampled_from(list(QUESTIONS)), unique=True))
def test_the_first_page_has_what_is_wrong_worst_first(notices: list[Notice], questions: list[str]) -> None:
    parts = list(overview("a b", [(Views(notices, questions), object())], {"load": "load-1"}))
    labels = {label: lines for part in parts if isinstance(part, OverviewLines) for label, lines in part.lines}
    wrong = labels.get("What is wrong", ())
    severities = [line.severity for line in wrong if line.severity]
    assert len(severities) == min(len(notices), MOST_NOTICES)
    assert severities == sorted(severities, key=SEVERITIES.index)
    assert any(line.words == FINE for line in wrong) == (not notices and bool(questions))
    unknown = [line.words for line in wrong if line.words.startswith("Not looked at")]
    for question, title in QUESTIONS.items():
        is_named = bool(unknown) and title.lower() in unknown[0]
        assert is_named == (bool(questions) and question not in questions and question != "other")
    commands = [line.command for line in labels.get("What to do next", ()) if line.command]
    assert all(command.endswith("-f 'a b'") for command in commands)
    assert not [command for command in commands if "blame" in command and "who" not in questions]
    assert ("How busy" in labels) == ("load" in questions)
