"""Push finished jobs of a folder of samples to a hub."""

from __future__ import annotations

from pathlib import Path

import click

from iolens.cli.lazy_verbs import verb
from iolens.cli.shared_hub_options import hub_options, known_hub
from iolens.messages import warn

SHOWN_REFUSALS = 20


@verb(
    "job push",
    "Push finished jobs of a folder of samples to a hub",
    epilog="""\b
Examples:
  iolens job push --hub https://iolens.example.org:8470 --hub-token-file /etc/iolens/token
  iolens job push /shared/iolens/jobs        in cron: hub and token as [agent] of the configuration says
""",
)
@click.argument("folder", required=False, type=click.Path(path_type=Path, file_okay=False))
@hub_options
@click.option("--config", metavar="FILE", help="Configuration file [$IOLENS_CONFIG, ./iolens.toml, /etc/iolens.toml]")
def job_push(
    folder: Path | None, hub: str | None, hub_token_file: Path | None, hub_ca: Path | None, config: str | None
) -> int:
    """Push what `iolens job begin` and `end` sampled into FOLDER to the hub of `iolens serve`.

    FOLDER is that of all jobs [$IOLENS_JOBS, ~/.iolens/jobs]. Jobs that have ended are pushed, once for each node; the
    samples stay. It may run at any time and in several places: nothing is stored twice. Exit code: 0 done, 3 some could
    not be pushed, 1 the hub cannot be reached or takes no more for now.
    """
    from iolens.agent.jobs.requests import jobs_folder
    from iolens.agent.jobs.spooled import push_jobs
    from iolens.config import load_config

    address = known_hub(load_config(config).agent, hub, hub_token_file, hub_ca)
    if address is None:
        raise click.UsageError("no hub: name it with --hub or in [agent] of the configuration")
    done = push_jobs(jobs_folder(folder), address)
    click.echo(f"{done.pushed} pushed, {done.before} pushed before, {done.unfinished} have not ended (jobs by node)")
    for reason in done.refused[:SHOWN_REFUSALS]:
        warn(reason)
    if done.error:
        warn(f"{done.error}; the rest waits for the next run")
        return 1
    return 3 if done.refused else 0
