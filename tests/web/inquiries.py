"""What the tests ask: every question with every parameter at least once, on the small centre."""

from __future__ import annotations

from tests.web.small_centre import OTHER_JOB, OWN, OWN_JOB

Values = dict[str, str]

SCRATCH = {"filesystem": "scratch"}
HOUR = {"from": "2026-01-06T15:00", "to": "2026-01-06T16:00"}  # the culprit and a run of the weather model
AFTERNOON = {**SCRATCH, "from": "2026-01-06T12:00", "to": "2026-01-06T18:00"}
RUNS = ("projects", "coverage", "interfaces", "patterns", "variance", "sizes")
LIKE_RUNS = {"user": OWN, "project": "weather", "executable": "wrf.exe"}
TWO_TARGETS = "scratch-OST0001,scratch-OST0002"
DESIGN = {
    "ssi": "3", "purge_days": "14", "purge_fraction": "0.5", "daily_growth": "133TB", "purge_every": "7",
    "clock": "mtime", "smaller": "1",
}  # fmt: skip
DRIVES = {
    "layout": "8+2", "waf": "2.5", "fswpd": "1.5", "rmw": "1.2", "raid_block": "128KiB", "min_coverage": "50",
    "drives_of": "scratch", "classes": "1,3", "warranty": "4", "reference_drive": "1.6TB", "drive_sizes": "3.2TB",
    "usable": "3=4TB",
}  # fmt: skip
INODES = {
    "inode_size": "4KiB", "largest_file": "1TiB", "cost_mdt": "400", "cost_ost": "150.5", "layout_mdt": "5+5",
}  # fmt: skip

INQUIRIES: dict[str, tuple[Values, ...]] = {
    "filesystems": ({},),
    "utilization": (
        {**AFTERNOON, "target": TWO_TARGETS, "timezone": "Europe/Berlin", "resolution": "raw"},
        {**SCRATCH, "during": "2026-01-06", "resolution": "60s", "calibration": "grace-2012"},
        {"filesystem": "scratch2", "source": "simulator", "resolution": "auto", "last": "1d"},
    ),
    "workload": ({**SCRATCH, **HOUR},),
    "imbalance": (AFTERNOON,),
    "latency": (AFTERNOON,),
    "metadata": (AFTERNOON,),
    "capacity": ({**SCRATCH, "last": "90d"},),
    "contents": (SCRATCH,),
    "drives": (SCRATCH,),
    "blame": (
        {**SCRATCH, **HOUR, "by": "user", "calibration": "grace-2012", "metadata": "0", "timezone": "Europe/Berlin"},
        {**AFTERNOON, "metadata": "1", "top": "2", "busiest": "1h"},
    ),
    "jobs": (
        {"last": "1d"},
        {**SCRATCH, "text": "we", "sort": "disk", "reverse": "1", "top": "3", "skip": "1", "user": f"{OWN},nobody",
         "project": "weather", "name": "*", **HOUR},
    ),
    "jobs/list": (
        {**SCRATCH, "sort": "disk", "top": "3", "user": f"{OWN},nobody", "project": "weather", "name": "*"},
    ),
    "job": ({"id": OWN_JOB}, {"id": OTHER_JOB, "names": "1", "cluster": "simulated", **HOUR}),
    "explain": ({"id": OWN_JOB},),
    "user": ({"name": OWN, **HOUR, "timezone": "Europe/Berlin"},),
    "lost": ({**LIKE_RUNS, "top": "2", "last": "1d"},),
    "applications": ({**SCRATCH, "by": "cores", "top": "2", "user": OWN, "project": "weather"},),
    **{f"runs/{name}": ({**LIKE_RUNS, "during": "2026-01-06"},) for name in RUNS},
    "runs/projects": ({**LIKE_RUNS, "min_processes": "1"},),
    "plan/capacity": (
        {**SCRATCH, "daily_growth": "133TB"},
        {**SCRATCH, **DESIGN, "ssi": "3,4", "method": "paper", "capacity": "1PB"},
    ),
    "plan/endurance": (
        SCRATCH,
        {**SCRATCH, **DRIVES, "ssi": "3..4", "capacity": "10PB", "new_capacity": "30PB", "smaller": "1"},
    ),
    "plan/metadata": (
        {**SCRATCH, **INODES, "capacity": "30PB", "dom": "64KiB,1MiB", "method": "both", "layout_ost": "8+2",
         "smaller": "1"},
    ),
    "plan/performance": ({**SCRATCH, "ssi": "3", "percentile": "95"},),
    "plan/rationale": (
        {**SCRATCH, **DESIGN, **DRIVES, **INODES, "capacity": "30PB", "reference_capacity": "10PB", "dom": "64KiB",
         "method": "strict", "percentile": "95", "parts": "capacity,endurance", "title": "The next one",
         "author": "Storage group"},
    ),
    "sources": ({}, {"last": "1d"}),
    "alerts": ({}, SCRATCH),
    "agents": ({},),
}  # fmt: skip
NO_JSON = ("job", "user", "plan/rationale", "agents")  # the command writes a page or a document, or there is none
