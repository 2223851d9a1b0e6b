"""Jobs before and after, and applications: what moved, and which moves most."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from iolens.analyses.job_applications import Applications, ApplicationTotals
from iolens.analyses.job_compare import JobComparison, SizeShift, TotalShift
from iolens.units import format_bytes_si
from iolens.views import job_applications as applications
from iolens.views.job_compare import QUANTITIES, sizes, totals, verdict

from .generated import PERCENTS, QUICK, check, check_language, lists_of, numbers, results_of

P = st.floats(1e-9, 1)


@st.composite
def comparisons(draw: st.DrawFn) -> JobComparison:
    shifts = []
    for size in draw(st.lists(st.sampled_from([4096, 65536, 1 << 20]), unique=True)):
        for share in ("rpcs", "bytes"):
            first, second = draw(PERCENTS), draw(PERCENTS)
            shift = results_of(
                SizeShift, direction=st.just("read"), size_bytes=st.just(size), share=st.just(share),
                first_pct=st.just(first), second_pct=st.just(second), difference_points=st.just(second - first), p=P,
            )  # fmt: skip
            shifts.append(draw(shift))
    total = results_of(TotalShift, quantity=st.sampled_from(list(QUANTITIES)), ratio=st.floats(1e-3, 1e3), p=P)
    lines = draw(st.lists(total, min_size=1, max_size=2))
    moved = any(line.moved for line in (*shifts, *lines))
    outcome = "moved" if moved else draw(st.sampled_from(["not shown", "undecided"]))
    own = {"sizes": st.just(shifts), "totals": st.just(lines), "verdict": st.just(outcome), "smallest_p": P}
    return draw(results_of(JobComparison, **own, significance=st.just(0.05)))


@QUICK
@given(comparisons())
def test_what_moved_is_what_the_tables_call_moved(result: JobComparison) -> None:
    said = verdict(result)
    groups = {str(group.jobs) for group in (result.first, result.second)}
    assert result.smallest_p is not None
    further = {str(number) for number in range(9)}
    also = groups | {f"{result.smallest_p:.2g}", "0.05", "0.1"} | (further if "further" in said else set())
    check(said, sizes(result), totals(result), also=also)
    assert said.startswith("The shift is real") == (result.verdict == "moved")


@QUICK
@given(comparisons())
def test_rose_and_fell_are_not_said_of_equal_numbers(result: JobComparison) -> None:
    said = verdict(result)
    for clause in said.split(" (p "):
        if " from " in clause and " to " in clause:
            first, second = (float(number) for number in numbers(clause.rpartition(" from ")[2])[:2])
            assert ("rose from" in clause) == (second > first)
            assert ("fell from" in clause) == (second < first)


LINES = lists_of(
    ApplicationTotals,
    3,
    0,
    read_bytes=st.sampled_from([None, 0, 7, 10**9]),
    write_bytes=st.sampled_from([None, 0, 10**9]),
)


@QUICK
@given(results_of(Applications, applications=LINES, by=st.just("name")))
def test_the_application_that_moves_most_is_named_with_its_equals(result: Applications) -> None:
    note = applications.totals(result).note
    check_language(note)
    moved = [(line.read_bytes or 0) + (line.write_bytes or 0) for line in result.applications]
    most = max(moved, default=0)
    assert (" moves most: " in note) == (bool(most) and moved.count(most) == 1)
    assert (" move most: " in note) == (bool(most) and moved.count(most) > 1)
    assert not most or format_bytes_si(most) in note
