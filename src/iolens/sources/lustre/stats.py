"""Lustre `stats` and `md_stats`, of servers and of clients: one line per counter."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from iolens.records import Problem
from iolens.schema import DIRECTIONS, METADATA_OPERATIONS
from iolens.sources.lustre.clock import stamp_us, whole_number

# Lustre `stats` and `md_stats` ----------------------------------------------------------------------------------------
# One line per counter, `name N samples [unit] min max sum sumsq`, Lustre 1.8 to 2.17.
#
# Lustre does not print a counter that has never counted, so in a whole file what is not printed is zero; in a file that
# may be cut it is unknown. `sumsq` saturates and is ignored.

MICROSECONDS: Final = frozenset({"usec", "usecs"})
US_IN: Final = {**dict.fromkeys(MICROSECONDS, 1), "sec": 1_000_000, "secs": 1_000_000}
TWICE: Final = "statfs"  # 2.10 prints requests of clients first, then all calls: reading kbytesfree makes one too
SERVICE_MARK: Final = "req_waittime"  # only the statistics of a whole service (all targets together) have it

# Lustre 2.0.0 and 2.0.50 put the service's request counters into md_stats, under the names of the requests.
_RENAMED: Final = {
    **{f"mds_{operation}": operation for operation in METADATA_OPERATIONS},
    "obd_ping": "ping",
    "set_info_async": "set_info",
}
_OPERATION_OF: Final = {operation: operation for operation in METADATA_OPERATIONS} | _RENAMED

# What `mdt_counter_init` registers: these are zero when a whole file does not print them.
MDT_OPERATIONS: Final = (
    "open", "close", "mknod", "link", "unlink", "mkdir", "rmdir", "rename", "getattr", "setattr", "getxattr",
    "setxattr", "statfs", "sync", "samedir_rename", "crossdir_rename",
)  # fmt: skip
# Before renames were distinguished by directory (2.1) only these were certain to be counted per MDT.
EARLY_MDT_OPERATIONS: Final = MDT_OPERATIONS[:8]
_RENAMES_APART: Final = ("samedir_rename", "crossdir_rename")

_IO_NAMES: Final = frozenset({"read_bytes", "write_bytes", "read", "write"})
# Counters of a target, beside its bytes and metadata operations: they go to `server_ops`.
OTHER_COUNTERS: Final = frozenset({
    "get_page", "get_page_failures", "cache_access", "cache_hit", "cache_miss", "preprw", "commitrw",
    "preprw_read", "preprw_write", "commitrw_read", "commitrw_write", "llog_connect", "llog_finish",
    "iocontrol", "attach", "detach", "setup", "precleanup", "cleanup", "postrecov", "add_conn", "del_conn",
    "fid_init", "fid_fini", "fid_alloc", "fid_delete", "statfs_async", "packmd", "unpackmd", "checkmd",
    "preallocate", "precreate", "create_async", "setattr_async", "getattr_async", "brw", "brw_async",
    "prep_async_page", "find_cbdata", "change_cbdata", "enqueue", "match", "cancel", "cancel_unused", "join_lru",
    "init_export", "destroy_export", "extent_calc", "pin", "unpin", "import_event", "health_check", "get_uuid",
    "quotacheck", "quota_adjust_qunit", "pool_new", "pool_rem", "pool_add", "pool_del", "getref", "putref",
    "register_page_removal_cb", "unregister_page_removal_cb", "register_lock_cancel_cb",
    "unregister_lock_cancel_cb", "adjust_kms", "merge_lvb", "copy", "zerocopy", "tail", "iterate", "ladvise",
    "req_waittime", "req_qdepth", "req_active", "req_timeout", "reqbuf_avail", "out_update",
})  # fmt: skip
# Requests a service counts are called after what they ask of whom; every version has others.
_REQUESTS: Final = ("ldlm_", "mds_", "ost_", "mgs_", "obd_", "llog_", "quota_", "seq_", "fld_", "sec_", "dt_")
_OF_METADATA: Final = _IO_NAMES | _OPERATION_OF.keys()
_KNOWN: Final = OTHER_COUNTERS | _OF_METADATA


class Count(NamedTuple):
    """One counter: how many samples, their sum where printed, and on which line."""

    samples: int
    total: int | None
    unit: str
    line: int


@dataclass(slots=True)
class Stats:
    """A parsed statistics text. `whole`: what it does not print has never counted."""

    place: str
    snapshot_us: int | None = None
    start_us: int | None = None
    whole: bool = False
    counts: dict[str, Count] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    @property
    def of_a_service(self) -> bool:
        """Whether these are request counters of a service rather than of one target."""
        return SERVICE_MARK in self.counts


def parse_stats(data: bytes, place: str, first_line: int = 1) -> Stats:
    """Read a `stats` or `md_stats` text; lines that are not understood become problems."""
    stats = Stats(place)
    lines = data.decode("ascii", "replace").split("\n")
    misread = 0
    for number, line in enumerate(lines, first_line):
        words = line.split()
        if not words:
            continue
        reason = _take_time(stats, words, line) if words[0].rstrip(":") in _TIMES else _take_count(stats, words, number)
        if reason:
            misread += 1
            stats.problems.append(Problem(place, number, reason))
    if not stats.problems and not stats.counts and stats.snapshot_us is None:
        problem = "no counter" if data.strip() else "empty file"
        stats.problems.append(Problem(place, None, f"{problem}, expected snapshot_time and counters"))
    stats.whole = not misread and stats.snapshot_us is not None and not lines[-1]
    return stats


def target_io_counters(stats: Stats) -> dict[str, int]:
    """Counters of `target_io`: bytes and operations each way, and the summed service time where it is counted."""
    counters: dict[str, int] = {}
    for direction in DIRECTIONS:
        moved = stats.counts.get(f"{direction}_bytes")
        if moved is not None:
            counters[f"{direction}_ops"] = moved.samples
            if moved.total is not None and moved.unit == "bytes":
                counters[f"{direction}_bytes"] = moved.total
        elif stats.whole:
            counters |= {f"{direction}_bytes": 0, f"{direction}_ops": 0}
    waits = {name: stats.counts[name] for name in DIRECTIONS if name in stats.counts}
    waits = {name: count for name, count in waits.items() if count.unit in MICROSECONDS}
    for direction in DIRECTIONS:
        # Where the version times its I/O, a direction that was never used has waited for nothing.
        is_idle = bool(waits) and stats.whole and counters.get(f"{direction}_ops") == 0
        waited = waits[direction].total if direction in waits else 0 if is_idle else None
        if waited is not None:
            counters[f"{direction}_wait_us"] = waited
    return counters


def metadata_counters(stats: Stats) -> dict[str, int]:
    """Counters of `metadata_ops`: `<op>` counts, and `<op>_us` where the version times the operations."""
    counters = printed_operations(stats)
    timed = any(count.unit in MICROSECONDS for count in stats.counts.values())
    for operation in _certain_operations(stats):
        if operation not in counters:
            counters |= {operation: 0, f"{operation}_us": 0} if timed else {operation: 0}
    return counters


def server_counters(stats: Stats, kind: str) -> dict[str, int]:
    """Counters of `server_ops`: all that the other tables of an `ost`, `mdt` or `service` do not have.

    `<op>` counts, `<op>:us` is the summed time and `<op>:total` the sum of what is no time.
    """
    elsewhere = {"ost": _IO_NAMES, "mdt": _OF_METADATA}.get(kind, frozenset())
    return summed_counters(
        {name: count for name, count in stats.counts.items() if name not in elsewhere and _is_known(name)}
    )


def summed_counters(counts: Mapping[str, Count]) -> dict[str, int]:
    """`<name>` counts, `<name>:us` is the summed time and `<name>:total` the sum of what is no time."""
    counters: dict[str, int] = {}
    for name, count in counts.items():
        counters[name] = count.samples
        if count.total is not None:
            factor = US_IN.get(count.unit)
            counters[f"{name}:total" if factor is None else f"{name}:us"] = count.total * (factor or 1)
    return counters


def has_target_io(stats: Stats) -> bool:
    """Whether bytes are counted here at all: always on an OST, on an MDT only once it holds file data."""
    return any(f"{direction}_bytes" in stats.counts for direction in DIRECTIONS)


def names_known_counter(data: bytes) -> bool:
    """Whether some line begins with a counter that a known version has: without a name, only that tells what it is."""
    words = (line.split(None, 1) for line in data.decode("ascii", "replace").split("\n"))
    return any(word and word[0] in _KNOWN for word in words)


def unknown_counters(stats: Stats) -> Iterator[Problem]:
    """Well-formed counters of a name that no known version has: counted as not understood."""
    for name, count in stats.counts.items():
        if not _is_known(name):
            yield Problem(stats.place, count.line, f"counter {name!r} is not known and was left out")


def _is_known(name: str) -> bool:
    return name in _KNOWN or name.startswith(_REQUESTS)


def printed_operations(stats: Stats) -> dict[str, int]:
    """The same, but only operations that are printed."""
    counters: dict[str, int] = {}
    for name, count in stats.counts.items():
        operation = _OPERATION_OF.get(name)
        if operation is None:
            continue
        counters[operation] = counters.get(operation, 0) + count.samples
        if count.unit in MICROSECONDS and count.total is not None:
            counters[f"{operation}_us"] = counters.get(f"{operation}_us", 0) + count.total
    return counters


def _certain_operations(stats: Stats) -> tuple[str, ...]:
    if not stats.whole or stats.of_a_service:
        return ()
    counts: Mapping[str, Count] = stats.counts
    early = "rename" in counts and not any(name in counts for name in _RENAMES_APART)
    return EARLY_MDT_OPERATIONS if early else MDT_OPERATIONS


def _take_time(stats: Stats, words: list[str], line: str) -> str | None:
    name = words[0].rstrip(":")
    stamp = stamp_us(line.strip()[len(words[0]) :])
    if stamp is None:
        return f"{name} is not a time: {line.strip()[:60]!r}"
    if name == "snapshot_time":
        stats.snapshot_us = stamp
    elif name == "start_time":
        stats.start_us = stamp
    return None


_TIMES: Final = frozenset({"snapshot_time", "start_time", "elapsed_time"})
_TRAILING: Final = (4, 7, 8)  # words of a line: none, `min max sum`, or `min max sum sumsq` after the unit


def _take_count(stats: Stats, words: list[str], number: int) -> str | None:
    samples = whole_number(words[1]) if len(words) in _TRAILING and words[2] == "samples" else None
    if samples is None:
        return f"not a counter line: {' '.join(words)[:80]!r}"
    unit, trailing = words[3], [whole_number(word, signed=True) for word in words[4:]]
    if unit[0] != "[" or unit[-1] != "]" or None in trailing:
        return f"not a counter line: {' '.join(words)[:80]!r}"
    count = Count(samples, trailing[2] if trailing else None, unit[1:-1], number)
    if count.total is not None and count.total < 0:
        reason = f"sum of {words[0]!r} is {count.total}: overflowed, left out"
        stats.problems.append(Problem(stats.place, number, reason))
        count = count._replace(total=None)
    name = words[0]
    if name == TWICE and name in stats.counts:
        name = f"obd_{name}"
    if name in stats.counts:
        stats.problems.append(Problem(stats.place, number, f"counter {words[0]!r} occurs again: the first counts"))
    else:
        stats.counts[name] = count
    return None


# What a Lustre client counts ------------------------------------------------------------------------------------------
# `llite.*.stats` and `read_ahead_stats`, `mdc.*.md_stats`, the pools of its locks.
#
# The lines are those of `stats.py`. Which names there are differs by version; one that no known version has is
# reported.

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


def client_metadata_counters(stats: Stats) -> dict[str, int]:
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
