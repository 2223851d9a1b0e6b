"""A model file is read whole or refused with file, key and what was expected; what is written reads the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from iolens.errors import InputError
from iolens.models.workload_model import SHARES, Marginal
from iolens.simulator.synthetic import is_model, load_model, model_text, read_model, shipped_models
from iolens.simulator.workload import FOLDER, load_workload, read_workload, shipped_workloads

TEXT = (FOLDER / "spider.toml").read_text()


def changed(folder: Path, old: str, new: str) -> Path:
    """The shipped `spider` with one thing changed."""
    assert old in TEXT
    path = folder / "mine.toml"
    path.write_text(TEXT.replace(old, new, 1))
    return path


def test_the_shipped_model_has_the_papers_numbers() -> None:
    assert shipped_models() == ["spider"]
    spider = load_model("spider")
    assert (spider.targets, spider.tick_s, spider.read_requests_pct) == (48, 2.0, 42.2)
    assert (spider.read.bandwidth.alpha, spider.write.bandwidth.alpha) == (1.24, 2.6)
    assert (spider.read.interarrival.alpha, spider.write.interarrival.alpha) == (1.17, 1.72)
    assert (spider.read.interarrival.xm, spider.write.interarrival.xm) == (0.002, 0.004)
    assert spider.read.idle is not None
    assert spider.write.idle is not None
    assert (spider.read.idle.alpha, spider.write.idle.alpha) == (1.36, 1.43)
    sizes = dict(spider.read.sizes), dict(spider.write.sizes)
    assert [size[16384] for size in sizes] == pytest.approx([0.2, 0.5])
    assert [size[1 << 20] for size in sizes] == pytest.approx([0.25, 0.3])
    assert all(sum(size.values()) == pytest.approx(1.0) for size in sizes)


def test_bytes_and_requests_agree_with_the_sizes() -> None:
    spider = load_model("spider")
    for item in (spider.read, spider.write):
        mean = item.bandwidth.mean() * spider.tick_s / item.mean_requests(spider.tick_s)
        assert mean == pytest.approx(item.mean_size(), rel=0.1)


def test_what_is_written_reads_the_same(tmp_path: Path) -> None:
    spider = load_model("spider")
    odd = replace(
        spider,
        filesystem='a "strange" näme',
        read_requests_pct=63.0,
        read=replace(spider.read, idle=None, sizes=((5000, 0.5), (1 << 20, 0.5))),
        write=replace(
            spider.write,
            bandwidth=Marginal.of_quantiles(tuple((1000 + 1000 * np.array(SHARES)).tolist())),
            busy_run_s=2000,
        ),
    )
    for number, model in enumerate((spider, odd)):
        path = tmp_path / f"{number}.toml"
        path.write_text(model_text(model, "Where it is from\nand more"), "utf-8")
        assert read_model(path) == model
        assert path.read_text("utf-8").startswith("# Where it is from\n# and more\nkind")


def test_models_and_workloads_are_distinguished(tmp_path: Path) -> None:
    mine = changed(tmp_path, "targets = 48", "targets = 3")
    assert is_model("spider")
    assert is_model(str(mine))
    assert not is_model("scratch")
    assert not is_model("nowhere.toml")
    assert "spider" not in shipped_workloads()
    assert load_model(str(mine)).targets == 3
    with pytest.raises(InputError, match=r"a workload model .*expected a workload of disks"):
        read_workload(mine)
    with pytest.raises(InputError, match="kind: missing"):
        load_model(str(FOLDER / "scratch.toml"))
    with pytest.raises(InputError, match="no such model; expected a TOML file, or one of: spider"):
        load_model("scratch")
    with pytest.raises(InputError, match="no such workload"):
        load_workload("spider")


@pytest.mark.parametrize(
    ("old", "new", "key", "expected"),
    [
        ('kind = "synthetic"', 'kind = "real"', "kind is 'real'", '"synthetic"'),
        ("targets = 48", "targets = 0", "targets is 0", "a whole number from 1"),
        ("targets = 48", "", "targets: missing", "a whole number"),
        ("targets = 48", "targets = 48\nosts = 3", "osts: unknown key", "only the documented keys"),
        ("tick_s = 2 ", "tick_s = 0 ", "tick_s is 0", "a number from 0.001"),
        ("tick_s = 2 ", "tick_s = 0.0015003 ", "tick_s is 0.0015003", "whole microseconds"),
        ("America/New_York", "Atlantis", "timezone is 'Atlantis'", "a time zone"),
        ("America/New_York", "../etc/passwd", "timezone is '../etc/passwd'", "a time zone"),
        ("read_requests_pct = 42.2", "read_requests_pct = 100", "read_requests_pct is 100", "a number"),
        ("read_requests_pct = 42.2", "read_requests_pct = 99", "99 % reads cannot come", "another read_requests_pct"),
        ("correlation = 0.3", "correlation = 1", "correlation is 1", "a number from 0 to 0.999"),
        ("correlation = 0.3", "correlation = nan", "correlation is nan", "a number"),
        ("alpha = 1.24", "alpha = 0", "read.bandwidth.alpha is 0", "a number from 0.05"),
        ("alpha = 1.24", "beta = 1.24", "read.bandwidth.alpha: missing", "a number"),
        ("maximum_bytes_per_s = 2.7e9", "maximum_bytes_per_s = 45e6", "read.bandwidth.maximum", "more than xm"),
        ("maximum_bytes_per_s = 2.7e9", "maximum_s = 2.7e9", "read.bandwidth.maximum_s: unknown key", "documented"),
        ("alpha = 1.24", "quantiles_bytes_per_s = [1, 2]", "quantiles_bytes_per_s is", "a list of"),
        ("busy_run_s = 4 ", "busy_run_s = true ", "read.busy_run_s is True", "a number"),
        ("16KiB = 20", "16Kib = 20\n16KIB = 1", "read.sizes.", "each once"),
        ("16KiB = 20", "some = 20", "read.sizes.some is 20", "sizes such as 16KiB"),
        ("16KiB = 20", "16KiB = -1", "read.sizes.16KiB is -1", "a number"),
        ("days = [1.05, ", "days = [", "rhythm.days is", "a list of 7 numbers"),
        ("[1.05, 1.03, 1.0, 0.85, 0.97, 0.95, 1.15]", "[0, 0, 0, 0, 0, 0, 0]", "rhythm.days is 0", "above zero"),
        ("[read.idle]", "[read.silence]", "read.silence: unknown key", "only the documented keys"),
        ('filesystem = "spider"', 'filesystem = ""', "filesystem is ''", "a name"),
        ('filesystem = "spider"', "filesystem = spider", "", "valid TOML"),
    ],
)  # fmt: skip
def test_refusals(tmp_path: Path, old: str, new: str, key: str, expected: str) -> None:
    path = changed(tmp_path, old, new)
    with pytest.raises(InputError) as raised:
        read_model(path)
    assert raised.value.place == str(path)
    assert key in raised.value.problem
    assert expected in f"{raised.value.problem} {raised.value.expected}"


@pytest.mark.parametrize("content", [b"", b"\x00\xff\xfe rubbish", TEXT.encode()[: len(TEXT) // 2]])
def test_damaged_files(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "damaged.toml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"damaged\.toml"):
        read_model(path)


def test_shares_of_any_scale(tmp_path: Path) -> None:
    path = changed(tmp_path, "[read.sizes]", "[read.ignored]")
    path.write_text(path.read_text().replace("[read.ignored]", '[read.sizes]\n2MiB = 1e6\n"8000" = 0\n#', 1))
    result = dict(read_model(path).read.sizes)
    assert result[2 << 20] == pytest.approx(1.0, abs=1e-3)
    assert 8000 not in result
    assert sum(result.values()) == pytest.approx(1.0)
