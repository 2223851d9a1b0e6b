"""Made-up jobs of one application: RPCs by size that vary from job to job, and what an upgrade may do to them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from iolens.analyses.job_report import RpcSize
from iolens.analyses.job_totals import JobTotals, KnownJob
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


def application_job(
    number: int,
    name: str,
    cores: int,
    reads: Sequence[int],
    writes: Sequence[int],
    gigabytes: tuple[int, int],
    opens: int,
) -> JobTotals:
    """One job of an application, with RPCs by size as given."""
    start = (T0_S + number * 7200) * 1_000_000
    job = KnownJob(str(5000 + number), start, start + 3_600_000_000, name=name, cores=cores)
    sizes = [RpcSize(size, *counts) for size, *counts in zip(SIZES, reads, writes, strict=True)]
    moved = gigabytes[0] * 10**9, gigabytes[1] * 10**9
    return JobTotals(job, "job", 4, 4 * 3600.0, False, *moved, sizes, {"open": opens, "close": opens + 2})


def five_applications() -> list[JobTotals]:
    """In the likeness of the study on Pleiades: Overflow on three core counts, and four others."""
    nothing = (0, 0, 0, 0, 0, 0, 0)
    large = (22, 0, 0, 0, 0, 0, 5, 9, 1900)
    overflow = [
        application_job(k, "overflow", cores, (264 * 2**k, *nothing, 1550), large, (2, 3), 20 + 15 * k)
        for k, cores in enumerate((8, 32, 128))
    ]
    thousands = (900, 800, 700, 600, 500, 400, 300, 300, 8000)
    reads, writes = (12243, 264, 56, 81, 242, 269, 543, 1812, 26572), (393, 62, 198, 155, 96, 74, 199, 595, 52606)
    return [
        *overflow,
        application_job(3, "cart3d", 64, (900, *nothing, 1670), (40, *nothing, 0), (4, 1), 30),
        application_job(4, "usm3d", 64, (4000, *nothing, 3000), (0, *nothing, 900), (6, 1), 50),
        application_job(5, "mitgcm", 120, (60_000, *nothing, 40), thousands, (1, 9), 40_000),
        application_job(6, "enzo", 256, reads, writes, (54, 56), 5303),
    ]
