"""Application runs by their totals: bytes, transfer size, rate per rank and phases."""

from __future__ import annotations

from collections.abc import Sequence

from iolens.models.transaction_time import Calibration, Coefficients
from iolens.simulator.darshan_accesses import FileWork, divided, transfers
from iolens.simulator.darshan_runs import SimulatedRun, Strategy
from iolens.units import MIB


def stated_run(
    strategy: Strategy,
    *,
    job_id: int,
    start_s: float,
    duration_s: float,
    processes: int,
    read_bytes: int = 0,
    write_bytes: int = 0,
    transfer_bytes: int = MIB,
    rank_mib_per_s: float = 200.0,
    phases: int = 1,
    osts: int = 24,
    stripe_count: int = 1,
    executable: str = "simulated",
    user: str = "user",
    uid: int = 1000,
    directory: str = "/scratch/simulated",
    opens: int = 0,
    stats: int = 0,
    subset_ranks: int = 0,
    metadata_s: float = 1e-3,
    spread: float = 0.1,
    is_interleaved: bool = False,
    printed_bytes: int = 0,
    has_dxt: bool = False,
    nodes: Sequence[str] = (),
) -> SimulatedRun:
    """A run by its totals: bytes in equal transfers at a rate per rank, in `phases` of equal length, each with files of
    its own. `opens` and `stats` are at least one per rank and file, and none.
    """
    cost = Coefficients(0.0, 1.0 / (rank_mib_per_s * MIB))
    chosen = subset_ranks or max(2, processes // 4)
    per_phase = _files_of(strategy, processes, chosen)
    names = [f"{directory}/{executable}.{phase:03}.{number:06}" for phase in range(phases) for number in per_phase]
    shares = list(zip(*(divided(total, len(names)) for total in (read_bytes, write_bytes, opens, stats)), strict=True))
    length = duration_s / max(phases, 1)
    files = tuple(
        FileWork(
            path,
            tuple((number * stripe_count + stripe) % osts for stripe in range(stripe_count)),
            transfers(shares[number][0], transfer_bytes),
            transfers(shares[number][1], transfer_bytes),
            opens=shares[number][2],
            stats=shares[number][3],
            start_s=(number // len(per_phase) + 0.05) * length,
            end_s=(number // len(per_phase) + 0.95) * length,
        )
        for number, path in enumerate(names)
    )
    return SimulatedRun(
        executable=executable,
        user=user,
        uid=uid,
        job_id=job_id,
        start_s=start_s,
        end_s=start_s + duration_s,
        processes=processes,
        strategy=strategy,
        files=files,
        cost=Calibration("stated", cost, cost),
        metadata_s=metadata_s,
        spread=spread,
        subset_ranks=chosen,
        is_interleaved=is_interleaved,
        transfer_bytes=transfer_bytes,
        printed_bytes=printed_bytes,
        nodes=tuple(nodes),
        has_dxt=has_dxt,
    )


def _files_of(strategy: Strategy, processes: int, subset_ranks: int) -> range:
    """Numbers of the files that a phase needs so that every rank of the strategy has its part."""
    counts = {"file_per_process": processes, "subset": subset_ranks, "none": 0}
    counts["partially_shared"] = max(1, processes // subset_ranks)
    return range(counts.get(strategy, 1))
