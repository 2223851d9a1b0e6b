"""What a job did to the file systems, and findings on it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import click

from iolens.cli.job import folder_option
from iolens.cli.lazy_verbs import verb
from iolens.cli.options import window_options
from iolens.cli.output_options import format_option, output_option
from iolens.cli.shared_store_options import store_options


@verb(
    "job report",
    "What a job did to the file systems, and findings on it",
    epilog="""\b
Examples:
  iolens job report 4711                                      from its folder, else from the store
  iolens job report /shared/jobs/4711 --format json
  iolens job report --nodes 'n[001-064]' --from 2026-03-01T10:00 --to 2026-03-01T11:00
""",
)
@click.argument("job", required=False)
@click.option("--nodes", metavar="LIST", help="Nodes instead of a job, such as n[01-16]; with --from and --to")
@window_options
@click.option("--cluster", metavar="NAME", help="Cluster of the job, if several have this id")
@folder_option
@store_options
@format_option("table", "json")
@output_option()
def job_report(
    job: str | None,
    nodes: str | None,
    since: datetime | None,
    until: datetime | None,
    timezone: str | None,
    cluster: str | None,
    folder: Path | None,
    store: str | None,
    config: str | None,
    format_: str,
    output: Path | None,
) -> int:
    """Report one job: its id, or the folder of its samples; or some nodes between two times.

    The id is searched in the directory of all jobs first, then in the store. The exit code is 3 if the numbers are
    not complete.
    """
    from iolens.agent.jobs.requests import jobs_folder
    from iolens.agent.jobs.sampling import job_folder
    from iolens.api.job_report import configured_thresholds, report_of_folder, written_report
    from iolens.api.stored_job import report_of_nodes, report_of_stored_job

    if (job is None) == (nodes is None):
        raise click.UsageError("name a job, or --nodes with --from and --to")
    thresholds = configured_thresholds(config)
    if nodes is not None:
        window = since, until
        if window[0] is None or window[1] is None or window[0] >= window[1]:
            raise click.UsageError("--nodes needs --from and a later --to")
        result = report_of_nodes(store, config, nodes, (window[0], window[1]), thresholds)
    else:
        assert job is not None
        places = [Path(job), job_folder(jobs_folder(folder), job)]
        place = next((path for path in places if path.is_dir()), None)
        if place is not None:
            result = report_of_folder(place, thresholds)
        else:
            result = report_of_stored_job(store, config, job, cluster, thresholds)
    text = written_report(result, format_)
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text, "utf-8")
    return 3 if result.missing_nodes else 0
