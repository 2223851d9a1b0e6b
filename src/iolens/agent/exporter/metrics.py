"""Every metric `iolens export prometheus` serves, and samples in the two text formats that Prometheus reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final, Literal, NamedTuple

# Every metric `iolens export prometheus` serves -----------------------------------------------------------------------
# Name, type, labels, meaning, and whose name it is.
#
# Names that operators' dashboards already ask for are kept, with their labels, even where Prometheus' own rules would
# have them otherwise; `docs/prometheus.md` repeats this table and a test compares the two.

Kind = Literal["counter", "gauge", "histogram"]
BOTH, WHAMCLOUD, HPE, OURS = "both", "lustrefs-exporter", "lustre_exporter", "iolens"
TARGET: Final = ("component", "filesystem", "target")
BY_DIRECTION: Final = (*TARGET, "operation")
BIN: Final = (*TARGET, "operation", "size")
DIRECTION: Final = (*TARGET, "direction")
MOUNT: Final = ("filesystem", "fs", "target")
REQUEST: Final = (*MOUNT, "operation")
RECOVERY: Final = ("filesystem", "kind", "target")
JOB: Final = (*TARGET, "jobid", "operation")
COLLECTOR: Final = ("collector",)


class ExportedMetric(NamedTuple):
    """One metric; `origin` says whose name it is: both exporters', one's, or ours."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    origin: str = OURS


READ_BYTES: Final = ExportedMetric("lustre_read_bytes_total", "counter", "Bytes read by clients.", BY_DIRECTION, BOTH)
WRITE_BYTES: Final = ExportedMetric(
    "lustre_write_bytes_total", "counter", "Bytes written by clients.", BY_DIRECTION, BOTH
)
READ_SAMPLES: Final = ExportedMetric(
    "lustre_read_samples_total", "counter", "Read RPCs; of a client, calls that read.", BY_DIRECTION, BOTH
)
WRITE_SAMPLES: Final = ExportedMetric(
    "lustre_write_samples_total", "counter", "Write RPCs; of a client, calls that write.", BY_DIRECTION, BOTH
)
STATS: Final = ExportedMetric(
    "lustre_stats_total",
    "counter",
    "Metadata operations of an MDT, or of applications on a client.",
    BY_DIRECTION,
    BOTH,
)
STATS_TIME: Final = ExportedMetric(
    "lustre_stats_time_total", "counter",
    "Summed time of the metadata operations in microseconds; Lustre 2.15 on, clients 2.13 on.", BY_DIRECTION, WHAMCLOUD,
)  # fmt: skip
PAGES_PER_RPC: Final = ExportedMetric(
    "lustre_pages_per_rpc_total",
    "counter",
    "RPCs of a client by pages per RPC; `size` is the bin's upper bound.",
    BIN,
    HPE,
)
RPCS_IN_FLIGHT: Final = ExportedMetric(
    "lustre_rpcs_in_flight", "gauge",
    "RPCs of a client by how many were in flight; `type` is osc or mdc; it only grows: use rate().",
    (*BIN, "type"), HPE,
)  # fmt: skip
RPCS_OFFSET: Final = ExportedMetric(
    "lustre_rpcs_offset", "gauge", "RPCs of a client by offset in pages; it only grows: use rate().", BIN, HPE
)
OSC_READ_BYTES: Final = ExportedMetric(
    "lustre_client_osc_read_bytes_total", "counter", "Bytes that read RPCs of a client carried.", MOUNT, WHAMCLOUD
)
OSC_WRITE_BYTES: Final = ExportedMetric(
    "lustre_client_osc_write_bytes_total", "counter", "Bytes that write RPCs of a client carried.", MOUNT, WHAMCLOUD
)
OSC_REQUESTS: Final = ExportedMetric(
    "lustre_client_osc_stats_total", "counter", "Requests of a client to OSTs by kind.", REQUEST, WHAMCLOUD
)
OSC_TIMES: Final = ExportedMetric(
    "lustre_client_osc_stats_time_microseconds_total", "counter", "Summed time of requests to OSTs.", REQUEST, WHAMCLOUD
)
MDC_REQUESTS: Final = ExportedMetric(
    "lustre_client_mdc_stats_total", "counter", "Requests of a client to MDTs by kind.", REQUEST, WHAMCLOUD
)
MDC_TIMES: Final = ExportedMetric(
    "lustre_client_mdc_stats_time_microseconds_total", "counter", "Summed time of requests to MDTs.", REQUEST, WHAMCLOUD
)
MD_REQUESTS: Final = ExportedMetric(
    "lustre_client_mdc_md_stats_requests_total", "counter", "Metadata requests of a client by kind.", REQUEST, WHAMCLOUD
)
DISK_IO_SIZES: Final = ExportedMetric(
    "lustre_disk_io_total", "counter", "Disk I/Os by size; `size` is the bin's upper bound in bytes.", BIN, BOTH
)
PAGES: Final = ExportedMetric(
    "lustre_pages_per_bulk_rw_total", "counter", "RPCs by pages per RPC; `size` is the bin's upper bound.", BIN, BOTH
)
DISCONTIGUOUS_PAGES: Final = ExportedMetric(
    "lustre_discontiguous_pages_total", "counter", "RPCs by logical discontinuities in them.", BIN, BOTH
)
DISCONTIGUOUS_BLOCKS: Final = ExportedMetric(
    "lustre_discontiguous_blocks_total", "counter", "RPCs by discontinuities on disk.", BIN, WHAMCLOUD
)
FRAGMENTS: Final = ExportedMetric(
    "lustre_dio_frags", "gauge", "RPCs by the disk I/Os they were cut into; it only grows: use rate().", BIN, WHAMCLOUD
)
IN_FLIGHT: Final = ExportedMetric(
    "lustre_disk_io", "gauge", "Disk I/Os by how many were in flight; it only grows: use rate().", BIN, BOTH
)
IN_FLIGHT_POW2: Final = ExportedMetric(
    "iolens_disk_ios_in_flight_total", "counter",
    "Disk I/Os by how many were in flight, in powers of two (Lustre 2.17.51 on); `size` is the bin's upper bound.", BIN,
)  # fmt: skip
IO_TIME: Final = ExportedMetric(
    "lustre_io_time_milliseconds_total", "counter",
    "Disk I/Os by the time they took; `size` is the bin's upper bound in milliseconds.", BIN, BOTH,
)  # fmt: skip
BLOCK_MAPS: Final = ExportedMetric(
    "lustre_block_maps_milliseconds_total", "counter",
    "Block maps by the time they took; `size` is the bin's upper bound in milliseconds.", BIN, WHAMCLOUD,
)  # fmt: skip
CAPACITY: Final = ExportedMetric("lustre_capacity_kilobytes", "gauge", "Size of the target in KiB.", TARGET, BOTH)
FREE: Final = ExportedMetric("lustre_free_kilobytes", "gauge", "Free space in KiB.", TARGET, BOTH)
AVAILABLE: Final = ExportedMetric(
    "lustre_available_kilobytes", "gauge", "Space free to ordinary users in KiB.", TARGET, BOTH
)  # fmt: skip
INODES: Final = ExportedMetric("lustre_inodes_maximum", "gauge", "Inodes (objects) the target can hold.", TARGET, BOTH)
INODES_FREE: Final = ExportedMetric("lustre_inodes_free", "gauge", "Inodes (objects) still free.", TARGET, BOTH)
EXPORTS: Final = ExportedMetric("lustre_exports_total", "gauge", "Connected clients, servers included.", TARGET, BOTH)
RECOVERY_STATUS: Final = ExportedMetric(
    "recovery_status", "gauge",
    "0 complete, 1 inactive, 2 waiting, 3 waiting for clients, 4 recovering, 5 anything else.", RECOVERY, WHAMCLOUD,
)  # fmt: skip
RECOVERY_COMPLETED: Final = ExportedMetric(
    "recovery_status_completed_clients", "gauge", "Clients that completed recovery.", RECOVERY, WHAMCLOUD
)
RECOVERY_EXPECTED: Final = ExportedMetric(
    "recovery_status_total_clients", "gauge", "Clients expected in recovery.", RECOVERY, WHAMCLOUD
)
RECOVERY_DURATION: Final = ExportedMetric(
    "recovery_status_duration_seconds", "gauge", "How long the last recovery took.", RECOVERY, WHAMCLOUD
)
RECOVERY_REMAINING: Final = ExportedMetric(
    "recovery_status_time_remaining_seconds", "gauge", "Time left to recover.", RECOVERY, WHAMCLOUD
)
JOB_READ_BYTES: Final = ExportedMetric(
    "lustre_job_read_bytes_total", "counter", "Bytes read by one of the busiest jobs.", JOB, BOTH
)
JOB_WRITE_BYTES: Final = ExportedMetric(
    "lustre_job_write_bytes_total", "counter", "Bytes written by one of the busiest jobs.", JOB, BOTH
)
JOB_READ_SAMPLES: Final = ExportedMetric(
    "lustre_job_read_samples_total", "counter", "Read RPCs of one of the busiest jobs.", JOB, BOTH
)
JOB_WRITE_SAMPLES: Final = ExportedMetric(
    "lustre_job_write_samples_total", "counter", "Write RPCs of one of the busiest jobs.", JOB, BOTH
)
JOB_STATS: Final = ExportedMetric(
    "lustre_job_stats_total", "counter", "Metadata operations of one of the busiest jobs of an MDT.", JOB, BOTH
)

BUSY: Final = ExportedMetric(
    "iolens_target_busy_seconds_total", "counter",
    "Time the disks need for what they did, by the calibrated transaction model; 100 * rate() is FSU in per cent.",
    (*TARGET, "calibration", "model"),
)  # fmt: skip
FSU: Final = ExportedMetric(
    "iolens_fsu_percent", "gauge", "FSU between the exporter's last two readings.",
    (*TARGET, "calibration", "model"),
)  # fmt: skip
IO_SIZE_BYTES: Final = ExportedMetric(
    "iolens_disk_io_size_bytes", "histogram",
    "Disk I/Os by size. The sum takes every I/O at its bin's upper bound, as FSU does: up to twice too high.",
    DIRECTION,
)  # fmt: skip
IO_TIME_SECONDS: Final = ExportedMetric(
    "iolens_disk_io_time_seconds", "histogram",
    "Disk I/Os by time taken. The sum takes every I/O at its bin's upper bound: up to twice too high.",
    DIRECTION,
)  # fmt: skip
OUTSIDE: Final = ExportedMetric(
    "iolens_disk_ios_outside_total", "counter",
    "Disk I/Os in size bins below 8 B or above 64 MiB: not in FSU, in the size histogram only under +Inf.", DIRECTION,
)  # fmt: skip
WAIT: Final = ExportedMetric(
    "iolens_target_wait_seconds_total", "counter",
    "Summed service time of the RPCs as the target counts it; Lustre 2.15 on.", DIRECTION,
)  # fmt: skip
TARGET_SEEN: Final = ExportedMetric(
    "iolens_target_info", "gauge", "Always 1: a target that is on this server now.", (*TARGET, "lustre_version")
)
SNAPSHOT: Final = ExportedMetric(
    "iolens_target_snapshot_timestamp_seconds", "gauge", "When the target printed its counters, by its own clock.",
    TARGET,
)  # fmt: skip
START: Final = ExportedMetric(
    "iolens_target_start_timestamp_seconds", "gauge", "Since when the target counts; Lustre 2.15 on.", TARGET
)
CALIBRATION: Final = ExportedMetric(
    "iolens_calibration_info", "gauge",
    "Always 1: the calibration behind FSU; borrowed means that it was not made on this file system.",
    ("borrowed", "calibration", "filesystem", "model"),
)  # fmt: skip
CALIBRATION_STATE: Final = ExportedMetric(
    "iolens_calibration_state", "gauge",
    "Always 1: where the coefficients behind FSU are from. While the state is assumed, nobody measured, estimated or"
    " chose them: FSU then tells order and change, and not how much the targets can take.",
    ("filesystem", "model", "state"),
)  # fmt: skip
CALIBRATION_REFUTED: Final = ExportedMetric(
    "iolens_calibration_refuted", "gauge",
    "1 since the mean FSU of this server's OSTs or devices was above 120 over ten minutes, which no disk can do: the"
    " coefficients are wrong, whatever their state, and FSU has no level. 0: not so since the exporter began.",
    ("filesystem", "model"),
)  # fmt: skip
CEILING: Final = ExportedMetric(
    "iolens_fsu_ceiling_percent", "gauge",
    "FSU of the disks when they are full, as configured, else 100: a steady load near it is saturated.",
    ("filesystem", "model", "origin"),
)  # fmt: skip
CLIENT_RPC_BYTES: Final = ExportedMetric(
    "iolens_client_rpc_size_bytes", "histogram",
    "RPCs of a mount by size, pages times page size. The sum takes every RPC at its bin's upper bound.", DIRECTION,
)  # fmt: skip
CLIENT_PAGE_BYTES: Final = ExportedMetric(
    "iolens_client_page_bytes", "gauge", "The page size that RPCs of a mount are counted in.", TARGET
)
JOB_RATE: Final = ExportedMetric(
    "iolens_job_bytes_per_second", "gauge",
    "Bytes of the busiest jobs on this server's OSTs over the last interval; jobid other is all the rest.",
    ("direction", "filesystem", "jobid"),
)  # fmt: skip
JOB_OPERATIONS: Final = ExportedMetric(
    "iolens_job_metadata_operations_per_second", "gauge",
    "Metadata operations of the busiest jobs on this server's MDTs over the last interval; other is all the rest.",
    ("filesystem", "jobid"),
)  # fmt: skip
JOBS: Final = ExportedMetric(
    "iolens_jobs", "gauge", "Jobs that job_stats of this server's targets list.", ("component", "filesystem")
)
DEVICE_UTIL: Final = ExportedMetric(
    "iolens_device_kernel_busy_percent", "gauge", "The kernel's %util between the last two readings, beside FSU.",
    TARGET,
)  # fmt: skip
BUILD: Final = ExportedMetric("iolens_build_info", "gauge", "Always 1: the version of iolens.", ("version",))
SUCCESS: Final = ExportedMetric(
    "iolens_scrape_success", "gauge", "1 when the collector's last reading is whole and in time.", COLLECTOR
)
DURATION: Final = ExportedMetric(
    "iolens_scrape_duration_seconds", "gauge", "How long the collector's last reading took, or takes so far.", COLLECTOR
)
AGE: Final = ExportedMetric("iolens_scrape_age_seconds", "gauge", "How old the reading is that is served.", COLLECTOR)
PROBLEMS: Final = ExportedMetric(
    "iolens_scrape_problems", "gauge", "Places that were not readable or not understood.", COLLECTOR
)
CPU: Final = ExportedMetric("process_cpu_seconds_total", "counter", "Processor time of the exporter.")
MEMORY: Final = ExportedMetric("process_resident_memory_bytes", "gauge", "Resident memory of the exporter.")

AGENT: Final = ExportedMetric("iolens_agent_info", "gauge", "Always 1: the agent behind the spool.", ("host", "run"))
AGENT_LAST_TICK: Final = ExportedMetric(
    "iolens_agent_last_tick_timestamp_seconds", "gauge", "The agent's last tick; old means it has stopped."
)
AGENT_TROUBLE: Final = ExportedMetric(
    "iolens_agent_trouble", "gauge", "1 while something is wrong; `trouble` in health.json says what."
)
AGENT_FIELDS: Final[dict[str, ExportedMetric]] = {
    "ticks": ExportedMetric("iolens_agent_ticks_total", "counter", "Ticks sampled."),
    "late_ticks": ExportedMetric("iolens_agent_late_ticks_total", "counter", "Ticks begun late."),
    "missed_ticks": ExportedMetric("iolens_agent_missed_ticks_total", "counter", "Ticks not sampled."),
    "lost_ticks": ExportedMetric(
        "iolens_agent_lost_ticks_total", "counter", "Ticks sampled with no space to spool them."
    ),
    "clock_steps_back": ExportedMetric(
        "iolens_agent_clock_steps_back_total", "counter", "Times the clock was set back."
    ),
    "targets": ExportedMetric("iolens_agent_targets", "gauge", "Targets seen at the last tick."),
    "samples": ExportedMetric("iolens_agent_samples_total", "counter", "Raw samples spooled."),
    "refused": ExportedMetric("iolens_agent_refused_total", "counter", "Places not understood or not readable."),
    "thinned_samples": ExportedMetric("iolens_agent_thinned_samples_total", "counter", "Samples dropped by thinning."),
    "spool_bytes": ExportedMetric("iolens_agent_spool_bytes", "gauge", "Size of the spool, reserve included."),
    "segments_waiting": ExportedMetric("iolens_agent_segments_waiting", "gauge", "Segments not shipped yet."),
    "segments_shipped": ExportedMetric("iolens_agent_segments_shipped_total", "counter", "Segments the store took."),
    "segments_late": ExportedMetric("iolens_agent_segments_late_total", "counter", "Segments put aside as older."),
    "segments_bad": ExportedMetric(
        "iolens_agent_segments_bad_total", "counter", "Segments put aside as not understood."
    ),
    "ship_failures": ExportedMetric("iolens_agent_ship_failures_total", "counter", "Shipments that failed."),
    "cpu_s": ExportedMetric("iolens_agent_cpu_seconds_total", "counter", "Processor time of the sampler."),
    "rss_bytes": ExportedMetric("iolens_agent_resident_memory_bytes", "gauge", "Resident memory of the sampler."),
}

METRICS: Final[dict[str, ExportedMetric]] = {
    metric.name: metric
    for metric in (
        READ_BYTES, WRITE_BYTES, READ_SAMPLES, WRITE_SAMPLES, STATS, STATS_TIME, PAGES_PER_RPC, RPCS_IN_FLIGHT,
        RPCS_OFFSET, OSC_READ_BYTES, OSC_WRITE_BYTES, OSC_REQUESTS, OSC_TIMES, MDC_REQUESTS, MDC_TIMES,
        MD_REQUESTS, DISK_IO_SIZES, PAGES, DISCONTIGUOUS_PAGES, DISCONTIGUOUS_BLOCKS, FRAGMENTS, IN_FLIGHT,
        IN_FLIGHT_POW2, IO_TIME, BLOCK_MAPS, CAPACITY, FREE, AVAILABLE, INODES, INODES_FREE, EXPORTS, RECOVERY_STATUS,
        RECOVERY_COMPLETED, RECOVERY_EXPECTED, RECOVERY_DURATION, RECOVERY_REMAINING, JOB_READ_BYTES,
        JOB_WRITE_BYTES, JOB_READ_SAMPLES, JOB_WRITE_SAMPLES, JOB_STATS, BUSY, FSU, IO_SIZE_BYTES,
        IO_TIME_SECONDS, OUTSIDE, WAIT, TARGET_SEEN, SNAPSHOT, START, CALIBRATION, CALIBRATION_STATE,
        CALIBRATION_REFUTED, CEILING, CLIENT_RPC_BYTES, CLIENT_PAGE_BYTES, JOB_RATE, JOB_OPERATIONS, JOBS,
        DEVICE_UTIL, BUILD, SUCCESS, DURATION, AGE, PROBLEMS, CPU, MEMORY, AGENT, AGENT_LAST_TICK, AGENT_TROUBLE,
        *AGENT_FIELDS.values(),
    )
}  # fmt: skip


# Samples as Prometheus reads them -------------------------------------------------------------------------------------
# The text format 0.0.4 and OpenMetrics 1.0.0, chosen by the Accept header.
#
# Written here and not with `prometheus_client`: a line of a target is the same in both formats, so a reading is turned
# into lines once and a scrape only joins them. For 64 OSTs (22,000 samples) the library took 0.6 s and 15 MiB, this
# takes milliseconds. The tests read everything back with the library's parsers and with `promtool`.

TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_OPENMETRICS_VERSIONS: Final = ("1.0.0", "0.0.1")
_ESCAPES: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})

Lines = dict[str, list[str]]  # samples by metric name, each a finished line


@lru_cache(maxsize=4096)
def label_value(text: str) -> str:
    """A label's value, escaped; what is not text (an undecodable file name) is shown by its code."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8").translate(_ESCAPES)


def labels(**pairs: str) -> str:
    """`a="x",b="y"`."""
    return ",".join(f'{name}="{label_value(text)}"' for name, text in pairs.items())


def add(lines: Lines, metric: ExportedMetric, labelled: str, value: float) -> None:
    """One sample of a metric; `labelled` is the text of its labels."""
    braces = f"{{{labelled}}}" if labelled else ""
    lines.setdefault(metric.name, []).append(f"{metric.name}{braces} {value!r}")


def add_histogram(
    lines: Lines, metric: ExportedMetric, labelled: str, bins: Iterable[tuple[float, int]], beyond: int = 0
) -> None:
    """A classic histogram from (upper bound, count) in ascending order; `beyond` fell above the last bound.

    The sum takes every observation at its upper bound; those beyond are not in it.
    """
    name, count, total = metric.name, 0, 0.0
    names = lines.setdefault(name, [])
    for bound, here in bins:
        count += here
        total += here * bound
        names.append(f'{name}_bucket{{{labelled},le="{float(bound)!r}"}} {count}')
    names.append(f'{name}_bucket{{{labelled},le="+Inf"}} {count + beyond}')
    names.append(f"{name}_count{{{labelled}}} {count + beyond}")
    names.append(f"{name}_sum{{{labelled}}} {total!r}")


def render(parts: Iterable[Mapping[str, list[str]]], content_type: str, *, inherited: bool = True) -> bytes:
    """One page of all parts; without `inherited` only names that no other exporter has."""
    given = list(parts)
    return "\n".join(_page(given, content_type == OPENMETRICS, inherited)).encode() + b"\n"


def _page(parts: list[Mapping[str, list[str]]], openmetrics: bool, inherited: bool) -> Iterator[str]:
    for name, metric in METRICS.items():
        groups = [part[name] for part in parts if name in part]
        if groups and (inherited or metric.origin == OURS):
            shown, kind = _family(metric) if openmetrics else (name, metric.kind)
            yield f"# HELP {shown} {metric.help}"
            yield f"# TYPE {shown} {kind}"
            for lines in groups:
                yield from lines
    if openmetrics:
        yield "# EOF"


def _family(metric: ExportedMetric) -> tuple[str, str]:
    """Name and type in OpenMetrics, where a counter `x_total` is the family `x`, unless another has that name."""
    if metric.kind != "counter":
        return metric.name, metric.kind
    family = metric.name.removesuffix("_total")
    return (metric.name, "unknown") if family in METRICS else (family, "counter")


def content_type(accept: str) -> str:
    """The format a client wants most; the text format unless it asks for OpenMetrics."""
    openmetrics = text = 0.0
    for word in accept.split(","):
        kind, *parameters = (part.strip().lower() for part in word.split(";"))
        said = dict(parameter.split("=", 1) for parameter in parameters if "=" in parameter)
        weight = _weight(said.get("q", "1"))
        if kind == "application/openmetrics-text" and said.get("version", "1.0.0") in _OPENMETRICS_VERSIONS:
            openmetrics = max(openmetrics, weight)
        elif kind == "text/plain":
            text = max(text, weight)
    return OPENMETRICS if openmetrics and openmetrics >= text else TEXT


def takes_gzip(accept_encoding: str) -> bool:
    """Whether a client reads gzip."""
    for word in accept_encoding.split(","):
        coding, *parameters = (part.strip().lower() for part in word.split(";"))
        if coding == "gzip":
            return all(_weight(parameter[2:]) > 0 for parameter in parameters if parameter.startswith("q="))
    return False


def _weight(text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        return 0.0
    return weight if 0.0 <= weight <= 1.0 else 0.0  # nan too
