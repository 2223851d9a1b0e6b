"""Made-up jobs of one application: RPCs by size that vary from job to job, and what an upgrade may do to them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from iolens.analyses.job_report.results import RpcSize
from iolens.analyses.job_totals.results import JobTotals, KnownJob
from iolens.store.store import Store
from tests.analyses.client_rows import T0_S, client_rows, fill, job_row

SIZES = tuple(4096 << power for power in range(9))
USUAL = np.array([30, 2, 1, 1, 2, 2, 4, 10, 48.0])  # per cent of the RPCs, 4 KiB to 1 MiB
REGRESSION = np.array([30, 36, 1, 1, 2, 2, 4, 10, 14.0])  # read-ahead that asks for 8 KiB where it was 1 MiB


def like_job(number: int, random: np.random.Generator, reads: np.ndarray = USUAL, hours: float = 1.0) -> JobTotals:
    """One job: shares scatter around `reads` as those of real jobs do, far more than single RPCs would."""
    start = (T0_S + number * 7200) * 1_000_000
    job = KnownJob(
        str(1000 + number), start, start + round(hours * 3.6e9 * random.lognormal(0, 0.2)), name="enzo", cores=64
    )
    of_reads, of_writes = random.dirichlet(reads * 0.5), random.dirichlet(USUAL * 0.5)
    rpcs = int(random.lognormal(10, 0.6))
    sizes = [
        RpcSize(size, int(rpcs * read), int(rpcs * write))
        for size, read, write in zip(SIZES, of_reads, of_writes, strict=True)
    ]
    moved = int(random.lognormal(24, 0.5)), int(random.lognormal(23, 0.5))
    return JobTotals(job, "job", 4, 4 * job.duration_s, False, *moved, sizes, {"open": int(random.lognormal(8, 0.4))})


def stored_like_jobs(store: Store, lines: Sequence[JobTotals], nodes: int = 4) -> Store:
    """Those jobs in a store: the scheduler's records, and what each node counted from begin to end."""
    parts, records = [], []
    for line in lines:
        job = line.job
        start_s, end_s = (us / 1e6 - T0_S for us in (job.start_us, job.end_us))
        records.append(
            job_row(job.job_id, start_s, end_s, name=job.name, user=job.user, cores=job.cores, nodes=nodes,
                    node_list=f"n[1-{nodes}]")
        )  # fmt: skip
        counts = {("read", size.size_bytes // 4096): size.reads for size in line.rpc_sizes or ()}
        counts |= {("write", size.size_bytes // 4096): size.writes for size in line.rpc_sizes or ()}
        for number in range(nodes):
            parts.append(
                client_rows(
                    f"n{number + 1}", start_s, end_s, job_id=job.job_id,
                    read_bytes=_part(line.read_bytes or 0, number, nodes),
                    write_bytes=_part(line.write_bytes or 0, number, nodes),
                    rpcs={key: _part(count, number, nodes) for key, count in counts.items()},
                    metadata={name: _part(count, number, nodes) for name, count in (line.metadata or {}).items()},
                )
            )  # fmt: skip
    return fill(store, parts, records)


def _part(count: int, number: int, parts: int) -> int:
    return count // parts + (number < count % parts)
