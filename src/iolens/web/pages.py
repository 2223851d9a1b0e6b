"""The pages of `iolens serve`: which questions each asks, and what it shows of the answers.

A page is a list of blocks. A block is a question with what is shown of its answer (`views/dashboard/blocks.py`); it
takes those of the page's parameters that its question knows. A new page is an entry here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

Control = Literal["window", "who", "search", "plan", "silence"]


@dataclass(frozen=True, slots=True)
class Block:
    """A question, what is shown of its answer, and values that the page does not give. `half`: two in a row."""

    question: str
    shows: tuple[str, ...]
    title: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    half: bool = False
    closed: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """A page: its path, its blocks, and what its reader can set. `each`: blocks that are shown of every file system."""

    name: str
    path: str
    title: str
    blocks: tuple[Block, ...]
    controls: tuple[Control, ...] = ()
    usual: Mapping[str, str] = field(default_factory=dict)  # values unless the URL has others
    parameters: tuple[str, ...] = ()  # of the URL, beside those of the path and the window
    each: tuple[Block, ...] = ()
    glance: tuple[Block, ...] = ()  # numbers of every file system before everything else
    menu: str = ""  # its name in the menu of the centre …
    tab: str = ""  # … or among those of a file system


DAY: Final = {"last": "1d", "resolution": "auto"}
FILESYSTEM: Final = "/filesystems/{filesystem}"

PAGES: Final = (
    Page(
        "centre", "/", "Centre", (Block("alerts", ("words", "lines"), "Alerts now and over a day"),), ("window",),
        DAY,
        glance=(
            Block("utilization", ("now",)), Block("capacity", ("now",), values={"last": "90d"}),
            Block("alerts", ("now",)),
        ),
        each=(
            Block("utilization", ("answer:load", "figure:bandwidth"), "Load"),
            Block("capacity", ("answer:capacity",), "Fullness", {"last": "90d"}),
        ), menu="Centre",
    ),
    Page(
        "filesystem", FILESYSTEM, "{filesystem}", (
            Block("utilization", ("facts", "answer:load", "figure:bandwidth"), "Utilization and bandwidth"),
            Block("utilization", ("answer:targets", "figure:heatmap"), "Targets over time"),
            Block("utilization", ("figure:sizes",), "Sizes of disk I/Os", half=True),
            Block("utilization", ("figure:histogram",), "How often which FSU", half=True),
            Block("metadata", ("answer:metadata",), "Metadata"),
            Block("utilization", ("table:per_target",), "Every target", closed=True),
            Block("utilization", ("table:plateaus", "table:per_day", "table:coverage"), "Stretches, days, coverage",
                  closed=True),
        ), ("window", "who"), DAY, tab="Load",
    ),
    Page(
        "target", f"{FILESYSTEM}/targets/{{target}}", "{target}", (
            Block("utilization", ("facts", "answer:load", "figure:bandwidth"), "Load of this target"),
            Block("latency", ("answer:targets", "figure:latency"), "Latency"),
            Block("utilization", ("figure:sizes",), "Sizes of disk I/Os", half=True),
            Block("utilization", ("figure:histogram",), "How often which FSU", half=True),
            Block("utilization", ("answer:targets", "table:per_target"), "Against its peers",
                  {"target": ""}),
            Block("latency", ("table:per_target",), "Latency of its peers", {"target": ""}, closed=True),
        ), ("window",), DAY,
    ),
    Page(
        "balance", f"{FILESYSTEM}/targets", "{filesystem}: targets", (
            Block("imbalance", ("answer:targets", "figure:hot-targets"), "How evenly they are loaded"),
            Block("latency", ("answer:targets", "figure:heatmap"), "Latency"),
            Block("imbalance", ("table:hot_targets", "table:peers", "table:servers"), "Targets against their peers",
                  closed=True),
            Block("latency", ("table:per_target",), "Latency of every target", closed=True),
        ), ("window",), DAY, tab="Targets",
    ),
    Page(
        "contents", f"{FILESYSTEM}/contents", "{filesystem}: contents and capacity", (
            Block("capacity", ("facts", "answer:capacity", "figure:usage"), "Fullness and its projection"),
            Block("contents", ("answer:capacity", "figure:sizes"), "What it contains"),
            Block("contents", ("figure:ages",), "Ages of files", half=True),
            Block("contents", ("figure:projects",), "Projects", half=True),
            Block("drives", ("answer:drives", "figure:dwpd", "table:spreads", "table:fastest_wear"), "Drives"),
            Block("capacity", ("table:projections", "table:events", "table:per_target"), "Projections and targets",
                  closed=True),
        ), ("window",), {"last": "all"}, tab="Contents and capacity",
    ),
    Page(
        "plan", f"{FILESYSTEM}/plan", "{filesystem}: the next system", (
            Block("plan/capacity", ("table:cases", "figure:growth"), "Capacity"),
            Block("plan/endurance", ("table:cases", "table:classes"), "Endurance of drives"),
            Block("plan/metadata", ("table:thresholds", "figure:mdt"), "Metadata targets"),
            Block("plan/performance", ("table:cases",), "Bandwidth and operations"),
            Block("plan/performance", ("figure:demand",), "Demand over time", closed=True),
        ), ("plan",), {"percentile": "99"},
        parameters=("ssi", "purge_days", "purge_fraction", "daily_growth", "layout", "waf", "fswpd", "classes",
                    "capacity", "dom", "percentile", "smaller"),
        tab="Plan",
    ),
    Page(
        "jobs", "/jobs", "Jobs", (Block("jobs", ("tables",), "Jobs"),), ("window", "search"),
        {"last": "7d"}, ("text", "user", "project", "sort", "skip", "filesystem"), menu="Jobs",
    ),
    Page(
        "job", "/jobs/{id}", "Job {id}", (
            Block("job", ("chapters",), "", {"names": "1"}),
            Block("explain", ("figure:timeline", "figure:factors", "tables"), "Why it was slow: the evidence",
                  closed=True),
        ), parameters=("cluster",),
    ),
    Page(
        "applications", "/applications", "Applications", (
            Block("lost", ("figure:lost", "tables"), "Core-hours lost to slow I/O"),
            Block("runs/projects", ("figure:bytes", "tables"), "Projects by their runs", {"min_processes": "1"}),
            Block("runs/interfaces", ("figure:shares", "tables"), "Interfaces", half=True),
            Block("runs/patterns", ("figure:shares", "tables"), "Access patterns", half=True),
            Block("runs/variance", ("tables",), "How much like runs differ", closed=True),
            Block("runs/coverage", ("tables",), "Jobs with a Darshan log", closed=True),
        ), ("window",), {"last": "30d"}, ("project", "user"), menu="Applications",
    ),
    Page(
        "users", "/users", "Users and projects", (), ("window",), {"last": "1d"},
        each=(
            Block("blame", ("table:shares", "figure:shares"), "By user", {"by": "user"}),
            Block("blame", ("table:shares",), "By project", {"by": "project"}),
        ), menu="Users and projects",
    ),
    Page("user", "/users/{name}", "{name}", (Block("user", ("chapters",), ""),), ("window",), {"last": "7d"}),
    Page(
        "data", "/data", "Data", (
            Block("sources", ("table:sources", "table:agents", "table:refused_inputs"),
                  "Sources, agents, refused input"),
            Block("agents", ("tables",), "Agents that push to this server"),
            Block("sources", ("table:origins", "table:tables", "table:rollup_backlog"), "Origins, tables, rollups",
                  closed=True),
        ),
        each=(
            Block("utilization", ("answer:data", "table:gaps"), "Coverage"),
            Block("utilization", ("table:coverage",), "All of its numbers", closed=True),
        ),
        controls=("window",), usual={"last": "7d", "resolution": "auto"}, menu="Data",
    ),
    Page(
        "alerts", "/alerts", "Alerts", (
            Block("alerts", ("words", "lines", "table:silences", "table:undelivered", "table:not_evaluated"), ""),
            Block("alerts", ("table:alerts", "table:resolved"), "All their values", closed=True),
        ), ("silence",), menu="Alerts",
    ),
)  # fmt: skip
BY_NAME: Final = {page.name: page for page in PAGES}
