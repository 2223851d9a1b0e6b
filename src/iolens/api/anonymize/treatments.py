"""What becomes of each column of each table in an anonymized copy: an entry per text column, and per number that names.

A text column without an entry stops the copy before it begins, so that a new column cannot leak.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final

from iolens.columns import Table
from iolens.errors import StoreError


class Treatment(Enum):
    """What becomes of the values of a column. Columns with the same treatment give equal names equal pseudonyms."""

    KEPT = auto()  # words of iolens, Lustre, Darshan or schedulers, and products; numbers as text
    LEFT_OUT = auto()  # NULL in the copy
    WITHHELD = auto()  # free text whose presence says something: replaced by WITHHELD_TEXT
    NO_ENTRIES = auto()  # JSON of files and rows of the original: {}
    STATE = auto()  # the scheduler's word, without who cancelled
    VERSION = auto()  # the number it begins with, without what a vendor or site appended
    USER = auto()
    PROJECT = auto()
    CLUSTER = auto()
    JOB = auto()  # also composed ids of job_stats
    APPLICATION = auto()  # executables and job names: where the one is not known, analyses take the other
    HOST = auto()
    NODES = auto()  # a compact list of hosts
    FILESYSTEM = auto()
    TARGET = auto()
    TARGETS = auto()  # JSON: targets by file system
    DEVICE = auto()
    SERIAL = auto()
    PATH = auto()
    RUN = auto()
    LOG = auto()
    COMMAND = auto()
    SCAN = auto()
    SWEEP = auto()
    BATCH = auto()
    CALIBRATION = auto()
    TARGET_CLASS = auto()
    UID = auto()  # numbers
    RECORD = auto()


T = Treatment
WITHHELD_TEXT: Final = "left out of this copy"

_ROW: Final = {"source": T.KEPT, "filesystem": T.FILESYSTEM}
_ON_TARGET: Final = {**_ROW, "target": T.TARGET, "target_kind": T.KEPT}
_ON_NODE: Final = {**_ROW, "node": T.HOST, "job_id": T.JOB}
_BIN: Final = {"histogram": T.KEPT, "direction": T.KEPT}
_OF_RUN: Final = {**_ROW, "run_id": T.RUN}

TREATMENTS: Final[Mapping[str, Mapping[str, Treatment]]] = {
    "target_io": _ON_TARGET,
    "target_sizes": _ON_TARGET,
    "target_histograms": {**_ON_TARGET, **_BIN},
    "metadata_ops": {**_ROW, "target": T.TARGET},
    "server_ops": {**_ON_TARGET, "operation": T.KEPT},
    "target_capacity": _ON_TARGET,
    "target_state": {**_ON_TARGET, "version": T.VERSION, "recovery_status": T.KEPT, "device": T.DEVICE,
                     "device_scheduler": T.KEPT},
    "target_servers": {**_ROW, "target": T.TARGET, "host": T.HOST},
    "host_load": {**_ROW, "host": T.HOST},
    "agent_health": {**_ROW, "host": T.HOST, "run": T.RUN, "trouble": T.WITHHELD},
    "client_io": _ON_NODE,
    "client_rpcs": {**_ON_NODE, "target": T.TARGET, "direction": T.KEPT},
    "client_metadata": {**_ON_NODE, "operation": T.KEPT},
    "client_histograms": {**_ON_NODE, "target": T.TARGET, **_BIN},
    "client_ops": {**_ON_NODE, "target": T.TARGET, "operation": T.KEPT},
    "job_io": {**_ON_TARGET, "job_id": T.JOB},
    "job_sizes": {**_ON_TARGET, "job_id": T.JOB, "direction": T.KEPT},
    "jobs": {
        **_ROW, "cluster": T.CLUSTER, "job_id": T.JOB, "user": T.USER, "project": T.PROJECT, "name": T.APPLICATION,
        "state": T.STATE, "node_list": T.NODES,
    },
    "runs": {
        "rate_method": T.KEPT,
        **_OF_RUN, "job_id": T.JOB, "user": T.USER, "uid": T.UID, "project": T.PROJECT, "executable": T.APPLICATION,
        "log": T.LOG, "log_version": T.KEPT, "command": T.COMMAND, "modules": T.KEPT, "incomplete_modules": T.KEPT,
        "module_totals": T.KEPT, "slowest_rank_method": T.KEPT, "key_access_direction": T.KEPT,
    },
    "run_files": {
        **_OF_RUN, "module": T.KEPT, "record_id": T.RECORD, "file_record_id": T.RECORD, "path": T.PATH, "mount": T.PATH,
        "mount_type": T.KEPT, "osts": T.KEPT,
    },
    "run_ranks": {**_OF_RUN, "bytes_from": T.KEPT},
    "run_series": {**_OF_RUN, "module": T.KEPT},
    "contents": {
        **_ROW, "scan": T.SCAN, "owner": T.USER, "project": T.PROJECT, "inode_type": T.KEPT, "histogram": T.KEPT,
    },
    "drives": {
        **_ROW, "serial": T.SERIAL, "model": T.KEPT, "firmware": T.KEPT, "host": T.HOST, "device": T.DEVICE,
    },
    "benchmark_runs": {
        **_ROW, "tool": T.KEPT, "run_id": T.RUN, "direction": T.KEPT, "api": T.KEPT, "sweep": T.SWEEP, "study": T.KEPT,
        "access": T.KEPT, "device": T.DEVICE, "device_sizes": T.KEPT, "place": T.PATH, "host": T.HOST,
        "page_cache": T.KEPT, "call": T.KEPT,
    },
    "calibrations": {
        **_ROW, "name": T.CALIBRATION, "target_class": T.TARGET_CLASS, "targets": T.TARGETS, "evidence": T.WITHHELD,
        "sizes": T.KEPT, "state": T.KEPT, "method": T.KEPT,
    },
    "batches": {
        "source": T.KEPT, "batch": T.BATCH, "origin": T.LEFT_OUT, "filesystems": T.TARGETS,
        "rows_by_table": T.NO_ENTRIES, "problems": T.LEFT_OUT, "checksums": T.NO_ENTRIES, "replaced": T.NO_ENTRIES,
        "row_hashes": T.NO_ENTRIES, "undoes": T.LEFT_OUT,
    },
}  # fmt: skip
NOT_COPIED: Final = {"baselines": "raw counters, which only the next ingest needs; nothing can be added to the copy"}
"""Tables that the copy lacks, and why."""


def treatments_of(table: Table) -> Mapping[str, Treatment]:
    """By column; a StoreError where a text column has none."""
    treatments = TREATMENTS.get(table.name, {})
    missing = [column.name for column in table.columns if column.type == "string" and column.name not in treatments]
    if missing:
        raise StoreError(f"table {table.name}: nothing says how to anonymize {', '.join(missing)}; nothing was copied")
    return treatments
