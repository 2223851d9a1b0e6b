"""One way through the house: every import, wherever it stands, points the way the design allows.

Also that `iolens --help` stays light.
"""

from __future__ import annotations

import os
import subprocess
import sys

import import_graph
import pytest
from import_graph import EVERYTHING, MAY_IMPORT, PACKAGE, Import, allowed, imports, modules

HEAVY = (
    "numpy",
    "duckdb",
    "deltalake",
    "pyarrow",
    "narwhals",
    "matplotlib",
    "bokeh",
    "rich",
    "pandas",
    "pyspark",
    "textual",
    "h5py",
    "pymysql",
)


def test_every_arrow_points_the_right_way() -> None:
    wrong = [str(item) for item in imports() if not allowed(item)]
    assert wrong == []


def test_every_package_has_a_place_in_the_design() -> None:
    assert {name.partition(".")[0] for name in modules()} - {""} <= {*MAY_IMPORT, *EVERYTHING}


def test_no_two_packages_import_each_other() -> None:
    assert import_graph.all_cycles(imports()).packages == []


def test_cycles_are_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a"}}
    assert import_graph.cycles(graph) == [["a", "b", "c"], ["d", "e"]]
    assert import_graph.shortest_cycle(graph, ["a", "b", "c"]) == ["a", "b", "c", "a"]
    assert import_graph.cycles({"a": {"b"}, "b": set()}) == []


def test_a_cycle_between_packages_is_found_though_no_two_modules_form_one() -> None:
    """`store` → `sources` by one module, back by another."""
    graph = {"store.a": {"sources.x"}, "store.b": set(), "sources.x": set(), "sources.y": {"store.b"}}
    assert import_graph.cycles(graph) == []
    packages = import_graph.grouped(graph, {name: import_graph.package_of(name) for name in graph})
    assert import_graph.cycles(packages) == [["sources", "store"]]


def test_every_subpackage_has_a_sentence_and_a_size_in_the_table() -> None:
    page = import_graph.page_with_graph(f"{import_graph.BEGIN}\n{import_graph.END}\n")
    for name in import_graph.subpackages():
        assert f"\n| `{name}` | " in page
    assert "– | – |" not in page


def test_the_test_sees_imports_wherever_they_stand() -> None:
    seen = {(item.importer, item.imported): item.late for item in imports()}
    assert seen["config", "units"] is False
    assert seen["cli.demo", "api"] is True  # inside a function
    assert seen["views.utilization.tables", "analyses.utilization.analysis"] is True  # under TYPE_CHECKING
    assert seen["", "api"] is True
    assert seen["views.render.view_names", "views"] is True  # import_module(f"iolens.views.…")


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("sources.lustre_lctl", "store.tables"),
        ("analyses.utilization", "store.store"),
        ("analyses.utilization", "views.tables"),
        ("models.transaction_time", "analyses"),
        ("store.ingest", "sources"),
        ("views.formats", "store.store"),
        ("units", "errors"),
        ("errors", "units"),
        ("schema", "config"),
        ("store.tables", ""),
        ("api.scan", "cli.scan"),
        ("api.scan", ""),
        ("plans.capacity", "api.open_store"),
        ("analyses.utilization", "api"),
        ("views.report.page", "api.report"),
        ("scan.walk", "api.scan"),
        ("agent.feed", "cli"),
    ],
)
def test_arrows_that_point_the_wrong_way_are_noticed(importer: str, imported: str) -> None:
    assert not allowed(Import(PACKAGE, 1, importer, imported, late=True))


def test_help_imports_nothing_heavy() -> None:
    program = (
        "import sys\n"
        "from iolens.cli.main import iolens\n"
        "iolens.main(['--help'], standalone_mode=False)\n"
        "print('HEAVY', *sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "Usage: " in done.stdout
    loaded = done.stderr.partition("HEAVY")[2].split()
    assert "click" in loaded
    assert sorted(set(HEAVY).intersection(loaded)) == []


def test_no_verb_imports_anything_heavy_before_it_is_called() -> None:
    program = (
        "import sys\n"
        "from importlib import import_module\n"
        "from iolens.cli.lazy_verbs import FOLDER\n"
        "for path in FOLDER.glob('*.py'): import_module(f'iolens.cli.{path.stem}')\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert sorted(set(HEAVY).intersection(done.stdout.split())) == []


def test_the_summary_of_a_log_imports_only_what_it_needs() -> None:
    """Most of its time is for imports; a child that is a copy of the process needs none of its own."""
    log = PACKAGE.parent.parent / "docs" / "examples" / "climate.darshan"
    program = (
        "import sys\n"
        "from iolens.cli.main import iolens\n"
        f"iolens.main(['runs', 'summary', {str(log)!r}], standalone_mode=False)\n"
        "print('LOADED', *sys.modules, file=sys.stderr)"
    )
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    assert "climate" in done.stdout
    loaded = {*done.stderr.partition("LOADED")[2].split()}
    assert "numpy" in loaded
    slow = {
        "numpy.ma", "multiprocessing", "subprocess", "tempfile", "socket", "importlib.metadata", "statistics", "cffi",
        "darshan", "iolens.config", "iolens.schema", "iolens.cli.options",
    }  # fmt: skip
    assert sorted(loaded & {*HEAVY, *slow} - {"numpy"}) == []


def test_importing_iolens_imports_nothing_heavy() -> None:
    program = "import sys, iolens; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert sorted({*HEAVY, "click"}.intersection(done.stdout.split())) == []
