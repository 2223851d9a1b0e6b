"""The files of a Lustre client, under any root: `/`, a copy of its /proc and /sys, or of its Lustre directory alone.

One root is one sample. Needs only the standard library, for a sampler on a compute node imports it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from iolens.errors import InputError
from iolens.records import Capture, Item, Problem
from iolens.sources.devices.block_devices import stated_host
from iolens.sources.lustre import lustre_proc
from iolens.sources.lustre.client import ClientNode, ClientReader
from iolens.sources.lustre.lustre_proc import (
    BASES,
    LustreTree,
    in_order,
    names_in,
    parameters_below,
    read_parameter,
)
from iolens.sources.lustre.parameters import (
    LEAVES,
    LLITE,
    MDC,
    NAMESPACES,
    OSC,
    LeftOut,
    Parameter,
    ParameterText,
    page_size_of_node,
    parameter_named,
    parameter_of,
    pattern_of,
)
from iolens.sources.lustre.server import ServerSample
from iolens.sources.reading.bounded_input import parameter_bytes
from iolens.sources.reading.captures import read_each
from iolens.sources.reading.limited_reads import Read
from iolens.sources.reading.options import ReadOptions

NAME: Final = "lustre-client-proc"
# /proc to 2.11; from 2.12 on settings are in /sys, statistics in debugfs; a copy may begin at the Lustre directory.
PLACES: Final = (*BASES, "")
FAMILIES: Final = (LLITE, OSC, MDC)
SERVICES: Final = "ldlm/services"

_LOOKED_FOR: Final = "a root with llite, osc or mdc below proc/fs/lustre, sys/kernel/debug/lustre, or itself"


class LustreClientProc:
    """The /proc and /sys files of a Lustre client."""

    name = NAME
    whole_directories = True
    summary = "/proc and /sys of a Lustre client, live or copied: one directory is one sample"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether there is a file of some mount below `path`, and none of a target: a server may have mounts too."""
        if not path.is_dir() or not has_mounts(path):
            return False
        return not lustre_proc.SOURCE.recognises(path, head)

    def captures(self, paths: Sequence[Path], options: ReadOptions) -> Iterator[Capture]:
        """One capture per root, the earliest first."""
        nodes = {path: _node(path, options) for path in paths}
        trees, refused = read_each(paths, _read_client)
        yield from refused
        for tree, tick in in_order(trees, options):
            node = nodes[tree.root]
            yield Capture(str(tree.root), tree.identity(options, node.identity), partial(_items, tree, node, tick))


SOURCE: Final = LustreClientProc()


def read_tree(
    root: Path,
    time_us: int | None,
    options: ReadOptions = ReadOptions(),  # noqa: B008
    *,
    calls_only: bool = False,
) -> Iterator[Item]:
    """One sample of the client under `root`, of the tick `time_us` (None: its newest snapshot time).

    A node that has nothing mounted just now gives nothing. With `calls_only` only llite's `stats` are opened, one file
    per mount instead of several per OST: that is all of `client_io` and `client_metadata`, and of no other table.
    """
    return read_with(ClientReader(_node(root, options)), root, time_us, calls_only=calls_only)


def read_with(reader: ClientReader, root: Path, time_us: int | None, *, calls_only: bool = False) -> Iterator[Item]:
    """The same, by a reader that is asked afterwards for what no sample holds."""
    tree = _read_root(root, lustre_proc.live_bytes, calls_only=calls_only)
    if tree.sample.has_client:
        yield from tree.items(reader, time_us)
    else:
        yield from tree.problems


def live_reader(root: Path) -> ClientReader:
    """A reader of the node under `root`."""
    return ClientReader(_node(root, ReadOptions()))


def _node(root: Path, options: ReadOptions) -> ClientNode:
    return ClientNode.of(NAME, options, stated_host(root), root.absolute().name, page_size_of_node(root))


def _items(tree: LustreTree, node: ClientNode, tick_us: int | None) -> Iterator[Item]:
    """Everything of a saved tree, and what of it is left out."""
    place, left_out = str(tree.root), LeftOut(str(tree.root))
    for name in _other_names(tree.root, tree.sample):
        left_out.add(name)
    reader = ClientReader(node)
    yield from tree.items(reader, tick_us)
    yield from reader.notes(place)
    yield from left_out.notes()


def _read_client(root: Path) -> LustreTree:
    tree = _read_root(root)
    if not tree.sample.has_client and not tree.problems:
        raise InputError(str(root), "no file of a Lustre client", _LOOKED_FOR)
    return tree


def has_mounts(root: Path) -> bool:
    """Whether a file system is mounted on the node under `root`."""
    return any(True for _ in _mount_files(root, None))


def _read_root(root: Path, read: Read = parameter_bytes, *, calls_only: bool = False) -> LustreTree:
    """All texts of the mounts below a root. One that cannot be read is empty: its mount must not be taken for gone."""
    if not root.is_dir():
        raise InputError(str(root), "no such directory", _LOOKED_FOR)
    sample = ServerSample()
    problems: list[Problem] = []
    for parameter, path in _mount_files(root, problems, calls_only=calls_only):
        if parameter not in sample.readings:
            reading = read_parameter(parameter, path, problems, read) or ParameterText(parameter, b"", str(path))
            sample.add(reading, reading.stamp_us)
    for parameter, path in _service_files(root, problems) if sample.has_client and not calls_only else ():
        if parameter not in sample.readings and (text := read_parameter(parameter, path, problems, read)):
            sample.add(text, text.stamp_us)
    return LustreTree(root, sample, tuple(problems))


def _mount_files(
    root: Path, problems: list[Problem] | None, *, calls_only: bool = False
) -> Iterator[tuple[Parameter, Path]]:
    leaves = {LLITE: ("stats",)} if calls_only else {family: sorted(LEAVES[family]) for family in FAMILIES}
    for base in PLACES:
        for family in leaves:
            directory = os.path.join(root, base, family)  # noqa: PTH118 - hundreds of OSTs, every minute
            for name in names_in(Path(directory), problems):
                for leaf in leaves[family]:
                    parameter, place = parameter_of(family, name, leaf), f"{directory}/{name}/{leaf}"
                    if parameter is not None and os.path.isfile(place):  # noqa: PTH113
                        yield parameter, Path(place)
        for name in names_in(root / base / NAMESPACES, problems) if not calls_only else ():
            parameter = parameter_named(f"ldlm.namespaces.{name}.pool.stats")
            if parameter is not None and (path := root / base / NAMESPACES / name / "pool/stats").is_file():
                yield parameter, path


def _service_files(root: Path, problems: list[Problem]) -> Iterator[tuple[Parameter, Path]]:
    for base in PLACES:
        for name in names_in(root / base / SERVICES, problems):
            parameter = parameter_named(f"ldlm.services.{name}.stats")
            if parameter is not None and (path := root / base / SERVICES / name / "stats").is_file():
                yield parameter, path


def _other_names(root: Path, sample: ServerSample) -> Iterator[str]:
    """Patterns of the parameters below a root that were not read."""
    own = [name for name in ("llite", "osc", "mdc", "lov", "lmv", "ldlm", "lnet", "health") if (root / name).is_dir()]
    names = [name for base in BASES for name in parameters_below(root / base)]
    names += [f"{family}.{name}" for family in own for name in parameters_below(root / family)]
    for name in names:
        parameter = parameter_named(name)
        if parameter is None or parameter not in sample.readings:
            yield pattern_of(name)
    for base in lustre_proc.LNET:
        yield from (f"lnet.{name}" for name in parameters_below(root / base))
