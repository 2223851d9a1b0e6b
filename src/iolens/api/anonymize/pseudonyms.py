"""Keyed pseudonyms (HMAC-SHA-256) that keep the structure of names: their key, and what becomes of each column."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import stat
from collections.abc import Callable, Mapping
from enum import Enum, auto
from pathlib import Path
from typing import Final

from iolens.analyses.attribution.whose import LONGEST_ID, LONGEST_NAME, JobIdForm, size_of_id
from iolens.columns import Table
from iolens.errors import InputError, StoreError, UsageError
from iolens.messages import warn
from iolens.models.transaction_time import CALIBRATION_CLASSES
from iolens.sources.darshan.head import STREAMS
from iolens.sources.schedulers.node_lists import compact_nodes, expand_nodes
from iolens.sources.schedulers.sacct_text import STATE
from iolens.store.tables import UPKEEP

# The key of pseudonyms ------------------------------------------------------------------------------------------------
# Read from a file, or random and held in memory alone. It is never shown or logged.

SHORTEST_KEY: Final = 16  # bytes
LONGEST_KEY: Final = 1 << 16
RANDOM_BYTES: Final = 32


def key_of(path: Path | None) -> bytes:
    """What a file holds, without blanks at its ends; without a file, random bytes that nobody can come by again."""
    if path is None:
        return secrets.token_bytes(RANDOM_BYTES)
    try:
        with path.open("rb") as stream:
            key = stream.read(LONGEST_KEY + 1).strip()
            is_open = path.stat().st_mode & stat.S_IRWXO
    except OSError as error:
        raise InputError(str(path), error.strerror or str(error)) from error
    if not SHORTEST_KEY <= len(key) <= LONGEST_KEY:
        raise UsageError(
            f"{path}: a key has at least {SHORTEST_KEY} bytes and at most {LONGEST_KEY}; "
            "make one with `openssl rand -hex 32`"
        )
    if is_open:
        warn(f"{path}: others may read the key, and then undo the pseudonyms; chmod 600")
    return key


# What becomes of each column of each table in an anonymized copy ------------------------------------------------------
# An entry per text column, and per number that names.
#
# A text column without an entry stops the copy before it begins, so that a new column cannot leak.


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


# Keyed pseudonyms (HMAC-SHA-256) that keep the structure of names -----------------------------------------------------
# So that joins and groups of a copy still work.
#     scratch-OST0003       fsdkwmqa-OST0003         the file system's name is replaced; kind and index are kept
#     nid[0001-0003,7]      nhqbzkwe[0001-0003,7]    what stands before the number is replaced
#     oss1:ost_io           npxkdmwr1:ost_io
#     4400017_5.batch       003718264_5.batch        the number is permuted, array index and step are kept
#     ior.1000              app-qkzmwxbdhp.48211     executable and user id, each with its own pseudonym
#     /scratch/ann/a.h5     /p…/p…/p…                component by component, so that trees stay trees
#
# Numbers are permuted by a Feistel network, so that no two get the same. Pseudonyms of job ids begin with 0, which no
# scheduler's do. The key is held here alone: it is in no name, message or file.

LETTERS: Final = 10  # of a pseudonym: 47 bits, so that two of a million names share one with a probability of 0.4 %
SHORT: Final = 7  # where there are few names, and an id of job_stats must have space for them
PREFIXES: Final[Mapping[Treatment, str]] = {
    T.USER: "user-", T.PROJECT: "project-", T.CLUSTER: "cluster-", T.APPLICATION: "app-", T.SERIAL: "serial-",
    T.RUN: "run-", T.LOG: "log-", T.COMMAND: "command-", T.SCAN: "scan-", T.SWEEP: "sweep-", T.BATCH: "batch-",
    T.CALIBRATION: "calibration-", T.TARGET_CLASS: "class-", T.JOB: "id-", T.NODES: "nodes-", T.PATH: "p",
    T.FILESYSTEM: "fs", T.HOST: "n", T.STATE: "state-",
}  # fmt: skip
_DOMAIN: Final = "d"
_ROUNDS: Final = 10
_SMALL_UID, _LARGEST_UID = 1 << 16, (1 << 32) - 1
_LUSTRE_TARGET: Final = re.compile(r"(?:(.*)-)?((?:OST|MDT)[0-9a-f]{1,8})", re.IGNORECASE | re.DOTALL)
_SERVICE: Final = re.compile(r"(?:ldlm|ost|mdt|mds|mgs|osp|out|fld|seq|quota)(?:_[a-z_]+)?")
_NODEMAP: Final = re.compile(r"nodemap\.(.+)\.([a-z]+_stats)")
_EVERY_NODEMAP: Final = "default"  # of every system
_NO_NAMES: Final = re.compile(r"llite|read_ahead|MGS|(?:ldlm|ost|mdt|mds)_[a-z_]+")
_KERNEL_DEVICE: Final = re.compile(
    r"(?:/dev/)?(?:(?:sd|hd|vd|xvd)[a-z]{1,3}\d{0,3}|nvme\d+(?:c\d+)?(?:n\d+(?:p\d+)?)?|(?:dm-|md|loop|sr|nbd|rbd|zd|zram)\d+)"
)
_NUMBERED: Final = re.compile(r"(.*[^0-9])([0-9]{1,12})", re.DOTALL)
_SCHEDULED: Final = re.compile(
    r"(?P<number>[0-9]+)(?P<task>_[0-9]+|\+[0-9]+|\[[0-9]*\])?"
    r"(?:(?P<step>\.(?:[0-9]+|batch|extern|interactive))|\.(?P<server>[A-Za-z][A-Za-z0-9_.-]*))?"
)
_NAME_AND_UID: Final = re.compile(r"(?P<name>.+)\.(?P<uid>[0-9]{1,10})", re.DOTALL)
_PBS_STATE: Final = re.compile(r"(?:started|ended|requeued|aborted)(?: -?[0-9]{1,10})?")
_VERSION: Final = re.compile(r"[0-9]+(?:\.[0-9]+)*")


class Pseudonyms:
    """All pseudonyms of one key; `jobid_names` are patterns of job_stats ids by file system, as configured."""

    def __init__(self, key: bytes, jobid_names: Mapping[str, str] | None = None) -> None:
        self._mac = hmac.new(key, digestmod=hashlib.sha256)
        self._forms = {name: JobIdForm(pattern) for name, pattern in (jobid_names or {}).items()}
        self._pseudonyms: dict[tuple[object, str], str] = {}
        self.replaced: dict[str, Treatment] = {}  # every name that was replaced, and as what

    def text_function(self, treatment: Treatment, filesystem: str | None = None) -> Callable[[str], str | None]:
        """What makes the values of a column those of the copy; job ids of a file system have its configured form."""
        plain: dict[Treatment, Callable[[str], str | None]] = {
            T.LEFT_OUT: lambda _: None, T.WITHHELD: lambda _: WITHHELD_TEXT, T.NO_ENTRIES: lambda _: "{}",
            T.STATE: self.state, T.VERSION: _version, T.HOST: self.host, T.NODES: self.nodes,
            T.TARGET: self.target, T.TARGETS: self.targets, T.DEVICE: self.target, T.PATH: self.path,
            T.BATCH: self.batch, T.CALIBRATION: self.calibration, T.FILESYSTEM: self.filesystem,
        }  # fmt: skip
        if treatment is T.JOB:
            return lambda text: self._remembered_job(text, filesystem)
        return plain.get(treatment) or (lambda text: self.opaque(treatment, text))

    @property
    def configured(self) -> frozenset[str]:
        """File systems whose job ids have a form of their own."""
        return frozenset(self._forms)

    def number(self, treatment: Treatment, value: int) -> int:
        """The pseudonym of a number: a user id, or a record id of Darshan, which is a hash of a path."""
        if treatment is T.UID:
            return self.uid(value)
        permuted = self._permuted("record", value % (1 << 64), 1 << 32)
        return permuted - (1 << 64) if permuted >= 1 << 63 else permuted

    def opaque(self, treatment: Treatment, name: str, letters: int = LETTERS) -> str:
        """A pseudonym without structure; blanks stay."""
        if not name.strip():
            return name
        self.replaced.setdefault(name, treatment)
        return self._named(treatment, PREFIXES[treatment], name, letters)

    def filesystem(self, name: str) -> str:
        """Eight characters, as Lustre allows."""
        return self.opaque(T.FILESYSTEM, name, 6)

    def host(self, name: str) -> str:
        """A host by its first label and its domain; the number at the end of the label is kept."""
        if not name.strip():
            return name
        label, dot, domain = name.partition(".")
        for part in (name, label, domain):
            self.replaced.setdefault(part, T.HOST)
        numbered = _NUMBERED.fullmatch(label)
        if numbered:
            first = self._named("stem", PREFIXES[T.HOST], numbered[1], SHORT) + numbered[2]
        else:
            first = self._named("label", PREFIXES[T.HOST], label, LETTERS)
        return f"{first}.{self._named('domain', _DOMAIN, domain, SHORT)}" if dot else first

    def nodes(self, text: str) -> str:
        """A compact list stays one; what is none stays none."""
        if not text.strip():
            return text
        try:
            return compact_nodes(self.host(name) for name in expand_nodes(text))
        except ValueError:
            return f"{self.opaque(T.NODES, text)}["

    def target(self, name: str) -> str:
        """A target, device, server or HOST:SERVICE; what every system calls so is kept."""
        if _NO_NAMES.fullmatch(name) or _KERNEL_DEVICE.fullmatch(name):
            return name
        if match := _LUSTRE_TARGET.fullmatch(name):
            return name if match[1] is None else f"{self.filesystem(match[1])}-{match[2]}"
        if name.startswith("/"):
            return self.path(name)
        host, colon, rest = name.partition(":")
        if not colon:
            return self.host(name)
        if match := _NODEMAP.fullmatch(rest):
            tenant = match[1] if match[1] == _EVERY_NODEMAP else self.opaque(T.PROJECT, match[1])
            return f"{self.host(host)}:nodemap.{tenant}.{match[2]}"
        is_kept = _SERVICE.fullmatch(rest) or _KERNEL_DEVICE.fullmatch(rest)
        return f"{self.host(host)}:{rest if is_kept else self.host(rest)}"

    def targets(self, text: str) -> str | None:
        """JSON of targets by file system, as `batches` and `calibrations` have it; anything else is left out."""
        try:
            known = {str(name): [str(target) for target in targets] for name, targets in json.loads(text).items()}
        except (ValueError, TypeError, AttributeError):
            return None
        named = {
            self.filesystem(name): sorted(self.target_on(name, target) for target in targets)
            for name, targets in known.items()
        }
        return json.dumps(named, sort_keys=True)

    def target_on(self, filesystem: str, target: str) -> str:
        """A target that is called as its file system stands for all of it, and is so in the copy."""
        return self.filesystem(filesystem) if target == filesystem else self.target(target)

    def path(self, path: str) -> str:
        """Component by component."""
        if path in STREAMS:
            return path
        return "/".join(part if part in (".", "..") else self.opaque(T.PATH, part) for part in path.split("/"))

    def batch(self, identity: str) -> str:
        """What upkeep and this copy noted stays under its head; its tail is random."""
        return identity if identity.partition("/")[0] in UPKEEP else self.opaque(T.BATCH, identity)

    def state(self, text: str) -> str:
        """A scheduler's word, without who cancelled the job."""
        if match := STATE.fullmatch(text):
            return match["state"]
        return text if _PBS_STATE.fullmatch(text) else self.opaque(T.STATE, text)

    def calibration(self, name: str) -> str:
        """Published ones are known to everybody."""
        return name if name in CALIBRATION_CLASSES else self.opaque(T.CALIBRATION, name)

    def _remembered_job(self, text: str, filesystem: str | None) -> str:
        key = (filesystem, "job"), text
        if key not in self._pseudonyms:
            self._pseudonyms[key] = self.job(text, self._forms.get(filesystem or ""))
        return self._pseudonyms[key]

    def job(self, text: str, form: JobIdForm | None = None) -> str:
        """An id of a scheduler or of job_stats, part by part; an id of unknown form has one pseudonym for all of it.

        Ids of 31 bytes may be cut, so that nothing is certain of them: those of the copy are of 31 bytes as well.
        """
        if not text.strip():
            return text
        if size_of_id(text) == LONGEST_ID:
            return self.opaque(T.JOB, text, LONGEST_ID - len(PREFIXES[T.JOB]))
        if form is not None and (fields := form.divided(text)) is not None:
            result: str | None = "".join(self._field(code, value) for code, value in fields)
        else:
            result = self._scheduled(text) or (self._name_and_uid(text) if form is None else None)
        if result is None or size_of_id(result) >= LONGEST_ID:
            return self.opaque(T.JOB, text)
        self.replaced.setdefault(text, T.JOB)
        return result

    def _field(self, code: str, value: str) -> str:
        """A field of a configured `jobid_name`."""
        if not value or code in ("", "p"):
            return value
        if code == "j":
            return self._scheduled(value) or self.opaque(T.JOB, value)
        if code in ("u", "g"):
            return str(self.uid(int(value)))
        return self.host(value) if code in ("h", "H") else self.opaque(T.APPLICATION, value)

    def _scheduled(self, text: str) -> str | None:
        match = _SCHEDULED.fullmatch(text)
        if match is None:
            return None
        self.replaced.setdefault(match["number"], T.JOB)
        server = f".{self.host(match['server'])}" if match["server"] else ""
        return f"{self._job_number(match['number'])}{match['task'] or ''}{match['step'] or ''}{server}"

    def _job_number(self, digits: str) -> str:
        if digits != str(int(digits)) or len(digits) > 16:
            return f"0{self._digest('job', digits) % 10**18:018}"
        half = max(4, (len(digits) + 1) // 2)
        return f"0{self._permuted('job', int(digits), 10**half):0{2 * half}}"

    def _name_and_uid(self, text: str) -> str | None:
        match = _NAME_AND_UID.fullmatch(text)
        if match is None or size_of_id(match["name"]) > LONGEST_NAME or int(match["uid"]) > _LARGEST_UID:
            return None
        return f"{self.opaque(T.APPLICATION, match['name'])}.{self.uid(int(match['uid']))}"

    def uid(self, number: int) -> int:
        """Of 16 bits where it has so few, else of 32; what is no user id has a number that is none."""
        if number < _SMALL_UID:
            return self._permuted("uid", number, 1 << 8)
        if number > _LARGEST_UID:
            return _LARGEST_UID + 1 + self._digest("uid", str(number)) % (1 << 61)
        permuted = self._permuted("uid", number, 1 << 16)
        while permuted < _SMALL_UID:
            permuted = self._permuted("uid", permuted, 1 << 16)
        return permuted

    def _permuted(self, kind: str, number: int, half: int) -> int:
        """Another number below half², each of another one."""
        left, right = divmod(number, half)
        for step in range(_ROUNDS):
            left, right = right, (left + self._digest(f"{kind} {half} {step}", str(right))) % half
        return left * half + right

    def _named(self, kind: object, prefix: str, name: str, letters: int) -> str:
        pseudonym = self._pseudonyms.get((kind, name))
        if pseudonym is None:
            number, text = self._digest(str(kind), name), ""
            for _ in range(letters):
                number, letter = divmod(number, 26)
                text += chr(ord("a") + letter)
            pseudonym = self._pseudonyms[kind, name] = prefix + text
        return pseudonym

    def _digest(self, kind: str, name: str) -> int:
        mac = self._mac.copy()
        mac.update(f"{kind}\0{name}".encode("utf-8", "surrogatepass"))
        return int.from_bytes(mac.digest())


def _version(text: str) -> str | None:
    match = _VERSION.match(text)
    return match[0] if match else None
