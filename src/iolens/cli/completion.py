"""Print a script that completes iolens in bash, zsh or fish."""

from __future__ import annotations

import click

from iolens.cli.lazy_verbs import verb


@verb(
    "completion",
    "Print a script that completes iolens in bash, zsh or fish",
    epilog="""\b
Examples:
  iolens completion bash > ~/.local/share/bash-completion/completions/iolens
  iolens completion zsh > ~/.zfunc/_iolens          with `fpath+=~/.zfunc; autoload -Uz compinit; compinit`
  iolens completion fish > ~/.config/fish/completions/iolens.fish
""",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that lets a shell complete commands, options and their values with the TAB key.

    For one session: `eval "$(iolens completion bash)"`.
    """
    from click.shell_completion import get_completion_class

    from iolens.cli.main import iolens

    script = get_completion_class(shell)
    assert script is not None
    click.echo(script(iolens, {}, "iolens", "_IOLENS_COMPLETE").source())
