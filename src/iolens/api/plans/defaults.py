"""Every option of every plan, and what holds where it is not given; None: it comes from the store, or is not needed."""

from __future__ import annotations

from typing import Any, Final

GROWTH_METHODS: Final = ("strict", "paper")
DOM_METHODS: Final = ("tight", "paper", "both")
CLOCKS: Final = ("atime", "mtime")

_GROWTH: Final[dict[str, Any]] = {
    "purge_days": "28",
    "purge_fraction": "0.5",
    "daily_growth": None,
    "method": "strict",
    "cutoff": None,
    "purge_every": None,
    "clock": "atime",
    "what_if": (),
}
_DRIVES: Final[dict[str, Any]] = {
    "cases": (),
    "layout": "8+2",
    "waf": None,
    "fswpd": None,
    "rmw": None,
    "raid_block": None,
    "min_coverage": 95,
    "drives_of": None,
    "classes": "0.3,1,3,10",
    "warranty": 5,
    "reference_drive": None,
    "drive_sizes": "",
}
_INODES: Final[dict[str, Any]] = {
    "file_sizes": None,
    "dom": "64KiB,1MiB",
    "inode_size": "4KiB",
    "largest_file": None,
    "cost_mdt": None,
    "cost_ost": None,
    "layout_mdt": "5+5",
}
_DEMAND: Final[dict[str, Any]] = {"percentile": "95,99,100", "demands": ()}

SMALLER: Final = "smaller"  # less than is used today is meant
DEFAULTS: Final[dict[str, dict[str, Any]]] = {
    "capacity": {"ssi": "1", "capacity": None, SMALLER: False, **_GROWTH},
    "endurance": {
        "ssi": "1",
        "capacity": None,
        "new_capacity": None,
        "usable": "10=3.2TB,3=4TB",
        SMALLER: False,
        **_DRIVES,
    },
    "metadata": {"capacity": None, "method": "tight", "layout_ost": "8+2", SMALLER: False, **_INODES},
    "performance": {"ssi": "1", **_DEMAND},
    "rationale": {
        "ssi": None,  # that of the cases, else 1
        "title": None,
        "author": None,
        "parts": "capacity,endurance,metadata,performance",
        "capacity": None,
        "reference_capacity": None,
        "usable": "",
        SMALLER: False,
        **_GROWTH,
        **_DRIVES,
        **_INODES,
        **_DEMAND,
    },
}
