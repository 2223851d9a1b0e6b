"""Simulated texts against real captures: a capture printed anew is the same text, and ours has the same shape."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from iolens.simulator.lustre_counters import LAYOUTS, VERSIONS
from iolens.simulator.lustre_text import (
    BrwSection,
    Counter,
    JobEntry,
    brw_stats_text,
    job_stats_text,
    recovery_text,
    stats_text,
)
from iolens.simulator.lustre_tree import Tree
from iolens.simulator.workload import load_workload

# A capture, and the version that simulates it.
CAPTURES = {"lmt-1.8.3": "1.8", "lmt-2.10.8": "2.10", "hpe-2.10.1": "2.10", "lmt-2.12.9_12": "2.12"}
LOG2 = ("pages per bulk r/w", "I/O time (1/1000s)", "disk I/O size")
LOG2_OF = {"2.17": (*LOG2, "disk I/Os in flight")}
# The captures after 1.8 are of ZFS servers; ldiskfs prints two sections more.
ONLY_LDISKFS = {"discontiguous blocks rpcs % cum % | rpcs % cum %", "disk fragmented I/Os ios % cum % | ios % cum %"}


def nanoseconds(version: str, seconds: str, fraction: str) -> int:
    return int(seconds) * 10**9 + int(fraction) * (1000 if version == "1.8" else 1)


def captured(folder: Path, leaf: str, *families: str) -> list[Path]:
    """Files of OSTs and MDTs in a capture."""
    result = [path for path in folder.rglob(leaf) if path.parent.parent.name in families]
    return sorted(path for path in result if re.search(r"-(OST|MDT)[0-9a-f]{4}$", path.parent.name))


def histograms_of(text: str, version: str) -> list[BrwSection]:
    """A brw_stats text taken apart, by hand."""
    result, doubling = [], LOG2_OF.get(version, LOG2)
    for part in re.split(r"\n +read +\| +write\n", text)[1:]:
        head, *lines = part.strip("\n").split("\n")
        title, unit = head[:22].strip(), head[23:28].strip()
        read, write = [0] * 32, [0] * 32
        for line in lines:
            label, left, right = re.fullmatch(r"(\w+):\s+(\d+) .*\| +(\d+) .*", line).groups()  # type: ignore[union-attr]
            value = int(label.rstrip("KM")) << {"K": 10, "M": 20}.get(label[-1], 0)
            row = value.bit_length() - 1 if title in doubling else value
            read[row], write[row] = int(left), int(right)
        result.append(BrwSection(title, unit, title in doubling, read, write))
    return result


def check_brw_stats(text: str, version: str) -> None:
    stamp = re.match(r"snapshot_time: +(\d+)\.(\d+)", text)
    start = re.search(r"^start_time: +(\d+)\.(\d+)", text, re.MULTILINE)
    assert stamp is not None
    begin = nanoseconds(version, start[1], start[2]) if start else 0
    printed = brw_stats_text(
        LAYOUTS[version].dialect, nanoseconds(version, stamp[1], stamp[2]), begin, histograms_of(text, version)
    )
    assert printed == text


def check_stats(text: str, version: str) -> None:
    lines = text.splitlines()
    times = {}
    while lines and lines[0].split()[0] in ("snapshot_time", "start_time", "elapsed_time"):
        name, value, *_ = lines.pop(0).split()
        times[name] = nanoseconds(version, *value.split(".")[:2])
    counters = []
    for line in lines:
        name, samples, _, unit, *values = line.split()
        numbers = [int(value) for value in values]
        squares = numbers[3] if len(numbers) > 3 else None
        trailing = numbers[:3] or [0, 0, 0]
        counters.append(Counter(name, int(samples), unit[1:-1], *trailing, squares, bool(values)))
    assert stats_text(LAYOUTS[version].dialect, times["snapshot_time"], times.get("start_time", 0), counters) == text


@pytest.mark.parametrize("capture", CAPTURES)
def test_a_captured_brw_stats_printed_anew_is_the_same(shared_data: Path, capture: str) -> None:
    files = captured(shared_data / "lustre-server-proc" / capture, "brw_stats", "obdfilter", "osd-zfs", "osd-ldiskfs")
    assert files
    for path in files:
        check_brw_stats(path.read_text(), CAPTURES[capture])


@pytest.mark.parametrize("capture", CAPTURES)
def test_captured_stats_printed_anew_are_the_same(shared_data: Path, capture: str) -> None:
    folder = shared_data / "lustre-server-proc" / capture
    files = captured(folder, "stats", "obdfilter", "mds") + captured(folder, "md_stats", "mdt")
    assert files
    for path in files:
        check_stats(path.read_text(), CAPTURES[capture])


@pytest.mark.parametrize("version", VERSIONS)
def test_a_simulated_tree_printed_anew_is_the_same(tmp_path: Path, version: str) -> None:
    tree = Tree(tmp_path, version, load_workload("scratch"), start_s=1350900000.25, osts=2, mdts=1, seed=1)
    tree.advance_to(1350900065.25)
    histograms = captured(tmp_path, "brw_stats", "obdfilter", "osd-zfs", "osd-ldiskfs")
    counts = captured(tmp_path, "stats", "obdfilter", "mds") + captured(tmp_path, "md_stats", "mdt")
    assert histograms
    assert counts
    for path in histograms:
        check_brw_stats(path.read_text(), version)
    for path in counts:
        check_stats(path.read_text(), version)


def test_captured_job_stats_printed_anew_are_the_same(shared_data: Path) -> None:
    files = captured(shared_data / "lustre-server-proc" / "hpe-2.10.1", "job_stats", "obdfilter", "mdt")
    assert files
    for path in files:
        text = path.read_text()
        jobs = []
        for entry in text.split("- job_id:")[1:]:
            lines = entry.splitlines()
            counters = []
            for line in lines[2:]:
                name, unit = line.split(":")[0].strip(), re.search(r"unit: +(\w+)", line)
                numbers = [int(result) for result in re.findall(r": +(\d+)", line)]
                assert unit is not None
                counters.append(Counter(name, numbers[0], unit[1], *(numbers[1:] or [0, 0, 0]), None, len(numbers) > 1))
            jobs.append(JobEntry(lines[0].strip(), 0, int(lines[1].split()[1]) * 10**9, counters))
        assert job_stats_text(LAYOUTS["2.10"].dialect, jobs) == text


def test_times_of_2_15_are_spelt_as_captured(shared_data: Path) -> None:
    text = (shared_data / "lustre-lctl/get_param/valid.txt").read_text()
    dialect = LAYOUTS["2.15"].dialect
    for leaf, printed in (
        ("brw_stats", brw_stats_text(dialect, 1688603042553884916, 1688526475260499452, [])),
        ("stats", stats_text(dialect, 1688603042554414847, 1688526475271489350, [])),
    ):
        start = text.index("=\n", text.index(f"ai400-OST0000.{leaf}=")) + 2
        assert text[start:].startswith(printed)
    squares = Counter("write_bytes", 25001, "bytes", 98304, 4194304, 104857600000, 439803838556274688, True)
    assert stats_text(dialect, 0, 0, [squares]).splitlines()[-1] in text


def shape(text: str, *names: str) -> set[str]:
    """Lines with every number a 9, every target's name the same, runs of blanks one blank."""
    for name in names:
        text = text.replace(name, "NAME")
    text = text.replace("IR: ENABLED", "IR: DISABLED")  # a setting
    return {re.sub(r"\s+", " ", re.sub(r"\d+", "9", line)).strip() for line in text.splitlines()}


SHAPED = ("stats", "brw_stats", "md_stats", "job_stats", "recovery_status", "num_exports", "uuid", "kbytestotal",
          "kbytesfree", "kbytesavail", "filestotal", "filesfree")  # fmt: skip


@pytest.mark.parametrize("capture", CAPTURES)
def test_a_simulated_tree_has_the_shape_of_a_real_one(shared_data: Path, tmp_path: Path, capture: str) -> None:
    version = CAPTURES[capture]
    tree = Tree(tmp_path / "root", version, load_workload("scratch"), start_s=1350900000.25, osts=1, mdts=1, seed=1)
    tree.advance_to(1350900005.25)
    compared = 0
    for path in sorted((tmp_path / "root").rglob("*")):
        if path.name not in SHAPED or not path.is_file():
            continue
        kind, family = path.parent.name[-7:-4], path.parent.parent.name
        real = [
            other
            for other in captured(shared_data / "lustre-server-proc" / capture, path.name, family, family[:3] + "-zfs")
            if kind in other.parent.name
        ]
        if not real:
            continue
        texts = [shape(other.read_text(), other.parent.name) for other in real]
        ours = shape(path.read_text(), path.parent.name)
        if path.name == "recovery_status" and version == "1.8":  # one of the captured OSTs is still recovering
            ours |= shape(recovery_text(LAYOUTS[version].dialect, 1350900000, 30, 7, 1350900001.0))
        theirs = set().union(*texts) - {"status: INACTIVE"}
        extra = {line for line in ours - theirs if line not in ONLY_LDISKFS}
        if path.name in ("stats", "md_stats", "job_stats"):  # a counter that never counted is not printed there
            extra = {line for line in extra if _kind(line) not in {_kind(their) for their in theirs}}
        assert extra == set() or not theirs, path
        # What only real ones have: counters of rare operations, the small sizes of ZFS.
        assert {line for line in theirs - ours if not re.match(r"9[KM]?: |\w+ 9 samples", line)} == set(), path
        compared += 1
    assert compared >= 6
    assert (tmp_path / "root" / LAYOUTS[version].version_file).is_file()


def _kind(line: str) -> str:
    """A counter line without the counter's name."""
    return re.sub(r"^\w+:? ", "", line)


def test_the_version_file_of_1_8_is_the_captured_one(shared_data: Path) -> None:
    real = shared_data / "lustre-server-proc/lmt-1.8.3/proc/fs/lustre/version"
    assert real.read_text() == LAYOUTS["1.8"].version_text
