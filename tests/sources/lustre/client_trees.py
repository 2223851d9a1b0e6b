"""Made-up trees of Lustre clients: one small node of each version, whose texts agree with each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

T0 = 1_700_000_000
MOUNT = "ffff8800a1b2c000"
PAGES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
ENZO_READS = (12243, 264, 56, 81, 242, 269, 543, 1812, 26572)  # SPEC N, Table I; the text's 36,576 is a slip
ENZO_WRITES = (393, 62, 198, 155, 96, 74, 199, 595, 52606)


def plant(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def rows(labels: Sequence[int], reads: Sequence[int], writes: Sequence[int], bar: str = "   | ") -> str:
    """Rows of a histogram, as Lustre prints them: up to where both cumulative shares are whole."""
    lines, so_far = [], [0, 0]
    for label, *counts in zip(labels, reads, writes, strict=True):
        shares = []
        for number, (count, total) in enumerate(zip(counts, (sum(reads), sum(writes)), strict=True)):
            so_far[number] += count
            shares.append(f"{count:10} {100 * count // (total or 1):3} {100 * so_far[number] // (total or 1):3}")
        lines.append(f"{label}:\t\t{bar.join(shares)}\n")
        if so_far == [sum(reads), sum(writes)]:
            break
    return "".join(lines)


def section(name: str, body: str, unit: str = "rpcs", bar: str = "   | ") -> str:
    heads = f"{unit}   % cum %"
    return f"\n\t\t\tread\t\t\twrite\n{name:22}{heads}{bar}{heads}\n{body}"


def rpc_stats(head: str, reads: Sequence[int], writes: Sequence[int], more: str = "", bar: str = "   | ") -> str:
    """Pages per RPC as given; all RPCs alone in flight, at offset 0."""
    alone = (1,), (sum(reads),), (sum(writes),)
    return (
        f"{head}read RPCs in flight:  0\nwrite RPCs in flight: 1\npending write pages:  0\npending read pages:   0\n"
        + section("pages per rpc", rows(PAGES[: len(reads)], reads, writes, bar), bar=bar)
        + section("rpcs in flight", rows(*alone, bar), bar=bar)
        + section("offset", rows((0,), *alone[1:], bar), bar=bar)
        + more
    )


def counters(head: str, *lines: str) -> str:
    return head + "".join(f"{line}\n" for line in lines)


def tree_2_5(root: Path, time: int = T0, opens: int = 20, mount: str = MOUNT) -> Path:
    """2.5: everything in /proc, microseconds without leading zeros, [regs], no sum of squares."""
    stamp = f"snapshot_time             {time}.4711 secs.usecs\n"
    head = f"snapshot_time:         {time}.4711 (secs.usecs)\n"
    lustre = "proc/fs/lustre"
    return plant(root, {
        "proc/sys/kernel/hostname": "n25\n",
        f"{lustre}/llite/lake-{mount}/stats": counters(
            stamp, "read_bytes                6 samples [bytes] 10 4096 9000",
            "write_bytes               4 samples [bytes] 1 8192 16000",
            f"open                      {opens} samples [regs]", "close                     18 samples [regs]",
            "getattr                   70 samples [regs]", "alloc_inode               3 samples [regs]"),
        f"{lustre}/llite/lake-{mount}/read_ahead_stats": counters(
            stamp, "hits                      12 samples [pages]", "readpage not consecutive  3 samples [pages]",
            "read-ahead to EOF         2 samples [pages]"),
        f"{lustre}/llite/lake-{mount}/extents_stats": "disabled\n write anything in this file to activate\n",
        f"{lustre}/osc/lake-OST0000-osc-{mount}/rpc_stats": rpc_stats(head, (3, 0, 1), (2, 1, 0)),
        f"{lustre}/osc/lake-OST0000-osc-{mount}/stats": counters(
            stamp, "req_waittime              9 samples [usec] 10 90 400 30000",
            "read_bytes                4 samples [bytes] 4096 16384 28672 318767104",
            "write_bytes               3 samples [bytes] 100 8192 12388 83896336"),
    })  # fmt: skip


def tree_2_10(root: Path, time: int = T0, opens: int = 20) -> Path:
    """2.10: nanoseconds, and an MDC that counts the requests that change something."""
    stamp = f"snapshot_time             {time}.000000123 secs.nsecs\n"
    head = f"snapshot_time:         {time}.000000123 (secs.nsecs)\n"
    modify = "modify_RPCs_in_flight:  0\n\n\t\t\tmodify\nrpcs in flight        rpcs   % cum %\n"
    mdc = f"proc/fs/lustre/mdc/lake-MDT0000-mdc-{MOUNT}"
    return plant(tree_2_5(root, time, opens), {
        "proc/sys/kernel/hostname": "n210\n",
        f"{mdc}/rpc_stats": f"{head}{modify}0:\t\t         0   0   0\n1:\t\t         5 100 100\n",
        f"{mdc}/stats": counters(
            stamp, "req_waittime              8 samples [usec] 10 90 400 30000",
            "mds_getattr               5 samples [usec] 10 90 200 30000"),
        f"{mdc}/md_stats": counters(stamp, "close                     11 samples [reqs]",
                                    "intent_lock               12 samples [reqs]"),
        f"proc/fs/lustre/ldlm/namespaces/lake-OST0000-osc-{MOUNT}/pool/stats": counters(
            stamp, "granted                   7 samples [locks] 1 2 9 11",
            "grant                     7 samples [locks] 1 1 7 7"),
    })  # fmt: skip


def tree_2_12(root: Path, time: int = T0, opens: int = 20) -> Path:
    """2.12: settings in /sys, statistics in debugfs; timed calls, sums of squares, page size 64 KiB."""
    stamp = f"snapshot_time             {time}.000000123 secs.nsecs\n"
    head = f"snapshot_time:         {time}.000000123 (secs.nsecs)\n"
    debug = "sys/kernel/debug/lustre"
    return plant(root, {
        "etc/hostname": "n212\n",
        f"sys/fs/lustre/osc/lake-OST0000-osc-{MOUNT}/max_pages_per_rpc": "64\n",
        f"{debug}/llite/lake-{MOUNT}/stats": counters(
            stamp, "read_bytes                6 samples [bytes] 10 4096 9000 80000",
            f"open                      {opens} samples [usecs] 1 9 80 500",
            "inode_permission          9 samples [usecs] 0 1 2 2"),
        f"{debug}/osc/lake-OST0000-osc-{MOUNT}/rpc_stats": rpc_stats(head, (3, 0, 1), (0, 0, 0)),
        f"{debug}/osc/lake-OST0000-osc-{MOUNT}/stats": counters(
            stamp, "read_bytes                4 samples [bytes] 65536 262144 458752 81604378624"),
    })  # fmt: skip


def tree_2_15(root: Path, time: int = T0, opens: int = 20, mount: str = MOUNT, start: int = T0 - 500) -> Path:
    """2.14 to 2.16: when counting began, `%%` in an MDC's header, latencies, call sizes, renamed read-ahead."""
    since = f"{start}.000000000 secs.nsecs\n"
    now, elapsed = f"{time}.000000123 secs.nsecs\n", "500.0 secs.nsecs\n"
    stamp = f"snapshot_time             {now}start_time                {since}elapsed_time              {elapsed}"
    head = f"snapshot_time:            {now}start_time:               {since}elapsed_time:             {elapsed}"
    latency = section("RPC latency (us)", rows((0, 512, 1024), (0, 3, 1), (0, 0, 3)), "count")
    sizes = (
        f"{head}                               read       |                write\n"
        "      extents            calls    % cum%  |          calls    % cum%\n"
    )
    calls = (
        "   0K -    4K :              0    0    0  |              3   75   75\n"
        "   4K -    8K :              6  100  100  |              1   25  100\n"
    )
    llite, debug = f"sys/kernel/debug/lustre/llite/lake-{mount}", "sys/kernel/debug/lustre"
    mdc = f"{debug}/mdc/lake-MDT0000-mdc-{mount}"
    return plant(root, {
        "proc/sys/kernel/hostname": "n215\n",
        f"{llite}/stats": counters(
            stamp, "read_bytes                6 samples [bytes] 10 4096 9000 80000",
            "write_bytes               4 samples [bytes] 1 8192 16000 70000000",
            "read                      6 samples [usecs] 1 9 30 200",
            f"open                      {opens} samples [usecs] 1 9 80 500",
            "close                     18 samples [usecs] 1 9 80 500",
            "getattr                   70 samples [usecs] 1 9 80 500",
            "statfs                    2 samples [usecs] 1 9 8 50", "hybrid_noswitch           4 samples [reqs]"),
        f"{llite}/read_ahead_stats": counters(stamp, "hits                      12 samples [pages] 1 1 12 12",
                                              "readahead_to_eof          2 samples [pages]"),
        f"{llite}/extents_stats": sizes + calls,
        f"{llite}/extents_stats_per_process": f"{sizes}\nPID: 77\n{calls}",
        f"{debug}/osc/lake-OST0000-osc-{mount}/rpc_stats": rpc_stats(head, (3, 0, 1), (2, 1, 0), latency).replace(
            "pending write", "DIO RPCs in flight: 0\npending write"),
        f"{debug}/osc/lake-OST0000-osc-{mount}/stats": counters(
            stamp, "read_bytes                4 samples [bytes] 4096 16384 28672 318767104",
            "write_bytes               3 samples [bytes] 100 8192 12388 83896336",
            "ost_read                  4 samples [usecs] 10 90 200 30000"),
        f"{mdc}/rpc_stats": f"{head}modify_RPCs_in_flight:  0\n\n\t\t\tmodify\nrpcs in flight        rpcs   %% cum %%\n"
                            "1:\t\t         5 100 100\n" + rpc_stats("", (0,), (0,)),
        f"{mdc}/md_stats": counters(stamp, "revalidate_lock           12 samples [reqs]"),
        f"{debug}/ldlm/services/ldlm_cbd/stats": counters(
            stamp, "req_waittime              9 samples [usecs] 1 9 40 300",
            "ldlm_bl_callback          9 samples [usecs] 1 9 40 300"),
    })  # fmt: skip


TREES = {"2.5": tree_2_5, "2.10": tree_2_10, "2.12": tree_2_12, "2.15": tree_2_15}


def share(total: int, part: int, parts: int) -> int:
    """One of `parts` uneven pieces of a whole."""
    return total * (part + 1) // parts - total * part // parts


def enzo_node(root: Path, node: int, ended: bool, nodes: int = 4) -> Path:
    """One of some nodes with 60 OSTs, before and after the job of SPEC N's Tables I and II."""
    time, files = T0 + 600 * ended, {"etc/hostname": f"r1i0n{node}\n"}
    head = f"snapshot_time:         {time}.5 (secs.usecs)\n"
    for ost in range(60):
        part = node * 60 + ost
        reads, writes = (
            [7 + (share(count, part, 60 * nodes) if ended else 0) for count in counts]
            for counts in (ENZO_READS, ENZO_WRITES)
        )
        files[f"proc/fs/lustre/osc/nbp1-OST{ost:04x}-osc-{MOUNT}/rpc_stats"] = rpc_stats(head, reads, writes)
    opened, closed, stat = (100 + (share(count, node, nodes) if ended else 0) for count in (5303, 5769, 12460))
    files[f"proc/fs/lustre/llite/nbp1-{MOUNT}/stats"] = counters(
        f"snapshot_time             {time}.5 secs.usecs\n",
        f"read_bytes                9 samples [bytes] 1 9 {10**9 + (share(54 * 10**9, node, nodes) if ended else 0)}",
        f"write_bytes               9 samples [bytes] 1 9 {10**9 + (share(56 * 10**9, node, nodes) if ended else 0)}",
        f"open                      {opened} samples [regs]",
        f"close                     {closed} samples [regs]",
        f"getattr                   {stat} samples [regs]",
    )
    return plant(root, files)
