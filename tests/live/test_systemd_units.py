"""The units in contrib: real `systemd-analyze` accepts them, and what they start exists."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import generate_docs
import pytest

from iolens.config import load_config

CONTRIB = Path(__file__).parents[2] / "contrib"
UNITS = sorted([*CONTRIB.glob("*.service"), *CONTRIB.glob("*.timer")])
SERVICES = [unit for unit in UNITS if unit.suffix == ".service"]
TIMERS = [unit for unit in UNITS if unit.suffix == ".timer"]
OWN_USER = ["iolens-alerts.service", "iolens-rollup.service", "iolens-serve.service"]
MOST_EXPOSED = 30  # tenths; 100 is a service without any restriction


def _systemd_analyze(*arguments: object) -> subprocess.CompletedProcess[str]:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze: install the package systemd")
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)


def _section(unit: Path, name: str) -> dict[str, list[str]]:
    """A section by its keys; a key may stand in several lines."""
    text = unit.read_text("utf-8").partition(f"\n[{name}]\n")[2].partition("\n[")[0]
    values: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            key, _, value = line.partition("=")
            values.setdefault(key, []).append(value)
    return values


def _agent_help(*verb: str) -> str:
    command = [sys.executable, "-m", "iolens.light", *verb, "--help"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _name(unit: Path) -> str:
    return unit.name


def test_all_units_are_seen() -> None:
    names = {unit.stem.removeprefix("iolens-") for unit in SERVICES}
    assert names == {"agent", "alerts", "collect", "export", "rollup", "serve"}
    assert [unit.name for unit in TIMERS] == ["iolens-alerts.timer", "iolens-rollup.timer"]


@pytest.mark.live
@pytest.mark.parametrize("unit", UNITS, ids=_name)
def test_systemd_accepts_a_unit_without_a_warning(unit: Path) -> None:
    done = _systemd_analyze("verify", unit)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.live
def test_systemd_refuses_a_unit_with_a_slip_of_the_pen(tmp_path: Path) -> None:
    """So that the test above means something."""
    text = (CONTRIB / "iolens-serve.service").read_text("utf-8")
    (tmp_path / "iolens-serve.service").write_text(text.replace("MemoryMax=", "MemoryMost="), "utf-8")
    assert "MemoryMost" in _systemd_analyze("verify", tmp_path / "iolens-serve.service").stderr


@pytest.mark.live
@pytest.mark.parametrize("unit", SERVICES, ids=_name)
def test_a_service_may_do_little(unit: Path) -> None:
    done = _systemd_analyze("security", "--offline=true", f"--threshold={MOST_EXPOSED}", unit)
    assert done.returncode == 0, done.stdout[-200:] + done.stderr


@pytest.mark.parametrize("unit", SERVICES, ids=_name)
def test_commands_and_options_of_a_service_exist(unit: Path) -> None:
    for line in _section(unit, "Service")["ExecStart"]:
        words = re.fullmatch(r"/usr/bin/env iolens(-agent)? ([a-z ]+?)((?: --.*| \$\w+)?)", line)
        assert words is not None, line
        verb = tuple(words[2].split())
        text = _agent_help(*verb) if words[1] else generate_docs.help_text(verb) + generate_docs.help_text(())
        assert [option for option in re.findall(r"--[a-z-]+", words[3]) if f"{option} " not in text] == []


@pytest.mark.parametrize("unit", TIMERS, ids=_name)
def test_a_timer_starts_a_service_that_ends(unit: Path) -> None:
    service = _section(unit.with_suffix(".service"), "Service")
    assert service["Type"] == ["oneshot"]
    assert "Restart" not in service


def test_an_alert_that_fires_is_no_failed_unit() -> None:
    assert _section(CONTRIB / "iolens-alerts.service", "Service")["SuccessExitStatus"] == ["4"]


@pytest.mark.parametrize("name", OWN_USER)
def test_a_service_writes_the_store_and_the_state_of_the_sample_configuration_alone(name: str) -> None:
    service, sample = _section(CONTRIB / name, "Service"), load_config(CONTRIB / "iolens.toml")
    assert service["User"] == service["Group"] == ["iolens"]
    (folders,) = service["StateDirectory"]
    assert [f"/var/lib/{folder}" for folder in folders.split()] == [sample.store, sample.state]
    assert service["ProtectSystem"] == ["strict"]
    assert "ReadWritePaths" not in service


@pytest.mark.parametrize("unit", SERVICES, ids=_name)
def test_a_service_says_how_it_is_installed(unit: Path) -> None:
    head = unit.read_text("utf-8").partition("[Unit]")[0]
    assert f"install -m 644 {unit.name}" in head
    if not unit.with_suffix(".timer").exists():
        assert f"systemctl enable --now {unit.stem}\n" in head
        assert _section(unit, "Install") == {"WantedBy": ["multi-user.target"]}
