"""`--store` and `--config`: apart from other options, because a verb with no more of them is to begin at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])
PATH = click.Path()  # nothing is checked, it may be an address; shells complete it


def store_options(function: Function) -> Function:
    """`--store` and `--config`."""
    store = click.option(
        "--store",
        metavar="URL",
        type=PATH,
        help="Store: a directory or object-store URL [$IOLENS_STORE, ./iolens-store]",
    )
    config = click.option(
        "--config",
        metavar="FILE",
        type=PATH,
        help="Configuration file [$IOLENS_CONFIG, ./iolens.toml, /etc/iolens.toml]",
    )
    return store(config(function))
