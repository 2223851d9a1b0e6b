"""Sweep transfer sizes and record what the disk saw."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.output_options import output_option
from iolens.cli.shared_store_options import store_options
from iolens.cli.terminal_output import progress
from iolens.cli.value_types import BYTES, DURATION, WORDS, sizes_type
from iolens.messages import say

if TYPE_CHECKING:
    from iolens.api.calibration import ReadySweep, SweepRuns

INTERRUPTED = 130
SECTOR = 512


@verb(
    "calibrate run",
    "Sweep transfer sizes and record what the disk saw",
    epilog="""\b
Examples:
  iolens calibrate run /scratch/test --size 64GiB -f scratch --store centre
  iolens calibrate run /scratch/test --ior --jobs 16 --size 1TiB
  iolens calibrate run /scratch/one-ost --light -f scratch --target scratch-OST0003
  iolens calibrate run /dev/sdx --destroy-data --size 100GiB -o sdx.json
""",
)
@click.argument("place", type=click.Path(path_type=Path), metavar="DIR|DEVICE")
@click.option("--light", is_flag=True, help="A short, bounded probe of one idle target, where others work too")
@click.option(
    "--seconds", type=click.FloatRange(1), default=120, show_default=True, help="Longest time of a light probe"
)
@click.option(
    "--gib", type=click.FloatRange(0, min_open=True), default=4, show_default=True,
    help="Most data a light probe writes and reads in all, in GiB",
)  # fmt: skip
@click.option("--size", "file_bytes", type=BYTES, default="4GiB", show_default=True, help="Size of the file")
@click.option("--sizes", type=sizes_type(SECTOR), metavar="LIST", help="Transfer sizes [4KiB to 4MiB by powers of two]")
@click.option("--repeats", type=click.IntRange(1), help="Runs of each size [3; 2 with --light]")
@click.option("--runtime", type=DURATION, default="5s", show_default=True, metavar="TIME", help="Time of each run")
@click.option(
    "--queue-depth", type=click.IntRange(1), default=4, show_default=True, help="I/Os in flight per job (fio)"
)
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Processes; MPI tasks with --ior")
@click.option("--ior", "with_ior", is_flag=True, help="Drive IOR instead of fio")
@click.option("--launcher", metavar="COMMAND", help="MPI launcher for IOR, such as 'srun -n {tasks}' [mpirun, …]")
@click.option("--lustre-root", type=click.Path(path_type=Path), help="Root of the Lustre server that serves DIR")
@click.option(
    "--target", "targets", type=WORDS, metavar="NAMES",
    help="Targets of that server whose brw_stats count the I/Os at the disks",
)  # fmt: skip
@click.option("--target-class", metavar="NAME", help="Class of targets that the calibration of a light probe is for")
@click.option("--asymptote/--no-asymptote", default=True, help="Also measure with smaller files, to detect a cache")
@click.option("--buffered", is_flag=True, help="Allow buffered I/O if O_DIRECT does not work; this measures memory too")
@click.option("--realtime", is_flag=True, help="Run with real-time priority, on a busy machine (needs the privilege)")
@click.option("--destroy-data", is_flag=True, help="Allow DEVICE to be overwritten: everything on it is lost")
@click.option("--filesystem", "-f", metavar="NAME", help="File system the results belong to")
@output_option("Write the runs here as JSON")
@store_options
def calibrate_run(
    place: Path,
    light: bool,
    seconds: float,
    gib: float,
    file_bytes: int,
    sizes: tuple[int, ...] | None,
    repeats: int | None,
    runtime: float,
    queue_depth: int,
    jobs: int,
    with_ior: bool,
    launcher: str | None,
    lustre_root: Path | None,
    targets: tuple[str, ...] | None,
    target_class: str | None,
    asymptote: bool,
    buffered: bool,
    realtime: bool,
    destroy_data: bool,
    filesystem: str | None,
    output: Path | None,
    store: str | None,
    config: str | None,
) -> int:
    """Sweep transfer sizes with random offsets, writes then reads, and record what the disk saw.

    At the end fio reads and writes all sizes at once, to measure the FSU of a full disk.

    Writes one file of --size in DIR (removed at the end in any case), or overwrites DEVICE. The runs are stored, or
    with --output written to a file (with --store, both). Ctrl-C ends the sweep; completed runs are kept.

    --light moves at most --gib in at most --seconds, begins a run only while the target is idle, leaves out runs that
    others disturbed, and says what it did not determine. Its calibration is stored where its runs give one.
    """
    from iolens.api.calibration import ready_sweep, store_runs, write_runs
    from iolens.benchmarks.light_probe import LightLimits, light_plan
    from iolens.benchmarks.sweep import REPEATS, TRANSFER_SIZES, Plan
    from iolens.cli.shared_light_probe import check_light, look_into_store, probed, say_light, stored_light
    from iolens.config import load_config
    from iolens.units import GIB

    known = load_config(config)
    check_light(light, place, targets)
    sizes = None if sizes is None else tuple(sorted(sizes))
    limits = LightLimits(seconds, round(gib * GIB))
    plan = Plan(
        place, file_bytes, sizes or TRANSFER_SIZES, repeats or REPEATS, runtime, queue_depth, jobs,
        direct=not buffered, realtime=realtime, guard=asymptote, filesystem=filesystem,
    )  # fmt: skip
    if light:
        look_into_store(known.store_url(store), filesystem, targets)
        plan = light_plan(plan, limits, sizes, repeats)
    sweep = ready_sweep(
        plan,
        destroy_data=destroy_data,
        with_ior=with_ior,
        launcher=launcher,
        lustre_root=lustre_root,
        targets=None if light and lustre_root is None else targets,
        say=say,
    )
    outcome = probed(sweep, limits) if light else None
    runs = _runs(sweep) if outcome is None else outcome.runs
    if runs.rows and output is not None:
        write_runs(sweep, runs, output)
        click.echo(f"{output}: {runs.count} runs; fit them with: iolens calibrate fit {output}")
    if runs.rows and (output is None or store is not None):
        url = store_runs(sweep, runs, known.store_url(store))
        click.echo(f"{url}: {runs.count} runs; fit them with: iolens calibrate fit {plan.sweep}")
        if outcome is not None:
            stored_light(url, outcome, filesystem, target_class)
    if outcome is not None:
        say_light(outcome)
    if runs.failure is not None:
        raise runs.failure
    return 0 if runs.is_whole else INTERRUPTED


def _runs(sweep: ReadySweep) -> SweepRuns:
    from iolens.api.calibration import sweep_runs

    say(f"{sweep.points} runs of {sweep.plan.runtime_s:g} s on {sweep.plan.file}")
    with progress(sweep.points + 1, "calibrating") as step:
        runs = sweep_runs(sweep, step if sys.stderr.isatty() else say)
    if not runs.is_whole and runs.failure is None:
        say(f"interrupted after {runs.count} of {sweep.points} runs; the file is removed")
    return runs
