"""Study P: from made-up data the answers known beforehand, from the public data those of the study."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from iolens.sources import ReadOptions
from iolens.validation import Validation, validate
from iolens.validation.evidence import PublicData, PublicFile
from iolens.validation.paper_p_evidence import DRIVES, FULLNESS, IO_RATES, SIZES, WIDTHS
from tests.validation.all_studies import AllStudies
from tests.validation.made_up import FILES, FOUR_DAYS, altered, drives, fullness, made_up

MADE_UP = {
    "burst buffer: capacity": 4e12 / 1e15,
    "burst buffer: data servers": 2,
    "burst buffer: drives": 4,
    "scratch: capacity": 10 * 1e9 * 1024 / 1e15,
    "scratch: data servers": 10,
    "readings of fullness behind the growth": 4 * FOUR_DAYS,
    "mean daily growth": 0.02 * 10.24,
    "median daily growth": 0.02 * 10.24,
    "mean daily growth, strictly": 0.02 * 10.24,
    "long tail: mean over median": 1,
    "capacity for SSI 3, growth from the data": 3 * 56 * 0.02 * 10.24e-3,
    "years in service": 4,
    "smallest WAF": 2,
    "median WAF": 3.5,
    "95th percentile of WAF": 9.1,
    "largest WAF": 10,
    "drives with WAF > 5 that low use explains": 100,
    "drives with WAF > 5 among all drives of their servers": 50,
    "lifetime writes of drives with WAF > 5 over those of the others": 0.1,
    "days in the window": 4,
    "mean file-system writes per day": 0.25,
    "mean bytes written per day": 0.25 * 10.24e-3,
    "smallest DWPD, from the data": 3 * 0.25 * 1.2 * 3.5,
    "largest DWPD, from the data": 4 * 0.25 * 1.25 * 9.1,
    "share of files that are small": 100 * 100 / 101,
    "largest directory": 1,
    "entries of the largest directory": 2.097152,
    "directories that large": 2,
    "block and character devices": 1,
    "inodes other than files of at most 4 KiB": 100 * 2 / 3,
}


def values(result: Validation) -> dict[str, float]:
    return {line.quantity: line.recomputed for line in result.checks if line.recomputed is not None}


@pytest.fixture(scope="module")
def invented(tmp_path_factory: pytest.TempPathFactory) -> Validation:
    return validate(made_up(tmp_path_factory.mktemp("data")), ["P"])


@pytest.mark.parametrize("quantity", MADE_UP)
def test_made_up_data_give_the_answers_they_were_made_for(invented: Validation, quantity: str) -> None:
    assert values(invented)[quantity] == pytest.approx(MADE_UP[quantity], rel=1e-6)


def test_another_system_is_not_taken_for_the_published_one(invented: Validation) -> None:
    assert not invented.passed
    assert invented.verdicts["differs"] >= 30
    assert invented.verdicts["no data"] == 0
    wrong = [line.quantity for line in invented.checks if line.verdict == "failed"]
    assert wrong == []


@pytest.mark.parametrize("file", [DRIVES, FULLNESS, WIDTHS], ids=lambda file: Path(file.path).name)
def test_a_file_that_is_missing_leaves_the_others_alone(tmp_path: Path, file: PublicFile) -> None:
    (made_up(tmp_path) / file.path).unlink()
    result = validate(tmp_path, ["P"])
    for line in result.checks:
        if file.path in line.inputs:
            assert line.verdict == "no data"
            assert file.path in line.reason
            assert line.recomputed is None
        else:
            assert line.verdict not in ("no data", "failed")
    assert {item.path: item.present for item in result.inputs} == {item.path: item != file for item in FILES}


@pytest.mark.parametrize(
    ("file", "content"),
    [
        (FULLNESS, b""),
        (IO_RATES, b"a,b\n1,2\n"),
        (SIZES, b"\x00\xff\xfe"),
        (WIDTHS, b"bin_size,num_child_counts\n"),
        (DRIVES, gzip.compress(drives().encode(), mtime=0)[:40]),
        (DRIVES, b"\x1f\x8b rubbish"),
    ],
)
def test_a_damaged_file_fails_what_needs_it_and_says_so(tmp_path: Path, file: PublicFile, content: bytes) -> None:
    (made_up(tmp_path) / file.path).write_bytes(content)
    result = validate(tmp_path, ["P"])
    assert not result.passed
    for line in result.checks:
        if line.inputs:
            assert (line.verdict == "failed") is (file.path in line.inputs), line
        if line.verdict == "failed":
            assert Path(file.path).name in line.reason


def test_refused_lines_are_counted_by_file(tmp_path: Path) -> None:
    altered(made_up(tmp_path), IO_RATES, lambda text: text + "never,1,2\n")
    result = validate(tmp_path, ["P"])
    assert {item.path: item.refused_lines for item in result.inputs}[IO_RATES.path] == 1
    assert all(len(item.sha256 or "") == 64 for item in result.inputs)


# The public data themselves.


@pytest.fixture(scope="module")
def published(studies_with_data: AllStudies) -> Validation:
    return studies_with_data.of("P")


def test_no_number_of_the_study_differs_without_an_explanation(published: Validation) -> None:
    wrong = [line for line in published.checks if line.verdict in ("differs", "failed", "no data")]
    assert wrong == []
    assert published.passed
    assert published.verdicts["agrees"] >= 55
    assert published.verdicts["differs, explained"] <= 12


PUBLISHED = {
    "burst buffer: capacity": 1.8436,
    "scratch: capacity": 30.4779,
    "mean daily growth": 153.8097,
    "median daily growth": 118.1671,
    "mean daily growth, strictly": 155.5643,
    "median daily growth, strictly": 119.1939,
    "mean file-system writes per day": 0.02414,
    "smallest WAF": 1.3548,
    "median WAF": 2.6802,
    "95th percentile of WAF": 3.1698,
    "largest WAF": 10.1581,
    "smallest DWPD, from the data": 0.2329,
    "largest DWPD, from the data": 0.3826,
    "share of files that are small": 96.7813,
    "share of the bytes they hold": 5.2541,
    "C_DOM at S0 = 1 MiB, avg, method paper": 307.6336,
    "C_DOM at S0 = 1 MiB, max, method tight": 517.9323,
    "C_inode, avg, method tight": 6.2365,
    "increase of S0 from 512 TiB to 1 PiB, between powers": 3.001,
}


@pytest.mark.parametrize("quantity", PUBLISHED)
def test_public_data_give_the_numbers_that_are_documented(published: Validation, quantity: str) -> None:
    assert values(published)[quantity] == pytest.approx(PUBLISHED[quantity], rel=5e-4)


def _columns(change: Callable[[dict[str, str]], None]) -> Callable[[str], str]:
    """A change to every line of a CSV file, by the names of its columns."""

    def edit(text: str) -> str:
        heading, *lines = text.splitlines()
        names = heading.split(",")
        kept = [heading]
        for line in lines:
            cells = dict(zip(names, line.split(","), strict=False))
            if len(cells) > 1:
                change(cells)
                kept.append(",".join(cells.get(name, "") for name in names))
        return "\n".join([*kept, ""])

    return edit


def _more(names: tuple[str, ...], factor: float) -> Callable[[str], str]:
    def change(cells: dict[str, str]) -> None:
        for name in names:
            cells[name] = (
                repr(float(cells[name]) * factor) if "." in cells[name] else str(round(float(cells[name]) * factor))
            )

    return _columns(change)


def _moved_up(text: str) -> str:
    """Every bin of sizes twice as large."""
    heading, first, *lines = text.strip().splitlines()
    ends = [line.partition(",") for line in lines[:-1]]
    return "\n".join([heading, first, *(f"{2 * int(end)},{rest}" for end, _, rest in ends), ""])


def test_numbers_follow_the_data(published: Validation, shared_data: Path, tmp_path: Path) -> None:
    """Nothing is a constant: other data give other numbers, and then the table says that they differ."""
    for item in FILES:
        (tmp_path / item.path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(shared_data / item.path, tmp_path / item.path)
    altered(tmp_path, IO_RATES, _more(("write_bytes",), 1.5))
    altered(tmp_path, FULLNESS, _more(("ost_avg_full_kib", "ost_avg_full_pct"), 0.5))
    altered(tmp_path, SIZES, _moved_up)
    altered(tmp_path, WIDTHS, lambda text: text.replace("8388608,6", "8388608,0").replace("16777216,1", "16777216,7"))
    result = validate(tmp_path, ["P"])
    before, after = values(published), values(result)
    factors = {
        "mean file-system writes per day": 1.5,
        "mean bytes written per day": 1.5,
        "largest DWPD, from the data": 1.5,
        "mean daily growth": 0.5,
        "median daily growth": 0.5,
        "mean daily growth, strictly": 0.5,
        "scratch: capacity": 1.0,
        "largest directory": 2.0,
        "directories that large": 7.0,
    }
    for quantity, factor in factors.items():
        assert after[quantity] == pytest.approx(factor * before[quantity], rel=0.02), quantity
    for quantity in ("C_inode, avg, method tight", "C_DOM at S0 = 1 MiB, max, method paper"):
        assert after[quantity] < 0.9 * before[quantity], quantity
    assert not result.passed
    untouched = [
        line.quantity for line in result.checks if line.recomputed is not None and line.inputs in ([], [DRIVES.path])
    ]
    assert len(untouched) >= 20
    assert {name: after[name] for name in untouched} == {name: before[name] for name in untouched}


def test_the_largest_waf_rises_by_what_the_explanation_says(shared_data: Path) -> None:
    """0.004 a day: on the day before 2019-04-01 it was 10.15."""
    from iolens.analyses.drives.analysis import drives as fleet

    result = {}
    for day in ("20190301", "20190305", "20190401"):
        file = PublicFile(f"isdct/cori-bb-daily/Intel_DCT_{day}.csv.gz", "")
        with PublicData(shared_data) as evidence:
            evidence.load("isdct", file, ReadOptions(filesystem="bb"))
            result[day] = fleet(evidence.select("bb")).waf.max or 0.0
    per_day = (result["20190401"] - result["20190305"]) / 27
    assert round(per_day, 3) == 0.004
    assert round(result["20190401"] - per_day, 2) == round(result["20190401"] - 2 * per_day, 2) == 10.15


def test_the_cut_between_bins_is_where_the_explanation_says(shared_data: Path) -> None:
    lines = (shared_data / SIZES.path).read_text("utf-8").split()[1:]
    ends, counts = zip(*((int(line.split(",")[0]), int(line.split(",")[1])) for line in lines), strict=True)
    shares = dict(zip(ends, 100 * np.cumsum(counts) / sum(counts), strict=True))
    assert (round(shares[1 << 24], 1), round(shares[1 << 25], 1)) == (94.1, 96.8)


def test_the_references_of_figure_six_by_plain_arithmetic(published: Validation, shared_data: Path) -> None:
    """Eqs. 6, 8 and 9 for 30 PB, written out bin by bin; `tight` by trying every way to choose the ends of bins."""
    lines = [line.split(",") for line in (shared_data / SIZES.path).read_text("utf-8").split()[1:]]
    bins = [(int(end) // 2 + 1, int(end), int(count)) for end, count, *_ in lines if int(end) and int(count)]
    least, most = (sum(item[place] * item[2] for item in bins) for place in (0, 1))
    result = values(published)
    for name, s0 in (("64 KiB", 1 << 16), ("1 MiB", 1 << 20)):
        minimum = sum(n * a / most * min(1, s0 / b) if b > s0 else n * a / most for a, b, n in bins)
        maximum = sum(n * b / least * min(1, s0 / a) if b > s0 else n * b / least for a, b, n in bins)
        average = sum(n * min((a + b) / 2, s0) for a, b, n in bins) / sum(n * (a + b) / 2 for a, b, n in bins)
        directions = []
        for cut in range(len(bins) + 1):  # bins up to a cut at one end, those above it at the other
            for small, large in ((0, 1), (1, 0)):
                sizes = [(item[small if place < cut else large], item[2]) for place, item in enumerate(bins)]
                directions.append(sum(n * min(s, s0) for s, n in sizes) / sum(n * s for s, n in sizes))
        expected = {
            ("min", "paper"): minimum, ("avg", "paper"): average, ("max", "paper"): maximum,
            ("min", "tight"): min(directions), ("avg", "tight"): average, ("max", "tight"): max(directions),
        }  # fmt: skip
        for (end, method), share in expected.items():
            number = result[f"C_DOM at S0 = {name}, {end}, method {method}"]
            assert number == pytest.approx(30e15 * share / 2**40, rel=1e-3), (name, end, method)


def test_the_made_up_files_have_the_shapes_of_the_public_ones(shared_data: Path) -> None:
    def heading(path: Path) -> set[str]:
        text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text("utf-8")
        return set(text.partition("\n")[0].split(","))

    assert set(fullness().partition("\n")[0].split(",")) <= heading(shared_data / FULLNESS.path)
    assert set(drives().partition("\n")[0].split(",")) <= heading(shared_data / DRIVES.path)
