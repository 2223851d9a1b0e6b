"""Where a Lustre client of each version keeps its files, and how it spells what it counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from iolens.simulator.lustre_layout import DEBUG, LAYOUTS, PROC
from iolens.simulator.lustre_text import V1_8, V2_10, V2_12, V2_15, Dialect


@dataclass(frozen=True, slots=True)
class ClientLayout:
    """Base directories by kind of file, and what differs between versions beside the dialect."""

    version: str
    version_file: str
    version_text: str
    dialect: Dialect
    places: Mapping[str, str]  # of llite, stats, rpc_stats, md_stats, locks, services
    call_unit: str  # of calls that are not timed; [regs] was a slip that lived long
    has_osc_calls: bool = False  # llite has osc_read and osc_write
    has_modify: bool = True  # an MDC counts requests that change something by how many are in flight
    has_data_on_mdt: bool = False  # an MDC has the histograms of an OSC too
    counts_call_sizes: bool = False  # somebody switched extents_stats on
    first_in_flight: int = 0  # the first row of RPCs in flight


def _everywhere(base: str, **others: str) -> dict[str, str]:
    return dict.fromkeys(("llite", "stats", "rpc_stats", "md_stats", "locks", "services"), base) | others


CLIENT_LAYOUTS: Final = {
    layout.version: layout
    for layout in (
        ClientLayout(
            "2.5",
            f"{PROC}/version",
            "lustre: 2.5.3\nkernel: patchless_client\nbuild:  2.5.3-gd0b1a9c-PRISTINE-2.6.32-431.el6.x86_64\n",
            replace(V1_8, tabs=True),
            _everywhere(PROC),
            "regs",
            has_osc_calls=True,
            has_modify=False,
        ),
        ClientLayout(
            "2.10", LAYOUTS["2.10"].version_file, LAYOUTS["2.10"].version_text, V2_10, _everywhere(PROC), "regs"
        ),
        ClientLayout(
            "2.12",
            LAYOUTS["2.12"].version_file,
            LAYOUTS["2.12"].version_text,
            V2_12,
            _everywhere(DEBUG, rpc_stats=PROC),
            "reqs",
            counts_call_sizes=True,
        ),
        ClientLayout(
            "2.15",
            LAYOUTS["2.15"].version_file,
            LAYOUTS["2.15"].version_text,
            V2_15,
            _everywhere(DEBUG, rpc_stats=PROC),
            "reqs",
            has_data_on_mdt=True,
            counts_call_sizes=True,
            first_in_flight=1,
        ),
    )
}
CLIENT_VERSIONS: Final = tuple(CLIENT_LAYOUTS)
