"""A real Prometheus scrapes real exporters on simulated servers: rate() tells the truth, and every query has data."""

from __future__ import annotations

import contextlib
import json
import re
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from iolens.agent.exporter.metrics import METRICS, OURS
from iolens.simulator.activity import Activity
from iolens.simulator.workload import SIZES, load_workload
from iolens.units import parse_time
from tests.live.prometheus_server import PrometheusServer, exporter, iolens, promtool
from tests.live.spark_cluster import ComponentMissing, Daemon

pytestmark = pytest.mark.live

CONTRIB = Path(__file__).parents[2] / "contrib"
RULES = CONTRIB / "prometheus-alerts.yml"
DASHBOARD = json.loads((CONTRIB / "grafana-dashboard.json").read_text("utf-8"))
WORKLOAD = load_workload("scratch")
START = "2012-10-22T10:40:00Z"
START_S = parse_time(START).timestamp()
SPEED, PAIR_SPEED, OSTS, SEED, TICK_S = 100, 25, 3, 3, WORKLOAD.tick_s
WINDOW_S = 30
RESET_S, FAILOVER_S = 375, 650  # of the pair, in simulated seconds after the start


@dataclass(frozen=True)
class Centre:
    """What runs: Prometheus, a quiet server, and a pair of servers with a reset and a failover."""

    prometheus: PrometheusServer
    quiet: str
    pair: tuple[str, str]
    since: float
    until: float


@pytest.fixture(scope="module")
def centre(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Centre]:
    """Everything for three quarters of a minute, then only Prometheus, with what it has."""
    folder = tmp_path_factory.mktemp("prometheus")
    daemons: list[Daemon] = []
    with contextlib.ExitStack() as stack:
        stack.callback(lambda: [daemon.stop() for daemon in daemons])
        simulated = ("simulate", "lustre", "--osts", OSTS, "--mdts", 1, "--seed", SEED, "--start", START)
        daemons += [
            iolens(folder / "quiet.log", *simulated, "--root", folder / "quiet", "--version", "2.15", "--speed", SPEED),
            iolens(folder / "pair.log", *simulated, "--root", folder / "one", "--root2", folder / "two", "--version",
                   "2.12", "--speed", PAIR_SPEED, "--reset-at", f"{RESET_S}s", "--failover", f"OST0001@{FAILOVER_S}s"),
        ]  # fmt: skip
        for daemon in daemons:
            daemon.wait_for("(targets of Lustre)")
        daemons.append(
            iolens(folder / "agent.log", "collect", "--root", folder / "quiet", "--spool", folder / "spool",
                   "--interval", "1s", "--no-ship")
        )  # fmt: skip
        common = ("--interval", "50ms", "--jobs-interval", "2s")
        addresses = []
        for name in ("quiet", "one", "two"):
            spool = ("--spool", folder / "spool") if name == "quiet" else ()
            daemon, address = exporter(
                folder / f"{name}-export.log", "--root", folder / name, *common, *spool, "--calibration", "grace-2012"
            )
            daemons.append(daemon)
            addresses.append(address)
        jobs = {"iolens": addresses[:1], "pair": addresses[1:]}
        try:
            prometheus = stack.enter_context(PrometheusServer(jobs, [RULES]))
        except ComponentMissing as missing:
            pytest.skip(str(missing))
        since = time.time()
        time.sleep(WINDOW_S + 14)
        running = Centre(prometheus, addresses[0], (addresses[1], addresses[2]), since, time.time() - 1)
        for number, daemon in enumerate(daemons):
            assert daemon.process.poll() is None, (number, daemon.log.read_text())
        yield running
    left = [pid for daemon in [*daemons, prometheus.daemon] for pid in daemon.alive()]
    assert left == []


@pytest.fixture(scope="module")
def activity() -> Activity:
    return Activity(WORKLOAD, OSTS, seed=SEED)


@dataclass(frozen=True)
class Window:
    """A window of the quiet server: what it had counted at the first and at the last scrape in it, in ticks."""

    at: float
    first: int
    last: int
    seconds: float  # of real time between those scrapes

    @property
    def expected_s(self) -> float:
        """Real seconds that the simulated ones should have taken."""
        return (self.last - self.first) * TICK_S / SPEED


def steady_window(centre: Centre, target: str) -> Window:
    """The window in which simulator and scrapes, which share a busy machine, kept best to their times.

    Windows end at a scrape. One that lacks the scrape at its beginning does not count: there rate() itself holds back.
    """
    selector = f'iolens_target_snapshot_timestamp_seconds{{job="iolens",target="{target}"}}'
    samples = centre.prometheus.samples(selector, f"{round(centre.until - centre.since)}s", centre.until)
    result = []
    for at, newest in samples[len(samples) // 2 :]:
        inside = [(when, value) for when, value in samples if at - WINDOW_S <= when <= at]
        (begin, oldest), reaches_back = inside[0], samples[0][0] < at - WINDOW_S
        if reaches_back and begin - (at - WINDOW_S) < 1.05 * (at - begin) / (len(inside) - 1):
            result.append(Window(at, int(oldest // TICK_S), int(newest // TICK_S), at - begin))
    best = min(result, key=lambda window: abs(window.seconds / window.expected_s - 1))
    assert best.seconds == pytest.approx(best.expected_s, rel=0.008), "this machine is too busy to simulate on time"
    return best


@pytest.mark.parametrize("number", range(OSTS))
def test_rate_is_the_simulator_s_truth(centre: Centre, activity: Activity, number: int) -> None:
    target = f"scratch-OST{number:04x}"
    window = steady_window(centre, target)
    assert window.last - window.first >= 300
    block = activity.block(window.first, window.last - window.first)
    counts = block.counts[..., number].sum(axis=2)
    for side, direction in enumerate(("read", "write")):
        truth = float(counts[side] @ np.array(SIZES))
        name = f'lustre_{direction}_bytes_total{{job="iolens",target="{target}"}}'
        raw = centre.prometheus.samples(name, f"{WINDOW_S}s", window.at)
        assert raw[-1][1] - raw[0][1] == truth  # to the byte
        rate = centre.prometheus.only(f"rate({name}[{WINDOW_S}s])", window.at)
        assert rate == pytest.approx(truth / window.expected_s, rel=0.01)
    busy = f'iolens_target_busy_seconds_total{{job="iolens",target="{target}"}}'
    fsu_pct = centre.prometheus.only(f"100 * rate({busy}[{WINDOW_S}s])", window.at) / SPEED
    assert fsu_pct == pytest.approx(block.fsu_pct[:, number].mean(), rel=0.01)


def test_the_file_system_s_fsu_is_the_mean_over_its_osts(centre: Centre, activity: Activity) -> None:
    window = steady_window(centre, "scratch-OST0000")
    truth = activity.block(window.first, window.last - window.first).fsu_pct.mean()
    busy = 'iolens_target_busy_seconds_total{job="iolens",component="ost"}'
    expression = f"avg by (filesystem) (100 * sum by (filesystem, target) (rate({busy}[{WINDOW_S}s])))"
    assert centre.prometheus.only(expression, window.at) / SPEED == pytest.approx(truth, rel=0.01)
    gauge = f'avg(avg_over_time(iolens_fsu_percent{{job="iolens",component="ost"}}[{WINDOW_S}s]))'
    assert centre.prometheus.only(gauge, window.at) == pytest.approx(truth, rel=0.1)


def test_metadata_rates_are_true(centre: Centre, activity: Activity) -> None:
    window = steady_window(centre, "scratch-MDT0000")
    hour = 3600 // TICK_S
    done = sum(int(activity.metadata(n // hour, 1)[0, n % hour, 0]) for n in range(window.first, window.last))
    name = 'lustre_stats_total{job="iolens",operation="open"}'
    rate = centre.prometheus.only(f"rate({name}[{WINDOW_S}s])", window.at)
    assert rate == pytest.approx(done / window.expected_s, rel=0.01)


def test_a_reset_and_a_fail_over_invent_nothing(centre: Centre, activity: Activity) -> None:
    """An hour of counters is behind the reset: counted again, the rate would be hundreds of times the peak."""
    first = int(START_S // TICK_S)
    passed = int((centre.until - centre.since + 30) * PAIR_SPEED / TICK_S)
    block = activity.block(first, passed)
    moved = np.einsum("dstn,s->dtn", block.counts, np.array(SIZES))
    a_second = PAIR_SPEED // TICK_S
    peak = max(np.convolve(moved[1, :, n], np.ones(a_second), "valid").max() for n in range(OSTS))
    busiest = max(np.convolve(block.fsu_pct[:, n], np.ones(a_second), "valid").max() for n in range(OSTS)) / a_second
    pair = 'job="pair",component="ost"'
    ask = centre.prometheus.over_time
    writes = ask(f"rate(lustre_write_bytes_total{{{pair}}}[10s])", centre.since, centre.until)
    fsu = ask(f"100 * rate(iolens_target_busy_seconds_total{{{pair}}}[10s])", centre.since, centre.until)
    assert len(writes) > 100
    assert min(writes) >= 0
    assert min(fsu) >= 0
    assert max(writes) <= 1.1 * peak
    assert max(fsu) <= 1.1 * busiest * PAIR_SPEED
    total = f"sum(increase(lustre_write_bytes_total{{{pair}}}[{round(centre.until - centre.since)}s]))"
    assert 0 < centre.prometheus.only(total, centre.until) <= 1.02 * moved[1].sum()
    assert max(ask(f"resets(lustre_write_bytes_total{{{pair}}}[1m])", centre.since, centre.until)) == 1  # it was there

    where = centre.prometheus.query(f'iolens_target_info{{{pair},target="scratch-OST0001"}}', centre.until)
    assert [dict(labels)["instance"] for labels in where] == [centre.pair[1]]
    by_target = f"100 * sum by (filesystem, target) (rate(iolens_target_busy_seconds_total{{{pair}}}[10s]))"
    assert max(ask(by_target, centre.since, centre.until)) <= 1.1 * busiest * PAIR_SPEED


def panel_queries() -> dict[str, tuple[str, str]]:
    """Expression and legend of each query, by the panel's title."""
    return {
        f"{panel['title']} {item['refId']}": (item["expr"], item["legendFormat"])
        for panel in DASHBOARD["panels"]
        for item in panel.get("targets", ())
    }


@pytest.mark.parametrize(("expression", "legend"), panel_queries().values(), ids=panel_queries())
def test_every_query_of_the_dashboard_has_data(centre: Centre, expression: str, legend: str) -> None:
    """But those for file systems without a calibration: this one has one."""
    chosen = {"$__rate_interval": f"{WINDOW_S}s", "$filesystem": ".*", "$target": ".*"}
    for variable, value in chosen.items():
        expression = expression.replace(variable, value)
    assert "$" not in expression
    result = centre.prometheus.query(expression, centre.until)
    assert bool(result) is not legend.endswith(("not calibrated", "refuted by the data")), expression
    assert not any(np.isnan(value) for value in result.values()), (expression, result)


def test_the_dashboard_s_variables_have_values(centre: Centre) -> None:
    assert DASHBOARD["templating"]["list"][0]["type"] == "datasource"
    for variable in DASHBOARD["templating"]["list"][1:]:
        selector, label = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"]["query"]).groups()  # type: ignore[union-attr]
        selector = selector.replace("$filesystem", ".*")
        assert centre.prometheus.api(f"label/{label}/values", **{"match[]": selector})


def test_the_dashboard_can_be_imported() -> None:
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))
    assert DASHBOARD["id"] is None
    for panel in DASHBOARD["panels"]:
        assert {"type", "title", "gridPos"} <= panel.keys()
        for item in panel.get("targets", ()):
            assert item["datasource"]["uid"] == "${datasource}"
    titles = " ".join(panel["title"] for panel in DASHBOARD["panels"])
    for wanted in ("FSU by file system", "FSU by target", "Bandwidth", "per second", "sizes", "time", "Metadata",
                   "Fullness", "Agents"):  # fmt: skip
        assert wanted in titles


def test_every_rule_evaluates_and_every_record_has_data(centre: Centre) -> None:
    rules = [rule for group in centre.prometheus.api("rules")["groups"] for rule in group["rules"]]
    assert len(rules) >= 26
    for rule in rules:
        assert (rule["health"], rule.get("lastError", "")) == ("ok", ""), rule
        result = centre.prometheus.query(rule["query"], centre.until)
        if rule["type"] == "recording":
            assert result, rule["name"]


def test_prometheus_took_every_sample(centre: Centre) -> None:
    assert set(centre.prometheus.query("up", centre.until).values()) == {1.0}
    scraped = centre.prometheus.query("scrape_samples_scraped", centre.until)
    kept = centre.prometheus.query("scrape_samples_post_metric_relabeling", centre.until)
    assert sorted(scraped.values()) == sorted(kept.values())
    assert min(scraped.values()) > 20
    log = centre.prometheus.daemon.log.read_text()
    assert "level=warn" not in log, log
    assert "level=error" not in log, log


def test_promtool_finds_nothing_wrong_but_the_names_we_did_not_choose(centre: Centre) -> None:
    page = urllib.request.urlopen(f"http://{centre.quiet}/metrics", timeout=60).read()
    checked = promtool("check", "metrics", standard_input=page)
    complaints = (checked.stdout + checked.stderr).decode().splitlines()
    inherited = {metric.name for metric in METRICS.values() if metric.origin != OURS}
    assert [line for line in complaints if line.split()[0] not in inherited] == []
    ours = b"".join(
        line
        for line in page.splitlines(keepends=True)
        if re.match(rb"(# (HELP|TYPE) )?(iolens|process)_", line)
    )  # fmt: skip
    checked = promtool("check", "metrics", standard_input=ours)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, b"")


@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "rules", RULES),
        ("check", "config", CONTRIB / "prometheus.yml"),
        ("test", "rules", Path(__file__).parent / "prometheus_alerts_test.yml"),
    ],
    ids=["rules", "configuration", "alerts"],
)
def test_promtool_accepts(arguments: tuple[object, ...]) -> None:
    try:
        checked = promtool(*arguments)
    except ComponentMissing as missing:
        pytest.skip(str(missing))
    assert checked.returncode == 0, (checked.stdout + checked.stderr).decode()


def test_every_alert_has_a_test() -> None:
    tested = (Path(__file__).parent / "prometheus_alerts_test.yml").read_text("utf-8")
    for alert in re.findall(r"alert: (\w+)", RULES.read_text("utf-8")):
        assert f"alertname: {alert}" in tested, alert
