"""Made-up jobs of one application: RPCs by size that vary from job to job, and what an upgrade may do to them."""

from __future__ import annotations

import numpy as np

from iolens.analyses.job_report.results import RpcSize
from iolens.analyses.job_totals.results import JobTotals, KnownJob
from tests.analyses.client_rows import T0_S

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
