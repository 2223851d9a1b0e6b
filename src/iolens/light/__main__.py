"""`iolens-agent.pyz`: collect, job, doctor and export, with the code of the full package and no other.

`make agent` builds it. Verbs and options have the names of the full command, so that either can run in a prolog, a unit
file or a batch script. What needs the store (shipping to it, reports of stored jobs) is not in it; it pushes to a hub.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from iolens import __version__, messages
from iolens.errors import IolensError, OptionError
from iolens.units import parse_capacity, parse_duration
from iolens.visible_text import visible

if TYPE_CHECKING:
    from iolens.agent.jobs.requests import SamplingRequest
    from iolens.agent.sampling.hub_client import HubAddress

PROGRAM = "iolens-agent"
INTERRUPTED = 130
LOUDNESS_HELP = {
    "verbose": "also what is read",
    "quiet": "only warnings and errors",
    "debug": "everything, and where an error arose",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; every error is one clear message on standard error."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:2] == ["export", "pcp"]:  # PCP starts it with options of its own
        return _pcp(words[2:])
    options = _parser().parse_args(words)
    messages.set_level(messages.LOUDNESS.get(options.loudness, messages.NOTICE))
    try:
        code: int = options.verb(options)
    except KeyboardInterrupt:
        _say("interrupted")
        return INTERRUPTED
    except IolensError as error:
        if messages.is_shown(messages.DEBUG):
            import traceback

            traceback.print_exc()
        _say(str(error))
        return error.exit_code
    except ModuleNotFoundError as error:
        _say(f"{error.name}: needs Python 3.11 or the full package of iolens")
        return 1
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(PROGRAM, description="iolens for servers and compute nodes.")
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    for name, text in LOUDNESS_HELP.items():
        parser.add_argument(f"--{name}", dest="loudness", action="store_const", const=name, help=text)
    # With `prog` it does not format a usage line for it, which would ask for the size of the terminal.
    verbs = parser.add_subparsers(required=True, metavar="VERB", prog=PROGRAM)
    _add_collect(verbs)
    _add_push(verbs)
    jobs = verbs.add_parser("job", help="what jobs did to the file systems")
    _add_jobs(jobs.add_subparsers(required=True, prog=f"{PROGRAM} job"))
    _add_doctor(verbs)
    export = verbs.add_parser("export", help="serve counters to Prometheus or PCP")
    exports = export.add_subparsers(required=True, prog=f"{PROGRAM} export")
    _add_prometheus(exports)
    password = exports.add_parser("password", help="print a line for --auth-file")
    password.set_defaults(verb=_password)
    password.add_argument("user")
    exports.add_parser("pcp", help="the agent of a running pmcd; see `export pcp --help`")
    return parser


def _add_collect(verbs: Any) -> None:
    verb = verbs.add_parser("collect", help="sample this machine on the clock into a spool")
    verb.set_defaults(verb=_collect)
    _root(verb)
    verb.add_argument(
        "--spool", type=Path, default=Path("/var/spool/iolens"), help="directory of the spool [%(default)s]"
    )
    verb.add_argument("--interval", type=_duration, default=5.0, help="sample this often, such as 5s [5s]")
    verb.add_argument("--slow-interval", type=_duration, default=60.0, help="job_stats this often [60s]")
    verb.add_argument("--spool-limit", type=_capacity, default=1 << 30, help="largest size of the spool [1GiB]")
    verb.add_argument("--duration", type=_duration, help="stop after this long")
    verb.add_argument("--once", action="store_true", help="one sample")
    verb.add_argument("--devices", action=argparse.BooleanOptionalAction, help="block devices too [without Lustre]")
    verb.add_argument("--filesystem", "-f", help="file system of targets whose names lack it, and of devices")
    verb.add_argument("--ship-every", type=_duration, default=300.0, help="push to the hub about this often [5min]")
    _hub_options(verb)


def _add_push(verbs: Any) -> None:
    verb = verbs.add_parser("push", help="push what waits in a spool to a hub, once")
    verb.set_defaults(verb=_push)
    verb.add_argument(
        "--spool", type=Path, default=Path("/var/spool/iolens"), help="directory of the spool [%(default)s]"
    )
    verb.add_argument("--json", action="store_true", help="print what was done as JSON")
    _hub_options(verb)


def _hub_options(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--hub", help="push segments to this `iolens serve`, such as https://iolens.example.org:8470")
    verb.add_argument("--hub-token-file", type=Path, help="holds the token for the hub [$IOLENS_HUB_TOKEN]")
    verb.add_argument("--hub-ca", type=Path, help="certificates (PEM) to trust for the hub [the system's]")


def _hub(options: argparse.Namespace) -> HubAddress | None:
    from iolens.agent.sampling.hub_client import HubAddress

    if options.hub is None:
        return None
    return HubAddress(options.hub, options.hub_token_file, options.hub_ca)


def _given_hub(options: argparse.Namespace) -> HubAddress:
    hub = _hub(options)
    if hub is None:
        raise OptionError("no hub: name it with --hub")
    return hub


def _add_jobs(verbs: Any) -> None:
    begin = verbs.add_parser("begin", help="sample this node, or all nodes, at the begin of a job")
    begin.set_defaults(verb=_begin)
    end = verbs.add_parser("end", help="sample at the end of a job, and print what it did")
    end.set_defaults(verb=_end)
    end.add_argument("--report", action=argparse.BooleanOptionalAction, default=True, help="print the report")
    end.add_argument(
        "--wait", type=_duration, default=0.0, help="longest time to wait for the samples of the other nodes"
    )
    end.add_argument("--append-to", type=Path, help="append the report to this file, such as the job's output")
    end.add_argument("--as-user", help="append as this user (root only)")
    run = verbs.add_parser("run", help="run a command and print what it did to the file systems")
    run.set_defaults(verb=_run)
    report = verbs.add_parser("report", help="report the job of a folder of samples")
    report.set_defaults(verb=_report)
    report.add_argument("job", help="its id, or the folder of its samples")
    push = verbs.add_parser("push", help="push finished jobs of a folder of samples to a hub")
    push.set_defaults(verb=_push_jobs)
    push.add_argument("folder", nargs="?", type=Path, help="folder of all jobs [$IOLENS_JOBS, ~/.iolens/jobs]")
    _hub_options(push)
    for verb in (begin, end, run):
        _root(verb)
        verb.add_argument("--job-id", help="id of the job [$SLURM_JOB_ID, $PBS_JOBID]")
        verb.add_argument("--node", help="name of the node [this host]")
        verb.add_argument("--spool", type=Path, help="spool of this node's agent, instead of a folder [$IOLENS_SPOOL]")
        verb.add_argument("--via", choices=["srun", "pdsh", "clush", "ssh"], help="sample all nodes through this")
    for verb in (begin, end, run, report):
        verb.add_argument("--folder", type=Path, help="folder of all jobs [$IOLENS_JOBS, ~/.iolens/jobs]")
    for verb in (end, run, report):
        verb.add_argument("--config", help="configuration file (needs Python 3.11)")
    for verb in (run, report):
        verb.add_argument("--format", choices=["table", "json"], default="table")
        verb.add_argument("--output", "-o", type=Path, help="write the report here")
    run.add_argument("command", nargs=argparse.REMAINDER, help="-- COMMAND and its arguments")


def _add_doctor(verbs: Any) -> None:
    verb = verbs.add_parser("doctor", help="what can be read on this machine, and what is missing")
    verb.set_defaults(verb=_doctor)
    _root(verb)
    verb.add_argument(
        "--spool", type=Path, default=Path("/var/spool/iolens"), help="the spool of collect [%(default)s]"
    )
    _hub_options(verb)


def _add_prometheus(verbs: Any) -> None:
    verb = verbs.add_parser("prometheus", help="serve this machine's counters to Prometheus")
    verb.set_defaults(verb=_prometheus)
    _root(verb)
    verb.add_argument("--listen", type=_address, default="127.0.0.1:9169", help="HOST:PORT [%(default)s]")
    verb.add_argument("--interval", type=_duration, default=5.0, help="read at most this often [5s]")
    verb.add_argument("--once", action="store_true", help="print one page and end")
    verb.add_argument("--tls-cert", type=Path, help="serve https with this certificate chain (PEM)")
    verb.add_argument("--tls-key", type=Path, help="private key of --tls-cert (PEM)")
    verb.add_argument("--auth-file", type=Path, help="ask for a password: lines of `export password USER`")


def _root(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--root", type=Path, default=Path("/"), help="where /proc and /sys are [/]")


def _duration(text: str) -> Any:
    return _parsed(parse_duration, text)


def _capacity(text: str) -> Any:
    return _parsed(parse_capacity, text)


def _address(text: str) -> Any:
    from iolens.agent.exporter.server import Address

    return _parsed(Address.parse, text)


def _parsed(parse: Any, text: str) -> Any:
    try:
        return parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _collect(options: argparse.Namespace) -> int:
    from iolens.agent.sampling.collector import Agent, AgentSettings, SystemClock

    settings = AgentSettings(
        options.root,
        options.spool,
        None,
        interval_s=options.interval,
        slow_interval_s=max(options.slow_interval, options.interval),
        spool_limit_bytes=options.spool_limit,
        duration_s=options.duration,
        ship_every_s=options.ship_every,
        filesystem=options.filesystem,
        devices=options.devices,
        hub=_hub(options),
    )
    clock = SystemClock()
    clock.listen()
    messages.set_log(not options.once)
    agent = Agent(settings, messages.say, clock)
    health = agent.once() if options.once else agent.run()
    _show(f"{health.ticks} ticks, {health.targets} targets, {health.samples} samples in {options.spool}")
    return 0 if health.samples or clock.stopped else 1


def _push(options: argparse.Namespace) -> int:
    from iolens.agent.sampling.pushing import pushed

    if options.json:
        messages.set_log(True)
    done, code = pushed(options.spool, _given_hub(options))
    if options.json:
        import json
        from dataclasses import asdict

        sys.stdout.write(json.dumps(asdict(done)) + "\n")
        return code
    _show(f"{done.shipped} segments pushed, {done.bad} refused, {done.left} waiting")
    if done.error:
        _say(done.error)
    return code


def _push_jobs(options: argparse.Namespace) -> int:
    from iolens.agent.jobs.requests import jobs_folder
    from iolens.agent.jobs.spooled import push_jobs

    done = push_jobs(jobs_folder(options.folder), _given_hub(options))
    _show(f"{done.pushed} pushed, {done.before} pushed before, {done.unfinished} have not ended (jobs by node)")
    for reason in [*done.refused, done.error] if done.error else done.refused:
        _say(reason)
    return 1 if done.error else 3 if done.refused else 0


def _request(options: argparse.Namespace) -> SamplingRequest:
    from iolens.agent.jobs.requests import SamplingRequest

    return SamplingRequest.of(
        options.folder, options.spool, options.job_id, options.root, options.node, options.via, _say
    )


def _begin(options: argparse.Namespace) -> int:
    request = _request(options)
    request.begin(request.job())
    return 0


def _end(options: argparse.Namespace) -> int:
    request = _request(options)
    if request.spool is not None and options.append_to is not None:
        raise OptionError("--append-to does not go with --spool: the report of a job is in the store then")
    if not options.report or request.spool is not None:
        job = request.job()
        request.end(job)
        request.hand_over(job)
        return 0
    from iolens.api.job_report import configured_thresholds, written_report
    from iolens.api.job_sampling import end_job

    result = end_job(request, options.wait, configured_thresholds(options.config))
    text = written_report(result, "table")
    if options.append_to is None:
        sys.stdout.write(text)
    else:
        from iolens.agent.jobs.nodes import append_as_user

        append_as_user(options.append_to, f"\n{text}", options.as_user)
        _say(f"report of job {result.jobid} appended to {options.append_to}")
    return 3 if result.missing_nodes else 0


def _run(options: argparse.Namespace) -> int:
    from iolens.api.job_report import configured_thresholds, written_report
    from iolens.api.job_sampling import run_job

    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        raise IolensError("no command to run: iolens-agent job run -- COMMAND")
    code, report = run_job(_request(options), command, configured_thresholds(options.config))
    _write(written_report(report, options.format), options.output, sys.stderr)
    return code


def _report(options: argparse.Namespace) -> int:
    from iolens.agent.jobs.requests import jobs_folder
    from iolens.agent.jobs.sampling import job_folder
    from iolens.api.job_report import configured_thresholds, report_of_folder, written_report

    place = Path(options.job)
    place = place if place.is_dir() else job_folder(jobs_folder(options.folder), options.job)
    report = report_of_folder(place, configured_thresholds(options.config))
    _write(written_report(report, options.format), options.output, sys.stdout)
    return 3 if report.missing_nodes else 0


def _write(text: str, output: Path | None, stream: Any) -> None:
    if output is None:
        stream.write(text)
    else:
        output.write_text(text, "utf-8")


def _doctor(options: argparse.Namespace) -> int:
    from iolens.agent.doctor import diagnose

    diagnosis = diagnose(options.root, _hub(options), options.spool)
    for line in diagnosis.lines():
        _show(line)
    return diagnosis.exit_code


def _prometheus(options: argparse.Namespace) -> int:
    from iolens.agent.exporter.access import ExporterAccess
    from iolens.agent.exporter.metrics import TEXT
    from iolens.agent.exporter.readings import Exporter, ExporterSettings, collectors
    from iolens.api.exporting import exported_calibration, serve_until_stopped
    from iolens.config import DeviceRule, load_config

    access = ExporterAccess.of(options.tls_cert, options.tls_key, options.auth_file)
    known = load_config(None)
    settings = ExporterSettings(
        root=options.root,
        calibration_of=lambda name: exported_calibration(known, None, name),
        version=__version__,
        interval_s=options.interval,
        devices=DeviceRule(),
        client=known.sources.get("lustre-client-proc", {}),
    )
    exporter = Exporter(settings, collectors(settings, messages.say))
    if options.once:
        sys.stdout.write(exporter.page(TEXT).body.decode())
        return 0
    messages.set_log(True)
    return serve_until_stopped(exporter, options.listen, messages.say, access, options.auth_file)


def _password(options: argparse.Namespace) -> int:
    from getpass import getpass

    from iolens.agent.exporter.access import password_line

    text = getpass() if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")
    _show(password_line(options.user, text))
    return 0


def _pcp(words: Sequence[str]) -> int:
    from iolens.agent.pcp.__main__ import main as serve_pcp  # needs PCP's own module

    serve_pcp(words)
    return 0


def _show(line: str) -> None:
    sys.stdout.write(visible(line) + "\n")


def _say(line: str) -> None:
    messages.warn(line)


if __name__ == "__main__":
    sys.exit(main())
