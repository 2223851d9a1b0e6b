"""See it work: load a made-up capture and print how busy its file systems were."""

from __future__ import annotations

from pathlib import Path

import click

CAPTURE = Path(__file__).parent / "demo_capture.txt.gz"


@click.command("demo", epilog="Example: iolens demo --output /tmp/demo")
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("demo"),
    show_default=True,
    help="Where to put store and figures",
)
def COMMAND(output: Path) -> None:
    """Load twenty minutes of two made-up Lustre file systems and compare their utilisation.

    The one that moves less is far busier: it writes in 4 KiB pieces.
    """
    from dataclasses import replace

    from iolens.cli.options import present
    from iolens.notebook import OpenStore
    from iolens.sources import ReadOptions, get_source

    output.mkdir(parents=True, exist_ok=True)
    store = str(output / "store")
    with OpenStore(store) as opened:
        tally = opened.store.ingest(get_source("lustre-lctl").captures([CAPTURE], ReadOptions()), "lustre-lctl")
        loaded = f"loaded {tally.samples} samples into {store}, {sum(tally.rows.values())} rows"
        click.echo(f"{store} holds the capture already\n" if tally.already_present else f"{loaded}\n")
        result = opened.analyse("utilization", "scratch", calibration="grace-2012")
        other = opened.analyse("utilization", "scratch2", calibration="grace-2012")
        figures = tuple(f"{name}={output / name}.png" for name in ("bandwidth", "histogram", "sizes", "heatmap"))
        present(replace(result, compare=other), "table", None, figures)
    click.echo(f"\nNext: iolens utilization --store {store} --filesystem scratch --figure day.html")
