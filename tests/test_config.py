"""One TOML file: every key, what is refused and how the message says so, and which file and store are taken."""

from __future__ import annotations

import tomllib
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path

import pytest

from iolens.config import (
    AgentConfig,
    CalibrationConfig,
    Config,
    DeviceRule,
    FileSystemConfig,
    MaintenanceConfig,
    ProjectRule,
    RunsConfig,
    Thresholds,
    load_config,
)
from iolens.errors import InputError

SAMPLE = Path(__file__).parent.parent / "contrib" / "iolens.toml"

EVERYTHING = """
store = "/var/lib/iolens"
engine = "local-spark"

[filesystems.scratch]
peak = "35GB/s"
timezone = "America/Los_Angeles"
calibration = "our-disks"
sources = ["lustre-lctl", "lustre-proc"]
ceiling_fsu_pct = 70
target_ceiling = "100GB/s"
target_ops_ceiling = 2e6
longest_interval = "7d"
jobid_name = "%j:%e.%u"

[[filesystems.scratch.maintenance]]
from = 2026-01-15T08:00:00
to = "2026-01-15T17:30"
name = "new switches"

[[filesystems.scratch.maintenance]]
from = 2026-07-02
to = 2026-07-03T02:00:00Z

[filesystems.home]

[calibrations.our-disks]
write_latency_s = 1.04e-3
write_s_per_byte = 1.73e-9
read_latency_s = 8.02e-4
read_s_per_byte = 1

[thresholds]
plateau_minimum = "15min"
plateau_spread = 0.2
plateau_median_pct = 40
saturated_share = 0.8

[agent]
interval = "2s"
slow_interval = "30s"
device_interval = "1min"
ship_every = "10min"
spool = "/spool"
spool_limit = "2GiB"
root = "/copy"
filesystem = "scratch"
devices = true

[devices]
include = ["sd*", "mpath*"]
exclude = ["sda"]
system = false

[runs]
ceiling_mib_per_s_per_node = 10.94

[projects]
directories = ["/scratch/{project}/", "/home/*/{project}"]
ids = { 5001 = "climate" }
"""


def written(path: Path, text: str) -> Path:
    path.write_text(text, "utf-8")
    return path


def refusal(folder: Path, text: str) -> str:
    """The message that refuses this file, without its place."""
    path = written(folder / "iolens.toml", text)
    with pytest.raises(InputError) as refused:
        load_config(path)
    assert refused.value.place == str(path)
    return str(refused.value).removeprefix(str(path))


def test_every_key(tmp_path: Path) -> None:
    path = written(tmp_path / "iolens.toml", EVERYTHING)
    maintenance = (
        MaintenanceConfig(
            datetime(2026, 1, 15, 16, tzinfo=UTC), datetime(2026, 1, 16, 1, 30, tzinfo=UTC), "new switches"
        ),
        MaintenanceConfig(datetime(2026, 7, 2, 7, tzinfo=UTC), datetime(2026, 7, 3, 2, tzinfo=UTC), "maintenance"),
    )
    scratch = FileSystemConfig(
        35e9,
        "America/Los_Angeles",
        "our-disks",
        ("lustre-lctl", "lustre-proc"),
        maintenance=maintenance,
        ceiling_fsu_pct=70.0,
        target_ceiling_bytes_per_s=100e9,
        target_ceiling_ops_per_s=2e6,
        longest_interval_s=7 * 86_400.0,
        jobid_name="%j:%e.%u",
    )
    assert load_config(path) == Config(
        path=path,
        store="/var/lib/iolens",
        engine="local-spark",
        filesystems={"scratch": scratch, "home": FileSystemConfig()},
        calibrations={"our-disks": CalibrationConfig(1.04e-3, 1.73e-9, 8.02e-4, 1.0)},
        thresholds=Thresholds(900.0, 0.2, 40.0, 0.8),
        agent=AgentConfig(2.0, 30.0, 60.0, 600.0, "/spool", 2 << 30, "/copy", "scratch", True),
        devices=DeviceRule(("sd*", "mpath*"), ("sda",), False),
        projects=ProjectRule(("/scratch/{project}", "/home/*/{project}"), {"5001": "climate"}),
        runs=RunsConfig(10.94),
    )


def test_an_empty_file_is_the_defaults(tmp_path: Path) -> None:
    path = written(tmp_path / "empty.toml", "")
    assert load_config(path) == Config(path=path)
    assert Config().thresholds == Thresholds(600.0, 0.25, 30.0, 0.9)
    assert Config().engine == "duckdb"


def test_a_file_system_that_is_not_configured_has_defaults() -> None:
    assert Config().filesystem("scratch") == FileSystemConfig(None, None, None, ())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "stores = 'x'",
            ": unknown key stores; expected one of store, state, engine, filesystems, calibrations, thresholds",
        ),
        (
            "[filesystems.scratch]\ntarget_ceiling = '0GB/s'",
            "filesystems.scratch.target_ceiling = '0GB/s' would refuse",
        ),
        ("[filesystems.scratch]\npeek = '1GB/s'", ": unknown key filesystems.scratch.peek; expected one of peak, "),
        (
            "[filesystems.scratch]\njobid_name = '%e.%U'",
            ": filesystems.scratch.jobid_name: %U of '%e.%U' is no code of Lustre's jobid_name: write %e, %g, %h, %H, ",
        ),
        ("[filesystems.scratch]\njobid_name = '%e.%'", ": filesystems.scratch.jobid_name: % of '%e.%' is no code"),
        ("[filesystems.scratch]\njobid_name = 'cluster'", ": filesystems.scratch.jobid_name: 'cluster' has no code"),
        ("[filesystems.scratch]\njobid_name = 5", ": filesystems.scratch.jobid_name = 5 has the wrong type or range"),
        ("[thresholds]\nplateau = 1", ": unknown key thresholds.plateau; expected one of plateau_minimum, "),
        ("store = 5", ": store = 5 has the wrong type or range; expected a text in quotes"),
        ("[filesystems.scratch]\npeak = 35", ": filesystems.scratch.peak: 35 of what? write 35GB/s"),
        ("[filesystems.scratch]\npeak = '35'", ": filesystems.scratch.peak: 35 of what? write 35GB/s"),
        ("[filesystems.scratch]\npeak = 3.5", ": filesystems.scratch.peak: 3.5 of what? write 3.5GB/s"),
        ("[filesystems.scratch]\npeak = ['1GB/s']", ".peak = ['1GB/s'] has the wrong type or range; expected a rate"),
        ("[agent]\nspool_limit = '2'", ": agent.spool_limit: 2 of what? write 2TB"),
        ("[filesystems.scratch]\nsources = [1]", ": filesystems.scratch.sources = [1] has the wrong type or range; "),
        ("[filesystems.scratch]\nsources = 'lustre-lctl'", "; expected a list of texts"),
        ("[thresholds]\nplateau_spread = true", ": thresholds.plateau_spread = True has the wrong type or range; "),
        ("[thresholds]\nplateau_spread = -1", "; expected a number, zero or more"),
        ("[thresholds]\nplateau_spread = nan", "; expected a number, zero or more"),
        ("[filesystems.scratch]\nceiling_fsu_pct = 0", "; expected a number above zero"),
        ("[thresholds]\nplateau_minimum = 600", "; expected a text in quotes"),
        ("filesystems = 'scratch'", "; expected a section"),
        ("[filesystems]\nscratch = '35GB/s'", "; expected [filesystems.scratch] and keys below it"),
        ("[filesystems.scratch]\npeak = '35GB/h'", ": filesystems.scratch.peak: '35GB/h': a rate is per second"),
        ("[filesystems.scratch]\npeak = ''", ": filesystems.scratch.peak: '': not a quantity"),
        ("[filesystems.scratch]\ntimezone = 'Mars/Base'", ": filesystems.scratch.timezone: no time zone is called "),
        ("[thresholds]\nplateau_minimum = '10 moons'", ": thresholds.plateau_minimum: '10 moons': unknown unit"),
        (
            "[calibrations.ours]\nwrite_latency_s = 1e-3",
            ": [calibrations.ours] lacks write_s_per_byte, read_latency_s, read_s_per_byte; expected all four",
        ),
        ("[filesystems.x.maintenance]\nfrom = 2026-01-15", "; expected sections in double brackets"),
        (
            "[[filesystems.x.maintenance]]\nfrom = 2026-01-15",
            ": [[filesystems.x.maintenance]] lacks to; expected from and to",
        ),
        (
            "[[filesystems.x.maintenance]]\nfrom = 5\nto = 2026-01-15",
            ": filesystems.x.maintenance.from = 5 has the wrong type or range; expected a time, such as 2026-01-15T",
        ),
        (
            "[[filesystems.x.maintenance]]\nfrom = 'noon'\nto = 2026-01-15",
            ": filesystems.x.maintenance.from: 'noon': not a time",
        ),
        ("[[filesystems.x.maintenance]]\nfrom = 08:00:00\nto = 2026-01-15", "; expected a time, such as 2026-01-15T"),
        (
            "[[filesystems.x.maintenance]]\nfrom = 2026-01-15\nto = 2026-01-15",
            ": filesystems.x.maintenance: to = 2026-01-15 is not after from = 2026-01-15",
        ),
        (
            "[[filesystems.x.maintenance]]\nwhy = 'x'",
            ": unknown key filesystems.x.maintenance.why; expected one of from",
        ),
        ("[agent]\nintervall = '5s'", ": unknown key agent.intervall; expected one of interval, slow_interval, "),
        ("[agent]\ninterval = '0s'", ": agent.interval = '0s' is no interval; expected a duration above zero"),
        ("[agent]\ninterval = 5", "; expected a text in quotes"),
        ("[agent]\nspool_limit = 'much'", ": agent.spool_limit: 'much'"),
        ("[agent]\ndevices = 'yes'", ": agent.devices = 'yes' has the wrong type or range; expected true or false"),
        ("[projects]\nids = {climate = '5001'}", ": projects.ids.climate is no project id; expected a number"),
        ("[projects]\ndirectories = ['/scratch']", ": '/scratch' is no rule for projects; expected a path such as"),
        ("[projects]\ndirectories = ['{project}']", ": '{project}' is no rule for projects"),
        ("[projects]\ndirectories = ['/{project}/{owner}']", " is no rule for projects"),
        ("[devices]\nsystem = 1", "; expected true or false"),
        ("[devices]\ninclude = 'sd*'", "; expected a list of texts"),
        ("[devices]\nonly = ['sd*']", ": unknown key devices.only; expected one of include, exclude, system"),
        ("[calibrations.ours]\nwrite_latency_s = -1", ": calibrations.ours.write_latency_s = -1 has the wrong"),
        ("[calibrations.ours]\nread_s_per_byte = 0", "; expected a number above zero"),
    ],
)
def test_what_is_wrong_is_named_with_what_would_be_right(tmp_path: Path, text: str, message: str) -> None:
    assert message in refusal(tmp_path, text)


def test_broken_toml_is_refused_with_its_line(tmp_path: Path) -> None:
    message = refusal(tmp_path, 'store = "x"\nengine = duckdb\n')
    assert message.startswith(":2: ")
    assert message.endswith("expected valid TOML")


def test_a_file_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "iolens.toml"
    path.write_bytes(b'store = "\xff"')
    with pytest.raises(InputError, match="byte 9 is not UTF-8"):
        load_config(path)


def test_a_file_that_was_named_and_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file or directory; expected a configuration file"):
        load_config(tmp_path / "missing.toml")
    with pytest.raises(InputError, match="Is a directory"):
        load_config(tmp_path)


def test_the_option_wins_then_the_environment_then_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("iolens.config_path.PLACES", ("iolens.toml", str(tmp_path / "etc.toml")))
    assert load_config().path is None

    written(tmp_path / "etc.toml", "store = 'etc'")
    assert load_config().store == "etc"
    written(tmp_path / "iolens.toml", "store = 'here'")
    assert load_config().store == "here"
    monkeypatch.setenv("IOLENS_CONFIG", str(written(tmp_path / "b.toml", "store = 'environment'")))
    assert load_config().store == "environment"
    assert load_config(written(tmp_path / "a.toml", "store = 'option'")).store == "option"


def test_the_store_is_the_option_then_the_environment_then_the_file_then_a_directory_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert Config().store_url() == "./iolens-store"
    assert Config(store="file").store_url() == "file"
    monkeypatch.setenv("IOLENS_STORE", "environment")
    assert Config(store="file").store_url() == "environment"
    assert Config(store="file").store_url("option") == "option"


@pytest.mark.parametrize(
    ("store", "state"),
    [
        ("iolens-store", "iolens-store-state"),
        ("/data/centre/", "/data/centre-state"),
        ("file:///data/centre", "/data/centre-state"),
        ("s3://bucket/years/centre/", "centre-state"),
        ("s3://bucket", "bucket-state"),
    ],
)
def test_the_state_of_a_server_lies_beside_its_store(store: str, state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("IOLENS_STATE", raising=False)
    assert Config().state_path(store=store) == Path(state)
    assert Config(store=store).state_path() == Path(state)
    assert Config(state="file").state_path(store=store) == Path("file")
    monkeypatch.setenv("IOLENS_STATE", "environment")
    assert Config(state="file").state_path(store=store) == Path("environment")
    assert Config(state="file").state_path("option", store) == Path("option")


def test_the_sample_configuration_is_valid_and_has_every_key() -> None:
    sample = load_config(SAMPLE)
    assert sample.store is not None
    assert None not in [getattr(sample.filesystem("scratch"), field.name) for field in fields(FileSystemConfig)]
    assert sample.filesystem("scratch").calibration in sample.calibrations
    written_out = tomllib.loads(SAMPLE.read_text("utf-8"))
    assert set(written_out) == {field.name for field in fields(Config)} - {"path"}
    assert set(written_out["thresholds"]) == {
        "plateau_minimum", "plateau_spread", "plateau_median_pct", "saturated_share",
    }  # fmt: skip
    assert None not in [getattr(sample.agent, field.name) for field in fields(AgentConfig)]
    assert None not in [getattr(sample.devices, field.name) for field in fields(DeviceRule)]


def test_the_sample_configuration_shows_the_defaults() -> None:
    assert load_config(SAMPLE).thresholds == Thresholds()
    assert load_config(SAMPLE).engine == Config().engine


def test_servers_are_patterns_of_targets_by_name(tmp_path: Path) -> None:
    path = tmp_path / "iolens.toml"
    path.write_text('[filesystems.scratch.servers]\noss1 = ["scratch-OST000[0-3]"]\n')
    assert load_config(path).filesystem("scratch").servers == {"oss1": ("scratch-OST000[0-3]",)}
    path.write_text('[filesystems.scratch.servers]\noss1 = "scratch-OST0000"\n')
    with pytest.raises(InputError, match=r"filesystems\.scratch\.servers\.oss1 .* a list of texts"):
        load_config(path)


def test_a_directory_that_this_user_may_not_enter_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `runuser -u iolens` in the home of root; root itself may enter every directory."""
    monkeypatch.setattr("iolens.config_path.PLACES", ("iolens.toml", str(tmp_path / "etc.toml")))
    written(tmp_path / "etc.toml", "store = 'etc'")
    real = Path.is_file

    def refused(path: Path) -> bool:
        if path == Path("iolens.toml"):
            raise PermissionError(13, "Permission denied", "iolens.toml")
        return real(path)

    monkeypatch.setattr(Path, "is_file", refused)
    assert load_config().store == "etc"
