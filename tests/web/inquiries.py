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
DESIGN = {"ssi": "3", "purge_days": "14", "purge_fraction": "0.5", "daily_growth": "133TB"}
DRIVES = {"layout": "8+2", "waf": "2.5", "fswpd": "1.5"}

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
        {**SCRATCH, "daily_growth": "133TB"}, {**SCRATCH, **DESIGN, "ssi": "3,4", "method": "paper", "smaller": "1"},
    ),
    "plan/endurance": (SCRATCH, {**SCRATCH, **DRIVES, "ssi": "3..4", "classes": "1,3"}),
    "plan/metadata": ({**SCRATCH, "capacity": "30PB", "dom": "64KiB,1MiB", "inode_size": "4KiB", "smaller": "1"},),
    "plan/performance": ({**SCRATCH, "ssi": "3", "percentile": "95"},),
    "plan/rationale": (
        {**SCRATCH, **DESIGN, **DRIVES, "capacity": "30PB", "dom": "64KiB", "parts": "capacity,endurance",
         "smaller": "1"},
    ),
    "sources": ({}, {"last": "1d"}),
    "alerts": ({}, SCRATCH),
    "agents": ({},),
}  # fmt: skip
NO_JSON = ("job", "user", "plan/rationale", "agents")  # the command writes a page or a document, or there is none
