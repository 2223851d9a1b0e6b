"""Workload models with round numbers, for tests of what is made from them."""

from __future__ import annotations

from iolens.models.workload_model import DirectionModel, Marginal, WorkloadModel
from iolens.units import KIB, MIB

READ_SIZES = ((16 * KIB, 0.2), (512 * KIB, 0.5), (MIB, 0.3))
WRITE_SIZES = ((4 * KIB, 0.5), (64 * KIB, 0.205), (MIB, 0.295))


def model(
    *,
    read_requests_pct: float = 42.2,
    read_sizes: tuple[tuple[int, float], ...] = READ_SIZES,
    write_sizes: tuple[tuple[int, float], ...] = WRITE_SIZES,
    idle: bool = True,
    filesystem: str = "lake",
    targets: int = 8,
    correlation: float = 0.3,
) -> WorkloadModel:
    """Up to 500 reads and 250 writes per second and target, in bursts with silences between."""
    silence = Marginal.pareto(1.4, 2.0, 600.0) if idle else None
    return WorkloadModel(
        filesystem=filesystem,
        targets=targets,
        tick_s=2.0,
        timezone="UTC",
        read=DirectionModel(
            Marginal.pareto(1.3, 40e6, 2e9), Marginal.pareto(1.2, 0.002, 2.0), silence, 20.0, read_sizes
        ),
        write=DirectionModel(
            Marginal.pareto(2.6, 30e6, 1e9), Marginal.pareto(1.7, 0.004, 2.0), silence, 20.0, write_sizes
        ),
        read_requests_pct=read_requests_pct,
        correlation=correlation,
        hours=(1.0,) * 24,
        days=(1.0,) * 7,
    )
