"""Write Darshan logs and the job list of a simulated system."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.terminal_output import progress
from iolens.cli.value_types import TIME
from iolens.cli.workload_option import workload_option


@verb(
    "simulate darshan",
    "Write Darshan logs and the job list of a simulated system",
    epilog="""\b
Examples:
  iolens simulate darshan --output runs --workload scratch --osts 24 --days 1 --seed 1
  iolens ingest darshan runs/logs --filesystem scratch
  iolens ingest slurm runs/sacct.txt
""",
)
@click.option("--output", "-o", type=click.Path(path_type=Path, file_okay=False), required=True, help="A directory")
@workload_option
@click.option("--osts", type=click.IntRange(1, 65535), help="Number of OSTs  [the workload's]")
@click.option("--mdts", type=click.IntRange(0, 65535), help="Number of MDTs  [the workload's]")
@click.option("--nodes", type=click.IntRange(1, 9999), default=8, show_default=True, help="Nodes that run the jobs")
@click.option("--days", type=click.FloatRange(0, 366, min_open=True), default=1.0, show_default=True)
@click.option("--start", type=TIME, default="2012-10-22", show_default=True, metavar="DATE", help="First time, UTC")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Same seed, same logs")
def simulate_darshan(
    output: Path,
    workload: str,
    osts: int | None,
    mdts: int | None,
    nodes: int,
    days: float,
    start: datetime,
    seed: int,
) -> None:
    """Write Darshan logs of the jobs that a simulated file system runs, and the scheduler's list of these jobs.

    Jobs that begin and end within the days have one log each, with all they read, wrote and opened, on the OSTs they
    did it on: the same as `simulate telemetry` and `simulate lustre --clients` of the same workload, OSTs and seed.
    Some projects do not use Darshan. What is true of each run is in OUTPUT/runs.json. Needs the extra `darshan`.
    """
    from iolens.simulator.activity import Activity
    from iolens.simulator.darshan_jobs import LOGS, SACCT_FILE, write_job_logs
    from iolens.simulator.workload import HOLD_S, load_workload
    from iolens.units import DAY_S

    chosen = load_workload(workload)
    start_s = int(start.timestamp()) // HOLD_S * HOLD_S
    with progress(None, "simulating") as step:
        written = write_job_logs(
            output,
            Activity(chosen, osts, seed),
            mdts=chosen.mdts if mdts is None else mdts,
            nodes=nodes,
            start_s=start_s,
            end_s=start_s + round(days * DAY_S / HOLD_S) * HOLD_S,
            progress=step,
        )
    click.echo(f"{len(written.logs)} logs of {written.jobs} jobs in {output / LOGS}; jobs in {output / SACCT_FILE}")
