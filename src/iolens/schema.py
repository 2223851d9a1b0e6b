"""Every table of the store: its columns, units and keys. `docs/tables.md` is generated from here.

Absent is NULL, never 0. Bytes and counts are signed 64-bit integers; a name carries its unit.
"""

from __future__ import annotations

from typing import Final

from iolens.columns import DIRECTIONS as DIRECTIONS
from iolens.columns import LARGEST as LARGEST
from iolens.columns import LATEST_US as LATEST_US
from iolens.columns import Column as Column
from iolens.columns import ColumnType as ColumnType
from iolens.columns import CounterForm as CounterForm
from iolens.columns import Table as Table
from iolens.columns import counter as _count
from iolens.columns import text as _text
from iolens.run_tables import RUN_FILES, RUN_RANKS, RUN_SERIES, RUNS

SCHEMA_VERSION: Final = 1
SIZE_BINS: Final = tuple(2**power for power in range(3, 27))


def size_column(direction: str, upper_bytes: int) -> str:
    """Name of the `target_sizes` column that counts I/Os of at most `upper_bytes` (and more than half of it)."""
    return f"{direction}_ios_{upper_bytes}"


METADATA_OPERATIONS: Final = (
    "open", "close", "mknod", "link", "unlink", "mkdir", "rmdir", "rename", "getattr", "setattr", "getxattr",
    "setxattr", "statfs", "sync", "samedir_rename", "crossdir_rename", "parallel_rename_file",
    "parallel_rename_dir", "create", "destroy", "punch", "migrate", "quotactl", "get_info", "set_info", "prealloc",
    "fallocate", "seek", "connect", "reconnect", "disconnect", "notify", "llog_init", "process_config", "ping",
    "readpage", "rename_trylocks",
)  # fmt: skip
# Servers count each of these inside `rename` as well (DEFINITIONS, "Metadata operations"); `rename_trylocks` are the
# locks that renames tried to get without waiting.
RENAME_KINDS: Final = (
    "samedir_rename", "crossdir_rename", "parallel_rename_file", "parallel_rename_dir", "rename_trylocks",
)  # fmt: skip
SUMMED_OPERATIONS: Final = tuple(name for name in METADATA_OPERATIONS if name not in RENAME_KINDS)
"""What makes up a sum of metadata operations: each of them once."""


# Kinds of targets. Several of one file system count the same bytes: those of the first kind there is are taken.
DISK_KINDS: Final = ("controller", "lun", "device")
"""Their operations and bytes are those of disks."""
DATA_KINDS: Final = ("ost", *DISK_KINDS)
"""From the outside in: what an OST moves, its controller, LUNs and devices move again."""
SUM_KINDS: Final = ("server", "filesystem")
"""Rows that add up several targets: taken where there is nothing finer, the finer first."""


_LONGEST_S: Final = LATEST_US // 1_000_000
_PERCENT: Final = 101  # a share is rounded, and taken a little after its whole

_TIME = Column("time", "timestamp", "end of the interval's tick, UTC")
_READ_AT = Column("time", "timestamp", "time of the reading, UTC")
_DATE = Column("date", "date", "UTC day in which the interval starts (partition)")
_FILESYSTEM = _text("filesystem", "name of the file system")
_SOURCE = _text("source", "which importer or agent wrote the row")
_TARGET = _text("target", "OST, MDT, LUN, controller or block device, as the system names it")
_TARGET_KIND = _text(
    "target_kind", "ost, mdt, device, lun, controller; server or filesystem: a sum over several; service: of a server"
)
_NODE = _text("node", "client host name")
_JOB = _text("job_id", "job identifier as the scheduler or JobID variable gave it")
_INTERVAL = (
    _TIME,
    Column("start", "timestamp", "tick at which the interval starts, UTC"),
    Column("duration_s", "float64", "seconds between the two snapshots, by their own clocks", at_most=_LONGEST_S),
    _DATE,
    _FILESYSTEM,
    _SOURCE,
)
_AFTER_RESET = Column("after_reset", "bool", "counters were reset in this interval: only what moved since is counted")
_SAMPLES = Column("samples", "int64", "raw rows merged into this one by a rollup; NULL in raw rows")
_BYTES_AND_OPS = (
    _count("read_bytes", "bytes read"),
    _count("write_bytes", "bytes written"),
    _count("read_ops", "read operations (RPCs on an OST, requests on a device)"),
    _count("write_ops", "write operations"),
)


def _interval(
    name: str,
    doc: str,
    dimensions: tuple[Column, ...],
    measures: tuple[Column, ...],
    form: CounterForm = CounterForm(),  # noqa: B008 (frozen)
) -> Table:
    key = ("source", "filesystem", *(column.name for column in dimensions), "time")
    return Table(name, doc, (*_INTERVAL, *dimensions, *measures, _AFTER_RESET, _SAMPLES), key, "interval", form)


def _time(name: str, doc: str, key: tuple[str, ...], columns: tuple[Column, ...]) -> Table:
    return Table(name, doc, (_READ_AT, _DATE, _FILESYSTEM, _SOURCE, *columns), key, "reading")


TARGET_IO = _interval(
    "target_io",
    "One target over one interval: bytes and operations read and written, busy and wait time where known.",
    (_TARGET,),
    (
        _TARGET_KIND,
        *_BYTES_AND_OPS,
        _count("unsplit_ops", "reads and writes together, where the source does not tell them apart; else NULL"),
        _count("read_wait_us", "summed service or wait time of the reads, microseconds"),
        _count("write_wait_us", "summed service or wait time of the writes, microseconds"),
        _count("busy_us", "time the device was busy, microseconds; of an OST: its block device, where it is read"),
        _count("queue_us", "time in queue summed over requests (the kernel's weighted time), microseconds"),
        _count("background_bytes", "bytes moved by scrub, rebuild and the like, where counted apart"),
        _count("background_ops", "operations of scrub, rebuild and the like, where counted apart"),
    ),
    CounterForm(rides_along=(("ost", "busy_us"),)),
)
TARGET_SIZES = _interval(
    "target_sizes",
    "The same target and interval: disk I/Os by power-of-two size; a bin is labelled with its upper bound in bytes.",
    (_TARGET,),
    (
        _TARGET_KIND,
        *(
            _count(size_column(direction, size), f"disk {direction}s of more than {size // 2} and at most {size} bytes")
            for direction in DIRECTIONS
            for size in SIZE_BINS
        ),
        _count("read_ios_outside", "disk reads in bins outside 8 B … 64 MiB: not modelled, reported as missing"),
        _count("write_ios_outside", "disk writes in bins outside 8 B … 64 MiB: not modelled, reported as missing"),
    ),
)
TARGET_HISTOGRAMS = _interval(
    "target_histograms",
    "Long form, non-zero bins only: brw_stats' other sections, linear request sizes, Lustre 2.17's latency by size.",
    (
        _TARGET,
        _text(
            "histogram",
            "pages_per_bulk, discontiguous_pages, discontiguous_blocks, disk_fragmented_ios, io_time_ms, …; "
            "disk_ios_in_flight: linear, 31 is 31 or more; disk_ios_in_flight_pow2: powers of two (2.17.51 on); "
            "io_latency_ns_from_SIZE: bulk I/Os of SIZE to below twice SIZE bytes by elapsed time, waiting included",
        ),
        _text("direction", "read or write"),
        Column(
            "bin",
            "int64",
            "the bin's label: upper bound for powers of two, the value itself for linear bins; of latency by size the "
            "upper bound in nanoseconds, a power of two (Lustre prints lower bounds in units of 1,024 ns)",
        ),
    ),
    (_TARGET_KIND, _count("count", "how many fell into the bin")),
    CounterForm(moved_only=True, set_column="histogram", name_columns=("direction", "bin")),
)
METADATA_OPS = _interval(
    "metadata_ops",
    "One MDT over one interval: operations by kind, and their summed service time where the version counts it.",
    (_TARGET,),
    (
        *(_count(operation, f"{operation} operations") for operation in METADATA_OPERATIONS),
        *(_count(f"{operation}_us", f"summed time of {operation}, microseconds") for operation in METADATA_OPERATIONS),
    ),
    CounterForm(sets_add_up=True),
)
SERVER_OPS = _interval(
    "server_ops",
    "Long form, only what moved: what a target did beside bytes and metadata, and the request queues of a server.",
    (
        _text(
            "target",
            "OST or MDT, HOST:SERVICE such as oss1:ost_io, or HOST:nodemap.NAME.dt_stats (md_stats) of a tenant; "
            "without a host the server's first target",
        ),
        _text("operation", "as Lustre calls it: statfs, punch, destroy, …; req_waittime, req_qdepth, ost_write, …"),
    ),
    (
        _TARGET_KIND,
        _count("count", "how often"),
        _count("sum_us", "summed time, microseconds; NULL where it is not timed"),
        _count(
            "total", "summed value of what is no time: requests (req_qdepth, req_active), buffers, pages; else NULL"
        ),
    ),
    CounterForm(
        moved_only=True,
        name_columns=("operation",),
        value_columns=(("", "count"), (":us", "sum_us"), (":total", "total")),
    ),
)
TARGET_CAPACITY = _time(
    "target_capacity",
    "Fullness of a target at one time.",
    ("source", "filesystem", "target", "time"),
    (
        _TARGET,
        _TARGET_KIND,
        *(
            Column(f"{what}_{unit}", "int64", f"{unit} {what}", part_of=None if what == "total" else f"total_{unit}")
            for unit in ("bytes", "inodes")
            for what in ("total", "used", "free")
        ),
        Column("available_bytes", "int64", "bytes free to ordinary users", part_of="total_bytes"),
        Column("targets", "int64", "how many targets the row adds up, where it is a sum; NULL: it is one target"),
    ),
)
TARGET_STATE = _time(
    "target_state",
    "State of a target at one time: software version, recovery, clients, locks.",
    ("source", "filesystem", "target", "time"),
    (
        _TARGET,
        _TARGET_KIND,
        _text("version", "server software version, as printed"),
        _text("recovery_status", "COMPLETE, RECOVERING, INACTIVE, WAITING_FOR_CLIENTS, …"),
        Column("recovery_start", "timestamp", "when recovery began"),
        Column("recovery_duration_s", "float64", "how long recovery took"),
        Column("recovery_remaining_s", "float64", "time left to recover, while recovering"),
        Column("completed_clients", "int64", "clients that completed recovery"),
        Column("expected_clients", "int64", "clients expected in recovery"),
        Column("exports", "int64", "connected clients"),
        Column("locks", "int64", "locks granted and not cancelled"),
        Column("lock_resources", "int64", "objects that have locks"),
        Column("lock_timeouts", "int64", "clients that did not give back a lock in time, since the mount"),
        Column("lock_grants_per_s", "int64", "locks granted in the last second"),
        Column("lock_cancels_per_s", "int64", "locks cancelled in the last second"),
        _text("device", "what the target is on, as the server mounted it: a block device, or a ZFS dataset"),
        Column("device_rotational", "bool", "whether that device says that it rotates: a disk, not flash"),
        Column("device_queue_requests", "int64", "requests that the first disk below it takes at once (nr_requests)"),
        _text("device_scheduler", "I/O scheduler of that disk: none, mq-deadline, …"),
    ),
)
TARGET_SERVERS = Table(
    "target_servers",
    "Which server served a target at one time; it did until a later row names another.",
    (
        Column("time", "timestamp", "when it was seen to serve the target, UTC"),
        _SOURCE,
        _FILESYSTEM,
        _TARGET,
        _text("host", "server (OSS, MDS) host name"),
    ),
    ("source", "filesystem", "target", "host", "time"),
    "record",
)
HOST_LOAD = _time(
    "host_load",
    "Load of a server at one time, where a source reports it beside the targets.",
    ("source", "filesystem", "host", "time"),
    (
        _text("host", "server host name"),
        Column("cpu_pct", "float64", "processor time used, per cent of all cores", at_most=_PERCENT),
        Column("memory_pct", "float64", "memory used, per cent", at_most=_PERCENT),
    ),
)
AGENT_HEALTH = _time(
    "agent_health",
    "One agent at one time; counts are since its start.",
    ("source", "host", "run", "time"),
    (
        _text("host", "where it runs"),
        _text("run", "this start of the agent"),
        Column("ticks", "int64", "ticks sampled"),
        Column("late_ticks", "int64", "ticks begun late"),
        Column("missed_ticks", "int64", "ticks not sampled"),
        Column("lost_ticks", "int64", "ticks sampled with no space to spool them"),
        Column("clock_steps_back", "int64", "times the clock was set back"),
        Column("targets", "int64", "targets seen at this tick"),
        Column("samples", "int64", "raw samples spooled"),
        Column("refused", "int64", "places not understood or not readable"),
        Column("thinned_samples", "int64", "samples dropped by thinning a full spool"),
        Column("spool_bytes", "int64", "size of the spool, reserve included"),
        Column("segments_waiting", "int64", "segments not shipped yet"),
        Column("segments_shipped", "int64", "segments the store took"),
        Column("segments_late", "int64", "segments put aside: older than what is stored"),
        Column("segments_bad", "int64", "segments put aside: not understood"),
        Column("ship_failures", "int64", "shipments that failed"),
        Column("rss_bytes", "int64", "resident memory of the sampler"),
        Column("cpu_s", "float64", "processor time of the sampler, seconds"),
        _text("trouble", "what is wrong now; NULL: nothing"),
    ),
)
CLIENT_IO = _interval(
    "client_io",
    "One node and file system over one interval or one job: bytes and calls as the application made them.",
    (_NODE, _JOB),
    _BYTES_AND_OPS,
    CounterForm(sets_by_mount=True),
)
CLIENT_RPCS = _interval(
    "client_rpcs",
    "One node, file system and target over one interval or one job: RPCs by pages per RPC, only what moved.",
    (
        _NODE,
        _JOB,
        _TARGET,
        _text("direction", "read or write"),
        Column("pages", "int64", "pages per RPC, upper bound"),
    ),
    (Column("page_bytes", "int64", "the client's page size"), _count("rpcs", "RPCs of that size")),
    CounterForm(
        moved_only=True,
        name_columns=("target", "direction", "pages"),
        value_columns=(("", "rpcs"),),
        sets_by_mount=True,
    ),
)
CLIENT_METADATA = _interval(
    "client_metadata",
    "One node and file system over one interval or one job: metadata operations by kind, only what moved.",
    (_NODE, _JOB, _text("operation", "as Lustre calls it: open, close, getattr (a stat), statfs, …")),
    (
        _count("count", "operations"),
        _count("sum_us", "summed time, microseconds; NULL where the version does not time it"),
    ),
    CounterForm(
        moved_only=True,
        name_columns=("operation",),
        value_columns=(("", "count"), (":us", "sum_us")),
        sets_by_mount=True,
    ),
)
CLIENT_HISTOGRAMS = _interval(
    "client_histograms",
    "Long form, non-zero bins only: the other sections of a client's rpc_stats, and extents_stats.",
    (
        _NODE,
        _JOB,
        _text("target", "OST or MDT; llite: the calls of applications"),
        _text(
            "histogram",
            "rpcs_in_flight, modify_rpcs_in_flight, offset_pages, rpc_latency_us; call_size_bytes; "
            "io_latency_ns_from_SIZE, as in target_histograms",
        ),
        _text("direction", "read or write; modify: requests that change an MDT"),
        Column(
            "bin",
            "int64",
            "the bin's label, as Lustre prints it; of call_size_bytes and io_latency_ns_from_SIZE the upper bound",
        ),
    ),
    (_count("count", "how many fell into the bin"),),
    CounterForm(moved_only=True, name_columns=("target", "histogram", "direction", "bin"), sets_by_mount=True),
)
CLIENT_OPS = _interval(
    "client_ops",
    "Long form, only what moved: requests of a node to each target, its locks, read-ahead and other calls.",
    (
        _NODE,
        _JOB,
        _text("target", "OST or MDT; llite: other calls of applications; read_ahead; a service such as ldlm_cbd"),
        _text("operation", "as Lustre calls it: req_waittime, ost_read, intent_lock, hits, misses, …"),
    ),
    (
        _count("count", "how often"),
        _count("sum_us", "summed time, microseconds; NULL where it is not timed"),
        _count("total", "summed value of what is no time: bytes of read_bytes, requests of req_active; else NULL"),
    ),
    CounterForm(
        moved_only=True,
        name_columns=("target", "operation"),
        value_columns=(("", "count"), (":us", "sum_us"), (":total", "total")),
        sets_by_mount=True,
    ),
)
JOB_IO = _interval(
    "job_io",
    "Server-side job_stats: one job on one target over one interval.",
    (_TARGET, _JOB),
    (
        _TARGET_KIND,
        *_BYTES_AND_OPS,
        *(_count(operation, f"{operation} operations") for operation in METADATA_OPERATIONS),
        *(
            _count(
                f"{operation}_us", f"summed time of {operation}, microseconds; NULL where the version does not time it"
            )
            for operation in (*DIRECTIONS, *METADATA_OPERATIONS)
        ),
    ),
    CounterForm(moved_only=True, set_column="job_id", sets_come_and_go=True, sets_show_all=True),
)
JOB_SIZES = _interval(
    "job_sizes",
    "Long form, only what moved: one job's reads and writes on one target by size, from Lustre 2.16 on.",
    (
        _TARGET,
        _JOB,
        _text("direction", "read or write"),
        Column("bin", "int64", "upper bound of the size, bytes"),
    ),
    (_TARGET_KIND, _count("count", "how many fell into the bin")),
    CounterForm(moved_only=True, set_column="job_id", name_columns=("direction", "bin"), sets_come_and_go=True),
)
JOBS = Table(
    "jobs",
    "The scheduler's record of a job. Of several rows with one key the one that has ended counts, then the one loaded "
    "last; of records that differ by a shift of zones the one loaded last; those of job-files only where no other "
    "record of that job overlaps.",
    (
        Column("time", "timestamp", "end of the job; of a running one, when it was recorded"),
        Column("date", "date", "UTC day in which the job starts (partition)"),
        _SOURCE,
        _FILESYSTEM,
        _text("cluster", "scheduler's cluster name"),
        _JOB,
        Column("start", "timestamp", "start of the job"),
        Column("submit", "timestamp", "submission"),
        Column("duration_s", "float64", "elapsed"),
        _text("user", "owner"),
        _text("project", "account or project"),
        _text("name", "job name"),
        _text("state", "last known state, in the scheduler's words"),
        Column("nodes", "int64", "compute nodes"),
        Column("cores", "int64", "cores or CPUs"),
        Column("processes", "int64", "processes it started, where the environment of its nodes said so"),
        _text("node_list", "hosts, as compact as the scheduler printed them: nid[0001-0003,7]"),
        Column(
            "ended",
            "bool",
            "the job had ended; false: it was running; NULL: put together from its steps, or from samples of its nodes",
        ),
        Column("loaded_us", "int64", "when the record was ingested, microseconds since 1970; NULL: by iolens 0.1"),
    ),
    ("cluster", "job_id", "start"),
    "record",
    newest_by="ended",
    loaded_by="loaded_us",
)
CONTENTS = Table(
    "contents",
    "One scan of a file system: inodes and bytes by owner, project and type, in histograms of size, age and width.",
    (
        Column("time", "timestamp", "when the scan was taken; ages count from here"),
        _SOURCE,
        _FILESYSTEM,
        _text("scan", "which scan, where a file system has several of one time; its parts share the name"),
        _text("owner", "user; NULL: not reported"),
        _text("project", "project by directory rule or project id; NULL: none, or not reported"),
        _text("inode_type", "file, dir, symlink, blk, chr, fifo, sock"),
        _text("histogram", "size (bytes), atime and mtime (age in seconds), width (entries of a directory), or total"),
        Column("bin_from", "int64", "what the bin holds is larger than this; NULL: the first bin, or total"),
        Column(
            "bin", "int64", "and at most this; 0 of size: empty, 0 of ages: not before the scan; NULL: no upper end"
        ),
        Column("piece", "int64", "number of the row where the bytes of a bin take several to fit; NULL: it is one row"),
        Column("count", "int64", "inodes"),
        Column("bytes", "int64", "summed size; a single sparse file may have 8 EiB", at_most=LARGEST),
        Column("allocated_bytes", "int64", "summed allocation"),
    ),
    ("source", "filesystem", "time", "scan", "owner", "project", "inode_type", "histogram", "bin_from", "bin", "piece"),
    "record",
)
DRIVES = Table(
    "drives",
    "One drive at one time.",
    (
        Column("time", "timestamp", "time of the reading"),
        Column("date", "date", "first day of the UTC month of the reading (partition)"),
        _SOURCE,
        _FILESYSTEM,
        _text("serial", "serial number, or its hash"),
        _text("model", "model"),
        _text("firmware", "firmware version"),
        _text("host", "where it is"),
        _text("device", "what its host calls it, such as /dev/nvme0n1"),
        Column("capacity_bytes", "int64", "user capacity"),
        Column("host_write_bytes", "int64", "bytes written by the host, lifetime"),
        Column("host_read_bytes", "int64", "bytes read by the host, lifetime"),
        Column("nand_write_bytes", "int64", "bytes written to flash, lifetime"),
        Column("power_on_hours", "float64", "hours powered"),
        Column("wear_pct", "float64", "rated life used; NVMe counts on to 255", at_most=1000),
        Column("spare_pct", "float64", "spare capacity that is left", at_most=_PERCENT),
        Column("media_errors", "int64", "unrecovered data integrity errors, lifetime, as NVMe counts them"),
    ),
    ("source", "serial", "time"),
    "record",
    cut_by="month",
)
BENCHMARK_RUNS = Table(
    "benchmark_runs",
    "One benchmark result: one direction of one iteration of one test.",
    (
        Column("time", "timestamp", "end of the run, or its beginning where only that is reported"),
        _SOURCE,
        _FILESYSTEM,
        _text("tool", "ior, mdtest, fio, sequential (our own), strace, loop (our own in its place)"),
        _text("run_id", "identity of the result"),
        _text("direction", "read or write, or the metadata operation"),
        _text("api", "POSIX, MPI-IO, … or the I/O engine"),
        Column("transfer_bytes", "int64", "size of one transfer; NULL where sizes were mixed"),
        Column("block_bytes", "int64", "block size per task"),
        Column("tasks", "int64", "processes"),
        Column("queue_depth", "int64", "transfers in flight, all tasks together"),
        Column("duration_s", "float64", "seconds; of one iteration, on average, where a row sums up several (mdtest)"),
        Column("bytes", "int64", "bytes moved; of one iteration likewise"),
        Column("operations", "int64", "operations done; of one iteration likewise"),
        _text("sweep", "the calibration sweep or study it belongs to; NULL: not run by iolens"),
        _text(
            "study",
            "what a sweep varied: transfer_size, aggregate_size (the cache guard), or saturation: nothing;"
            " or the kind of study: sequential, ior, latency, cache, stripe, metadata, imitate",
        ),
        Column("iteration", "int64", "which repetition, from 0; NULL: a summary over all"),
        Column("repetitions", "int64", "iterations of the test"),
        _text("access", "random or sequential"),
        Column("mixed", "bool", "reads and writes ran at the same time and shared the seconds"),
        Column("file_per_process", "bool", "every task had a file of its own; false: one shared file"),
        Column("direct", "bool", "the host's page cache was bypassed (O_DIRECT)"),
        Column("segments", "int64", "segments of the file (IOR)"),
        Column("nodes", "int64", "client nodes"),
        Column("aggregate_bytes", "int64", "size of all files worked on together"),
        Column("memory_bytes", "int64", "memory of the machine that could cache them"),
        Column("fullness_pct", "float64", "how full the file system was", at_most=_PERCENT),
        Column("reported_bytes_per_s", "float64", "bandwidth as the benchmark printed it"),
        Column(
            "reported_ops_per_s", "float64", "operations per second as the benchmark printed them; a mean for mdtest"
        ),
        Column("ops_per_s_max", "float64", "largest rate over the iterations (mdtest)"),
        Column("ops_per_s_min", "float64", "smallest rate over the iterations (mdtest)"),
        Column("ops_per_s_stddev", "float64", "standard deviation of the rate over the iterations (mdtest)"),
        _text("device", "where disk I/Os were observed: block device or target"),
        Column("device_ops", "int64", "disk I/Os of this direction the device counted meanwhile"),
        Column("device_bytes", "int64", "bytes of this direction the device moved meanwhile"),
        Column("device_other_ops", "int64", "disk I/Os of the other direction meanwhile: disturbance"),
        Column("device_other_bytes", "int64", "bytes of the other direction meanwhile: disturbance"),
        Column("device_busy_us", "int64", "time the device was busy meanwhile, microseconds"),
        Column("device_window_s", "float64", "seconds over which the device was observed"),
        _text(
            "device_sizes", "JSON: disk I/Os of this direction by size bin, where the device counts them (brw_stats)"
        ),
        Column("complete", "bool", "the run came to its end"),
        _text("place", "what a study calls the directory it measured"),
        _text("host", "machine the benchmark was started on"),
        Column("stripe_count", "int64", "targets the file was striped over (Lustre)"),
        Column("stripe_bytes", "int64", "size of a stripe (Lustre)"),
        Column("collective", "bool", "MPI-IO was collective"),
        Column("fsync", "bool", "seconds of a write include the fsync at its end"),
        _text("page_cache", "before the run: dropped, warm (the data was just moved), or bypassed (O_DIRECT)"),
        _text("call", "system call, where a row is about one (latency)"),
        Column("latency_mean_s", "float64", "mean time of one operation, seconds"),
        Column("latency_median_s", "float64", "median of it"),
        Column("latency_p99_s", "float64", "99th percentile of it"),
    ),
    ("source", "run_id", "direction"),
    "record",
)
CALIBRATIONS = Table(
    "calibrations",
    "Fitted transaction-time coefficients with their evidence, per file system or target class, valid from a date.",
    (
        Column("time", "timestamp", "when the calibration was made"),
        _SOURCE,
        Column("filesystem", "string", "file system it was made on; NULL: a published one for comparison"),
        _text("name", "how to ask for it"),
        _text("target_class", "which targets it holds for; NULL: all"),
        _text("targets", "JSON: targets by file system of a class that was found; NULL: those that are configured"),
        Column("valid_from", "timestamp", "first time it applies to"),
        Column("write_latency_s", "float64", "w0, seconds"),
        Column("write_s_per_byte", "float64", "w1, seconds per byte"),
        Column("read_latency_s", "float64", "r0, seconds"),
        Column("read_s_per_byte", "float64", "r1, seconds per byte"),
        Column("queue_depth", "int64", "transfers in flight while it was measured"),
        _text("evidence", "where the numbers come from"),
        _text("sizes", "sizes it was fitted on: observed (at the disk) or requested (by the benchmark)"),
        Column("write_r2", "float64", "fit quality of the writes, on bandwidth", at_least=None),
        Column("read_r2", "float64", "fit quality of the reads, on bandwidth", at_least=None),
        Column("fullness_pct", "float64", "how full the file system was when it was measured", at_most=_PERCENT),
        Column(
            "ceiling_fsu_pct",
            "float64",
            "FSU of full disks by these coefficients: in a saturating test, or in telemetry",
        ),
        _text("state", "measured, estimated (from telemetry) or class (a published one that a person chose)"),
        _text("method", "how an estimate was found: frontier, busy_time or latency; NULL: not from telemetry"),
        *(
            Column(f"{direction}_{name}", "float64", f"{end} end of the interval of {direction}_{of}")
            for direction in DIRECTIONS[::-1]
            for of, ends in (
                ("latency_s", ("latency_low_s", "latency_high_s")),
                ("s_per_byte", ("s_per_byte_low", "s_per_byte_high")),
            )
            for end, name in zip(("low", "high"), ends, strict=True)
        ),
        Column(
            "upper_bound", "bool", "the targets never reached their limit: FSU by these coefficients is at most that"
        ),
        Column("one_at_a_time", "bool", "times of one I/O alone; how many a target serves at once is not known"),
    ),
    ("name", "target_class", "valid_from"),
    "record",
)
BASELINES = Table(
    "baselines",
    "The last raw counters per source, file system, target and counter set; the newest `position` of a key counts.",
    (
        _SOURCE,
        _FILESYSTEM,
        _TARGET,
        _text("counter_set", "table the counters belong to"),
        Column("position", "int64", "grows by one with each batch that touches the target", at_most=LARGEST),
        _text("batch", "identity of the batch that left this baseline"),
        Column("part", "int64", "part of that batch", at_most=LARGEST),
        Column("time", "timestamp", "tick of the last sample"),
        Column("snapshot_us", "int64", "when its file was read, microseconds since 1970"),
        _text("counters", "JSON: raw counters by set, with the start of counting where known"),
        _text("pending", "JSON: what moved while the clock was behind `time`, and readings in doubt; NULL: nothing"),
    ),
    ("source", "filesystem", "target", "counter_set", "position"),
    "record",
)
BATCHES = Table(
    "batches",
    "What was ingested: from where, when, how many rows, what was refused and why, and the files it became.",
    (
        _text("batch", "identity: content hash of a file, or agent host"),
        Column("part", "int64", "part or sequence number under that identity", at_most=LARGEST),
        Column("time", "timestamp", "when it was ingested"),
        _SOURCE,
        _text("origin", "path or address"),
        _text("filesystems", "JSON: targets seen by file system"),
        Column("first_time", "timestamp", "earliest tick"),
        Column("last_time", "timestamp", "latest tick"),
        Column("samples", "int64", "raw samples read"),
        Column("rows", "int64", "rows written to all tables"),
        _text("rows_by_table", "JSON: rows by table"),
        Column("baselines", "int64", "first samples, kept only to difference the next"),
        Column("repeated", "int64", "samples or rows already present, dropped"),
        Column("older", "int64", "samples older than the baseline, refused"),
        Column("resets", "int64", "counter resets met"),
        Column("glitches", "int64", "single counters that stepped back, counted as zero"),
        Column("set_back", "int64", "samples after the clock was set back, counted with the next later one"),
        Column("refused", "int64", "places in the input that were not understood"),
        _text("problems", "JSON: the first of those places, with reasons"),
        _text("checksums", "JSON: SHA-256 of the data files written, by table and path"),
        _text("replaced", "JSON: data files whose place these took, by table"),
        _text("row_hashes", "JSON: 32 bits of the MD5 of each reading's and record's key, by table, in Base64"),
        _text("undoes", "JSON: batches that `store undo` took back, each with its sequence; else NULL"),
    ),
    ("batch", "part"),
    "record",
)

TABLES: Final[dict[str, Table]] = {
    table.name: table
    for table in (
        TARGET_IO, TARGET_SIZES, TARGET_HISTOGRAMS, METADATA_OPS, SERVER_OPS, TARGET_CAPACITY, TARGET_STATE,
        TARGET_SERVERS, HOST_LOAD, AGENT_HEALTH, CLIENT_IO, CLIENT_RPCS, CLIENT_METADATA, CLIENT_HISTOGRAMS, CLIENT_OPS,
        JOB_IO, JOB_SIZES, JOBS, RUNS, RUN_FILES, RUN_RANKS, RUN_SERIES, CONTENTS, DRIVES, BENCHMARK_RUNS, CALIBRATIONS,
        BASELINES, BATCHES,
    )
}  # fmt: skip
