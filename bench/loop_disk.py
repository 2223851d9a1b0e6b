"""A loop device or a file on a real disk, an agent that samples it, and fio that loads it: for tests of a real disk.

Direct I/O on both sides of the loop, so that this machine's memory answers nothing. What was made is removed also after
Ctrl-C and SIGTERM.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from iolens.agent.sampling.sampler import STATUS_FILE
from iolens.benchmarks.device_counters import BlockDeviceCounters, underlying_device
from iolens.benchmarks.light_probe import direct_io_trouble
from iolens.benchmarks.programs import run_program

FILESYSTEM: Final = "loop"
CONTROL: Final = Path("/dev/loop-control")
BURST_S: Final = 0.04  # of I/Os in a row, of loads with pauses
PAUSE_S: Final = 0.06
_PROBE_S: Final = 0.4
_SOON_S: Final = 20.0
_IOLENS: Final = (sys.executable, "-m", "iolens.cli.main")


@dataclass(frozen=True)
class LoadedDisk:
    """A loop device, or a file on a disk, all of whose blocks were written; `device` is what the kernel counts."""

    folder: Path
    file: Path
    device: str
    size_bytes: int
    realtime: bool

    @property
    def counters(self) -> BlockDeviceCounters:
        """What the kernel counts of it."""
        return BlockDeviceCounters(self.device)

    def load(self, direction: str, sizes: str, depth: int, seconds: float, burst: int | None = None) -> None:
        """Random I/Os of `direction` (`read`, `write` or `rw`) for that long, with a pause after each `burst` of them.

        `sizes` is one size, or several as fio's `bssplit` has them.
        """
        pauses = [f"--thinktime={round(PAUSE_S * 1e6)}", f"--thinktime_blocks={burst}"] if burst is not None else []
        self.fio(
            f"--rw=rand{direction}",
            f"--bssplit={sizes}" if ":" in sizes else f"--bs={sizes}",
            f"--iodepth={depth}",
            f"--runtime={round(seconds * 1000)}ms",
            *pauses,
            "--time_based",
            "--norandommap",
            "--randrepeat=0",
        )

    def burst(self, direction: str, sizes: str) -> int:
        """How many I/Os in a row take `BURST_S`: 40 % of the time is busy with such a load, whatever the disk.

        Bursts are ten ticks of a kernel that counts 250 a second: its io_ticks have a noise of one tick each.
        """
        before = self.counters.read()
        self.load(direction, sizes, 1, _PROBE_S)
        after = self.counters.read()
        ios = sum(after.ops.values()) - sum(before.ops.values())
        return max(round(ios * BURST_S / _PROBE_S), 1)

    def fill(self) -> None:
        """Write every block: what is merely allocated is answered without the disk."""
        self.fio("--rw=write", "--bs=1m", "--iodepth=4", "--end_fsync=1")

    def fio(self, *options: str) -> None:
        """Run it on all of it."""
        where = (f"--filename={self.file}", f"--size={self.size_bytes}")
        run_program(
            ["fio", "--name=load", *where, "--direct=1", "--ioengine=libaio", "--eta=never", *options], self.realtime
        )


def why_no_loop_disk(place: Path) -> str | None:
    """Why no loop device can be attached to a file on a disk below `place`; None where one can."""
    if os.geteuid() != 0:
        return "only root attaches loop devices"
    if (why := why_no_file_disk(place)) is not None:
        return why
    if not CONTROL.exists():
        return "this kernel has no loop devices (/dev/loop-control)"
    if shutil.which("losetup") is None:
        return "losetup is not on PATH"
    free = subprocess.run(["losetup", "--find"], capture_output=True, text=True, check=False)
    return None if free.returncode == 0 else f"no loop device is free: {free.stderr.strip()}"


def why_no_file_disk(place: Path) -> str | None:
    """Why the disk below `place` cannot be loaded and watched; None where it can."""
    if shutil.which("fio") is None:
        return "fio is not on PATH"
    below = underlying_device(place)
    trouble = below.why if below.device is None else direct_io_trouble(place)
    return f"{place} is of no use: {trouble}" if trouble is not None else None


@contextmanager
def loop_disk(place: Path, size_bytes: int, realtime: bool = False) -> Iterator[LoadedDisk]:
    """A device of that size on a file below `place`, which lies on a disk; detached and removed at the end."""
    with _ended_by_sigterm(), tempfile.TemporaryDirectory(dir=place, prefix="iolens-loop-") as name:
        file = Path(name) / "disk.img"
        with file.open("wb") as image:
            os.posix_fallocate(image.fileno(), 0, size_bytes)
        device = _done("losetup", "--find", "--show", "--direct-io=on", str(file)).strip()
        try:
            disk = LoadedDisk(Path(name), Path(device), Path(device).name, size_bytes, realtime)
            disk.fill()
            yield disk
        finally:
            _done("losetup", "--detach", device)


@contextmanager
def file_disk(place: Path, size_bytes: int, realtime: bool = False) -> Iterator[LoadedDisk]:
    """A file of that size on the disk below `place`: what others do on that disk is counted, too."""
    device = underlying_device(place).device
    assert device is not None
    with _ended_by_sigterm(), tempfile.TemporaryDirectory(dir=place, prefix="iolens-file-") as name:
        disk = LoadedDisk(Path(name), Path(name) / "load.dat", device, size_bytes, realtime)
        disk.fill()
        yield disk


@contextmanager
def sampled(disk: LoadedDisk, interval_s: float) -> Iterator[Path]:
    """`iolens collect` on this machine's diskstats, of that device alone; the store it fills when the block ends."""
    store, spool, config = (disk.folder / name for name in ("store", "spool", "iolens.toml"))
    config.write_text(f'[devices]\ninclude = ["{disk.device}"]\n')
    common = ["--config", str(config), "--spool", str(spool), "--filesystem", FILESYSTEM]
    command = [*_IOLENS, "collect", *common, "--interval", f"{interval_s}s", "--devices", "--no-ship"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as agent:
        try:
            if disk.realtime:  # as fio, which would leave it no processor on a busy machine
                os.sched_setscheduler(agent.pid, os.SCHED_RR, os.sched_param(1))
            _until_first_sample(spool, agent)
            yield store
            time.sleep(2 * interval_s)  # until the agent has seen the last I/O
        finally:
            agent.send_signal(signal.SIGTERM)
            _, said = agent.communicate()
    if agent.returncode != 0:
        raise RuntimeError(f"the agent ended with code {agent.returncode}: {said.decode().strip()}")
    run_iolens("ingest", "spool", spool, "--store", store, "--config", config)


def run_iolens(*arguments: object) -> str:
    """Standard output of the command."""
    return _done(*_IOLENS, *map(str, arguments))


def _until_first_sample(spool: Path, agent: subprocess.Popen[bytes]) -> None:
    """Until the agent has its baseline, so that no I/O is missed."""
    until = time.monotonic() + _SOON_S
    while agent.poll() is None and time.monotonic() < until:
        with suppress(OSError, ValueError):
            if json.loads((spool / STATUS_FILE).read_bytes())["samples"]:
                return
        time.sleep(0.02)
    raise RuntimeError("the agent took no sample")


def _done(*command: str) -> str:
    """Standard output of a command that succeeded."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """SIGTERM is like Ctrl-C within the block."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
