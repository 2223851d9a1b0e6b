"""Serve this machine's targets, FSU, jobs, mounts to Prometheus."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from iolens import messages
from iolens.cli.lazy_verbs import verb
from iolens.cli.value_types import DURATION

if TYPE_CHECKING:
    from iolens.agent.exporter.readings import Exporter

SHORTEST_INTERVAL_S = 0.05
FILE = click.Path(path_type=Path, dir_okay=False)


@verb(
    "export prometheus",
    "Serve this machine's targets, FSU, jobs, mounts to Prometheus",
    epilog="""\b
Examples:
  iolens export prometheus                          serve http://127.0.0.1:9169/metrics
  iolens export prometheus --listen 10.1.0.7:9169 --spool /var/spool/iolens
  iolens export prometheus --listen 10.1.0.7:9169 --auth-file users --tls-cert oss1.pem --tls-key oss1.key
  iolens export prometheus --once --root /copy/of/a/server
""",
)
@click.option(
    "--root", type=click.Path(path_type=Path), default=Path("/"), show_default=True, help="Where /proc and /sys are"
)
@click.option("--listen", default="127.0.0.1:9169", show_default=True, metavar="HOST:PORT", help="Address to listen on")
@click.option(
    "--interval", type=DURATION, default="5s", show_default=True, metavar="TIME", help="Read at most this often"
)
@click.option(
    "--jobs-interval",
    type=DURATION,
    default="30s",
    show_default=True,
    metavar="TIME",
    help="Read job_stats at most this often",
)
@click.option(
    "--timeout", type=DURATION, default="5s", show_default=True, metavar="TIME", help="Longest time to wait for a file"
)
@click.option(
    "--jobs", type=click.IntRange(0, 1000), default=10, show_default=True,
    help="Number of busiest jobs of each file system; the others are summed; 0: none",
)  # fmt: skip
@click.option(
    "--client-targets",
    is_flag=True,
    help="For a client, serve a series for each OST and MDT, not only sums over a mount",
)
@click.option("--calibration", metavar="NAME", help="Configured or shipped calibration (shipped: grace-2012)")
@click.option("--filesystem", "-f", metavar="NAME", help="File system of targets whose names lack it")
@click.option("--devices/--no-devices", default=True, show_default=True, help="FSU of block devices")
@click.option(
    "--spool",
    type=click.Path(path_type=Path, file_okay=False),
    help="Also serve the health of the agent with this spool",
)
@click.option(
    "--names", type=click.Choice(["all", "iolens"]), default="all", show_default=True,
    help="iolens: only metrics that no other Lustre exporter serves",
)  # fmt: skip
@click.option("--tls-cert", type=FILE, help="Serve https with this certificate chain (PEM)")
@click.option("--tls-key", type=FILE, help="Private key of --tls-cert, without a password (PEM)")
@click.option("--auth-file", type=FILE, help="Ask for a password: lines of `iolens export password USER`")
@click.option("--config", metavar="FILE", help="Configuration file [$IOLENS_CONFIG, ./iolens.toml, /etc/iolens.toml]")
@click.option("--once", is_flag=True, help="Print one page and end")
def export_prometheus(
    root: Path,
    listen: str,
    interval: float,
    jobs_interval: float,
    timeout: float,
    jobs: int,
    client_targets: bool,
    calibration: str | None,
    filesystem: str | None,
    devices: bool,
    spool: Path | None,
    names: str,
    tls_cert: Path | None,
    tls_key: Path | None,
    auth_file: Path | None,
    config: str | None,
    once: bool,
) -> int:
    """Serve this machine's targets, their FSU, the busiest jobs and its mounts to Prometheus.

    Files are read when the exporter is scraped. If a file hangs, its collector is left out of the page: see
    iolens_scrape_success. By default it listens on this machine only; without --auth-file whoever can connect can
    read. /healthz answers 200 while samples are fresh, else 503.
    """
    from iolens import __version__
    from iolens.agent.exporter.access import ExporterAccess
    from iolens.agent.exporter.readings import Exporter, ExporterSettings, collectors
    from iolens.agent.exporter.server import Address
    from iolens.api.exporting import exported_calibration, serve_until_stopped
    from iolens.config import load_config
    from iolens.sources.lustre import lustre_client_proc

    try:
        address = Address.parse(listen)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--listen") from None
    if min(interval, jobs_interval) < SHORTEST_INTERVAL_S or timeout <= 0:
        raise click.UsageError(f"intervals are at least {SHORTEST_INTERVAL_S} s, --timeout above zero")
    access = ExporterAccess.of(tls_cert, tls_key, auth_file)
    known = load_config(config)
    if calibration is not None:
        exported_calibration(known, calibration, "")  # an unknown name is an error now, not at the first scrape
    settings = ExporterSettings(
        root=root,
        calibration_of=lambda name: exported_calibration(known, calibration, name),
        version=__version__,
        interval_s=interval,
        jobs_interval_s=jobs_interval,
        timeout_s=timeout,
        jobs=jobs,
        client_targets=client_targets,
        client=known.sources.get(lustre_client_proc.NAME, {}),
        filesystem=filesystem,
        devices=known.devices if devices else None,
        spool=spool,
        inherited=names == "all",
    )
    exporter = Exporter(settings, collectors(settings, messages.say))
    if once:
        return _print_page(exporter)
    messages.set_log(True)
    return serve_until_stopped(exporter, address, messages.say, access, auth_file)


def _print_page(exporter: Exporter) -> int:
    """0 all collectors answered, 3 some did, 1 none had anything."""
    from iolens.agent.exporter.metrics import TEXT

    page = exporter.page(TEXT)
    click.echo(page.body.decode(), nl=False)
    if page.success:
        return 0
    return 3 if page.measured else 1
