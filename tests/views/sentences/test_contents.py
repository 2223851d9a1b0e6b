"""Contents: how many files, how large, how old, and what changed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from iolens.analyses.contents.analysis import Contents
from iolens.analyses.contents.change import AmountChange, ScanComparison, TotalChange
from iolens.analyses.contents.distribution import SizePoint, Within
from iolens.views.contents.tables import STALE_S, comparison, headline, sizes, verdict
from iolens.views.render.tables import show_percent

from .generated import COUNTS, PERCENTS, QUICK, check, numbers, results_of

CHANGES = st.one_of(st.none(), st.floats(-100, 1e6), st.sampled_from([0.0, 0.04, -0.04, -100.0]))
AMOUNT_CHANGES = results_of(AmountChange, change_pct=CHANGES)


@st.composite
def scans(draw: st.DrawFn) -> Contents:
    low, middle, high = sorted(draw(st.lists(PERCENTS, min_size=3, max_size=3)))
    least, most_bytes = sorted(draw(st.lists(COUNTS, min_size=2, max_size=2)))
    ends = {"bytes_min_pct": st.just(low), "bytes_avg_pct": st.just(middle), "bytes_max_pct": st.just(high)}
    is_exact = draw(st.booleans())
    ends |= {"bytes": COUNTS, "bytes_pct": PERCENTS} if is_exact else {"bytes": st.none(), "bytes_pct": st.none()}
    most = draw(results_of(SizePoint, files_pct=st.floats(95, 100), **ends))
    clock = st.sampled_from(["atime", "mtime"])
    within = draw(st.lists(results_of(Within, clock=clock, age_s=st.just(STALE_S)), max_size=1))
    totals = results_of(TotalChange, files=AMOUNT_CHANGES, bytes=AMOUNT_CHANGES)
    compared = draw(st.one_of(st.none(), results_of(ScanComparison, total=totals)))
    own = {
        "size_cdf": st.just([most]), "within": st.just(within), "comparison": st.just(compared),
        "files": st.one_of(st.none(), COUNTS), "top": st.just(5), "min_bytes": st.just(least),
        "max_bytes": st.just(most_bytes), "bytes": COUNTS if is_exact else st.none(),
    }  # fmt: skip
    return draw(results_of(Contents, **own))


@QUICK
@given(scans())
def test_the_numbers_are_those_of_the_tables(result: Contents) -> None:
    said = verdict(result)
    if result.files is None:
        assert said == "No scan in this window."
        return
    tables = [headline(result), sizes(result)]
    also = {"90"} | {show_percent(point.bytes_avg_pct) for point in result.size_cdf if point.bytes_avg_pct is not None}
    for within in result.within:
        shares = (within.files_pct, within.bytes_pct)
        also |= {show_percent(100.0 - share) for share in shares if share is not None}
    if result.comparison is not None:
        tables.append(comparison(result, result.comparison))
        also |= set(numbers(f"{result.comparison.earlier.time:%Y-%m-%d}"))
    check(said, *tables, also=also)


@QUICK
@given(scans())
def test_one_file_holds_and_many_files_hold(result: Contents) -> None:
    said = verdict(result)
    if result.files is not None:
        assert said.startswith(f"{result.files:,} file{'s' * (result.files != 1)}")
        assert (" file holds " in said) == (result.files == 1 and " hold" in said.partition(".")[0])
        assert ("Half of them" in said) == (result.files > 1 and result.sizes.median_bytes is not None)


@QUICK
@given(scans())
def test_a_change_has_the_sign_it_has(result: Contents) -> None:
    said = verdict(result)
    if result.comparison is not None and result.files is not None:
        files = result.comparison.total.files.change_pct
        assert ("Since " in said) == (files is not None)
        if files is not None:
            text = said.partition(": files ")[2].partition(" %")[0]
            assert text.startswith("+") == (files > 0)
            assert (float(text.replace(",", "")) == 0) == (files == 0)
