"""Imbalance between servers: the definition of imbalance, with the sums of their targets in the place of targets."""

from __future__ import annotations

import statistics
from pathlib import Path

import numpy as np
import pytest

import iolens
from iolens.analyses.imbalance.analysis import Imbalance
from iolens.analyses.imbalance.server_loads import ServerImbalance
from iolens.api import OpenStore
from iolens.store.store import Store
from iolens.views.imbalance import tables as view
from iolens.views.imbalance.figures import hot_targets
from iolens.views.render.figures import HeatMapMark
from iolens.views.render.json_text import to_plain
from tests.analyses.load_rows import MISSING, TICK_US, rows_of, spider
from tests.analyses.telemetry import T0_US, table_of

SERVED = {f"c{number:02d}": f"oss{number // 4}" for number in range(12)}


def store_of(folder: Path, load: np.ndarray, served: dict[str, str] | None = None) -> OpenStore:
    store = Store(folder)
    store.append("target_io", table_of("target_io", rows_of(load, kind="ost")))
    if served:
        rows = [
            {"time": T0_US, "source": "made-up", "filesystem": "scratch", "target": target, "host": host}
            for target, host in served.items()
        ]
        store.append("target_servers", table_of("target_servers", rows))
    return iolens.open(str(folder))


def between(result: Imbalance) -> ServerImbalance:
    assert result.between_servers is not None
    return result.between_servers


def test_the_statistics_are_those_of_sums_per_server(tmp_path: Path) -> None:
    load = spider(ticks=400, targets=12)
    load[100:110, 5] = MISSING  # so that oss1 is not whole there
    with store_of(tmp_path, load, SERVED) as opened:
        result = opened.imbalance("scratch")
    sums = np.stack([load[:, first : first + 4].sum(axis=1) for first in (0, 4, 8)], axis=1)
    known = [[value for value in row if not np.isnan(value)] for row in sums.tolist()]
    expected = [statistics.stdev(row) for row in known]
    servers = between(result)
    assert servers.samples == 400
    assert servers.std_p80_bytes_per_s == pytest.approx(np.quantile(expected, 0.8))
    assert servers.std_p95_bytes_per_s == pytest.approx(np.quantile(expected, 0.95))
    assert servers.targets_by_server == {"oss0": 4, "oss1": 4, "oss2": 4}
    assert [line.target for line in servers.peers] == ["oss0", "oss1", "oss2"]
    assert servers.peers[0].mean_bytes_per_s == pytest.approx(sums[:, 0].mean())
    assert servers.peers[1].reported_pct == pytest.approx(100 * 390 / 400)
    limit = servers.thresholds[0].std_bytes_per_s
    unbalanced = [row for row, std in enumerate(expected) if std >= limit]
    hottest = {item.target: item.hottest_pct for item in servers.hot_servers if item.threshold == "p80"}
    own = [int(np.nanargmax(sums[row])) for row in unbalanced]
    assert hottest["oss0"] == pytest.approx(100 * own.count(0) / len(own))  # c03 is hot most often


def test_the_server_that_stands_out_is_named_in_words_and_in_the_table(tmp_path: Path) -> None:
    load = spider(ticks=300, targets=24)
    load[:, 8:12] *= 6
    served = {f"c{number:02d}": f"oss{number // 4}" for number in range(24)}
    with store_of(tmp_path, load, served) as opened:
        result = opened.imbalance("scratch")
    assert [line.target for line in between(result).peers if line.finding == "high"] == ["oss2"]
    assert "oss2 moves far more than its peers." in view.server_verdict(between(result))
    assert view.server_verdict(between(result)) in view.verdict(result)
    table = view.servers(result)
    assert [row[0] for row in table.rows] == sorted(set(served.values()))
    assert view.hot_targets(result).columns[0].heading == "Server"
    assert all(row[0] == served[row[1]] for row in view.peers(result).rows)
    assert "Servers of scratch" in [table.title for table in view.tables(result)]


def test_rows_of_the_map_of_hot_targets_are_grouped_by_server(tmp_path: Path) -> None:
    with store_of(tmp_path, spider(ticks=300, targets=12), SERVED) as opened:
        result = opened.imbalance("scratch")
    panel = hot_targets(result).panels[1]
    (mark,) = (mark for mark in panel.marks if isinstance(mark, HeatMapMark))
    assert [SERVED[row] for row in mark.rows] == sorted(SERVED[row] for row in mark.rows)
    assert sum(mark.groups) == len(mark.rows)
    assert len(mark.borders) == len(mark.groups) - 1
    firsts = [name for _, name in panel.y.ticks if " · " in name]
    assert [name.split(" · ")[0] for name in firsts] == ["oss0", "oss1", "oss2"]


def test_without_servers_or_with_a_single_one_nothing_is_said_of_them(tmp_path: Path) -> None:
    load = spider(ticks=100, targets=12)
    with store_of(tmp_path / "none", load) as opened:
        plain = opened.imbalance("scratch")
    with store_of(tmp_path / "one", load, dict.fromkeys(SERVED, "oss0")) as opened:
        single = opened.imbalance("scratch")
    assert plain.between_servers is None
    assert single.between_servers is None
    assert not {"servers", "between_servers"} & set(to_plain(plain))
    assert view.verdict(single) == view.verdict(plain)
    assert view.peers(single).columns[0].heading == "Target"


def test_targets_of_no_known_server_are_in_no_sum(tmp_path: Path) -> None:
    served = {target: host for target, host in SERVED.items() if host != "oss2"}
    with store_of(tmp_path, spider(ticks=100, targets=12), served) as opened:
        result = opened.imbalance("scratch")
    assert between(result).targets_without_server == ["c08", "c09", "c10", "c11"]
    assert "In no sum, for their server is not known: c08" in view.servers(result).note


def test_configured_servers_go_before_those_that_were_seen_and_change_the_answer(tmp_path: Path) -> None:
    config = tmp_path / "iolens.toml"
    config.write_text('[filesystems.scratch.servers]\nleft = ["c0[0-5]"]\nright = ["c*"]\n')
    with store_of(tmp_path / "store", spider(ticks=100, targets=12), SERVED) as opened:
        seen = opened.imbalance("scratch")
    with iolens.open(str(tmp_path / "store"), config=str(config)) as opened:
        configured = opened.imbalance("scratch")
    assert between(seen).targets_by_server == {"oss0": 4, "oss1": 4, "oss2": 4}
    assert between(configured).targets_by_server == {"left": 6, "right": 6}


def test_a_target_that_moves_is_noted_below_the_table(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store_of(tmp_path, spider(ticks=100, targets=12), SERVED) as opened:
        row = {
            "time": T0_US + 60 * TICK_US,
            "source": "made-up",
            "filesystem": "scratch",
            "target": "c03",
            "host": "oss1",
        }
        store.append("target_servers", table_of("target_servers", [row]))
        result = opened.imbalance("scratch")
    assert result.servers is not None
    assert result.servers.of_targets["c03"] == "oss0"  # 60 of 100 ticks
    assert "c03 moved from oss0 to oss1 at" in view.peers(result).note
