"""What `synthesize` writes for benchmarks: fio job files, an IOR script, an acceptance suite."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from iolens.cli.options import BYTES, DURATION
from iolens.cli.shared_store_options import Function

if TYPE_CHECKING:
    from iolens.models.workload_model import WorkloadModel


def emission_options(function: Function) -> Function:
    """`--emit-fio`, `--emit-ior`, `--acceptance` and their bounds; the verb hands their values on to `emit`."""
    folder = click.Path(path_type=Path, file_okay=False)
    options = [
        click.option("--emit-fio", type=folder, metavar="DIR", help="Write fio job files that make this load"),
        click.option("--emit-ior", type=folder, metavar="DIR", help="Write a script of IOR runs that make this mix"),
        click.option("--acceptance", type=folder, metavar="DIR", help="Write an acceptance suite: jobs with limits"),
        click.option("--scale", type=float, metavar="SHARE", help="Share of the traffic, 1: all [that of one target]"),
        click.option("--max-size", "max_bytes", type=BYTES, default="1GiB", show_default=True, help="Space it takes"),
        click.option("--max-time", "max_s", type=DURATION, default="60s", show_default=True, help="Time of the load"),
        click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Processes, or MPI tasks"),
        click.option(
            "--queue-depth", type=click.IntRange(1), default=16, show_default=True, help="Requests in flight of each"
        ),
        click.option("--log-requests", is_flag=True, help="Have fio log every request"),
        click.option("--ssi", type=float, default=1.0, show_default=True, help="How many times the work to make"),
        click.option(
            "--percentile", type=float, default=95.0, show_default=True, help="Of demand, for limits of the suite"
        ),
        click.option("--latency-limit", type=DURATION, metavar="TIME", help="99th percentile allowed [from the rate]"),
    ]  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


def emit(model: WorkloadModel, given: dict[str, Any]) -> list[Path]:
    """Write what was asked for; returns the files. `given` has the values of the options by name."""
    if given["emit_fio"] is None and given["emit_ior"] is None and given["acceptance"] is None:
        return []
    from iolens.benchmarks.acceptance import write_acceptance
    from iolens.benchmarks.bounds import TrafficBounds
    from iolens.benchmarks.synthetic_fio import write_fio
    from iolens.benchmarks.synthetic_ior import write_ior

    bounds = TrafficBounds(
        share=given["scale"], ssi=given["ssi"], max_bytes=given["max_bytes"], max_s=given["max_s"],
        jobs=given["jobs"], queue_depth=given["queue_depth"], log=given["log_requests"],
    )  # fmt: skip
    written: list[Path] = []
    if given["emit_fio"] is not None:
        written += write_fio(model, given["emit_fio"], bounds)
    if given["emit_ior"] is not None:
        written += write_ior(model, given["emit_ior"], bounds)
    if given["acceptance"] is not None:
        written += write_acceptance(model, given["acceptance"], bounds, given["percentile"], given["latency_limit"])
    return written
