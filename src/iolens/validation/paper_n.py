"""Study N: what five applications did to Lustre on Pleiades (N1 to N8)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from iolens.analyses.job_totals import JobTotals, KnownJob, job_totals
from iolens.schema import DIRECTIONS
from iolens.sources import ReadOptions, get_source
from iolens.units import KIB
from iolens.validation.checks import Explained, PublishedCheck, Study, exactly, out_of_reach, printed
from iolens.validation.evidence import PublicData, known, remembered

# The job of study N's Tables I and II, as its nodes would have shown it -----------------------------------------------
# Counters at its begin and at its end.
#
# What the nodes counted was never published, only the sums. So the sums are dealt out to 4 nodes and 60 OSTs, on top of
# counters that were not zero when the job began, and written as `lctl get_param` prints them on Lustre 1.8.

NODES: Final = 4
OSTS: Final = 60
SIZES_KIB: Final = (4, 8, 16, 32, 64, 128, 256, 512, 1024)
READS: Final = (12243, 264, 56, 81, 242, 269, 543, 1812, 26572)
WRITES: Final = (393, 62, 198, 155, 96, 74, 199, 595, 52606)
OPERATIONS: Final = {"open": 5303, "close": 5769, "getattr": 12460, "statfs": 0}
GIGABYTES: Final = {"read_bytes": 54, "write_bytes": 56}

_FILESYSTEM: Final = "nobackup"
_MOUNT: Final = "ffff880c1e2d3400"
_BEGIN_S, _END_S = 1_340_000_000, 1_340_010_800
_BEFORE: Final = 7  # what every counter of the first node showed at the begin; of the next, one more
_SOURCE: Final = "lustre-lctl"


@remembered
def enzo(evidence: PublicData) -> JobTotals:
    """The job's totals: two texts of each node through the source, the store and the sums of jobs."""
    source = get_source(_SOURCE)
    with TemporaryDirectory(prefix="iolens-validate-") as folder:
        for seconds, share in ((_BEGIN_S, 0), (_END_S, 1)):
            texts = list(_written(Path(folder) / str(seconds), seconds, share))
            evidence.store.ingest(source.captures(texts, ReadOptions()), _SOURCE)
    hosts = tuple(_node(number) for number in range(NODES))
    job = KnownJob("enzo", _BEGIN_S * 10**6, _END_S * 10**6, name="enzo", nodes=NODES, hosts=hosts)
    return job_totals(evidence.store.select(_FILESYSTEM), [job])[0]


def _node(number: int) -> str:
    return f"r1i0n{number}"


def _written(folder: Path, seconds: int, share: int) -> Iterator[Path]:
    """The text of each node; `share` of what the job did is in its counters: none of it, or all."""
    folder.mkdir()
    for node in range(NODES):
        path = folder / f"{_node(node)}.txt"
        path.write_text("".join(_parameters(node, seconds, share)), "utf-8")
        yield path


def _parameters(node: int, seconds: int, share: int) -> Iterator[str]:
    before = _BEFORE + node
    yield f"llite.{_FILESYSTEM}-{_MOUNT}.stats=\nsnapshot_time             {seconds}.4711 secs.usecs\n"
    for name, count in GIGABYTES.items():
        moved = before + share * _part(count * 10**9, node, NODES)
        yield f"{name:25} {before + share} samples [bytes] 1 1048576 {moved}\n"
    for name, count in OPERATIONS.items():
        yield f"{name:25} {before + share * _part(count, node, NODES)} samples [regs]\n"
    for ost in range(OSTS):
        place = node * OSTS + ost
        counts = [[before + share * _part(count, place, NODES * OSTS) for count in side] for side in (READS, WRITES)]
        yield f"osc.{_FILESYSTEM}-OST{ost:04x}-osc-{_MOUNT}.rpc_stats=\n{_rpc_stats(seconds, *counts)}"


def _part(count: int, place: int, parts: int) -> int:
    return count // parts + (place < count % parts)


def _rpc_stats(seconds: int, reads: Sequence[int], writes: Sequence[int]) -> str:
    """Pages per RPC, of pages of 4 KiB; the shares behind the counts are left to the reader, as Lustre rounds them."""
    head = "\t\t\tread\t\t\twrite\npages per rpc         rpcs   % cum % |       rpcs   % cum %\n"
    lines = [
        f"{size * KIB // 4096}:\t\t{read:10}   0   0   | {write:10}   0   0\n"
        for size, read, write in zip(SIZES_KIB, reads, writes, strict=True)
    ]
    stamp = f"snapshot_time:         {seconds}.4711 (secs.usecs)\n"
    return f"{stamp}read RPCs in flight:  0\nwrite RPCs in flight: 0\n\n{head}{''.join(lines)}\n"


# Study N: what five applications did to Lustre on Pleiades (NASA Ames, 2012) ------------------------------------------
# The counters behind it were never published. Tables I and II are recomputed from counters that were made of them: this
# shows that the source, the store and the sums of jobs lose and invent nothing, and nothing about Pleiades. What the
# two tables say of each other is independent of that: their RPCs can have written what they say was written.

LOOP: Final = "the table's sums dealt out to the counters of 4 nodes and 60 OSTs, read and summed again: there and back"
PLEIADES: Final = "the runs on Pleiades, and the counters of their nodes, were not published"
MEASURED: Final = "measured on Pleiades; the measurements were not published"
NAMES: Final = {"open": "open", "close": "close", "getattr": "stat", "statfs": "statfs"}


def _rpcs(evidence: PublicData, size_kib: int, direction: str) -> float:
    counts = {size.size_bytes: getattr(size, f"{direction}s") for size in enzo(evidence).rpc_sizes or ()}
    return known(counts.get(size_kib * KIB), None)


def _operations(evidence: PublicData, name: str) -> float:
    """Of an operation that never moved there is no row, where the others have theirs."""
    metadata = enzo(evidence).metadata
    return known(None if metadata is None else metadata.get(name, 0), None)


def _gigabytes(evidence: PublicData, name: str) -> float:
    return known(getattr(enzo(evidence), name), None) / 1e9


def _rpc_gigabytes(evidence: PublicData, direction: str) -> float:
    """What the RPCs can have held at most: their number times the upper bound of their size."""
    sizes = enzo(evidence).rpc_sizes or ()
    return float(sum(size.size_bytes * getattr(size, f"{direction}s") for size in sizes)) / 1e9


# fmt: off
CHECKS: Final = (
    *(PublishedCheck("Table I", f"{direction}s of {size} KB",
        exactly(str(count), count, "RPCs", "a count", "printed"), LOOP,
        partial(_rpcs, size_kib=size, direction=direction))
      for direction, counts in zip(DIRECTIONS, (READS, WRITES), strict=True)
      for size, count in zip(SIZES_KIB, counts, strict=True)),
    *(PublishedCheck("Table II", NAMES[name], exactly(str(count), count, "operations", "a count", "printed"), LOOP,
        partial(_operations, name=NAMES[name])) for name, count in OPERATIONS.items()),
    *(PublishedCheck("Table II", f"data {'read' if name == 'read_bytes' else 'written'}", printed(str(count), "GB"),
        LOOP, partial(_gigabytes, name=name)) for name, count in GIGABYTES.items()),
    # What the two tables say of each other.
    PublishedCheck("Tables I, II", "data written, by the RPCs of Table I", printed("56", "GB", basis="implied"),
        "RPCs times the upper bound of their size", partial(_rpc_gigabytes, direction="write")),
    PublishedCheck("Tables I, II", "data read, by the RPCs of Table I", printed("54", "GB", basis="implied"),
        "RPCs times the upper bound of their size", partial(_rpc_gigabytes, direction="read"),
        otherwise=Explained("29.1",
            "Table II has what applications asked for: the page cache must have served what RPCs cannot have brought")),
    PublishedCheck("section VIII-A", "Enzo's reads of 1024 KB, in the text",
        exactly("36576", 36576, "RPCs", "a count", "printed"), LOOP, partial(_rpcs, size_kib=1024, direction="read"),
        otherwise=Explained("26572", "a slip of the text: Table I has 26,572")),
    out_of_reach("Fig. 2", "GB read by MITgcm, Overflow, Cart3D, USM3D, Enzo", "1; 2; 4; 6; 54", "GB", PLEIADES),
    out_of_reach("Fig. 2", "GB written by the same", "9; 3; 1; 1; 56", "GB", PLEIADES),
    out_of_reach("Fig. 3", "opens and closes of three applications", "under 60", "operations", PLEIADES),
    out_of_reach("Fig. 4", "opens and closes of MITgcm and Enzo", "bars", "operations", PLEIADES),
    out_of_reach("Fig. 5", "Overflow: reads of 4 KB on 8 and on 128 cores", "264; 2016", "RPCs", PLEIADES),
    out_of_reach("Fig. 5", "Overflow: writes of 4 KB", "22 to 27", "RPCs", PLEIADES),
    out_of_reach("Fig. 5", "Overflow: reads and writes of 1024 KB", "1550 to 1950", "RPCs", PLEIADES),
    out_of_reach("Fig. 6", "Cart3D: reads of 1024 KB", "1662 to 1672", "RPCs", PLEIADES),
    out_of_reach("Figs. 7, 8", "USM3D and MITgcm: RPCs by size", "bars", "RPCs", PLEIADES),
    out_of_reach("Fig. 10", "open, fstat, ftruncate, write: Lustre over NFS", "1.6; 39.9; 3.6; 2.0", "times", MEASURED),
    out_of_reach("Fig. 11", "fstat, read, close: Lustre over NFS", "83.1; 3.1; 22", "times", MEASURED),
    out_of_reach("Fig. 12", "write of 8 and 56 GB; read of the same", "223; 217; 4853; 370", "MB/s", MEASURED),
    out_of_reach("Fig. 13", "write on NFS and Lustre; read on the same", "270; 220; 232; 385", "MB/s", MEASURED),
    out_of_reach("Figs. 14, 15", "best write and read on 16 OSTs", "714; 920", "MB/s", MEASURED),
    out_of_reach("Fig. 17", "largest gain of 16 OSTs, write and read", "239; 170", "%", MEASURED),
    out_of_reach("Fig. 18", "write: a file per process over a shared file", "3.1 to 6.3", "times", MEASURED),
    out_of_reach("section VIII-A", "latency of 4 KB over 1024 KB RPCs", "256", "times",
        "a ratio of sizes, not of measured latencies"),
)
# fmt: on

STUDY: Final = Study(
    "N",
    "I/O performance characterization of Lustre and NASA applications on Pleiades (Saini and others; 2012)",
    "19th International Conference on High Performance Computing (HiPC), 2012, pages 1–10",
    CHECKS,
)
