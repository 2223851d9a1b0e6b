"""Which jobs had company: another job on one of their nodes at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from iolens.analyses.job_totals.results import KnownJob
from iolens.arrays import Booleans, Integers

_BEFORE_ALL: Final = -1


def sharing_jobs(jobs: Sequence[KnownJob]) -> Booleans:
    """For each job, whether another of `jobs` overlaps with it on some node, by full seconds."""
    shares = np.zeros(len(jobs), dtype=bool)
    numbers: dict[str, int] = {}
    hosts = [[numbers.setdefault(host, len(numbers)) for host in job.hosts or ()] for job in jobs]
    if not numbers:
        return shares
    owner = np.repeat(np.arange(len(jobs)), [len(part) for part in hosts])
    node = np.concatenate([np.array(part, dtype=np.int64) for part in hosts])
    starts, ends = (
        np.array([getattr(job, name) // 1_000_000 for job in jobs], dtype=np.int64)[owner]
        for name in ("start_us", "end_us")
    )
    order = np.lexsort((starts, node))
    owner, node, starts, ends = owner[order], node[order], starts[order], ends[order]
    shares[owner[starts < _latest_end_before(node, ends)]] = True
    is_overtaken = (node[1:] == node[:-1]) & (starts[1:] < ends[:-1])  # the next on its node starts before it ends
    shares[owner[:-1][is_overtaken]] = True
    return shares


def _latest_end_before(node: Integers, ends: Integers) -> Integers:
    """The latest end of the jobs that started earlier on the same node; rows are in the order of node and start."""
    span = int(ends.max()) + 1  # keeps the nodes apart, so that one running maximum serves all of them
    running = np.maximum.accumulate(node * span + ends)
    latest = np.full(ends.size, _BEFORE_ALL, dtype=np.int64)
    latest[1:] = np.where(node[1:] == node[:-1], running[:-1] - node[1:] * span, _BEFORE_ALL)
    return latest
