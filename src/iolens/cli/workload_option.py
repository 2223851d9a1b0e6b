"""The option that names a simulated workload."""

from __future__ import annotations

from typing import Any

import click


def workload_option(function: Any) -> Any:
    """`--workload`."""
    return click.option(
        "--workload",
        default="scratch",
        show_default=True,
        metavar="NAME|FILE",
        help="scratch (many small I/Os), scratch2 (large ones), spider (controllers; telemetry only) or a TOML file",
    )(function)
