"""Whose an id is that names a program and a user id, but no job."""

from __future__ import annotations

from iolens.analyses.attribution.whose import DetailsOfId, LoggedRun, Whose, guessed_parts


def test_an_id_without_a_job_is_of_the_user_of_its_own_number() -> None:
    """Logs of other jobs tell which user has which number, and nothing else of it."""
    whose = Whose(guessed_parts)
    whose.add_runs([LoggedRun("", "ada", 2001, "wrf"), LoggedRun("", "bela", 2002, "xgc")])
    assert whose.details("ior.2002") == DetailsOfId("bela", None, "ior")
    assert whose.details("ior.2003") == DetailsOfId("uid 2003", None, "ior")
