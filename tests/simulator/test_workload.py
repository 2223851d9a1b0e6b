"""A workload file is read whole or refused with file, key and what was expected."""

from __future__ import annotations

from pathlib import Path

import pytest

from iolens.errors import InputError
from iolens.models.transaction_time import GRACE_2012
from iolens.simulator.workload import FOLDER, PHASES, load_workload, read_workload, shipped_workloads

TEXT = (FOLDER / "scratch.toml").read_text()


def changed(folder: Path, old: str, new: str) -> Path:
    """The shipped `scratch` with one thing changed."""
    assert old in TEXT
    path = folder / "mine.toml"
    path.write_text(TEXT.replace(old, new, 1))
    return path


def test_two_workloads_are_shipped() -> None:
    assert shipped_workloads() == ["scratch", "scratch2"]
    for name in shipped_workloads():
        workload = load_workload(name)
        assert workload.filesystem == name
        assert (workload.disks.write, workload.disks.read) == (GRACE_2012.write, GRACE_2012.read)
        assert all(sum(shares) == pytest.approx(1.0) for shares in workload.sizes.values())
        assert {phase for phase, _ in workload.sizes} == set(PHASES)


def test_a_file_may_be_named_instead(tmp_path: Path) -> None:
    assert load_workload(str(changed(tmp_path, "osts = 24", "osts = 7"))).osts == 7


def test_the_week_begins_on_monday() -> None:
    workload = load_workload("scratch")
    saturday_noon = 1350734400 + 0  # 2012-10-20T12:00:00Z
    assert workload.rhythm(saturday_noon) == pytest.approx(workload.hours[12] * workload.days[5])


@pytest.mark.parametrize(
    ("old", "new", "key", "expected"),
    [
        ("osts = 24", "osts = 0", "osts is 0", "a whole number from 1 to 65535"),
        ("osts = 24", "", "osts: missing", "a whole number"),
        ("osts = 24", "osts = true", "osts is True", "a whole number"),
        ("mdts = 1", "mdts = 1\nmgs = 1", "mgs: unknown key", "only the documented keys"),
        ("full_pct = 100", "full_pct = 100\nw2 = 1", "disks.w2: unknown key", "only the documented keys"),
        ('tick = "5s"', 'tick = "7s"', "tick is '7 s'", "whole seconds that divide 60 s"),
        ("w0 = 1.04e-3", 'w0 = "slow"', "disks.w0 is 'slow'", "a number from"),
        ("w0 = 1.04e-3", "w0 = nan", "disks.w0 is nan", "a number from"),
        ("correlation = 0.9", "correlation = 1.2", "targets.correlation is 1.2", "a number from 0 to 1"),
        ("[sizes.burst]", "[sizes.peak]", "sizes.burst: missing", "a section"),
        ("4KiB = 40", "5KiB = 40", "sizes.quiet.read.5KiB: unknown key", "only the documented keys"),
        ('every = "75min"', 'every = "often"', "burst.read.every is 'often'", "a duration above zero"),
        ("days = [1.0, ", "days = [", "rhythm.days is", "a list of 7 numbers"),
        ("weight = 5", "weight = 0", "jobs[0].weight is 0", "a number from"),
        ('length = "6h"', 'length = "90s"', "jobs[0].length is '90 s'", "whole minutes, at least 10min"),
        ('total = "8TiB"', 'total = "lots"', "targets.total is 'lots'", "a size, such as 8TiB"),
        ('filesystem = "scratch"', 'filesystem = "a b"', "filesystem is 'a b'", "at most eight letters"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, old: str, new: str, key: str, expected: str) -> None:
    path = changed(tmp_path, old, new)
    with pytest.raises(InputError) as refused:
        read_workload(path)
    assert str(refused.value).startswith(f"{path}: {key}")
    assert expected in str(refused.value)


def test_broken_toml_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "broken.toml"
    path.write_text('filesystem = "scratch"\nosts = = 3\n')
    with pytest.raises(InputError, match=r"broken\.toml:2: "):
        read_workload(path)


def test_an_unknown_name_lists_the_known() -> None:
    with pytest.raises(InputError, match="scratch, scratch2"):
        load_workload("scratch3")
