"""An anonymized copy: the same numbers under other names, and none of the names in any byte of it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from iolens.api.anonymize import copying
from iolens.api.anonymize.copying import AnonymizedCopy, anonymize_store
from iolens.api.anonymize.pseudonyms import NOT_COPIED, TREATMENTS, Pseudonyms, Treatment, treatments_of
from iolens.api.demo import loaded_runs, sampled_clients
from iolens.columns import Table, text
from iolens.errors import StoreError
from iolens.schema import TABLES
from iolens.simulator.activity import Activity
from iolens.simulator.telemetry import order_of, simulate_telemetry
from iolens.simulator.workload import load_workload
from iolens.store.rollup import retain_raw, roll_up
from iolens.store.rows import to_arrow
from iolens.store.snapshot import DROPPED, DayMarks
from iolens.store.store import Store
from iolens.store.verification import table_names, verify_store
from iolens.units import parse_time
from tests.analyses.client_rows import client_rows, fill
from tests.analyses.page_centre import filled, page_centre
from tests.cli.command import iolens
from tests.hostile_names import HOSTILE

KEY = b"a key of these tests"
END = parse_time("2026-01-07")
ANSWERS = (
    ("utilization",), ("workload",), ("imbalance",), ("metadata",), ("capacity",), ("blame", "--by", "job"),
    ("blame", "--by", "user"), ("blame", "--by", "project"), ("blame", "--by", "executable"), ("job", "list"),
    ("runs", "projects", "--min-processes", "1"), ("runs", "coverage"), ("runs", "variance"),
)  # fmt: skip


@pytest.fixture(scope="module")
def centre(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A day of a simulated centre: servers, jobs, clients and, where Darshan is installed, runs; and jobs on nodes."""
    place = tmp_path_factory.mktemp("centre") / "store"
    workload = load_workload("scratch")
    activity = Activity(workload, 2, 5)
    order = order_of(str(place), workload, start=parse_time("2026-01-06"), days=1, osts=2, seed=5, with_jobs=True)
    simulate_telemetry(order, workers=1)
    if find_spec("darshan") is not None:
        loaded_runs(str(place), activity, END, lambda label: None, hours=24)
    sampled_clients(str(place), activity, END)
    roll_up(Store(place))
    return place


@pytest.fixture(scope="module")
def page_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two users over two days, with job_stats, jobs, runs, and what nodes moved for them."""
    place = tmp_path_factory.mktemp("pages") / "store"
    filled(Store(place), page_centre())
    nodes = [client_rows(f"n{job}", 0, 600, job_id=job, write_bytes=1000 + number, rpcs={("write", 256): 7})
             for number, job in enumerate(("101", "90002"))]  # fmt: skip
    fill(Store(place), nodes)
    return place


Copied = tuple[Path, AnonymizedCopy, Pseudonyms]


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Copied]:
    """The copy of a store, made once, and what its names became."""
    made: dict[Path, Copied] = {}

    def copy(place: Path) -> Copied:
        if place not in made:
            noted: list[Pseudonyms] = []
            target = tmp_path_factory.mktemp("where-copies-are-made") / "copy"
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(copying, "Pseudonyms", lambda *given: noted.append(Pseudonyms(*given)) or noted[-1])
                made[place] = target, anonymize_store(Store(place), target, KEY), noted[0]
        return made[place]

    return copy


def stores() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("name", ["centre", "page_store"])


@stores()
@pytest.mark.parametrize("question", ANSWERS, ids=" ".join)
def test_answers_are_the_same_under_other_names(
    name: str, question: tuple[str, ...], request: pytest.FixtureRequest, copied: Callable[[Path], Copied]
) -> None:
    original: Path = request.getfixturevalue(name)
    place, _, names = copied(original)
    before, after = (iolens(*question, "--store", store, "--format", "json") for store in (original, place))
    assert before.code == after.code, after.err
    if before.code == 0:
        renamed = renaming(names, question)
        assert canonical(json.loads(after.out)) == canonical(renamed(json.loads(before.out)))


def renaming(names: Pseudonyms, question: tuple[str, ...]) -> Callable[[Any], Any]:
    """What puts pseudonyms into the answers of the original, also into sentences; paths of programs come last."""
    ranked = sorted(names.replaced, key=lambda name: (-len(name), name))
    words = [name for name in ranked if len(name) > 2 and not TREATED_APART & {names.replaced[name]}]
    pattern = re.compile(r"(?<![\w.-])(" + "|".join(map(re.escape, words)) + r")(?![\w])") if words else None

    of_programs = question == ("blame", "--by", "executable")  # no project is in it

    def pseudonym(word: str, *, of_program: bool) -> str:
        """A job may have the name of its project: the place tells the two apart."""
        treatment = names.replaced[word]
        is_other = of_program and treatment is Treatment.PROJECT
        return str(names.text_function(Treatment.APPLICATION if is_other else treatment)(word))

    def named(key: str, item: Any) -> Any:
        of_program = key in {"name", "executable"} and question[-1] != "project"
        is_word = isinstance(item, str) and item in words
        if key == "calibration_evidence" and isinstance(item, str):  # free text of the table `calibrations`
            item = item.replace("the law of the simulator", "left out of this copy")
        return pseudonym(item, of_program=True) if is_word and of_program else renamed(item)

    def renamed(value: Any) -> Any:
        if isinstance(value, dict):
            return {renamed(key): named(key, item) for key, item in value.items()}
        if isinstance(value, list):
            return [renamed(item) for item in value]
        if not isinstance(value, str) or pattern is None:
            return value
        whole = re.sub(r"\b(\w+)-((?:OST|MDT)[0-9a-f]{4})", lambda match: names.target(match[0]), value)
        return pattern.sub(lambda match: pseudonym(match[1], of_program=of_programs), whole)

    return renamed


TREATED_APART = {Treatment.PATH, Treatment.BATCH}  # in no answer


def canonical(value: Any) -> Any:
    """Without the order of lists and the last digits of sums, which depend on the order of names."""
    if isinstance(value, dict):
        return {key: canonical(item) for key, item in value.items() if key != "store"}
    if isinstance(value, list):
        return sorted((canonical(item) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
    return round(float(f"{value:.9g}"), 9) if isinstance(value, float) else value


@stores()
def test_the_copy_is_a_whole_store_with_the_same_rows_and_days(
    name: str, request: pytest.FixtureRequest, copied: Callable[[Path], Copied]
) -> None:
    original: Path = request.getfixturevalue(name)
    place, done, _ = copied(original)
    checked = verify_store(Store(place))
    assert (checked.faults, checked.unchecked, checked.unrecorded) == ([], [], 0)
    assert (done.leaks, done.searched) == ([], True)
    for table in table_names():
        if table.rpartition("/")[2] not in (*NOT_COPIED, "batches"):
            assert days(original / table) == days(place / table)


def days(folder: Path) -> dict[str, int]:
    counts: dict[str, int] = {}
    for path in folder.glob("**/*.parquet"):
        counts[path.parent.name] = counts.get(path.parent.name, 0) + pq.read_metadata(path).num_rows
    return counts


@stores()
def test_no_name_is_in_any_byte_or_value(
    name: str, request: pytest.FixtureRequest, copied: Callable[[Path], Copied]
) -> None:
    """Apart from the search of the copy itself: names of eight bytes and more in raw bytes, all in whole values."""
    place, done, names = copied(request.getfixturevalue(name))
    replaced = {item for item in names.replaced if len(item) > 2 and item not in done.ordinary}
    assert replaced
    long = [item.encode() for item in replaced if len(item.encode()) >= 8 and not item.isdecimal()]
    long += [place.parent.name.encode(), b"unfinished"]  # where it was made
    for path in (path for path in place.rglob("*") if path.is_file()):
        content = path.read_bytes() + str(path.relative_to(place)).encode()
        assert [item for item in long if item in content] == []
        if path.suffix == ".parquet":
            assert not set(text_values(path)) & replaced, path


def text_values(path: Path) -> Iterator[str]:
    for column in pq.ParquetFile(path).read().columns:
        if column.type == pa.string():
            yield from (value for value in column.unique().to_pylist() if value is not None)


def test_every_text_column_has_a_treatment() -> None:
    for table in TABLES.values():
        if table.name in NOT_COPIED:
            assert table.name not in TREATMENTS
            continue
        treated = TREATMENTS[table.name]
        texts = {column.name for column in table.columns if column.type == "string"}
        numbers = {name for name, how in treated.items() if how in (Treatment.UID, Treatment.RECORD)}
        assert set(treated) == texts | numbers, table.name
    assert set(TREATMENTS) | set(NOT_COPIED) == set(TABLES)


def test_a_column_without_a_treatment_stops_the_copy(
    page_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = TABLES["jobs"]
    wider = Table(jobs.name, jobs.doc, (*jobs.columns, text("nickname", "what friends call it")), jobs.key, jobs.kind)
    with pytest.raises(StoreError, match="nickname"):
        treatments_of(wider)
    monkeypatch.setitem(TABLES, "jobs", wider)
    with pytest.raises(StoreError, match="nickname"):
        anonymize_store(Store(page_store), tmp_path / "copy", KEY)
    assert list(tmp_path.iterdir()) == []


def test_whatever_stands_in_a_column_that_is_not_kept_is_gone(tmp_path: Path) -> None:
    """A row of every table whose texts all hold a name."""
    store = Store(tmp_path / "store")
    for table in TABLES.values():
        if table.name not in (*NOT_COPIED, "batches"):
            row: dict[str, Any] = {"time": 1_700_006_400_000_000, "start": 1_700_006_400_000_000}
            for column in table.columns:
                if column.type == "string":
                    is_kept = TREATMENTS[table.name][column.name] is Treatment.KEPT
                    row[column.name] = "read" if is_kept else f"Qz{table.name}{column.name}Qz"
            row = {key: value for key, value in row.items() if key in {column.name for column in table.columns}}
            store.append(table.name, to_arrow(table, [row]))
    done = anonymize_store(store, tmp_path / "copy", KEY)
    assert done.leaks == []
    assert sum(done.rows.values()) >= len(TABLES) - 1
    for path in (tmp_path / "copy").rglob("*"):
        if path.is_file():
            assert b"Qz" not in path.read_bytes() or path.suffix == ".parquet"
            assert path.suffix != ".parquet" or not [value for value in text_values(path) if "Qz" in value]


def test_hostile_names_are_replaced_and_the_copy_is_whole(tmp_path: Path) -> None:
    names = [name for name in HOSTILE.values() if _is_storable(name)]
    store = Store(tmp_path / "store")
    row = {"time": 1_700_006_400_000_000, "start": 1_700_006_400_000_000, "source": "slurm", "ended": True}
    rows = [{**row, "job_id": name, "cluster": name, "user": name, "project": name, "name": name, "node_list": name,
             "state": "COMPLETED", "filesystem": name} for name in names]  # fmt: skip
    store.append("jobs", to_arrow(TABLES["jobs"], rows))
    done = anonymize_store(store, tmp_path / "copy", KEY)
    assert (done.leaks, done.rows["jobs"]) == ([], len(names))
    assert verify_store(Store(tmp_path / "copy")).faults == []
    (path,) = (tmp_path / "copy" / "jobs").glob("date=*/*.parquet")
    assert not set(names) & set(text_values(path))
    assert all(value.isascii() and value.isprintable() for value in text_values(path))
    assert len(set(pq.ParquetFile(path).read().column("user").to_pylist())) == len(names)


def _is_storable(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def test_a_name_that_was_put_back_is_a_leak_and_there_is_no_copy(
    page_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = copying.ColumnMaker.made

    def leaking(self: copying.ColumnMaker, rows: pa.Table) -> pa.Table:
        result = made(self, rows)
        if self.table.name == "jobs":
            place = rows.schema.get_field_index("project")
            result = result.set_column(place, rows.schema.field(place), rows.column("user"))
        return result

    monkeypatch.setattr(copying.ColumnMaker, "made", leaking)
    done = iolens("store", "anonymize", page_store, tmp_path / "copy")
    assert done.code == 1
    assert re.search(r"jobs/date=.*, column project: .*'ada'", done.err)
    assert "the copy was removed" in done.err
    assert list(tmp_path.iterdir()) == []
    assert iolens("store", "anonymize", page_store, tmp_path / "copy", "--no-verify").code == 0


def test_remembered_answers_and_baselines_are_left_out(centre: Path, tmp_path: Path) -> None:
    assert iolens("workload", "--store", centre).code == 0
    (centre / "kept" / "made-up-1" / "2026-01-06").mkdir(parents=True)
    (centre / "kept" / "made-up-1" / "2026-01-06" / "x.part").write_text("scratch")
    done = anonymize_store(Store(centre), tmp_path / "copy", KEY)
    assert {line.partition(":")[0] for line in done.left_out} == {"baselines", "parts/", "kept/"}
    assert not {"baselines", "parts", "kept"} & {path.name for path in (tmp_path / "copy").iterdir()}


def test_rollups_of_the_copy_are_up_to_date_and_dropped_days_stay_dropped(centre: Path, tmp_path: Path) -> None:
    shutil.copytree(centre, tmp_path / "store")
    store = Store(tmp_path / "store")
    assert retain_raw(store, 86_400).rows
    anonymize_store(store, tmp_path / "copy", KEY)
    copy = Store(tmp_path / "copy")
    assert verify_store(copy).faults == []
    assert days(tmp_path / "copy" / "60s" / "target_io") == days(centre / "60s" / "target_io")
    assert not days(tmp_path / "copy" / "target_io")
    marks = [
        DayMarks(opened.tables.load("target_io"), DROPPED).of(END.date() - timedelta(1)) for opened in (store, copy)
    ]
    assert marks[0] == marks[1] > 0
    assert roll_up(copy).days == 0


def test_tables_that_are_not_cut_and_empty_ones_are_copied(page_store: Path, tmp_path: Path) -> None:
    """As iolens 0.1 wrote `jobs`."""
    shutil.copytree(page_store, tmp_path / "store")
    rows = Store(page_store).tables.load("jobs").to_pyarrow_table()
    shutil.rmtree(tmp_path / "store" / "jobs")
    about = {"description": "iolens schema 1"}
    write_deltalake(str(tmp_path / "store" / "jobs"), rows.drop_columns(["date"]), **about)
    Store(tmp_path / "store").tables.load_or_create("drives", TABLES["drives"])
    done = anonymize_store(Store(tmp_path / "store"), tmp_path / "copy", KEY)
    assert (done.rows["jobs"], done.rows["drives"]) == (rows.num_rows, 0)
    assert days(tmp_path / "copy" / "jobs") == days(page_store / "jobs")
    assert verify_store(Store(tmp_path / "copy")).faults == []


def test_an_interrupted_copy_leaves_nothing(page_store: Path, tmp_path: Path) -> None:
    def stop(label: str) -> None:
        if label.startswith("jobs"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        anonymize_store(Store(page_store), tmp_path / "copy", KEY, step=stop)
    assert list(tmp_path.iterdir()) == []


def test_the_same_key_gives_the_same_names_and_another_others(page_store: Path, tmp_path: Path) -> None:
    key_file = tmp_path / "key"
    key_file.write_text("a key of sixteen bytes and more\n")
    key_file.chmod(0o600)
    outputs = []
    for number, options in enumerate((("--key-file", key_file), ("--key-file", key_file), (), ())):
        done = iolens("store", "anonymize", page_store, tmp_path / str(number), *options)
        assert done.code == 0, done.err
        assert "a key of sixteen" not in done.out + done.err
        outputs.append(done.err)
    names = [set(_users(tmp_path / str(number))) for number in range(4)]
    assert names[0] == names[1]
    assert not names[0] & names[2]
    assert not names[2] & names[3]
    assert "keep it secret" in outputs[0]
    assert "nobody can repeat" in outputs[2]
    assert "still tells times" in outputs[0]
    for path in tmp_path.glob("0/**/*"):
        assert not path.is_file() or b"a key of sixteen" not in path.read_bytes()


def _users(store: Path) -> Iterator[str]:
    for table in ("jobs", "runs"):
        for path in (store / table).glob("date=*/*.parquet"):
            yield from pq.ParquetFile(path).read().column("user").to_pylist()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("{store}", "{store}"), 2, "exists already"),
        (("{store}", "{store}/inside"), 2, "inside the original"),
        (("{store}", "s3://bucket/copy"), 2, "directory of this machine"),
        (("{store}nothing", "{new}"), 1, "holds no data"),
        (("{store}", "{new}", "--key-file", "{short}"), 2, "at least 16 bytes"),
        (("{store}", "{new}", "--key-file", "{new}/none"), 1, "No such file"),
    ],
)
def test_what_cannot_be_done_is_said(
    page_store: Path, tmp_path: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    short = tmp_path / "short"
    short.write_text("short secret")
    given = [item.format(store=page_store, new=tmp_path / "new", short=short) for item in arguments]
    done = iolens("store", "anonymize", *given)
    assert (done.code, words in done.err, "short secret" in done.err) == (code, True, False), done.err
    assert list(tmp_path.iterdir()) == [short]


def test_a_damaged_original_is_named(page_store: Path, tmp_path: Path) -> None:
    shutil.copytree(page_store, tmp_path / "store")
    file = next((tmp_path / "store" / "jobs").glob("date=*/*.parquet"))
    file.write_bytes(b"PAR1 not really PAR1")
    done = iolens("store", "anonymize", tmp_path / "store", tmp_path / "copy")
    assert (done.code, file.name in done.err) == (1, True), done.err
    assert not (tmp_path / "copy").exists()


def test_user_ids_of_job_stats_are_those_of_runs(tmp_path: Path) -> None:
    """`ior.2001` is of whom the logs call 2001."""
    tables = page_centre(records=False)
    numbers = {"101": 2001, "103": 2001, "90002": 70_002, "90004": 70_002}
    for row in tables["job_io"]:
        row["job_id"] = f"ior.{numbers[row['job_id']]}"
    for row in tables["runs"]:
        row["uid"] = numbers[row["job_id"]]
    filled(Store(tmp_path / "store"), tables)
    anonymize_store(Store(tmp_path / "store"), tmp_path / "copy", KEY)
    answers = [
        {line["name"]: round(line["share_pct"], 6) for line in json.loads(done.out)["who"]}
        for store in ("store", "copy")
        for done in [iolens("blame", "--by", "user", "--store", tmp_path / store, "--format", "json")]
    ]
    names = Pseudonyms(KEY)
    assert {"ada", "strangeruser"} <= set(answers[0])
    assert {names.opaque(Treatment.USER, name): share for name, share in answers[0].items()} == answers[1]


def test_configured_job_ids_join_in_the_copy(tmp_path: Path) -> None:
    """`%j:%u:%H` is taken apart, so that blame by user knows the same jobs."""
    tables = page_centre()
    for row in tables["job_io"]:
        row["job_id"] = f"{row['job_id']}:2001:nid00123"
    filled(Store(tmp_path / "store"), tables)
    names = Pseudonyms(KEY)
    copy_name = names.filesystem("scratch")
    answers = []
    for store, filesystem in (("store", "scratch"), ("copy", copy_name)):
        config = tmp_path / f"{store}.toml"
        config.write_text(f'[filesystems.{filesystem}]\njobid_name = "%j:%u:%H"\n')
        if store == "copy":
            key_file = tmp_path / "key"
            key_file.write_bytes(KEY)
            done = iolens("store", "anonymize", tmp_path / "store", tmp_path / "copy", "--key-file", key_file,
                          "--config", tmp_path / "store.toml")  # fmt: skip
            assert done.code == 0, done.err
        done = iolens("blame", "--by", "user", "--store", tmp_path / store, "--config", config, "--format", "json")
        answers.append(json.loads(done.out)["who"])
    shares = [sorted((line["disk_seconds"], line["is_known"]) for line in answer) for answer in answers]
    assert shares[0] == shares[1]
    assert {line["name"] for line in answers[1]} >= {names.opaque(Treatment.USER, "ada")}


def test_a_nodemap_is_called_after_a_tenant() -> None:
    names = Pseudonyms(KEY)
    server, nodemap = names.target("oss1:nodemap.physics.dt_stats").split(":")
    assert server == names.host("oss1")
    first, tenant, leaf = nodemap.split(".")
    assert (first, leaf) == ("nodemap", "dt_stats")
    assert "physics" not in tenant
    assert names.replaced["physics"]
    assert names.target("oss1:nodemap.default.md_stats") == f"{server}:nodemap.default.md_stats"
