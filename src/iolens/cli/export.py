"""`iolens export`: counters of this machine to Prometheus and to PCP."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iolens import messages
from iolens.cli.lazy_verbs import verb, verb_group
from iolens.cli.value_types import DURATION
from iolens.messages import say

if TYPE_CHECKING:
    from iolens.agent.exporter.readings import Exporter
    from iolens.agent.pcp.domain_agent import PcpSettings


# Serve what is measured here to other monitoring systems --------------------------------------------------------------


@verb_group("export", "Serve what is measured here to other monitoring systems")
def export() -> None:
    """Serve the counters of this server, and its FSU, to other monitoring systems."""


# Serve this machine's targets, FSU, jobs, mounts to Prometheus --------------------------------------------------------

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


# Serve Lustre's counters to Performance Co-Pilot ----------------------------------------------------------------------


@verb(
    "export pcp",
    "Serve Lustre's counters to Performance Co-Pilot",
    epilog="""\b
Examples:
  iolens export pcp --install /var/lib/pcp/pmdas/iolens    then run ./Install there, as root
  iolens export pcp --install ./pmda --root /copy/of/a/client --domain 401
  pminfo -dtT iolens.client.osc.rpcs                       what is served, once it is installed
""",
)
@click.option(
    "--install", "directory", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
    help="Write the files that PCP needs to start the agent into DIR, and end",
)  # fmt: skip
@click.option(
    "--root", type=click.Path(path_type=Path), default=Path("/"), show_default=True, help="Where /proc and /sys are"
)
@click.option("--domain", type=int, default=398, show_default=True, help="PCP's number for this agent: 1 to 510")
@click.option(
    "--jobs", type=click.IntRange(0, 10_000), default=100, show_default=True,
    help="Number of busiest jobs of each file system; 0: none",
)  # fmt: skip
@click.option(
    "--interval", type=DURATION, default="500ms", show_default=True, metavar="TIME", help="Read at most this often"
)
@click.option(
    "--jobs-interval",
    type=DURATION,
    default="10s",
    show_default=True,
    metavar="TIME",
    help="Read job_stats at most this often",
)
@click.option("--filesystem", "-f", metavar="NAME", help="File system of targets whose names lack it")
@click.option(
    "--python",
    default="/usr/bin/python3",
    show_default=True,
    metavar="PROGRAM",
    help="The Python that PCP's module is for",
)
def export_pcp(
    directory: Path | None,
    root: Path,
    domain: int,
    jobs: int,
    interval: float,
    jobs_interval: float,
    filesystem: str | None,
    python: str,
) -> None:
    """Serve the counters of Lustre clients and servers to pmcd, for pminfo, pmval, pmrep and pmlogger.

    Without --install it is the agent itself, which pmcd starts and asks through a pipe. It runs with the system's
    Python, for which PCP's module is compiled. Archives of its metrics load with: iolens ingest pcp.
    """
    from iolens.agent.pcp.domain_agent import PcpSettings, write_installation

    if min(interval, jobs_interval) < SHORTEST_INTERVAL_S:
        raise click.UsageError(f"intervals are at least {SHORTEST_INTERVAL_S} s")
    settings = PcpSettings(root, domain, jobs, interval, jobs_interval, filesystem)
    if directory is None:
        _serve(settings, python)
        return
    for path in write_installation(directory, settings, python):
        click.echo(str(path))
    say(f"As root: cd {directory.absolute()} && ./Install")


def _serve(settings: PcpSettings, python: str) -> None:
    """Become the agent, in the Python that has PCP's module."""
    import os
    import sys

    from iolens.agent.pcp.domain_agent import agent_words, package_directory
    from iolens.errors import UsageError

    if sys.stdin.isatty():
        raise click.UsageError("pmcd starts this and asks through a pipe; to set it up: --install DIR")
    words = [python, "-m", "iolens.agent.pcp", *agent_words(settings)]
    try:
        os.execve(python, words, {**os.environ, "PYTHONPATH": str(package_directory())})  # noqa: S606 (no shell)
    except OSError as error:
        raise UsageError(f"--python {python}: {error.strerror}") from None


# Print a line for --auth-file: a user and the hash of a password ------------------------------------------------------


@verb(
    "export password",
    "Print a line for --auth-file: a user and the hash of a password",
    epilog="""\b
Examples:
  iolens export password prometheus >> /etc/iolens-users        asks for it twice
  iolens export password prometheus < password.txt
""",
)
@click.argument("user")
def export_password(user: str) -> None:
    """Hash a password for USER, with scrypt and a new salt: the password itself is kept nowhere.

    It is asked for on a terminal, else it is the first line of standard input.
    """
    from iolens.agent.exporter.access import password_line

    if sys.stdin.isatty():
        password = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    else:
        password = sys.stdin.readline().rstrip("\r\n")
    click.echo(password_line(user, password))
