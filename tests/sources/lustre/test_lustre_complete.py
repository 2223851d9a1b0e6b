"""Nothing of a Lustre server's capture is dropped in silence: what is not named as left out makes a difference.

The oracle does not ask the source what it reads: it changes a parameter, or one number of it, and something else must
come out.
"""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from iolens.records import Item, Note
from iolens.simulator.lustre_counters import VERSIONS
from iolens.simulator.lustre_tree import Tree
from iolens.simulator.workload import load_workload
from iolens.sources.lustre.lustre_lctl import SOURCE as LCTL
from iolens.sources.lustre.lustre_proc import SOURCE as PROC
from iolens.sources.reading.options import ReadOptions

TREES = [
    "lmt-1.8.3", "lmt-2.0.0.1", "lmt-2.0.50.zfs", "lmt-2.0.56", "lmt-2.10.8", "lmt-2.12.9_12", "hpe-2.10.1",
    "telegraf-2.12",
]  # fmt: skip
TEXTS = [
    "get_param/2.14.0_ddn133_exports", "get_param/2.14.0_ddn145_stats", "get_param/2.14.0_ddn194",
    "get_param/ex8761-lctl", "get_param/osd", "get_param/valid", "get_param/valid_mds", "get_param/valid_no_newline",
    "get_param/valid_unhealthy_host", "recovery/recovery-multiple", "recovery/recovery-waiting-for-clients",
    "job_stats/lctl_get_param_job_stats_mdt",
]  # fmt: skip
BASES = ("proc/fs/lustre", "sys/fs/lustre", "sys/kernel/debug/lustre")
OPTIONS = ReadOptions(filesystem="fs")
AT = ReadOptions(filesystem="fs", at=datetime(2024, 3, 1, tzinfo=UTC))
RUBBISH = "rubbish 1\n"
_NAME = re.compile(r"^([A-Za-z][\w-]*(?:\.[^\s=]+)?)=", re.MULTILINE)
_COUNT = re.compile(r"(?<= )\d+(?= samples)|(?<=sum:)\s*\d+|(?<=samples:)\s*\d+|(?<=: )\d+$|^\d+$|(?<=:\t\t)\s*\d+")


def left_out(items: Sequence[Item]) -> list[re.Pattern[str]]:
    """The names in the notes as patterns: `a.*.{b, c}`, and `locks of TARGET`."""
    patterns = []
    for reason in (item.reason for item in items if isinstance(item, Note)):
        if locks := re.fullmatch(r"left out: locks of ([\w-]+), which is not on this server", reason):
            patterns.append(re.compile(rf"ldlm\.namespaces\.\w+-{locks[1]}_UUID\..+"))
        names = reason.partition("left out, not kept by iolens: ")[2]
        for above, leaf, leaves in re.findall(r"((?:[^\s,{}]+\.)?)(?:([^\s,{}]+)|\{([^}]*)\})", names):
            every = (above + item for item in (leaf or leaves).split(", "))
            patterns += [re.compile(re.escape(item).replace(r"\*", ".+")) for item in every]
    return patterns


def is_named(name: str, patterns: Sequence[re.Pattern[str]]) -> bool:
    return any(pattern.fullmatch(name) for pattern in patterns)


def changed_lines(text: str, patterns: Sequence[re.Pattern[str]], name: str, most: int) -> Iterator[str]:
    """The text with one number of one line another, for some of the lines that hold numbers."""
    lines = text.split("\n")
    holding = [n for n, line in enumerate(lines) if _COUNT.search(line) and "_time" not in line]
    for n in random.Random(name).sample(holding, min(most, len(holding))):
        if is_named(f"{name}.{lines[n].partition(':')[0]}", patterns):
            continue  # a line of recovery_status
        yield "\n".join([*lines[:n], other_number(lines[n]), *lines[n + 1 :]])


def other_number(line: str) -> str:
    """Reads and writes are counted with their bytes: of the line that times them the sum is kept."""
    if re.match(r" *(?:read|write):? .*usecs", line):
        return re.sub(
            r"(?<=sum:)\s*\d+|(?<=\]) (\d+ \d+ )\d+", lambda item: f" {item[1] or ''}987654321", line, count=1
        )
    return _COUNT.sub(lambda entry: str(int(entry[0]) + 1), line, count=1)


def tree_items(root: Path) -> list[Item]:
    return [item for capture in PROC.captures([root], OPTIONS) for item in capture.items()]


def is_reported_elsewhere(path: Path, root: Path) -> bool:
    """Fullness and disk I/Os of an OST are in up to two places: one is read."""
    family, target, leaf = path.parts[-3:]
    if family == "obdfilter" and leaf == "brw_stats":
        return bool(list(root.glob(f"*/fs/lustre/osd-*/{target}/brw_stats")))
    of_obdfilter = [root / base / "obdfilter" / target / leaf for base in BASES]
    return family.startswith("osd-") and leaf != "brw_stats" and any(item.exists() for item in of_obdfilter)


def check_every_file(root: Path) -> None:
    """Whatever is changed in a file that no note names, something else comes out."""
    before = tree_items(root)
    patterns = left_out(before)
    read: set[str] = set()
    for base in BASES:
        for path in sorted((root / base).rglob("*")):
            parameter = str(path.relative_to(root / base)).replace("/", ".")
            if not path.is_file() or is_named(parameter, patterns) or is_reported_elsewhere(path, root):
                continue
            content = path.read_text()
            for text in (RUBBISH, *changed_lines(content, patterns, parameter, 2)):
                path.write_text(text)
                assert tree_items(root) != before or parameter in read, (parameter, text)
            path.write_text(content)
            read.add(parameter)  # the same again below another root is read once
    assert read


@pytest.mark.parametrize("name", TREES)
def test_every_file_of_a_tree(shared_data: Path, tmp_path: Path, name: str) -> None:
    shutil.copytree(shared_data / "lustre-server-proc" / name, tmp_path / name)
    check_every_file(tmp_path / name)


def simulated(root: Path, version: str) -> Path:
    tree = Tree(root, version, load_workload("scratch"), start_s=1350900000.25, osts=2, mdts=1, seed=1)
    tree.advance_to(1350900065.25)
    return root


@pytest.mark.parametrize("version", VERSIONS)
def test_every_file_of_a_simulated_tree(tmp_path: Path, version: str) -> None:
    check_every_file(simulated(tmp_path / "root", version))


def text_items(path: Path) -> list[Item]:
    return [item for capture in LCTL.captures([path], AT) for item in capture.items()]


def check_every_parameter(text: str, path: Path) -> None:
    """Likewise for the parameters of a text of `lctl get_param`."""

    def items_of(some: str) -> list[Item]:
        path.write_text(some)
        return text_items(path)

    before = items_of(text)
    patterns = left_out(before)
    starts = [*_NAME.finditer(text)]
    ends = [*(start.start() for start in starts[1:]), len(text)]
    read: set[str] = set()
    for start, end in zip(starts, ends, strict=True):
        parameter, value = start[1], text[start.end() : end]
        if parameter in read or is_named(parameter, patterns):
            continue
        read.add(parameter)
        for other in (RUBBISH, *changed_lines(value, patterns, parameter, 2)):
            assert items_of(text[: start.end()] + other + text[end:]) != before, (parameter, other)
    assert read


@pytest.mark.parametrize("name", TEXTS)
def test_every_parameter_of_a_text(shared_data: Path, tmp_path: Path, name: str) -> None:
    check_every_parameter((shared_data / "lustre-lctl" / f"{name}.txt").read_text(), tmp_path / "lctl.txt")


@pytest.mark.parametrize("version", VERSIONS)
def test_every_parameter_of_a_simulated_text(tmp_path: Path, version: str) -> None:
    root = simulated(tmp_path / "root", version)
    families = ("obdfilter", "osd-ldiskfs", "mdt")
    files = sorted(path for base in BASES for path in (root / base).rglob("*") if path.is_file())
    texts = [
        f"{'.'.join(path.parts[-3:])}={'' if (content := path.read_text()).count(chr(10)) < 2 else chr(10)}{content}"
        for path in files
        if path.parts[-3] in families and not is_reported_elsewhere(path, root)
    ]
    assert texts
    check_every_parameter("".join(texts), tmp_path / "lctl.txt")


def test_the_note_names_what_a_tree_of_2_10_1_holds_besides(shared_data: Path) -> None:
    (note,) = [item for item in tree_items(shared_data / "lustre-server-proc/hpe-2.10.1") if isinstance(item, Note)]
    for pattern in ("mdt.*.exports.*.{", "obdfilter.*.{", "tot_granted", "mgs.MGS.osd.{", "quota_slave.{", "lnet.{"):
        assert pattern in note.reason
