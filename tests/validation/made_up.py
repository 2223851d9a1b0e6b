"""A folder of data in the shapes of the public data sets, with numbers made up so that every answer is known."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path

from iolens.validation.evidence import PublicFile
from iolens.validation.paper_p_evidence import DRIVES, FULLNESS, IO_RATES, SIZES, WIDTHS

DAY_S = 86_400
FIRST_S = 1_496_307_600  # 2017-06-01 09:00 UTC
OSTS = 10
OST_KIB = 1_000_000_000
FOUR_DAYS = 5
FILES = (DRIVES, FULLNESS, IO_RATES, SIZES, WIDTHS)


def made_up(folder: Path) -> Path:
    """All files that study P needs."""
    write = {FULLNESS: fullness, IO_RATES: io_rates, SIZES: sizes, WIDTHS: widths}
    for file, text in write.items():
        place(folder, file).write_text(text(), "utf-8")
    place(folder, DRIVES).write_bytes(gzip.compress(drives().encode()))
    return folder


def place(folder: Path, file: PublicFile) -> Path:
    path = folder / file.path
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def altered(folder: Path, file: PublicFile, change: Callable[[str], str]) -> None:
    """The same file with another text."""
    path = folder / file.path
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(change(gzip.decompress(path.read_bytes()).decode()).encode()))
    else:
        path.write_text(change(path.read_text("utf-8")), "utf-8")


CHANGES = (1.0, 2.0, -1.0, 3.0) * FOUR_DAYS  # per cent: the smallest growth that is known is of a week and 20 readings
USAGE = tuple(accumulate(CHANGES, initial=10.0))


def fullness(pct: tuple[float, ...] = USAGE) -> str:
    """Ten OSTs, a terabyte each: one, two and three per cent up, and one down, over and over."""
    lines = [f"{FIRST_S + day * DAY_S},{round(full * OST_KIB / 100)},{full},{OSTS}" for day, full in enumerate(pct)]
    return "\n".join(["ost_actual_timestamp,ost_avg_full_kib,ost_avg_full_pct,ost_count", *lines, ""])


def io_rates() -> str:
    """Four days with a tenth, two, three and four tenths of the capacity written."""
    whole = OSTS * OST_KIB * 1024
    lines = [f"2018-01-{day:02},5,{day * whole // 10}" for day in range(1, 5)]
    return "\n".join(["date,read_bytes,write_bytes", *lines, ""])


def sizes() -> str:
    """A hundred files of 4 KiB, one large one, two directories and a device."""
    return "\n".join(
        [
            "bin_size,num_files,num_dirs,num_symlinks,num_blks,num_chrs,num_fifos,num_socks",
            "0,0,0,0,1,0,0,0",
            "2048,0,0,0,0,0,0,0",
            "4096,100,1,0,0,0,0,0",
            "536870912,0,0,0,0,0,0,0",
            "1073741824,1,1,0,0,0,0,0",
            "",
        ]
    )


def widths() -> str:
    """Two directories of sixteen million entries, one of two million and forty small ones."""
    return "bin_size,num_child_counts\n1,40\n2097152,1\n8388608,0\n16777216,2\n33554432,0\n"


def drives(flash: tuple[int, ...] = (2, 3, 4, 10)) -> str:
    """Four drives on two servers; the one with a WAF of 10 has been written least."""
    heading = (
        "serial_number,node_name,timestamp,physical_size,power_on_hours,"
        "smart_nand_bytes_written_raw,smart_host_bytes_written_raw"
    )
    lines = []
    for number, factor in enumerate(flash):
        host = 10 if factor == 10 else 10_000
        lines.append(
            f"drive{number},node{number // 2},1554134402,1000000000000,{8766 * (number + 1)},{factor * host},{host}"
        )
    return "\n".join([heading, *lines, ""])
