"""Where a Lustre server of each version keeps the files of its targets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from iolens.simulator.lustre_text import V1_8, V2_10, V2_12, V2_15, V2_17, Dialect

PROC: Final = "proc/fs/lustre"
SYS: Final = "sys/fs/lustre"
DEBUG: Final = "sys/kernel/debug/lustre"


@dataclass(frozen=True, slots=True)
class TreeLayout:
    """Directories (one folder per target in each) by kind of file; a kind that is absent is not printed."""

    version: str
    version_file: str
    version_text: str
    dialect: Dialect
    ost: Mapping[str, str]
    mdt: Mapping[str, str]
    services: str  # where the statistics of services are
    locks: str  # where the lock namespaces are
    mdt_stats: str = "md_stats"
    mdt_service: str = "mds/MDS/mdt"
    has_available: bool = True
    nodemaps: str = ""  # where the statistics of tenants are; empty: there are none

    def directories(self) -> set[str]:
        """Every directory that holds targets."""
        return {*self.ost.values(), *self.mdt.values()}


LAYOUTS: Final = {
    layout.version: layout
    for layout in (
        TreeLayout(
            "1.8",
            f"{PROC}/version",
            "lustre: 1.8.3\nkernel: patchless_client\n"
            "build:  1.8.3-20100409182943-PRISTINE-2.6.18-164.11.1.el5_lustre.1.8.3\n",
            V1_8,
            dict.fromkeys(("stats", "brw_stats", "recovery_status", "num_exports", "capacity", "uuid"),
                          f"{PROC}/obdfilter"),
            dict.fromkeys(("stats", "recovery_status", "capacity", "uuid"), f"{PROC}/mds"),
            PROC,
            f"{PROC}/ldlm/namespaces",
            mdt_stats="stats",
            mdt_service="mdt/MDS/mds",
            has_available=False,
        ),
        TreeLayout(
            "2.10",
            f"{SYS}/version",
            "2.10.8\n",
            V2_10,
            dict.fromkeys(("stats", "brw_stats", "job_stats", "recovery_status", "num_exports", "capacity", "uuid"),
                          f"{PROC}/obdfilter"),
            dict.fromkeys(("stats", "job_stats", "recovery_status", "num_exports", "uuid"), f"{PROC}/mdt")
            | {"capacity": f"{PROC}/osd-ldiskfs"},
            PROC,
            f"{SYS}/ldlm/namespaces",
        ),
        TreeLayout(
            "2.12",
            f"{SYS}/version",
            "2.12.9\n",
            V2_12,
            dict.fromkeys(("stats", "job_stats", "recovery_status", "num_exports"), f"{PROC}/obdfilter")
            | {"brw_stats": f"{PROC}/osd-ldiskfs", "capacity": f"{SYS}/obdfilter", "uuid": f"{SYS}/obdfilter"},
            dict.fromkeys(("stats", "job_stats", "recovery_status"), f"{PROC}/mdt")
            | {"capacity": f"{PROC}/osd-ldiskfs", "num_exports": f"{SYS}/mdt", "uuid": f"{SYS}/mdt"},
            DEBUG,
            f"{SYS}/ldlm/namespaces",
        ),
        TreeLayout(
            "2.15",
            f"{SYS}/version",
            "2.15.5\n",
            V2_15,
            dict.fromkeys(("stats", "job_stats", "recovery_status"), f"{PROC}/obdfilter")
            | dict.fromkeys(("num_exports", "capacity", "uuid"), f"{SYS}/obdfilter")
            | {"brw_stats": f"{DEBUG}/osd-ldiskfs"},
            dict.fromkeys(("stats", "job_stats", "recovery_status"), f"{PROC}/mdt")
            | {"capacity": f"{SYS}/osd-ldiskfs", "num_exports": f"{SYS}/mdt", "uuid": f"{SYS}/mdt"},
            DEBUG,
            f"{SYS}/ldlm/namespaces",
        ),
        TreeLayout(
            "2.17",
            f"{SYS}/version",
            "2.17.57\n",
            V2_17,
            dict.fromkeys(("stats", "job_stats", "recovery_status"), f"{DEBUG}/obdfilter")
            | dict.fromkeys(("num_exports", "capacity", "uuid"), f"{SYS}/obdfilter")
            | dict.fromkeys(("brw_stats", "io_latency_stats"), f"{DEBUG}/osd-ldiskfs"),
            dict.fromkeys(("stats", "job_stats", "recovery_status"), f"{DEBUG}/mdt")
            | {"capacity": f"{SYS}/osd-ldiskfs", "num_exports": f"{SYS}/mdt", "uuid": f"{SYS}/mdt"},
            DEBUG,
            f"{SYS}/ldlm/namespaces",
            nodemaps=f"{DEBUG}/nodemap",
        ),
    )
}  # fmt: skip
VERSIONS: Final = tuple(LAYOUTS)
