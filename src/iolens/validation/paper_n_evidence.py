"""The job of study N's Tables I and II, as its nodes would have shown it: counters at its begin and at its end.

What the nodes counted was never published, only the sums. So the sums are dealt out to 4 nodes and 60 OSTs, on top of
counters that were not zero when the job began, and written as `lctl get_param` prints them on Lustre 1.8.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from iolens.analyses.job_totals.results import JobTotals, KnownJob
from iolens.analyses.job_totals.sums import job_totals
from iolens.sources import ReadOptions, get_source
from iolens.units import KIB
from iolens.validation.evidence import PublicData, remembered

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
