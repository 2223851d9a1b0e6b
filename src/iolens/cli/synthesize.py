"""A workload model, and telemetry, load or a suite made of it."""

from __future__ import annotations

from typing import Final

import click

from iolens.cli.lazy_verbs import LazyVerbs, verb_group

EARLIER: Final = {  # options of the command before it had sub-commands, and what does the same now
    "--emit-fio": "synthesize fio -o DIR",
    "--emit-ior": "synthesize ior -o DIR",
    "--acceptance": "synthesize acceptance -o DIR",
    "--verify": "synthesize telemetry --verify",
    "--days": "synthesize telemetry --into STORE",
    "--store": "synthesize telemetry --into STORE",
    "--from": "synthesize model --store STORE",
    "--model": "synthesize model --model FILE",
}


class Synthesize(LazyVerbs):
    """The group; a command as it was written before is answered with how it is written now."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As always, but for options that only sub-commands have."""
        options = {word.partition("=")[0] for word in args}
        if args[:1] and args[0].partition("=")[0] in EARLIER:
            meant = next(now for option, now in EARLIER.items() if option in options)
            ctx.fail(f"say what to make: `iolens {meant}`; the store to fit is --store, its window --from and --to")
        return super().parse_args(ctx, args)


@verb_group(
    "synthesize",
    "A workload model, and telemetry, load or a suite made of it",
    cls=Synthesize,
    under="synthesize",
    epilog="""\b
Examples:
  iolens synthesize model --store centre -f scratch -o scratch-model.toml
  iolens synthesize telemetry --model scratch-model.toml --targets 96 --days 30 --into larger
  iolens synthesize telemetry --store centre -f scratch --verify
  iolens synthesize fio --model spider -o jobs
  iolens synthesize acceptance --model spider -o suite
""",
)
def synthesize() -> None:
    """Make a workload again, of any size: as a model, as telemetry, as load for a new system.

    The model is fitted to a store's telemetry (--store, --filesystem, --from, --to, as everywhere) or read from a file
    (--model): bandwidth, arrivals and idle times of reads and writes, request sizes, mix, rhythm, and how far targets
    go together.
    """
