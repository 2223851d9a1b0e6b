"""A server says which targets it serves when they come, after an absence too, and once a day."""

from __future__ import annotations

from iolens.records import CounterSet, Item, Row, Sample
from iolens.sources.reading.served_targets import ServedTargets, with_servers
from iolens.units import DAY_US

FIRST, SECOND = ("scratch", "scratch-OST0000"), ("scratch", "scratch-OST0001")


def said(rows: object) -> list[str]:
    return [str(row.values["target"])[-1] for row in rows]  # type: ignore[attr-defined]


def test_a_target_is_said_when_it_comes_when_it_comes_back_and_once_a_day() -> None:
    served = ServedTargets("oss1")
    both, alone = {FIRST, SECOND}, {FIRST}
    ticks = [(0, both), (5, both), (10, alone), (15, both), (DAY_US, both), (DAY_US + 5, alone)]
    assert [said(served.rows(time, targets)) for time, targets in ticks] == [
        ["0", "1"], [], [], ["1"], ["0", "1"], [],
    ]  # fmt: skip


def test_what_could_not_be_written_is_said_again() -> None:
    served = ServedTargets("oss1")
    assert said(served.rows(0, {FIRST})) == ["0"]
    served.forget()
    assert said(served.rows(5, {FIRST})) == ["0"]


def sample(table: str, target: str, **labels: str) -> Sample:
    return Sample(table, "scratch", target, 7, 7, {"": CounterSet({"read_bytes": 1})}, labels)


def test_a_tree_with_a_name_says_who_serves_its_targets_and_nothing_of_clients_and_services() -> None:
    items: list[Item] = [
        sample("target_io", "scratch-OST0000", target_kind="ost"),
        sample("server_ops", "oss1:ost_io", target_kind="service"),
        sample("client_io", "node0001"),
    ]
    rows = [item.values for item in with_servers(items, "oss1") if isinstance(item, Row)]
    assert rows == [{"time": 7, "filesystem": "scratch", "target": "scratch-OST0000", "host": "oss1"}]
    assert list(with_servers(items, None)) == items
