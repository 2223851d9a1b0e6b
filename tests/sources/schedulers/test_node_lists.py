"""Compact lists of hosts, expanded within bounds."""

from __future__ import annotations

import time

import pytest

from iolens.sources.schedulers.node_lists import compact_nodes, count_nodes, expand_nodes


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("nid[0001-0003,7]", ["nid0001", "nid0002", "nid0003", "nid7"]),
        ("a1,b[2,4-5],c", ["a1", "b2", "b4", "b5", "c"]),
        ("r[0-1]n[08-09]-ib", ["r0n08-ib", "r0n09-ib", "r1n08-ib", "r1n09-ib"]),
        ("login1", ["login1"]),
        ("n[098-101]", ["n098", "n099", "n100", "n101"]),
    ],
)
def test_a_list_is_expanded_in_its_order(text: str, names: list[str]) -> None:
    assert expand_nodes(text) == names
    assert count_nodes(text) == len(names)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["nid0001", "nid0003", "nid0002", "nid0009"], "nid[0001-0003,0009]"),
        (["n9", "n10", "n11"], "n[10-11],n9"),
        (["login", "n1"], "login,n1"),
        (["r0n08-ib"], "r0n08-ib"),
        (["n1.site", "n2.site"], "n1.site,n2.site"),
        ([], ""),
    ],
)
def test_names_become_a_compact_list(names: list[str], text: str) -> None:
    assert compact_nodes(names) == text
    assert not names or sorted(expand_nodes(text)) == sorted(names)


@pytest.mark.parametrize(
    "text", ["", "n[", "n[1-", "n[3-1]", "n]", "n[a-b]", "a,,b", "n[1]]", "n[[1]]", "n[1,]", "n[-1]"]
)
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not a (node list|range of hosts)"):
        expand_nodes(text)
    assert count_nodes(text) is None


@pytest.mark.parametrize("text", ["n[0-999999999999]", "n[0-9999][0-9999][0-9999]", ",".join(["n[0-9999]"] * 101)])
def test_a_hostile_range_takes_neither_time_nor_memory(text: str) -> None:
    begin = time.process_time()
    with pytest.raises(ValueError, match="more than 1000000 hosts"):
        expand_nodes(text)
    assert time.process_time() - begin < 2
    with pytest.raises(ValueError, match="longer than 1024 KiB"):
        expand_nodes("n" * (2 << 20))
