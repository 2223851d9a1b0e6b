"""How fast a tree is scanned: `python -m bench.scan` makes one of 300,000 files, and lets several programs walk it.

`find -printf` with what our own source of such listings wants, and with numbers for owners; one process of `os.scandir`
that only adds up sizes; the engine of `iolens scan` with all its histograms, as it is and with one lookup at a time. In
turns, so that a busy machine slows all of them. Medians, ratios, peak memory, and the memory again on a tree a tenth as
large. Beside the seconds stand those of processors: on a machine with other work, where the scan's processes do not get
a core each, only these can be compared.

Then the same on a file system that takes its time, as Lustre does: a library that is loaded before the C library lets
every `stat`, of whichever kind, sleep for 0.5 ms first, in a tree of 50,000 files. What it really adds to a lookup of
each program is printed. The trees are removed again.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from iolens.scan.workers import ScanOrder, new_progress, run_scan
from iolens.sources.contents.find import RECOMMENDED

PER_DIRECTORY = 32
ONE_LOOKUP = "iolens, 1 lookup"
SLOW_US = 500
SLOW_LIBRARY = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/stat.h>
#include <time.h>
#define SLOW(name, arguments, values) \\
    int name arguments { \\
        static int (*real) arguments; \\
        struct timespec pause = {0, PAUSE_US * 1000L}; \\
        if (!real) real = (int (*) arguments) dlsym(RTLD_NEXT, #name); \\
        clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, 0); \\
        return real values; \\
    }
SLOW(stat, (const char *path, struct stat *about), (path, about))
SLOW(lstat, (const char *path, struct stat *about), (path, about))
SLOW(fstat, (int file, struct stat *about), (file, about))
SLOW(fstatat, (int file, const char *path, struct stat *about, int flags), (file, path, about, flags))
SLOW(stat64, (const char *path, struct stat64 *about), (path, about))
SLOW(lstat64, (const char *path, struct stat64 *about), (path, about))
SLOW(fstat64, (int file, struct stat64 *about), (file, about))
SLOW(fstatat64, (int file, const char *path, struct stat64 *about, int flags), (file, path, about, flags))
SLOW(statx, (int file, const char *path, int flags, unsigned mask, struct statx *about),
     (file, path, flags, mask, about))
"""


def grow(root: Path, files: int) -> int:
    """A tree as users make them: projects, users, runs. How many inodes it has."""
    for number in range(-(-files // PER_DIRECTORY)):
        place = root / f"p{number % 40:02d}" / f"u{number // 40 % 25:02d}" / f"run{number:05d}"
        place.mkdir(parents=True)
        descriptor = os.open(place, os.O_RDONLY)
        for file in range(PER_DIRECTORY):
            opened = os.open(f"out.{file:06d}.dat", os.O_CREAT | os.O_WRONLY, dir_fd=descriptor)
            os.ftruncate(opened, (number * 7919 + file * 104729) % (1 << 22) if file % 4 == 0 else 0)
            os.close(opened)
        os.close(descriptor)
    return int(subprocess.run(f"find '{root}' | wc -l", shell=True, capture_output=True, text=True, check=True).stdout)


def one_process(root: Path) -> int:
    """The straightforward script: scandir, stat, add up."""
    total, stack = 0, [str(root)]
    while stack:
        with os.scandir(stack.pop()) as listing:
            for entry in listing:
                total += entry.stat(follow_symlinks=False).st_size
                if entry.is_dir(follow_symlinks=False):
                    stack.append(entry.path)
    return total


def engine(root: Path, workers: int, lookups: int | None = None) -> int:
    """All of `iolens scan` but the store."""
    order = ScanOrder(str(root), time.time_ns() // 1000)
    progress = new_progress(order)
    run_scan(order, progress, workers=workers, lookups=lookups)
    progress.findings.settle()
    return progress.findings.names


def contest(name: str, root: Path, workers: int) -> None:
    """One contestant, in this process: prints seconds, processor seconds and peak memory."""
    began, spent = time.perf_counter(), processor_s()
    if name == "scandir":
        one_process(root)
    else:
        engine(root, workers, 1 if name == ONE_LOOKUP else None)
    result = {"seconds": time.perf_counter() - began, "processor_s": processor_s() - spent}
    for what, whose in (("peak_mib", resource.RUSAGE_SELF), ("worker_peak_mib", resource.RUSAGE_CHILDREN)):
        result[what] = resource.getrusage(whose).ru_maxrss / 1024
    print(json.dumps(result))


def processor_s() -> float:
    """What this process and those it has waited for have used."""
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(item.ru_utime + item.ru_stime for item in used)


def slow_library(folder: Path) -> Path:
    """A library to be loaded before all others, with which every kind of `stat` takes `SLOW_US` longer."""
    (folder / "slow.c").write_text(SLOW_LIBRARY)
    library = folder / "slow.so"
    options = ["-O2", "-shared", "-fPIC", f"-DPAUSE_US={SLOW_US}"]
    subprocess.run(["cc", *options, "-o", library, folder / "slow.c", "-ldl"], check=True)
    return library


def measured(name: str, root: Path, workers: int, preloaded: Path | None = None) -> dict[str, float]:
    """One turn of one contestant, in a process of its own; start-up is not counted."""
    environment = os.environ | ({} if preloaded is None else {"LD_PRELOAD": str(preloaded)})
    if name.startswith("find"):
        form = RECOMMENDED.replace("%u", "%U") if name.endswith("numbers") else RECOMMENDED
        began, spent = time.perf_counter(), processor_s()
        subprocess.run(["find", root, "-printf", form], stdout=subprocess.DEVNULL, check=True, env=environment)
        return {"seconds": time.perf_counter() - began, "processor_s": processor_s() - spent}
    command = [sys.executable, "-m", "bench.scan", "--contest", name, "--root", str(root), "--workers", str(workers)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def main() -> None:
    """All contestants in turns, then the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=300_000)
    parser.add_argument("--slow-files", type=int, default=50_000)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--root", type=Path, help="an existing tree instead")
    parser.add_argument("--contest", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.contest:
        contest(given.contest, given.root, given.workers)
        return
    with tempfile.TemporaryDirectory(prefix="iolens-bench-", dir=os.environ.get("BENCH_DIR")) as folder:
        small, root = Path(folder) / "small", given.root or Path(folder) / "tree"
        grow(small, given.files // 10)
        inodes = one_count(root) if given.root else grow(root, given.files)
        compare(root, small, inodes, given.turns, given.workers)
        slow, slow_small = Path(folder) / "slow", Path(folder) / "slow-small"
        sizes = grow(slow, given.slow_files), grow(slow_small, given.slow_files // 10)
        compare_slow(slow, slow_small, sizes, slow_library(Path(folder)), given.turns, given.workers)


def one_count(root: Path) -> int:
    """Inodes of an existing tree."""
    return engine(root, 1)


def compare(root: Path, small: Path, inodes: int, turns: int, workers: int) -> None:
    """Prints a line per contestant, and what our engine is to each."""
    names = ("find", "find, numbers", "scandir", ONE_LOOKUP, "iolens")
    turns_of: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for name in names:
        measured(name, root, workers)  # the kernel knows the tree from here on
    for _ in range(turns):
        for name in names:
            turns_of[name].append(measured(name, root, workers))
    print(f"{inodes:,} inodes, {workers} processes, medians of {turns} turns")
    seconds, processor = (
        {name: statistics.median(item[what] for item in every) for name, every in turns_of.items()}
        for what in ("seconds", "processor_s")
    )
    for name in names:
        line = (
            f"{name:16} {seconds[name]:6.2f} s {inodes / seconds[name]:>10,.0f} inodes/s {processor[name]:6.2f} CPU s"
        )
        if name == ONE_LOOKUP:
            line += f"  iolens: {seconds[name] / seconds['iolens']:.2f}x; "
            line += f"{processor[name] / processor['iolens']:.2f}x by processor time"
        elif name != "iolens":
            alone = processor[name] / (processor["iolens"] / workers)
            line += f"  iolens: {seconds[name] / seconds['iolens']:.2f}x; {alone:.2f}x with a core for each process"
        print(line)
    ours = turns_of["iolens"]
    few = measured("iolens", small, workers)
    for what in ("peak_mib", "worker_peak_mib"):
        print(f"{what:16} {max(our[what] for our in ours):6.0f} MiB, {few[what]:.0f} MiB on a tenth of the tree")


def compare_slow(root: Path, small: Path, sizes: tuple[int, int], library: Path, turns: int, workers: int) -> None:
    """Prints what the library adds to a lookup, in the small tree, and the seconds and the ratio in the other."""
    inodes, few = sizes
    for name in ("find", ONE_LOOKUP):
        quick_s, slow_s = (measured(name, small, 1, preloaded)["seconds"] for preloaded in (None, library))
        print(f"{name:16} one process, {few:,} inodes: {(slow_s - quick_s) / few * 1e6:,.0f} us more per inode")
    by_find = measured("find", root, workers, library)
    ours = [measured("iolens", root, workers, library) for _ in range(turns)]
    seconds, processor = (statistics.median(our[what] for our in ours) for what in ("seconds", "processor_s"))
    print(f"{inodes:,} inodes, {SLOW_US} us more per lookup, {workers} processes, median of {turns} turns; find once")
    for name, passed_s, spent_s in (
        ("find", by_find["seconds"], by_find["processor_s"]),
        ("iolens", seconds, processor),
    ):
        print(f"{name:16} {passed_s:6.2f} s {inodes / passed_s:>10,.0f} inodes/s {spent_s:6.2f} CPU s")
    print(f"{'iolens':16} {by_find['seconds'] / seconds:.1f}x as fast as find")
    print(f"{'worker_peak_mib':16} {max(our['worker_peak_mib'] for our in ours):6.0f} MiB")


if __name__ == "__main__":
    main()
