"""`iolens man` and `iolens completion`: manual pages, and completion for shells."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path
from typing import Final

import click

from iolens import __version__
from iolens.cli.lazy_verbs import LazyVerbs, titled_options, verb

# Manual pages in the `man` macros of roff, made from the commands themselves ------------------------------------------

EXIT_CODES: Final = (
    "0 done; 1 the input was wrong or something failed; 2 the question was incomplete; 3 partly done, what was refused"
    " is listed."
)
AS_IT_IS: Final = "\b"  # the first line of a paragraph whose lines are not joined


def manual_pages(root: LazyVerbs) -> dict[str, str]:
    """Text by file name, such as `iolens-plan-capacity.1`, of the command and of every command below it."""
    summary = cleandoc(root.help or "").partition("\n")[0].rstrip(".")
    ctx = click.Context(root, info_name=root.name, **root.context_settings)
    return {f"{'-'.join(words)}.1": "\n".join(lines) + "\n" for words, lines in _pages(root, ctx, (), summary)}


def _pages(
    command: click.Command, ctx: click.Context, above: tuple[str, ...], summary: str
) -> Iterator[tuple[tuple[str, ...], Iterator[str]]]:
    words = (*above, str(ctx.info_name))
    yield words, _lines(command, words, ctx, summary)
    if isinstance(command, LazyVerbs):
        for verb in command.list_commands(ctx):
            inner = command.get_command(ctx, verb)
            assert inner is not None
            yield from _pages(inner, click.Context(inner, parent=ctx, info_name=verb), words, command.summary(verb))


def _lines(command: click.Command, words: tuple[str, ...], ctx: click.Context, summary: str) -> Iterator[str]:
    name = "-".join(words)
    yield f'.TH "{_escaped(name.upper())}" 1 "" "iolens {__version__}"'
    yield from (".SH NAME", f"{_escaped(name)} \\- {_escaped(summary)}", ".SH SYNOPSIS")
    yield f"\\fB{_escaped(' '.join(words))}\\fR {_escaped(' '.join(command.collect_usage_pieces(ctx)))}"
    yield from (".SH DESCRIPTION", *_paragraphs(cleandoc(command.help or summary)))
    for title, rows in titled_options(command, ctx).items():
        yield f'.SH "{title.upper()}"'
        for option, meaning in rows:
            yield from (".TP", f"\\fB{_escaped(option)}\\fR", _text_line(meaning))
    if isinstance(command, LazyVerbs):
        yield ".SH COMMANDS"
        for verb in command.list_commands(ctx):
            yield from (".TP", f"\\fB{_escaped(f'{name}-{verb}')}\\fR(1)", _text_line(command.summary(verb)))
    if command.epilog:
        yield from (".SH EXAMPLES", *_paragraphs(cleandoc(command.epilog)))
    yield from ('.SH "EXIT STATUS"', EXIT_CODES)
    if len(words) > 1:
        yield from ('.SH "SEE ALSO"', f"\\fB{_escaped('-'.join(words[:-1]))}\\fR(1)")


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        lines = paragraph.splitlines()
        if lines and lines[0] == AS_IT_IS:
            yield from (".PP", ".nf", *map(_text_line, lines[1:]), ".fi")
        else:
            yield from (".PP", _text_line(" ".join(line.strip() for line in lines)))


def _text_line(text: str) -> str:
    """A line of text: one that begins like a request of roff is none."""
    return "\\&" + _escaped(text) if text.startswith((".", "'")) else _escaped(text)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga").replace("\n", " ")


# Write the manual pages, one per command, for `man iolens` ------------------------------------------------------------


@verb(
    "man",
    "Write the manual pages, one per command, for `man iolens`",
    epilog="""\b
Examples:
  iolens man                               then: man iolens; man iolens utilization
  iolens man /usr/local/share/man/man1
""",
)
@click.argument("directory", required=False, type=click.Path(path_type=Path, file_okay=False))
def man(directory: Path | None) -> None:
    """Write a manual page for each command into DIRECTORY.

    Without DIRECTORY: share/man/man1 of the environment that iolens runs in, where `man` looks by itself when the
    environment's bin directory is in PATH.
    """
    from iolens.cli.main import iolens
    from iolens.views.render import atomic

    place = directory or Path(sys.prefix) / "share" / "man" / "man1"
    place.mkdir(parents=True, exist_ok=True)
    pages = manual_pages(iolens)
    for name, text in pages.items():
        atomic.write(place / name, text)
    click.echo(f"{len(pages)} manual pages in {place}")


# Print a script that completes iolens in bash, zsh or fish ------------------------------------------------------------


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
