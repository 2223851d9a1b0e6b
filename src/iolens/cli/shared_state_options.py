"""`--state` and `--config`, for verbs about the server's own files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])


def state_options(function: Function) -> Function:
    """`--state` and `--config`."""
    state = click.option(
        "--state",
        metavar="DIR",
        type=click.Path(path_type=Path),
        help="Directory of the server's own files [$IOLENS_STATE, ./iolens-state]",
    )
    config = click.option(
        "--config",
        metavar="FILE",
        type=click.Path(),
        help="Configuration file [$IOLENS_CONFIG, ./iolens.toml, /etc/iolens.toml]",
    )
    return state(config(function))


def state_directory(state: Path | None, config: str | None) -> Path:
    """The directory that the options mean."""
    from iolens.config import load_config

    return load_config(config).state_path(state)
