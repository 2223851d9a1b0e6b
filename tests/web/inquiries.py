"""What the tests ask: every question with every parameter at least once, on the small centre."""

from __future__ import annotations

from tests.web.small_centre import OTHER, OTHER_JOB, OWN, OWN_JOB

Values = dict[str, str]

SCRATCH = {"filesystem": "scratch"}
HOUR = {"from": "2026-01-06T15:00", "to": "2026-01-06T16:00"}  # the culprit and a run of the weather model
AFTERNOON = {**SCRATCH, "from": "2026-01-06T12:00", "to": "2026-01-06T18:00"}
RUNS = ("coverage", "interfaces", "patterns", "files")
LIKE_RUNS = {"user": OWN, "project": "weather", "executable": "wrf.exe"}
LIKE_JOBS = {"name": "*", "user": f"{OWN},nobody", "project": "weather", "cluster": "simulated", "state": "COMPLETED"}
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
        {**AFTERNOON, "model": "histogram", "compare": "scratch2", "peak": "35GB/s"},
    ),
    "workload": (
        {**SCRATCH, **HOUR},
        {**SCRATCH, **HOUR, "sections": "arrivals", "bootstrap": "3", "weight": "requests", "peak": "35GB/s",
         "without_maintenance": "1", "top": "2"},
    ),
    "imbalance": (
        AFTERNOON,
        {**AFTERNOON, "percentiles": "50,90", "threshold": "1MB/s", "without_background": "1",
         "at": "2026-01-06T16:00,2026-01-06T15:30Z", "timezone": "Europe/Berlin"},
    ),
    "latency": ({**AFTERNOON, "every": "1h"},),
    "metadata": (AFTERNOON, {**AFTERNOON, "every": "2h", "calibration": "none"}),
    "capacity": ({**SCRATCH, "last": "90d"}, {**SCRATCH, "threshold": "80", "method": "theil-sen"}),
    "contents": (
        SCRATCH,
        {**SCRATCH, "project": "weather", "owner": OWN, "without_project": "genomes",
         "compare": "2026-01-05T12:00", "timezone": "Europe/Berlin", "threshold_files": "1e9", "at_most": "4KiB,1MiB",
         "within": "1d,7d", "top": "2"},
        {**SCRATCH, "scan": "whole"},
    ),
    "drives": (SCRATCH, {**SCRATCH, "rated_dwpd": "3", "warranty_years": "4", "waf_limit": "2", "group_by": "host"}),
    "calibrate/drift": (SCRATCH,),
    "calibrate/estimate": (SCRATCH, {**SCRATCH, **HOUR}),
    "blame": (
        {**SCRATCH, **HOUR, "by": "user", "calibration": "grace-2012", "metadata": "0", "timezone": "Europe/Berlin"},
        {**AFTERNOON, "metadata": "1", "top": "2", "busiest": "1h"},
        {**SCRATCH, "plateau": "1"},
    ),
    "jobs": (
        {"last": "1d"},
        {**SCRATCH, "text": "we", "sort": "disk", "reverse": "1", "top": "3", "skip": "1", "user": f"{OWN},nobody",
         "project": "weather", "name": "*", "cluster": "simulated", "state": "COMPLETED", **HOUR},
    ),
    "jobs/list": ({**SCRATCH, **LIKE_JOBS, "sort": "disk", "top": "3", "cores": "64,128"},),
    "job/compare": (
        {**SCRATCH, **LIKE_JOBS, "user": f"{OWN},elif", "project": "weather,materials", "cores": "16,64",
         "before": "2026-01-07T00:00", "after": "2026-01-07T00:00", "timezone": "Europe/Berlin"},  # 23:00 UTC
        {**SCRATCH, "jobs": "2455199", "against": "2455194", "exclusive": "1", "significance": "0.05"},
    ),
    "job": ({"id": OWN_JOB}, {"id": OTHER_JOB, "names": "1", "cluster": "simulated", **HOUR}),
    "explain": ({"id": OWN_JOB}, {"id": OWN_JOB, "calibration": "grace-2012"}),
    "user": ({"name": OWN, **HOUR, "timezone": "Europe/Berlin"},),
    "lost": ({**LIKE_RUNS, "top": "2", "most": "3", "last": "1d"},),
    "applications": ({**SCRATCH, **LIKE_JOBS, "by": "cores", "top": "2", "cores": "64,128"},),
    **{f"runs/{name}": ({**LIKE_RUNS, "during": "2026-01-06"},) for name in RUNS},
    "runs/projects": (
        {**LIKE_RUNS, "min_processes": "1", "min_bytes": "1MiB", "ceiling": "800", "method": "paper"},
    ),
    "runs/sizes": ({**LIKE_RUNS, "during": "2026-01-06"}, {"without": "weather", "user": OTHER}),
    "runs/scaling": (
        {**LIKE_RUNS, "min_processes": "2", "min_bytes": "1MiB", "top": "2", "method": "paper", "during": "2026-01-06"},
    ),
    "runs/variance": ({**LIKE_RUNS, "min_samples": "3", "top": "2", "method": "paper", "during": "2026-01-06"},),
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
    "sources": ({}, {"last": "1d", "top": "2"}),
    "store/log": ({}, {"source": "scan", "since": "2026-01-05", "top": "1"}),
    "alerts": ({}, SCRATCH),
    "agents": ({},),
}  # fmt: skip
NO_JSON = ("job", "user", "plan/rationale", "agents")  # the command writes a page or a document, or there is none
