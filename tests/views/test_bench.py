"""Views of studies: sentences agree with the numbers beside them, and every figure is drawn."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from iolens.analyses.bench_bandwidth import study_bandwidth
from iolens.analyses.bench_compare import DirectionChange
from iolens.units import GIB, MIB
from iolens.views.bench_bandwidth import conditions, files_words, headline
from iolens.views.bench_compare import words as compare_words
from iolens.views.bench_stripe import words as stripe_words
from iolens.views.render.figures import LineMark, draw
from iolens.views.render.formats import figures_of, render, tables_of
from tests.analyses.study_rows import repeats, run
from tests.views import bench_answers as made

MB = 1e6
DRAWN = {
    "two places": made.two_places, "files": made.files_of_tasks, "one run": made.one_run, "striped": made.striped,
    "flat": made.flat, "blocks only": made.blocks_only, "cached": made.cached, "names": made.names,
    "compared": made.side_by_side, "slower": made.slower_names,
}  # fmt: skip


def table(result: Any, name: str) -> Any:
    return next(table for table in tables_of(result) if table.name == name)


def column(result: Any, table_name: str, name: str) -> list[Any]:
    shown = table(result, table_name)
    place = [each.name for each in shown.columns].index(name)
    return [row[place] for row in shown.rows]


@pytest.mark.parametrize("name", DRAWN)
def test_every_figure_of_every_answer_is_drawn(name: str, tmp_path: Path) -> None:
    drawn = figures_of(DRAWN[name]())
    assert drawn
    for figure in drawn:
        draw(drawn[figure](), tmp_path / f"{figure}.png")
        assert (tmp_path / f"{figure}.png").read_bytes().startswith(b"\x89PNG")


def test_a_list_has_no_figure() -> None:
    assert not figures_of(made.listed())


# Bandwidth


def test_columns_that_say_the_same_of_all_runs_are_left_out() -> None:
    shown = [each.name for each in table(made.two_places(), "cases").columns]
    assert "tasks" not in shown
    assert "stripe_count" not in shown
    assert {"place", "direction", "transfer_bytes", "best_mib_per_s"} <= set(shown)


def test_the_headline_has_the_best_of_the_table() -> None:
    result = made.two_places()
    best = {
        direction: max(
            rate
            for rate, each in zip(
                column(result, "cases", "best_mib_per_s"), column(result, "cases", "direction"), strict=True
            )
            if each == direction
        )
        for direction in ("write", "read")
    }
    said = headline(result)
    assert f"Best write {best['write']:,.0f} MiB/s in blocks of 16 MiB." in said
    assert f"Best read {best['read']:,.0f} MiB/s in blocks of 16 MiB." in said
    assert said.endswith(f"{result.runs} runs of {len(result.cases)} cases.")


def test_the_sentence_on_files_has_the_factors_of_the_table() -> None:
    result = made.files_of_tasks()
    factors = column(result, "files", "factor")
    numbers = [float(number) for number in re.findall(r"\d+\.\d+", files_words(result))]
    assert numbers
    assert min(numbers) == pytest.approx(min(factors), abs=0.005)
    assert max(numbers) == pytest.approx(max(factors), abs=0.005)


def test_equal_factors_are_one_number() -> None:
    rows = [run("write", 3e8, file_per_process=True), run("write", 2e8, file_per_process=False)]
    assert files_words(study_bandwidth(rows)) == "Writes: file per process is 1.50 times as fast as one shared file."


def test_improvements_are_those_of_the_columns_beside_them() -> None:
    result = study_bandwidth(made.striped_rows())
    rates, reference, improvement = (
        column(result, "improvements", name) for name in ("mib_per_s", "one_ost_mib_per_s", "improvement_pct")
    )
    for rate, single, pct in zip(rates, reference, improvement, strict=True):
        assert pct == pytest.approx(100 * (rate - single) / single)
    best = max(line.improvement_pct for line in result.improvements if line.direction == "write")
    assert best == pytest.approx(224.5, abs=0.1)  # 220 to 714 MB/s


def test_conditions_are_what_all_runs_of_a_direction_have_in_common() -> None:
    both = [run("write", 1e8), run("read", 1e8)]
    assert conditions(study_bandwidth(both)) == (
        "writes: buffered, fsync counted; reads: buffered, page cache dropped before"
    )
    mixed = [run("write", 1e8), run("write", 1e8, fsync=False, direct=True)]
    assert conditions(study_bandwidth(mixed)) == "writes: differing conditions"


def test_warnings_are_shown() -> None:
    assert any("writes without fsync" in each for each in table(study_bandwidth([run("write", 1e8, fsync=False)]), "cases").warnings)  # fmt: skip  # noqa: E501


def test_every_size_of_files_and_of_blocks_has_a_line() -> None:
    """Of two sizes of files, the figure by block size showed the faster alone."""
    cases = product((GIB, 4 * GIB), (MIB, 4 * MIB))
    rates = {case: 1e8 * (1 + number) for number, case in enumerate(cases)}
    rows = [run("write", rate, aggregate_bytes=size, transfer_bytes=block) for (size, block), rate in rates.items()]
    drawn = figures_of(study_bandwidth(rows))
    for name, labels in (
        ("blocks", ("1 GiB of files", "4 GiB of files")),
        ("files", ("blocks of 1 MiB", "blocks of 4 MiB")),
    ):
        lines = {mark.label: mark.y for mark in drawn[name]().panels[0].marks if isinstance(mark, LineMark)}
        assert tuple(lines) == labels
        assert sorted(rate for line in lines.values() for rate in line) == pytest.approx(
            sorted(rate / MIB for rate in rates.values())
        )


def test_every_size_of_files_has_a_grid() -> None:
    rows = [
        run("write", rate, aggregate_bytes=size, transfer_bytes=MIB, stripe_count=1, stripe_bytes=MIB)
        for size, rate in ((GIB, 3e8), (4 * GIB, 1e8))
    ]
    titles = [panel.title for panel in figures_of(study_bandwidth(rows))["grid"]().panels]
    assert titles == [
        "lake, writes, 1 OST, 1 GiB of files: 286 to 286 MiB/s", "lake, writes, 1 OST, 4 GiB of files: 95 to 95 MiB/s"
    ]  # fmt: skip


def test_a_single_ost_is_one() -> None:
    panel = figures_of(made.striped())["blocks"]().panels[0]
    labels = [mark.label for mark in panel.marks if isinstance(mark, LineMark)]
    assert labels == ["1 OST", "4 OSTs", "16 OSTs"]


# Stripes


def test_the_recommendation_in_words_has_the_numbers_of_its_line() -> None:
    for choice in made.striped().choices:
        said = stripe_words(choice)
        cell = choice.recommended
        gain = 100 * (cell.bytes_per_s - choice.worst.bytes_per_s) / choice.worst.bytes_per_s
        assert f"{cell.stripe_count} stripes of 1 MiB, blocks of" in said
        assert f"{gain:.0f} % faster than the worst cell" in said
        assert ("no other cell" in said) == (choice.as_good == 1)
        if choice.as_good > 1:
            assert f"{choice.as_good} of {choice.cells} cells are as good within noise" in said


def test_paper_n_s_grid_recommends_sixteen_osts() -> None:
    for choice in made.striped().choices:
        assert (choice.recommended.stripe_count, choice.recommended.stripe_bytes) == (16, MIB)


def test_a_flat_grid_is_said_to_be_flat_with_what_noise_allows() -> None:
    (choice,) = made.flat().choices
    assert choice.flat
    said = stripe_words(choice)
    assert "the grid is flat within noise" in said
    assert f"less than {choice.least_difference_pct:.0f} % is noise" in said
    assert said.endswith("Keep the default.")


def test_a_grid_of_which_the_default_is_kept_recommends_no_cell() -> None:
    flat, chosen = table(made.flat(), "recommended"), table(made.striped(), "recommended")
    assert flat.title == "None recommended"
    assert chosen.title == "Recommended"
    for name in ("stripe_count", "stripe_bytes", "block_bytes", "mib_per_s"):
        assert column(made.flat(), "recommended", name) == [None]
        assert None not in column(made.striped(), "recommended", name)


def test_a_cell_has_the_same_mean_wherever_it_stands() -> None:
    result = made.striped()
    means = {
        (line.direction, line.stripe_count, line.stripe_bytes, line.transfer_bytes): line.mean_bytes_per_s
        for line in result.bandwidth.cases
    }
    for choice in result.choices:
        if choice.aim != "both":
            cell = choice.recommended
            key = choice.aim, cell.stripe_count, cell.stripe_bytes, cell.block_bytes
            assert cell.bytes_per_s == pytest.approx(means[key])
    chosen, cases = (
        {item.name: item.heading for item in table(result, name).columns} for name in ("recommended", "cases")
    )
    assert chosen["mib_per_s"] == cases["mean_mib_per_s"] == "Mean"
    assert "geometric" in table(result, "recommended").note


def test_without_repeats_that_is_said() -> None:
    (choice,) = made.blocks_only().choices
    assert stripe_words(choice) == (
        "Writes on lake: blocks of 1 MiB was fastest; without repeats nothing is known of the noise."
    )


# Memory, metadata, comparison


def test_the_sentences_on_memory_have_the_factors_of_the_table() -> None:
    result = made.cached()
    factors = column(result, "files", "read_factor")
    note = table(result, "files").note
    assert note.count("lake: ") == note.count("home: ") == 3
    for factor in factors:
        assert f"read again {factor:.1f} times as fast" in note
    for file in result.files:
        if file.fits:
            assert f"A write returns {file.write_factor:.1f} times as fast" in note


def test_rates_of_names_are_shown_by_operation() -> None:
    result = made.names()
    assert column(result, "rates", "operation")[0] == "directory creation"
    assert column(result, "rates", "best_ops_per_s") == [line.best_ops_per_s for line in result.rates]


def test_what_changed_is_said_with_its_sign() -> None:
    def said(unit: str, pct: float, cases: int = 3, beyond: int = 2) -> str:
        return compare_words(DirectionChange("write", unit, cases, pct, beyond))

    assert said("bytes/s", 12.3) == "write: 12 % faster in the median of 3 cases; beyond noise in 2."
    assert said("bytes/s", -12.3, 1, 0) == "write: 12 % slower in the only case; beyond noise in none."
    assert said("s", -40.0) == "write: 40 % faster in the median of 3 cases; beyond noise in 2."  # less time
    assert said("s", 40.0).startswith("write: 40 % slower")
    assert said("operations/s", 0.3).startswith("write: unchanged")


def test_a_comparison_says_the_median_of_its_cases_and_what_only_one_has() -> None:
    result = made.side_by_side()
    note = table(result, "summary").note
    assert "write: 25 % faster in the median of 14 cases" in note
    assert "1 case only in after." in note
    assert column(result, "cases", "change_pct") == pytest.approx([25.0] * 28)
    for before, after in zip(column(result, "cases", "before"), column(result, "cases", "after"), strict=True):
        assert after == pytest.approx(1.25 * before)


def test_studies_of_a_store_are_listed() -> None:
    assert column(made.listed(), "studies", "runs") == [600, 8]
    assert "There is none" in table(made.no_studies(), "studies").note


def test_json_is_the_whole_answer(tmp_path: Path) -> None:
    result = made.two_places()
    render(result, "json", tmp_path / "answer.json")
    answer = json.loads((tmp_path / "answer.json").read_text())
    assert len(answer["cases"]) == len(result.cases)
    assert answer["cases"][0]["best_bytes_per_s"] == asdict(result)["cases"][0]["best_bytes_per_s"]


def test_the_spread_is_shown_where_there_are_repeats() -> None:
    twice = study_bandwidth(repeats("write", [MB, 2 * MB]))
    assert column(twice, "cases", "spread_pct") == pytest.approx([66.7], abs=0.1)
    once = made.one_run()
    shown = [each.name for each in table(once, "cases").columns]
    assert "spread_pct" not in shown or column(once, "cases", "spread_pct") == [None]
