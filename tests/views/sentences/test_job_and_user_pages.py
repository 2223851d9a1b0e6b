"""What is said to users of a job, of their jobs, and of what to change first."""

from __future__ import annotations

import re
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from iolens.analyses.job_page import DiskCost
from iolens.analyses.runs.advise import AdviceLine
from iolens.units import format_bytes_si
from iolens.views import job_page as job
from iolens.views import user_page as user
from iolens.views.brief_page import bytes_words, cost_words, first_advice, hours, moved_words, plain_hours
from iolens.views.render.tables import is_missing, show_percent

from .generated import AMOUNTS, COUNTS, NAMES, QUICK, START, check_language, lists_of, numbers, results_of

COSTS = results_of(DiskCost, method=st.sampled_from(["job_stats", "overlap", "both"]))
MAYBE_COUNTS = st.one_of(st.none(), COUNTS)
GAINS = st.one_of(st.none(), st.sampled_from([1.0, 1.004, 29.0, 1234.5]))
ADVICE = lists_of(AdviceLine, estimated_gain=GAINS, gain_from=st.sampled_from(["study", "like_runs", None]))


@QUICK
@given(COSTS)
def test_cost_has_the_numbers_of_the_result(cost: DiskCost) -> None:
    said = cost_words("It", "scratch", cost, "while it ran")
    expected = [show_percent(cost.share_pct)]
    expected += [] if cost.disk_seconds is None else [plain_hours(cost.disk_seconds).replace(",", "")]
    expected += [] if cost.fsu_pct is None else [show_percent(cost.fsu_pct)]
    assert numbers(said) == numbers(" ".join(expected))
    assert (" about " in said) == (cost.method != "job_stats")
    if cost.disk_seconds and not is_missing(cost.disk_seconds):
        assert float(expected[1]) > 0
    check_language(said)


@QUICK
@given(COSTS)
def test_expensive_bytes_are_fewer_than_their_share(cost: DiskCost) -> None:
    said = bytes_words(cost)
    assert (said is None) == (cost.bytes_share_pct is None or cost.method != "job_stats")
    if said is not None and cost.bytes_share_pct is not None:
        assert ("only" in said) == (cost.share_pct > 2 * cost.bytes_share_pct)
        assert numbers(said) == numbers(show_percent(cost.bytes_share_pct))


@QUICK
@given(AMOUNTS)
def test_hours(value: float) -> None:
    said = hours(value)
    assert (said == "0 core-hours") == (value == 0)
    check_language(said)


@QUICK
@given(MAYBE_COUNTS, MAYBE_COUNTS)
def test_moved(read: int | None, written: int | None) -> None:
    said = moved_words(read, written)
    known = [count for count in (read, written) if count is not None]
    assert (said is None) == (not known)
    assert numbers(said or "") == [number for count in known for number in numbers(format_bytes_si(count))]


@QUICK
@given(COUNTS, AMOUNTS, MAYBE_COUNTS, MAYBE_COUNTS, st.lists(COSTS, max_size=2), COUNTS, ADVICE)
def test_a_user_page(
    jobs: int, core_hours: float, read: int | None, written: int | None, costs: Any, slow: int, advice: Any
) -> None:
    page: Any = SimpleNamespace(
        window_start=START, window_end=START + timedelta(days=1), user="anna", jobs=jobs, core_hours=core_hours,
        read_bytes=read, write_bytes=written, uses=[SimpleNamespace(filesystem="scratch", cost=cost) for cost in costs],
        slow_runs=[None] * (slow % 5), advice=advice, is_judged=True, runs=jobs,
    )  # fmt: skip
    paragraphs = list(user.answer(page))
    said = "\n".join(paragraphs)
    assert said.startswith("Nothing of anna") == (not jobs)
    if jobs:
        assert f"ran {jobs:,} job{'s' * (jobs != 1)}" in said
        assert bool(re.search(r"\b[Tt]hey\b", said)) == (jobs != 1)
        assert ("slower than like runs" in said) == bool(slow % 5)
    check_language(said)


@QUICK
@given(ADVICE, st.booleans(), COUNTS)
def test_what_to_change_first_is_the_first_line(lines: list[AdviceLine], is_judged: bool, runs: int) -> None:
    said = first_advice(lines, is_judged, runs)
    is_of_others = bool(lines and lines[0].subject)  # such as a slow OST: nothing that the program could change
    assert ("What to change first" in said) == (bool(lines) and not is_of_others)
    assert ("Not of the program's making" in said) == is_of_others
    gain = lines[0].estimated_gain if lines and not is_of_others else None
    assert ("times faster" in said) == (gain is not None and gain > 1.005)
    if gain is not None and gain > 1.005:
        shown = float(numbers(said)[0])
        assert abs(shown - gain) <= 0.01 * gain
        assert "e+" not in said
    check_language(said)


@QUICK
@given(NAMES, st.one_of(st.none(), COUNTS), AMOUNTS, st.lists(COSTS, max_size=2), st.integers(0, 10**7))
def test_a_job_page(name: str, nodes: int | None, core_hours: float, costs: Any, seconds: int) -> None:
    page: Any = SimpleNamespace(
        job_id="7", programs=[name], name=None, user="anna", times_from="record", start=START,
        end=START + timedelta(seconds=seconds), nodes=nodes, core_hours=core_hours, explanation=None, advice=[],
        is_judged=True, runs=1,
        uses=[SimpleNamespace(filesystem="scratch", cost=cost, layers=[]) for cost in costs],
    )  # fmt: skip
    said = "\n".join(job.answer(page))
    assert "what it moved is not known" in said
    assert said.count("of the disk time") == len(costs)
    assert ("How much disk time it took is not known" in said) == (not costs)
    if nodes:
        assert f" on {nodes:,} node{'s' * (nodes != 1)}" in said
    check_language(said)
