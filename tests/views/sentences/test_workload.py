"""The workload: mix, throughput, idleness, peaks; and a synthetic workload against its original."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from iolens.analyses.workload.analysis import TargetWorkload, Workload
from iolens.analyses.workload.bandwidth import PeakAgainstSum, Throughput
from iolens.analyses.workload.match import MatchedQuantity, WorkloadMatch
from iolens.units import format_bytes_si
from iolens.views import workload_match as match
from iolens.views.render.tables import show_percent
from iolens.views.workload.tables import coverage, mix, peaks, throughput, verdict

from .generated import QUICK, check, check_language, lists_of, numbers, results_of

PEAKS = lists_of(
    PeakAgainstSum, percentile=st.sampled_from([95.0, 100.0]), direction=st.sampled_from(["read", "write"])
)
WORKLOADS = results_of(
    Workload,
    aggregate=st.one_of(st.none(), results_of(TargetWorkload)),
    throughput=st.one_of(st.none(), results_of(Throughput)),
    targets=lists_of(TargetWorkload),
    peak_vs_sum=PEAKS,
    top=st.just(5),
)


@QUICK
@given(WORKLOADS)
def test_the_numbers_are_those_of_the_tables(result: Workload) -> None:
    said = verdict(result)
    tables = [peaks(result), mix(result), coverage(result)]
    also = set()
    for place in (result.throughput, result.aggregate):
        if isinstance(place, Throughput):
            tables.append(throughput(result))
            minutes = place.longest_idle_min
            also |= {str(minutes), f"{minutes / 60:.3g}", show_percent(place.idle_pct)}
            also |= set(numbers(format_bytes_si(place.idle_below_bytes_per_s)))
            also |= set(numbers(format_bytes_si(place.peak_bytes_per_s)))
            below = place.below_third_of_peak_pct
            also |= {show_percent(below)} if below is not None else set()
        elif isinstance(place, TargetWorkload):
            shares = (place.write_requests_pct, place.write_bytes_pct)
            also |= {show_percent(share) for share in shares if share is not None}
    check(said, *tables, also=also)
    moved = result.throughput is not None and result.throughput.largest_bytes_per_s > 0
    assert ("nothing was moved" in said.lower()) == (result.throughput is not None and not moved)


@st.composite
def matches(draw: st.DrawFn) -> WorkloadMatch:
    quantities = draw(lists_of(MatchedQuantity))
    beyond = sum(quantity.is_beyond for quantity in quantities)
    targets = st.integers(1, 3)
    own = {"original_targets": targets, "synthetic_targets": targets}
    return draw(results_of(WorkloadMatch, quantities=st.just(quantities), beyond=st.just(beyond), **own))


@QUICK
@given(matches())
def test_a_match_counts_what_is_beyond(result: WorkloadMatch) -> None:
    said = match.verdict(result)
    rows = match.tables(result)[0].rows
    beyond = sum(row[-1] == "beyond" for row in rows)
    assert ("All " in said) == (not beyond and len(rows) > 1)
    assert ("beyond" in said) == bool(beyond)
    assert (f"{beyond} of {len(rows)}" in said) == (beyond > 0 and len(rows) > 1)
    assert ("The original has" in said) == (result.original_targets != result.synthetic_targets)
    check_language(said)
