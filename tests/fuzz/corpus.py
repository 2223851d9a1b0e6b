"""One small, whole, made-up example or more of every source, for mutations and long lines to start from."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Final

from iolens.agent.pcp.domain_agent import PcpSettings
from iolens.scan.parts import PartHeader as ScanHeader
from iolens.scan.parts import saved
from iolens.scan.walk import ScanPart
from iolens.sources import ReadOptions
from iolens.sources.job_samples import BEGIN, END
from iolens.sources.spool import SegmentHeader as SegmentHeader
from iolens.sources.spool import encode_header, encode_tick
from tests.sources import pcp_served, test_job_files, test_spool
from tests.sources.benchmarks import test_fio, test_io500, test_ior, test_mdtest, test_study_runs
from tests.sources.contents import test_find, test_rbh_report, test_size_histogram
from tests.sources.controllers import test_controller
from tests.sources.darshan import LOGS as DARSHAN_LOGS
from tests.sources.devices import test_collectd, test_diskstats, test_iostat
from tests.sources.drives import test_isdct, test_nvme, test_smartctl
from tests.sources.gpfs import test_gpfs_policy, test_mmperfmon
from tests.sources.lmt import test_h5lmt, test_ltop, test_tokio_csv, test_tokio_hdf5
from tests.sources.lmt_copy import small_copy
from tests.sources.lustre import client_trees, test_lfs_df, test_lustre_damage, test_lustre_proc
from tests.sources.pcp import test_pcp
from tests.sources.robinhood_copy import made_up
from tests.sources.schedulers import test_jobs_csv, test_pbs, test_slurm
from tests.sources.trees import grow, scanned

AT: Final = datetime(2026, 1, 5, 12, tzinfo=UTC)
WRITTEN_S: Final = 1_767_614_400
SCRATCH: Final = ReadOptions(filesystem="scratch", timezone="UTC")


@dataclass(frozen=True)
class Example:
    """Files below a folder, and how they are read.

    `named` is what `ingest` is given; nothing: every file. `stands_alone`: read beside a damaged copy it must give the
    same rows as alone. `foreign_line`: a line of rubbish between its own costs no row.
    """

    name: str
    source: str
    files: Mapping[str, bytes]
    options: ReadOptions = field(default_factory=ReadOptions)
    named: tuple[str, ...] = ()
    stands_alone: bool = True
    foreign_line: bool = False

    def write(self, folder: Path) -> list[Path]:
        """Put the files there; what to name to `ingest`."""
        for name, content in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            os.utime(path, (WRITTEN_S, WRITTEN_S))  # which tells the time of a listing
        return [folder / name for name in self.named or self.files]

    def with_file(self, name: str, content: bytes) -> Example:
        """The same with one file changed."""
        return replace(self, files={**self.files, name: content})


def _text(source: str, text: str, options: ReadOptions, label: str = "text", **more: bool) -> Example:
    return Example(f"{source} {label}", source, {f"{label}.txt": text.encode()}, options, **more)


def _made(write: Callable[[Path], object]) -> dict[str, bytes]:
    """The files that a function writes into an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        return {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(Path(folder).rglob("*"))
            if path.is_file()
        }


def _lustre() -> Iterator[Example]:
    capture = test_lustre_damage.CAPTURE
    both = capture + capture.replace(b"1600000000", b"1600000005").replace(b"144", b"288")
    yield Example("lctl", "lustre-lctl", {"lctl.txt": both})
    bare = b"".join(
        f"snapshot_time {1_600_000_000 + n}.5 secs.usecs\nread_bytes {n} samples [bytes] 1 1 {n}\n".encode()
        for n in (1, 6)
    )
    yield Example("lctl -n", "lustre-lctl", {"bare.txt": bare}, ReadOptions("fs", "fs-OST0000"))
    tree = _made(test_lustre_proc.tree_of_2_15)
    jobs = capture[capture.index(b"job_stats:") : capture.index(b"osd-ldiskfs.fs-OST0000.brw")]
    tree["proc/fs/lustre/obdfilter/fs-OST0000/job_stats"] = jobs
    yield Example("proc", "lustre-proc", {f"root/{name}": text for name, text in tree.items()}, named=("root",))
    for version, plant in client_trees.TREES.items():
        files = {f"root/{name}": text for name, text in _made(plant).items()}
        yield Example(f"client {version}", "lustre-client-proc", files, named=("root",))
    client = _made(client_trees.tree_2_15)
    names = {name: name.partition("/lustre/")[2].replace("/", ".") for name in client if "/lustre/" in name}
    text = b"".join(names[name].encode() + b"=\n" + client[name] for name in names)
    yield Example("lctl client", "lustre-lctl", {"client.txt": text})


def _spool() -> Iterator[Example]:
    header = SegmentHeader("oss1", "r1", 1)
    content = encode_header(header) + b"".join(encode_tick(test_spool.tick(number)) for number in range(4))
    yield Example("segment", "spool", {f"{header.stem}.seg": content})

    def job(folder: Path) -> None:
        with tempfile.TemporaryDirectory() as trees:
            before = client_trees.tree_2_15(Path(trees) / "before", opens=20)
            after = client_trees.tree_2_15(Path(trees) / "after", client_trees.T0 + 600, opens=50)
            test_job_files.written(
                folder, test_job_files.sample(BEGIN, before, client_trees.T0),
                test_job_files.sample(END, after, client_trees.T0 + 600),
            )  # fmt: skip

    yield Example("job", "job-files", _made(job), stands_alone=False)


def _databases() -> Iterator[Example]:
    lmt = _made(lambda folder: small_copy(folder / "lmt.sqlite3"))
    yield Example("lmt", "lmt-db", lmt, SCRATCH)
    entries = _made(lambda folder: made_up(3, 40).write(folder / "rbh.sqlite3"))
    yield Example("robinhood", "robinhood", entries, ReadOptions("scratch", at=AT))


def _series() -> Iterator[Example]:
    yield Example("h5lmt", "h5lmt", _made(lambda folder: test_h5lmt.day_file(folder / "day.h5lmt")))
    osts = test_tokio_hdf5.OSTS
    datasets = {
        "datatargets/readbytes": ([[1, 2], [3, 4], [5, 6]], osts, "bytes"),
        "mdtargets/opens": ([[4], [5], [6]], ["mds1"], "ops"),
        "fullness/bytes": ([[7, 8], [9, 9], [9, 9]], osts, "KiB"),
        "dataservers/cpuload": ([[1], [2], [3]], ["oss1"], "%"),
    }
    yield Example("tokio", "tokio-hdf5", _made(lambda folder: test_tokio_hdf5.series_file(folder / "a.hdf5", datasets)))
    for label, table in (
        ("rates", test_tokio_csv.RATES),
        ("fullness", test_tokio_csv.FULLNESS),
        ("mmdf", test_tokio_csv.MMDF),
    ):
        yield _text("tokio-csv", table, test_tokio_csv.LAKE, label, foreign_line=True)
    yield _text("ltop", test_ltop.RECORDING, ReadOptions(), foreign_line=True)
    mdt = "1;mds1;1.5;40.25;lake-MDT0000;900;1000;600;1024;" + test_ltop.operations(test_ltop.MDT_OPERATIONS, open=7)
    yield _text("ltop", test_ltop.line(1_300_000_001, 1_300_000_000, mdt, "lmt_mdt", "mds1"), ReadOptions(), "mdt")
    yield _text(
        "lfs-df", "BEGIN 1767614400\n" + test_lfs_df.BLOCKS + test_lfs_df.INODES, ReadOptions(), foreign_line=True
    )
    for label, output in (
        ("disks", test_mmperfmon.DISKS),
        ("client", test_mmperfmon.CLIENT),
        ("usage", test_mmperfmon.USAGE),
    ):
        yield _text("mmperfmon", output, test_mmperfmon.LAKE, label, stands_alone=False)
    archive = _made(lambda folder: test_mmperfmon.archive(folder / "m.tgz", {"a/disks": test_mmperfmon.DISKS.encode()}))
    yield Example("mmperfmon archive", "mmperfmon", archive, test_mmperfmon.LAKE, stands_alone=False)
    lines = "\n".join(json.dumps(item) for item in test_collectd.RATES) + "\n"
    yield _text("collectd", lines, test_collectd.BB, "lines", foreign_line=True)
    posts = [test_collectd.posted(1_700_000_000.5 + 10 * n, [n * 100, 7 * n]) for n in range(4)]
    yield _text("collectd", json.dumps([posts], indent=1), test_collectd.BB, "posted")


def _devices() -> Iterator[Example]:
    spider = test_controller.SPIDER
    yield _text("controller", test_controller.BANDWIDTH, spider, "bandwidth", foreign_line=True)
    yield _text("controller", test_controller.WIDE, spider, "wide", foreign_line=True)
    yield _text("controller", test_controller.LONG, test_controller.PLAIN, "long", foreign_line=True)
    sda, sdb = ((test_diskstats.line("sda", n), test_diskstats.line("sdb", 2 * n, number="8 16")) for n in (100, 130))
    copies = f"BEGIN 1767614400\n{''.join(sda)}# 2026-01-05T12:00:05Z\n{''.join(sdb)}"
    yield _text("diskstats", copies, ReadOptions(target="oss1"), foreign_line=True)
    reports = "".join(
        test_iostat.report(test_iostat.new("sda", 10 + n), test_iostat.new("sdb"), stamp=f"03/04/26 10:00:0{n}")
        for n in range(4)
    )
    yield _text("iostat", test_iostat.BANNER + "\n" + reports, test_iostat.UTC_TIMES)
    statistics = [
        {"timestamp": f"2026-03-04T10:00:0{n}Z", "disk": [{"disk_device": "sda", "r/s": 1.0, "rkB/s": 8.0}]}
        for n in range(4)
    ]
    host = {"nodename": "oss1", "date": "03/04/26", "statistics": statistics}
    yield _text("iostat", json.dumps({"sysstat": {"hosts": [host]}}, indent=1), test_iostat.UTC_TIMES, "json")
    pcp = _made(lambda folder: test_pcp.two_disks(2).write(folder / "a"))
    yield Example("pcp", "pcp", pcp, named=("a.meta",))
    lustre = _made(_lustre_archive)
    yield Example("pcp lustre", "pcp", lustre, named=("a.meta",))


def _lustre_archive(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as beside:
        metrics = pcp_served.served(PcpSettings(client_trees.tree_2_10(Path(beside))))
        pcp_served.archive(folder / "a", [(1_000, metrics), (1_060, metrics)])


def _drives() -> Iterator[Example]:
    pond = test_isdct.POND
    dump = _made(test_isdct.write_dump)
    files = {f"dump/{name}": text for name, text in dump.items()}
    yield Example("isdct dump", "isdct", files, pond, named=("dump",), stands_alone=False)  # --at tells one dump
    series = test_isdct.series()
    yield _text(
        "isdct",
        test_isdct.series_csv(list(series.values())),
        ReadOptions(filesystem="pond"),
        "csv",
        foreign_line=True,
    )
    yield _text("isdct", json.dumps(series, indent=1), ReadOptions(filesystem="pond"), "json")

    def packed(folder: Path) -> None:
        with tempfile.TemporaryDirectory() as beside:
            test_isdct.pack(test_isdct.write_dump(Path(beside)), folder / "dump.tgz")

    yield Example("isdct archive", "isdct", _made(packed), pond)
    documents = "\n".join(
        json.dumps(item)
        for item in (
            test_smartctl.nvme(),
            test_smartctl.sata({241: ("Host_Writes_32MiB", 100, 77)}, serial_number="S2"),
        )
    )
    yield _text("smartctl", documents + "\n", test_smartctl.POND, foreign_line=True)
    logs = test_nvme.OLD + test_nvme.INTEL + test_nvme.IDENTIFY
    yield _text("nvme", logs, test_nvme.POND, "logs")
    more = test_nvme.NEW + test_nvme.OCP + test_nvme.SAMSUNG + json.dumps(test_nvme.JSON) + "\n"
    yield _text("nvme", more, test_nvme.POND, "others")


def _contents() -> Iterator[Example]:
    yield _text("find", test_find.SMALL, ReadOptions("scratch"), foreign_line=True)
    sized = "".join(f"{n * n}\n" for n in range(40))
    yield _text("find", sized, ReadOptions("scratch"), "sizes")
    yield _text("gpfs-policy", test_gpfs_policy.LIST, ReadOptions("gpfs1"), foreign_line=True)
    for label, histogram in (
        ("end", test_size_histogram.BY_END),
        ("start", test_size_histogram.BY_START),
        ("typed", test_size_histogram.TYPED),
        ("widths", test_size_histogram.WIDTHS),
        ("fprof", test_size_histogram.FPROF),
        ("fprof later", test_size_histogram.LATER_FPROF),
        ("fsstats", test_size_histogram.FSSTATS),
        ("fsstats text", test_size_histogram.FSSTATS_TEXT),
    ):
        yield _text("size-histogram", histogram, ReadOptions("scratch"), label)
    yield _text("rbh-report", test_rbh_report.CSV, test_rbh_report.PLAIN, "csv", foreign_line=True)
    yield _text("rbh-report", test_rbh_report.ALIGNED, test_rbh_report.PLAIN, "aligned", foreign_line=True)

    def scan(folder: Path) -> None:
        with tempfile.TemporaryDirectory() as tree:
            grow(Path(tree) / "tree", 21, directories=6, files=30)
            header = ScanHeader("scratch", "/scratch", 1_767_614_400_000_000, "scan-1", ScanPart())
            (folder / "part.json").write_bytes(b"".join(saved(header, scanned(Path(tree) / "tree", workers=1))))

    yield Example("scan", "scan", _made(scan), stands_alone=False)


def _benchmarks() -> Iterator[Example]:
    text = test_ior.header() + test_ior.block(test_ior.TWICE) + test_ior.summary(("write", 72.0, 0)) + test_ior.FINISHED
    yield _text("ior", text, ReadOptions())
    yield _text("ior", test_ior.as_text(test_ior.document()), ReadOptions(), "json")
    table = (
        "access,bw(MiB/s),IOPS,Latency,block(KiB),xfer(KiB),open(s),wr/rd(s),close(s),total(s),numTasks,iter\n"
        "write,327.7516,327.8857,0.0093,16384.0000,1024.0000,0.0027,0.1952,0.1578,0.1953,4,0\n"
    )
    yield _text("ior", table, ReadOptions(at=AT), "csv")
    yield _text("mdtest", test_mdtest.HEAD + test_mdtest.RATES + test_mdtest.TIMES + test_mdtest.TAIL, ReadOptions())
    yield _text("io500", test_io500.SUMMARY, ReadOptions(), "summary", foreign_line=True)
    yield _text("io500", test_io500.RESULT, ReadOptions(), "sections", foreign_line=True)
    run = {"result_summary.txt": test_io500.SUMMARY, "result.txt": test_io500.RESULT, **test_io500.OUTPUTS}
    folder = {f"run/{name}": text.encode() for name, text in run.items()}
    yield Example("io500 folder", "io500", folder, named=("run",))
    yield _text("study", test_study_runs.HEAD + test_study_runs.point("a") + test_study_runs.point("b"), ReadOptions())
    job = test_fio.job(write=test_fio.side(1600, 65536, 2000))
    document = test_fio.document(job, disk_util=[test_fio.disk(write_ios=1700, write_sectors=204_800)])
    yield _text("fio", json.dumps(document, indent=1), ReadOptions(), "json")
    yield _text("fio", test_fio.NORMAL.format(low="4096B", high="4096B", error=0), ReadOptions(), "normal")
    yield _text("fio", test_fio.terse(4000, 1001, 999) + "\n", ReadOptions(at=AT), "terse")


def _schedulers() -> Iterator[Example]:
    yield _text("slurm", test_slurm.TEXT, test_slurm.UTC_TIMES, foreign_line=True)
    yield _text("slurm", test_slurm.BARE, test_slurm.UTC_TIMES, "bare")
    yield _text("slurm", json.dumps(test_slurm.document(new=False), indent=1), ReadOptions(), "json")
    yield _text("slurm", json.dumps(test_slurm.document(new=True), indent=1), ReadOptions(), "new json")
    yield _text("pbs", test_pbs.TEXT, test_pbs.UTC_TIMES, foreign_line=True)
    yield _text("jobs-csv", test_jobs_csv.TEXT, test_jobs_csv.OPTIONS, foreign_line=True)


def _darshan() -> Iterator[Example]:
    for name in ("nn-mpiio", "n1-write"):
        yield Example(
            f"darshan {name}", "darshan", {f"{name}.darshan": (DARSHAN_LOGS / f"{name}.darshan").read_bytes()}
        )


@cache
def examples() -> tuple[Example, ...]:
    """All of them."""
    parts = (_lustre, _spool, _databases, _series, _devices, _drives, _contents, _benchmarks, _schedulers, _darshan)
    return tuple(example for part in parts for example in part())


def examples_of(source: str) -> list[Example]:
    """Those of one source."""
    return [example for example in examples() if example.source == source]
