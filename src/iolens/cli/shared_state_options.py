"""`--state`, for verbs about the server's own files, with the `--store` and `--config` that it is found by."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from iolens.cli.shared_store_options import store_options

Function = TypeVar("Function", bound=Callable[..., Any])


def state_options(function: Function) -> Function:
    """`--state`, `--store` and `--config`."""
    state = click.option(
        "--state",
        metavar="DIR",
        type=click.Path(path_type=Path),
        help="Directory of the server's own files [$IOLENS_STATE, STORE-state]",
    )
    return state(store_options(function))


def state_directory(state: Path | None, store: str | None, config: str | None) -> Path:
    """The directory that the options mean."""
    from iolens.config import load_config

    return load_config(config).state_path(state, store)
