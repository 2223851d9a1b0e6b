"""What is said of one run: sentences agree with their numbers, pages load nothing, names are shown and never obeyed."""

from __future__ import annotations

import json
import re
from dataclasses import fields, replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

import pytest

from iolens.analyses.runs.advise import run_advice
from iolens.analyses.runs.compare import MEASURES, run_comparison
from iolens.analyses.runs.like_runs import like_rates
from iolens.analyses.runs.summary import RunSummary, run_summary
from iolens.analyses.runs.timeline import run_timeline
from iolens.analyses.runs.used_files import STRATEGIES
from iolens.views.render import matplotlib_figure
from iolens.views.render import tables as t
from iolens.views.render.json_text import to_json, to_plain
from iolens.views.report.page import ReportInfo
from iolens.views.runs_advise import FIGURES as ADVICE_FIGURES
from iolens.views.runs_advise import figures as advice_figures
from iolens.views.runs_advise import run_advice_text
from iolens.views.runs_advise import tables as advice_tables
from iolens.views.runs_compare import FIGURES as COMPARE_FIGURES
from iolens.views.runs_compare import MEASURES as NAMED_MEASURES
from iolens.views.runs_compare import figures as compare_figures
from iolens.views.runs_compare import tables as compare_tables
from iolens.views.runs_compare import verdict
from iolens.views.runs_summary import words
from iolens.views.runs_summary.figures import figures as summary_figures
from iolens.views.runs_summary.page import run_page
from iolens.views.runs_summary.text import WIDTH, run_summary_text
from iolens.views.runs_timeline import FIGURES, activity_words, figures
from iolens.views.runs_timeline import tables as timeline_tables
from tests.analyses.runs.one_run import GIB, MIB, file_row, own_files, run_record
from tests.hostile_names import SOURCES_OF_TROUBLE

ABOUT = ReportInfo("1.2.3", datetime(2026, 11, 15, tzinfo=UTC))
KEYS = (
    "jobid", "user", "executable", "nprocs", "nodes", "runtime_s", "start", "modules", "mib_per_s_per_node",
    "io_time_pct", "metadata_time_pct", "sequential_pct", "aligned_pct", "access_sizes", "file_kinds", "strategy",
    "findings", "not_evaluated", "incomplete_modules",
)  # fmt: skip


def page(files: Any = None, like: Any = None, **values: Any) -> RunSummary:
    return run_summary(run_record(files, **values), like=like)


def flat(text: str) -> str:
    return " ".join(text.split())


# JSON -----------------------------------------------------------------------------------------------------------------


def test_the_json_of_a_summary_has_its_keys() -> None:
    plain = to_plain(page())
    assert tuple(plain)[: len(KEYS)] == KEYS
    assert plain["nodes"] is None
    assert plain["mib_per_s_per_node"] is None
    assert plain["start"] == "2023-11-14T22:13:20Z"
    assert plain["modules"]["POSIX"] == {
        "read_bytes": 0, "write_bytes": 16 * GIB, "files": 16, "agg_perf_by_slowest_mib_per_s": 1638.4,
    }  # fmt: skip
    assert plain["file_kinds"] == {"unique": 16, "shared": 0, "partially_shared": 0}
    assert set(plain["access_sizes"]) == {"read", "write"}
    assert [len(counts) for counts in plain["access_sizes"].values()] == [10, 10]
    assert sum(plain["access_sizes"]["write"]) == 16384
    assert plain["access_size_upper_bytes"][4] == MIB
    assert plain["access_size_upper_bytes"][-1] is None


def test_a_module_without_accumulator_has_no_rate() -> None:
    totals = {"STDIO": {"read_bytes": 1, "write_bytes": 2, "files": 3, "agg_perf_by_slowest_mib_per_s": None}}
    assert to_plain(page(module_totals=json.dumps(totals)))["modules"] == totals


def test_a_timeline_as_json_has_bins_and_phases_but_no_matrix() -> None:
    plain = to_plain(run_timeline(run_record()))
    assert "by_rank" not in plain
    assert len(plain["write_bytes"]) == plain["bins"] == 200
    assert plain["phases"][0]["mib_per_s"] == pytest.approx(1638.4)


# Text -----------------------------------------------------------------------------------------------------------------


def test_the_page_says_what_the_numbers_are() -> None:
    text = run_summary_text(page(metadata_s=150.0, write_s=10.0, nodes=4))
    assert max(map(len, text.splitlines())) <= WIDTH
    shown = flat(text)
    assert "I/O of solver, job 4711 of user alice" in shown
    assert "100 s, 16 processes, 4 nodes" in shown
    assert "file per process: most bytes are of files that one rank uses" in shown
    assert "(0 % shared, 0 % partially shared, 100 % unique, 16 of 16 ranks move bytes)" in shown
    assert "Rate 1,638.4 MiB/s (in the 10 s of the slowest rank)" in shown
    assert "Rate per node 409.60 MiB/s" in shown
    assert "Time in I/O 10.0 % of all processes' time; slowest rank 10.0 %" in shown
    assert "of it metadata 93.8 %" in shown
    assert "WARN metadata-bound: 94 % of the time in I/O calls (150 of 160 s)" in shown
    assert "lfs setstripe -c 24 /scratch/out" in shown  # 16 GiB
    assert "Not evaluated, data missing: below-stripe, client-cache, slow-ost, small-rpcs, stat-storm" in shown
    assert len(text.splitlines()) < 60


def test_a_serial_program_is_not_called_by_a_parallel_name() -> None:
    assert "Strategy none: there is only one process" in flat(run_summary_text(page(processes=1, io_ranks=1)))


def test_what_is_not_complete_stands_before_the_numbers() -> None:
    text = run_summary_text(page(partial=True, incomplete_modules="POSIX", shared_files_overlap=True))
    warnings = [line for line in text.splitlines() if line.startswith("Warning:")]
    assert len(warnings) == 2
    assert text.index("Warning:") < text.index("Strategy")
    assert "records of POSIX are not complete" in text
    assert "the rates too low" in flat(text)


def test_a_gain_says_where_it_is_from() -> None:
    text = run_summary_text(page(like=like_rates([3276.8] * 6), metadata_s=150.0, write_s=10.0))
    assert "Gain: up to 2 times faster I/O, to the best quarter of like runs." in text
    assert "Like runs 6; a quarter of them reaches 3,276.8 MiB/s or more" in flat(text)


def test_every_strategy_has_words() -> None:
    assert {strategy.name for strategy in STRATEGIES} | {None} == set(words.STRATEGIES)


def test_nothing_known_is_not_shown_as_zero() -> None:
    lacking = dict.fromkeys(
        ("user", "executable", "job_id", "duration_s", "slowest_rank_s", "opens", "metadata_s", "write_s", "read_s",
         "module_totals", "unique_files")
    )  # fmt: skip
    shown = flat(run_summary_text(page([], **lacking)))
    assert "a program that is not named" in shown
    assert "Rate not defined" in shown
    assert "of it metadata not known" in shown
    assert "not known of one rank" in shown


@pytest.mark.parametrize("name", SOURCES_OF_TROUBLE)
def test_hostile_names_are_shown_and_never_obeyed(name: str) -> None:
    files = [file_row(path=f"/s/{name}", rank=-1, ranks=16, read_bytes=9 * GIB)]
    run = page(files, executable=name, user=name, job_id=name, command=name, log=name)
    for text in (
        run_summary_text(run),
        run_advice_text(run_advice([run])),
        t.to_terminal(compare_tables(run_comparison([run], [run])), 100),
        t.to_terminal(timeline_tables(run_timeline(run_record(files, executable=name, job_id=name))), 100),
    ):
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200b-\u200f]", text)
        assert len(text) < 20_000
    assert json.loads(to_json(run))["executable"] == name  # whole, for programs


# HTML -----------------------------------------------------------------------------------------------------------------


class _Page(HTMLParser):
    """Elements and addresses of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.words: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags += [tag, *(name for name, _ in attrs if name.startswith("on"))]
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "action")]

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_the_html_page_loads_nothing_and_has_the_numbers() -> None:
    html = run_page(page(metadata_s=150.0, write_s=10.0), run_timeline(run_record()), ABOUT)
    seen = _Page(html)
    assert {address[:5] for address in seen.addresses} <= {
        "data:",
        *(item[:5] for item in seen.addresses if item[0] == "#"),
    }
    assert "default-src &#39;none&#39;" in html
    text = flat(" ".join(seen.words))
    assert "I/O of solver, job 4711" in text
    assert "metadata-bound" in text
    assert "93.8 %" in text
    assert seen.tags.count("figure") == 2


def test_names_bring_no_elements_into_the_page() -> None:
    hostile = "<script>alert(1)</script><img src=x onerror=y>\x1b[2J"
    files = [file_row(path=f"/s/{hostile}")]
    pages = [
        _Page(run_page(page(files, executable=name, user=name, job_id=name, command=name, log=name),
                       run_timeline(run_record(files, executable=name)), ABOUT))
        for name in (hostile, "plain")
    ]  # fmt: skip
    assert sorted(pages[0].tags) == sorted(pages[1].tags)


# Timeline -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ranks", [1, 64, 10_000])
def test_pictures_of_few_and_many_ranks_name_few_rows(ranks: int) -> None:
    result = run_timeline(run_record(own_files(ranks), processes=ranks))
    drawn = figures(result)
    assert tuple(drawn) == FIGURES
    panel = drawn["activity"]().panels[0]
    assert 1 <= len(panel.y.ticks) <= 12
    assert panel.y.ticks[0][1] == "0"
    picture = matplotlib_figure.to_bytes(drawn["activity"](), "png")
    assert picture.startswith(b"\x89PNG")


def test_shared_files_are_a_band_and_a_run_without_io_a_message() -> None:
    shared = file_row(rank=-1, ranks=16)
    only = figures(run_timeline(run_record([shared])))["activity"]().panels[0]
    assert [name for _, name in only.y.ticks] == ["all ranks, shared"]
    both = figures(run_timeline(run_record([*own_files(48), shared], processes=48)))["writes"]().panels[0]
    assert both.y.ticks[-1][1] == "all ranks, shared"
    nothing = figures(run_timeline(run_record([])))["activity"]()
    assert [panel.message for panel in nothing.panels] == ["no I/O is known"] * 2


def test_activity_in_words_agrees_with_its_numbers() -> None:
    together = run_timeline(run_record())
    assert activity_words(together) == (
        "There is I/O in 10 % of the time, in 1 phase. In the mean 100 % of the ranks are active at the same time."
    )
    turns = [file_row(record_id=n, rank=n, write_start_s=5.0 * n, write_end_s=5.0 * n + 0.4) for n in range(20)]
    alone = activity_words(run_timeline(run_record(turns, processes=20)))
    assert "in 20 phases" in alone
    assert "5 % of the ranks" in alone
    assert "not coordinated" in alone
    assert activity_words(run_timeline(run_record([]))) == "No I/O is known at any time."
    assert "In the mean" not in activity_words(run_timeline(run_record(own_files(1), processes=1)))


def test_many_phases_are_cut_to_the_largest() -> None:
    turns = [file_row(record_id=n, rank=n, write_start_s=2.0 * n, write_end_s=2.0 * n + 0.4) for n in range(40)]
    (table,) = timeline_tables(run_timeline(run_record(turns, processes=40)))
    assert len(table.rows) == 30
    assert "10 phases that moved less are not shown." in table.note


# Comparison and advice ------------------------------------------------------------------------------------------------


def test_a_comparison_in_words_agrees_with_its_numbers() -> None:
    slow, fast = page(slowest_rank_s=728.0), page(slowest_rank_s=17.0)
    assert verdict(run_comparison([slow], [fast])) == (
        "The I/O of the slowest rank is 42.8 times faster after, for the same amount of data."
    )
    assert "42.8 times slower after" in verdict(run_comparison([fast], [slow]))
    other = run_comparison([slow], [page(write_bytes=32 * GIB, slowest_rank_s=728.0)])
    assert verdict(other) == "The rate of the I/O is 2 times as high after; the amount of data is not the same."
    assert "1/16 of what it was" in verdict(run_comparison([slow], [page(write_bytes=GIB, slowest_rank_s=728.0)]))
    assert "no factor" in verdict(run_comparison([slow], [page(slowest_rank_s=None)]))


def test_a_comparison_shows_every_measure_and_finding() -> None:
    assert list(NAMED_MEASURES) == list(MEASURES)
    bound = page(metadata_s=150.0, write_s=10.0, nodes=2)
    result = run_comparison([bound], [page(nodes=2)])
    first, sides, findings = compare_tables(result)
    assert {row[0] for row in first.rows} >= {"Rate per node, MiB/s", "Files", "Aligned accesses, %"}
    assert [row[:2] for row in findings.rows] == [("gone", "file-per-process"), ("gone", "metadata-bound")]
    assert [row[0] for row in sides.rows] == ["before", "after"]
    drawn = compare_figures(result)
    assert tuple(drawn) == COMPARE_FIGURES
    assert drawn["rates"]().panels[0].y.label == "MiB/s per node"
    for describe in drawn.values():
        assert matplotlib_figure.to_bytes(describe(), "svg")
    one_side = run_comparison([bound], [page()])
    assert compare_figures(one_side)["rates"]().panels[0].y.label == "MiB/s, all nodes together"


def test_advice_in_words_agrees_with_its_numbers() -> None:
    like = like_rates([4 * 1638.4] * 5)
    advice = run_advice([page(like=like, metadata_s=7200.0, write_s=3600.0), page()], left_out=3)
    text = flat(run_advice_text(advice))
    assert "2 runs, 3.04 core-hours in I/O; without a finding: 1" in text
    assert "3 runs with less I/O time not examined" in text
    assert "1. WARN file-per-process: solver of alice, 1 run, 2 core-hours in the I/O it is about" in text
    assert "Gain: up to 4 times faster I/O, to the best quarter of like runs; 1.5 core-hours lost." in text
    (table,) = advice_tables(advice)
    assert t.to_csv(table).splitlines()[0].startswith("code,severity,executable,user,runs,core_hours,core_hours_lost")
    drawn = advice_figures(advice)
    assert tuple(drawn) == ADVICE_FIGURES
    assert matplotlib_figure.to_bytes(drawn["core-hours"](), "svg")
    nothing = run_advice([page()])
    assert "Nothing found that needs attention." in run_advice_text(nothing)
    assert advice_figures(nothing)["core-hours"]().panels[0].message == "no finding"


def test_accesses_by_size_are_drawn() -> None:
    run = page()
    (panel,) = summary_figures(run)["sizes"]().panels
    assert [mark.label for mark in panel.marks] == ["reads (0)", "writes (16,384)"]
    (empty,) = summary_figures(replace(run, access_sizes=None))["sizes"]().panels
    assert empty.message == "none"
    assert {field.name for field in fields(run)} >= {*KEYS}


def test_advice_says_what_shares_its_time_and_in_which_runs_an_ost_was_slow() -> None:
    small = {"write_accesses_1048576": 0, "write_accesses_10240": 16384, "misaligned_ops": 16384}
    text = flat(run_advice_text(run_advice([page(**small)])))
    assert "WARN small-accesses: solver of alice, 1 run, 0.0422 core-hours in the I/O it is about, in part" in text
    assert "in part the same as that of misaligned" in text
    seen = replace(page(**small).findings[0], code="slow-ost", subject="OST 14 of /scratch", message="slow as before")
    runs = [replace(page(), run_id=str(number), jobid=f"j{number}", findings=[seen]) for number in range(8)]
    text = flat(run_advice_text(run_advice(runs)))
    assert "WARN slow-ost: OST 14 of /scratch, solver of alice, 8 runs" in text
    assert "Also solver of alice, job j1: slow as before." in text
    assert "And 2 more runs." in text
    assert text.count("slow as before") == 6


def test_a_rule_that_does_not_apply_lacks_no_data() -> None:
    small = page(own_files(alignment_bytes=MIB), key_access_bytes=4096, misaligned_ops=16384)
    said = flat(run_summary_text(small))
    words = "Not evaluated: misaligned does not apply: the most frequent access, 4,096 bytes, is smaller than a block"
    assert words in said
    assert words in flat(run_advice_text(run_advice([small, small])))
    assert "misaligned" not in said.partition("data missing: ")[2].partition("(")[0]
    assert words in flat(run_page(small, run_timeline(run_record()), ABOUT))
