"""A real Alertmanager takes our alerts, shows them as active, and takes their end."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from iolens.alerts.changes import notification
from iolens.alerts.receivers import receiver_of
from iolens.api import OpenStore
from iolens.api.alerts import check_alerts, try_receivers
from iolens.config import load_config
from iolens.schema import TABLES
from iolens.store.rows import to_arrow
from iolens.store.store import Store
from iolens.times import present
from iolens.units import epoch_us
from tests.alerts import centres
from tests.alerts.samples import alert
from tests.hostile_names import SOURCES_OF_TROUBLE
from tests.live.spark_cluster import HOST, ComponentMissing, Daemon

pytestmark = pytest.mark.live

CONFIG = {"route": {"receiver": "nobody"}, "receivers": [{"name": "nobody"}]}


@contextlib.contextmanager
def running(folder: Path) -> Iterator[str]:
    """Its address."""
    program = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
    if program is None:
        raise ComponentMissing("alertmanager: install the package prometheus-alertmanager")
    path = folder / "alertmanager.yml"
    path.write_text(json.dumps(CONFIG))  # YAML includes JSON
    command = [program, f"--config.file={path}", f"--storage.path={folder / 'data'}",
               f"--web.listen-address={HOST}:0", "--cluster.listen-address="]  # fmt: skip
    daemon = Daemon(command, folder / "log", dict(os.environ))
    try:
        yield "http://" + daemon.wait_for(rf"Listening on\"? address=({HOST}:[1-9]\d*)")
    finally:
        daemon.stop()


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[str]:
    with contextlib.ExitStack() as stack:
        try:
            url = stack.enter_context(running(tmp_path))
        except ComponentMissing as missing:
            pytest.skip(str(missing))
        yield url


def active(url: str) -> list[dict[str, Any]]:
    with urllib.request.urlopen(f"{url}/api/v2/alerts", timeout=60) as answer:
        alerts: list[dict[str, Any]] = json.load(answer)
    return alerts


def test_an_alert_is_active_until_it_ends(manager: str, tmp_path: Path) -> None:
    """A store that nobody feeds, and then somebody does."""
    receiver = (
        f'\n[[alerts.receivers]]\nname = "am"\nkind = "alertmanager"\nurl = "{manager}"\nlabels = {{ team = "s" }}\n'
    )
    (tmp_path / "iolens.toml").write_text(centres.rule("silent-agent", "silent") + receiver)
    store = Store(centres.store_of(tmp_path / "store", centres.silent()))

    def check() -> list[str]:
        with OpenStore(store.url, config=str(tmp_path / "iolens.toml")) as opened:
            return [attempt.outcome for attempt in check_alerts(opened, tmp_path / "state").deliveries]

    assert check() == ["delivered"]
    (shown,) = active(manager)
    assert shown["labels"] == {
        "alertname": "silent", "filesystem": "scratch", "kind": "silent-agent", "severity": "warning",
        "subject": "scratch", "team": "s",
    }  # fmt: skip
    assert shown["status"]["state"] == "active"
    assert shown["annotations"]["description"] == "No row of scratch is stored within 7 d."
    end_s = (present() - centres.START).total_seconds() - 60
    row = centres.interval(end_s, 30, target=centres.OSTS[0], target_kind="ost", write_bytes=1)
    assert row["time"] < epoch_us(present())
    store.append("target_io", to_arrow(TABLES["target_io"], [row]))
    assert check() == ["delivered"]
    assert active(manager) == []


def test_hostile_names_and_tests_are_taken(manager: str, tmp_path: Path) -> None:
    receiver = receiver_of(Path("iolens.toml"), {"name": "am", "kind": "alertmanager", "url": manager})
    for number, name in enumerate(SOURCES_OF_TROUBLE):
        hostile = alert(rule=f"{number}{name}", subject=name, filesystem=name, why=name, command=name, link=None)
        receiver.deliver(notification(hostile, "firing", present()))
    assert len(active(manager)) == len(SOURCES_OF_TROUBLE)
    (tmp_path / "iolens.toml").write_text(
        f'[[alerts.receivers]]\nname = "am"\nkind = "alertmanager"\nurl = "{manager}"\n'
    )
    (attempt,) = try_receivers(load_config(tmp_path / "iolens.toml")).deliveries
    assert (attempt.outcome, attempt.error) == ("delivered", None)
