"""Targets by server in tables and figures: a column and groups where two servers are known, nothing otherwise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from iolens.target_servers import TargetServers
from iolens.views.render.figures import HeatMapMark, legible
from iolens.views.render.section import grouped_rows
from iolens.views.render.window_axes import ROW_LABELS, target_axis
from iolens.views.utilization.figures import figures
from iolens.views.utilization.tables import per_target
from tests.views.results import busy_day

NAMES = [f"scratch-OST{number:04x}" for number in range(6)]


def served(*hosts: str) -> TargetServers:
    return TargetServers(dict(zip(NAMES, hosts, strict=False)), [])


def test_rows_are_sorted_by_server_and_those_of_none_come_last() -> None:
    order, groups = grouped_rows(served("b", "a", "b", "a", "c"), NAMES)
    assert order == [1, 3, 0, 2, 4, 5]
    assert groups == (("a", 2), ("b", 2), ("c", 1), ("", 1))
    assert grouped_rows(None, NAMES) == (list(range(6)), ())
    assert grouped_rows(served("a", "a", "a", "a", "a", "a"), NAMES) == (list(range(6)), ())


def test_borders_stand_between_the_groups() -> None:
    mark = HeatMapMark(0.0, 1.0, tuple("abcdef"), np.ones((6, 1)), 0.1, 1.0, "x", groups=(2, 3, 1))
    assert mark.borders == [3.5, 0.5]
    assert replace(mark, groups=()).borders == []


def test_few_rows_are_named_and_the_first_of_a_group_with_its_server() -> None:
    axis = target_axis(("x", "y", "z"), (("oss1", 2), ("oss2", 1)))
    assert axis.ticks == ((2.0, "oss1 · x"), (1.0, "y"), (0.0, "oss2 · z"))


def test_many_rows_have_the_names_of_servers_in_the_middle_of_their_targets() -> None:
    count = 4 * ROW_LABELS
    axis = target_axis(tuple(map(str, range(count))), [(f"oss{number}", 4) for number in range(ROW_LABELS)])
    assert len(axis.ticks) == ROW_LABELS
    assert axis.ticks[0] == (count - 2.5, "oss0")
    assert axis.ticks[-1] == (1.5, f"oss{ROW_LABELS - 1}")


def test_the_table_and_the_heat_map_of_utilization_are_by_server() -> None:
    plain = busy_day()
    names = [line.target for line in plain.per_target]
    result = replace(plain, servers=TargetServers({name: f"oss{n % 2}" for n, name in enumerate(names)}, []))
    table = per_target(result)
    assert [column.heading for column in table.columns[:2]] == ["Server", "Target"]
    assert [row[:2] for row in table.rows] == sorted(row[:2] for row in table.rows)
    assert per_target(plain).columns[0].heading == "Target"
    (mark,) = (
        mark
        for panel in legible(figures(result)["heatmap"]()).panels
        for mark in panel.marks
        if isinstance(mark, HeatMapMark)
    )
    assert len(mark.groups) == 2
    rows = [name.removeprefix(f"{plain.filesystem}-") for name in names]
    assert list(mark.rows) == rows[::2] + rows[1::2]
