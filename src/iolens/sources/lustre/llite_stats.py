"""What a Lustre client counts: `llite.*.stats` and `read_ahead_stats`, `mdc.*.md_stats`, the pools of its locks.

The lines are those of `stats.py`. Which names there are differs by version; one that no known version has is reported.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from iolens.records import Problem
from iolens.schema import DIRECTIONS
from iolens.sources.lustre.stats import Count, Stats, parse_stats, summed_counters

METADATA: Final = frozenset({
    "open", "close", "mknod", "create", "link", "unlink", "symlink", "mkdir", "rmdir", "rename", "getattr", "setattr",
    "truncate", "setstripe", "statfs", "readdir", "flock", "fsync", "seek", "fallocate", "setxattr", "getxattr",
    "listxattr", "removexattr", "ioctl", "inode_permission",
})  # fmt: skip
"""Rows of llite's stats that go to `client_metadata`, under Lustre's own names."""
OTHER_CALLS: Final = frozenset({
    "read", "write", "mmap", "page_fault", "page_mkwrite", "brw_read", "brw_write", "osc_read", "osc_write",
    "direct_read", "direct_write", "lockless_read_bytes", "lockless_write_bytes", "lockless_truncate",
    "dirty_pages_hits", "dirty_pages_misses", "alloc_inode", "getxattr_hits", "opencount", "openclosetime",
    "hybrid_noswitch", "hybrid_writesize_switch", "hybrid_readsize_switch", "hybrid_read_bytes",
    "hybrid_write_bytes", "pcc_attach", "pcc_detach", "pcc_auto_attach", "pcc_hit_bytes", "pcc_attach_bytes",
    "vfs_ops", "inode_getacl",
})  # fmt: skip
_BYTES: Final = frozenset({"read_bytes", "write_bytes"})
MD_OPERATIONS: Final = frozenset({
    "close", "create", "enqueue", "getattr", "getattr_name", "getstatus", "getxattr", "init_ea_size", "intent_lock",
    "intent_getattr_async", "link", "rename", "setattr", "setxattr", "fsync", "sync", "read_page", "readpage", "unlink",
    "done_writing", "is_subdir", "lock_match", "null_inode", "revalidate_lock", "clear_open_replay_data",
    "set_open_replay_data", "merge_attr", "get_fid_from_lsm", "get_remote_perm", "get_root", "rmfid", "batch_add",
    "batch_create", "batch_stop", "batch_flush", "unpackmd", "packmd", "cancel_unused", "find_cbdata", "free_lustre_md",
    "get_lustre_md",
})  # fmt: skip
READ_AHEAD: Final = frozenset({
    "hits", "misses", "readpage_not_consecutive", "miss_inside_window", "failed_grab_cache_page", "failed_lock_match",
    "read_but_discarded", "zero_length_file", "zero_size_window", "readahead_to_eof", "hit_max_readahead_issue",
    "wrong_page_from_grab_cache_page", "failed_to_reach_end", "failed_to_fast_read", "async_readahead",
    "mmap_range_read", "wrong_mmap_range_read",
})  # fmt: skip
LOCK_POOL: Final = frozenset({
    "granted", "grant", "cancel", "grant_rate", "cancel_rate", "grant_plan", "slv", "shrink_request", "shrink_freed",
    "recalc_freed", "recalc_timing",
})  # fmt: skip
# Before 2.14.52 the names of read-ahead had blanks and hyphens; the later spelling is kept.
_READ_AHEAD_NAMES: Final = {"read-ahead to EOF": "readahead_to_eof", "hit max r-a issue": "hit_max_readahead_issue"}
_READ_AHEAD_ROW: Final = re.compile(r"([A-Za-z][\w-]*+(?: [A-Za-z][\w-]*+)*+) ++(\d++)( samples \[.*+)?")
_PENDING: Final = "pending issued pages:"


def client_io_counters(stats: Stats) -> dict[str, int]:
    """Counters of `client_io`: what applications read and wrote, cache hits included."""
    counters: dict[str, int] = {}
    for direction in DIRECTIONS:
        moved = stats.counts.get(f"{direction}_bytes")
        if moved is not None:
            counters[f"{direction}_ops"] = moved.samples
            if moved.total is not None:
                counters[f"{direction}_bytes"] = moved.total
        elif stats.whole:
            counters |= {f"{direction}_bytes": 0, f"{direction}_ops": 0}
    return counters


def metadata_counters(stats: Stats) -> dict[str, int]:
    """Counters of `client_metadata`: `<operation>`, and `<operation>:us` from 2.13 on."""
    counters = summed_counters(_named(stats.counts, METADATA))
    return {name: value for name, value in counters.items() if not name.endswith(":total")}


def other_counters(stats: Stats, known: Collection[str], target: str, prefix: str = "") -> dict[str, int]:
    """Counters of `client_ops`: `<target>:<operation>`, `…:us` and `…:total`."""
    counters = summed_counters(_named(stats.counts, known))
    return {f"{target}:{prefix}{name}": value for name, value in counters.items()}


def unknown_calls(stats: Stats) -> Iterator[Problem]:
    """Rows of llite's stats that no known version has."""
    return unknown_names(stats, METADATA | OTHER_CALLS | _BYTES)


def unknown_names(stats: Stats, known: Collection[str]) -> Iterator[Problem]:
    """Well-formed counters whose name is not known."""
    for name, count in stats.counts.items():
        if name not in known:
            yield Problem(stats.place, count.line, f"counter {name!r} is not known and was left out")


def parse_read_ahead(data: bytes, place: str, first_line: int = 1) -> Stats:
    """Read a read_ahead_stats: as `stats` from 2.14.52 on, before with blanks in names, in 1.8 `name count`."""
    lines = data.decode("ascii", "replace").split("\n")
    return parse_stats("\n".join(map(_as_stats, lines)).encode(), place, first_line)


def _as_stats(line: str) -> str:
    row = _READ_AHEAD_ROW.fullmatch(line.strip())
    if line.startswith(_PENDING):  # pages on their way just now
        return ""
    if row is None or row[1] in ("snapshot_time", "start_time", "elapsed_time"):
        return line
    name = _READ_AHEAD_NAMES.get(row[1], re.sub(r"[ -]+", "_", row[1]))
    return f"{name} {row[2]}{row[3] or ' samples [pages]'}"


def _named(counts: Mapping[str, Count], names: Collection[str]) -> dict[str, Count]:
    return {name: count for name, count in counts.items() if name in names}
