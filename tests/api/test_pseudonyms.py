"""Pseudonyms keep the structure of names: what joins in a store joins in its copy, and no two names become one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolens.analyses.attribution.whose import JobIdForm, guessed_parts
from iolens.api.anonymize.pseudonyms import Pseudonyms, Treatment
from iolens.sources.schedulers.node_lists import expand_nodes
from iolens.target_names import kind_by_name
from tests.hostile_names import HOSTILE

KEY = b"a key of these tests"
NAMES = Pseudonyms(KEY)


def test_a_target_keeps_kind_and_index_and_names_its_file_system() -> None:
    assert NAMES.target("scratch-OST0003") == f"{NAMES.filesystem('scratch')}-OST0003"
    assert kind_by_name(NAMES.target("scratch-MDT0000")) == "mdt"
    assert NAMES.target_on("scratch", "scratch") == NAMES.filesystem("scratch")
    assert len(NAMES.filesystem("scratch")) <= 8
    assert [NAMES.target(name) for name in ("OST0003", "MGS", "llite", "ldlm_cbd", "sda", "nvme0n1", "dm-3")] == [
        "OST0003", "MGS", "llite", "ldlm_cbd", "sda", "nvme0n1", "dm-3",
    ]  # fmt: skip


def test_a_server_is_the_same_in_a_target_of_its_services() -> None:
    assert NAMES.target("oss1:ost_io") == f"{NAMES.host('oss1')}:ost_io"
    assert NAMES.target("nsd7:disk_of_ann") == f"{NAMES.host('nsd7')}:{NAMES.host('disk_of_ann')}"
    assert NAMES.target("oss1") == NAMES.host("oss1")


@pytest.mark.parametrize("text", ["nid[0001-0003,7]", "login1", "r1i0n[0-2],r1i1n[0-2],gpu-a", "n1.site,n2.site"])
def test_a_list_of_nodes_is_that_of_their_pseudonyms(text: str) -> None:
    made = NAMES.nodes(text)
    assert set(expand_nodes(made)) == {NAMES.host(name) for name in expand_nodes(text)}
    assert len(expand_nodes(made)) == len(expand_nodes(text))
    assert not any(name in made for name in ("nid", "login", "r1i", "gpu", "site"))


def test_a_range_stays_a_range() -> None:
    assert NAMES.nodes("nid[0001-9000]").endswith("[0001-9000]")


def test_what_is_no_list_of_nodes_stays_none() -> None:
    with pytest.raises(ValueError, match="node list"):
        expand_nodes(NAMES.nodes("nid[0001-"))


def test_a_host_is_the_same_with_and_without_its_domain() -> None:
    assert NAMES.host("nid0001.site.edu").split(".")[0] == NAMES.host("nid0001")
    assert NAMES.host("nid0001").endswith("0001")
    assert NAMES.host("nid0001")[:-4] == NAMES.host("nid0002")[:-4]
    assert "12345" not in NAMES.host("12345")


@pytest.mark.parametrize("text", ["1234_5", "1234+0", "1234[5]", "1234.0", "1234.batch", "1234_5.extern", "1234[].pbs"])
def test_every_form_of_a_job_id_has_the_number_of_its_job(text: str) -> None:
    number = NAMES.job("1234")
    made = NAMES.job(text)
    assert (made[: len(number)], number.isdecimal()) == (number, True)
    before, after = guessed_parts(text), guessed_parts(made)
    assert after.job_id == NAMES.job(str(before.job_id))
    assert (after.is_whole, after.executable) == (before.is_whole, None)


def test_a_program_and_a_user_id_are_those_of_the_tables() -> None:
    parts = guessed_parts(NAMES.job("ior.1000"))
    assert parts.executable == NAMES.opaque(Treatment.APPLICATION, "ior")
    assert parts.uid == NAMES.number(Treatment.UID, 1000)


def test_a_configured_form_is_taken_apart() -> None:
    form = JobIdForm("%j:%u:%H")
    made = NAMES.job("1234567:20001:nid00123", form)
    parts = form.parts(made)
    assert parts.job_id == NAMES.job("1234567")
    assert parts.uid == NAMES.uid(20001)
    assert parts.host == NAMES.host("nid00123")
    assert parts.is_whole


@pytest.mark.parametrize("text", ["a_program_without_any_number__x", "1234567:20001:node-of-a-name", "x", "kwork/0:1"])
def test_what_says_nothing_for_certain_says_nothing_in_the_copy(text: str) -> None:
    before, after = guessed_parts(text), guessed_parts(NAMES.job(text))
    assert after == before
    assert text not in NAMES.job(text)


def test_blanks_stay() -> None:
    assert [NAMES.job(""), NAMES.job(" "), NAMES.opaque(Treatment.USER, ""), NAMES.nodes(""), NAMES.host("")] == [
        "", " ", "", "", "",
    ]  # fmt: skip


def test_paths_stay_a_tree() -> None:
    mount, one_file = NAMES.path("/scratch"), NAMES.path("/scratch/ann/../a.h5")
    assert one_file.startswith(f"{mount}/")
    assert one_file.split("/")[3] == ".."
    assert "a.h5" not in one_file
    assert NAMES.path("<STDOUT>") == "<STDOUT>"


def test_who_cancelled_a_job_and_what_a_vendor_appended_go() -> None:
    assert NAMES.text_function(Treatment.STATE)("CANCELLED by 1000") == "CANCELLED"
    assert NAMES.text_function(Treatment.STATE)("ended -11") == "ended -11"
    assert "ann" not in str(NAMES.text_function(Treatment.STATE)("stopped by ann"))
    assert NAMES.text_function(Treatment.VERSION)("2.12.6_ddn58_ann") == "2.12.6"
    assert NAMES.text_function(Treatment.VERSION)("ann's build") is None


def test_another_key_gives_other_names() -> None:
    other = Pseudonyms(b"another key of tests")
    for name in ("scratch-OST0003", "oss1"):
        assert Pseudonyms(KEY).target(name) == NAMES.target(name) != other.target(name)
    assert NAMES.job("1234") != other.job("1234")
    assert NAMES.uid(1000) != other.uid(1000)
    assert NAMES.opaque(Treatment.USER, "ann") != NAMES.opaque(Treatment.PROJECT, "ann")


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("treatment", [item for item in Treatment if item not in (
    Treatment.KEPT, Treatment.UID, Treatment.RECORD, Treatment.TARGETS)])  # fmt: skip
def test_hostile_names_become_tame_ones(treatment: Treatment, name: str) -> None:
    made = NAMES.text_function(treatment)(name)
    assert made is None or (made.isascii() and made.isprintable() and len(made) < 3000 and made != name)


@given(st.sets(st.integers(0, 2**32 - 1), max_size=300))
def test_user_ids_are_permuted(numbers: set[int]) -> None:
    made = {NAMES.uid(number) for number in numbers}
    assert len(made) == len(numbers)
    assert all(0 <= number < 2**32 for number in made)
    assert all((before < 2**16) == (NAMES.uid(before) < 2**16) for before in numbers)


@given(st.sets(st.integers(-(2**63), 2**63 - 1), max_size=100))
def test_record_ids_are_permuted(numbers: set[int]) -> None:
    made = {NAMES.number(Treatment.RECORD, number) for number in numbers}
    assert len(made) == len(numbers)
    assert all(-(2**63) <= number < 2**63 for number in made)


@given(st.sets(st.integers(0, 10**16 - 1), max_size=100))
def test_job_numbers_stay_apart_and_are_no_number_of_the_store(numbers: set[int]) -> None:
    made = {NAMES.job(str(number)) for number in numbers}
    assert len(made) == len(numbers)
    assert all(text.startswith("0") and text.isdecimal() for text in made)
    assert not made & {str(number) for number in numbers}
