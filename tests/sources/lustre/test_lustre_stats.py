"""`stats` and `md_stats`: what each line means, what is zero and what is unknown."""

from __future__ import annotations

from iolens.sources.lustre.stats import (
    EARLY_MDT_OPERATIONS,
    MDT_OPERATIONS,
    metadata_counters,
    parse_stats,
    server_counters,
    target_io_counters,
    unknown_counters,
)

TIME = b"snapshot_time             1600000000.000000001 secs.nsecs\n"
READ = b"read_bytes                276 samples [bytes] 4096 1048576 1130496\n"
WRITE = b"write_bytes               2332 samples [bytes] 4096 1048576 152829952 99\n"


def io(text: bytes) -> dict[str, int]:
    stats = parse_stats(text, "stats")
    assert stats.problems == []
    return target_io_counters(stats)


def metadata(text: bytes) -> dict[str, int]:
    stats = parse_stats(text, "md_stats")
    assert stats.problems == []
    assert list(unknown_counters(stats)) == []
    return metadata_counters(stats)


def test_sums_are_bytes_and_samples_are_operations() -> None:
    assert io(TIME + READ + WRITE) == {
        "read_bytes": 1130496,
        "read_ops": 276,
        "write_bytes": 152829952,
        "write_ops": 2332,
    }


def test_times_are_read_with_and_without_colon() -> None:
    text = (
        b"snapshot_time:            1749630552.994884593 secs.nsecs\n"
        b"start_time:               1749563992.192278692 secs.nsecs\n"
        b"elapsed_time:             66560.802605901 secs.nsecs\n"
    )
    for variant in (text, text.replace(b":", b"")):
        stats = parse_stats(variant, "stats")
        assert (stats.snapshot_us, stats.start_us) == (1749630552_994884, 1749563992_192278)
        assert stats.problems == []


def test_a_counter_that_is_not_printed_has_never_counted() -> None:
    assert io(TIME) == {"read_bytes": 0, "read_ops": 0, "write_bytes": 0, "write_ops": 0}


def test_in_a_file_without_final_newline_it_is_unknown_but_the_last_line_counts() -> None:
    assert io(TIME + READ.rstrip(b"\n")) == {"read_bytes": 1130496, "read_ops": 276}


def test_in_a_file_without_snapshot_time_it_is_unknown() -> None:
    assert io(READ) == {"read_bytes": 1130496, "read_ops": 276}


def test_after_a_line_that_is_not_understood_it_is_unknown() -> None:
    stats = parse_stats(TIME + READ + WRITE.replace(b"samples", b"sampl#s"), "oss1/stats", first_line=10)
    assert target_io_counters(stats) == {"read_bytes": 1130496, "read_ops": 276}
    assert [str(problem).partition(": ")[0] for problem in stats.problems] == ["oss1/stats:12"]


def test_the_largest_unsigned_number_is_exact() -> None:
    text = TIME + b"read_bytes 18446744073709551615 samples [bytes] 0 4194304 18446744073709551615\n"
    assert io(text)["read_bytes"] == io(text)["read_ops"] == 18446744073709551615


def test_a_saturated_sum_of_squares_does_not_matter() -> None:
    text = TIME + b"write_bytes 5 samples [bytes] 1 2 9 9223372036854775807\n"
    assert io(text)["write_bytes"] == 9


def test_dos_line_ends() -> None:
    assert io((TIME + READ + WRITE).replace(b"\n", b"\r\n")) == io(TIME + READ + WRITE)


def test_the_service_time_of_reads_and_writes_from_2_15_on() -> None:
    text = (
        TIME
        + READ
        + WRITE
        + b"read 276 samples [usecs] 24 660 7000 5551\n"
        + b"write 2332 samples [usecs] 24 660 81000 5551\n"
    )
    assert (io(text)["read_wait_us"], io(text)["write_wait_us"]) == (7000, 81000)


def test_where_service_times_are_counted_a_direction_never_used_waited_for_nothing() -> None:
    text = TIME + WRITE + b"write 2332 samples [usecs] 24 660 81000 5551\n"
    assert io(text)["read_wait_us"] == 0
    assert "read_wait_us" not in io(TIME + WRITE)


def test_an_overflowed_sum_is_reported_and_unknown() -> None:
    # 2.14.0_ddn194: write … -823495890607571055
    stats = parse_stats(TIME + READ + WRITE + b"write 7 samples [usecs] 36 149845092510 -823495890607571055 4\n", "s")
    assert "write_wait_us" not in target_io_counters(stats)
    assert "overflowed" in stats.problems[0].reason


def test_statfs_twice_is_what_clients_asked_for_and_all_calls() -> None:
    # The obdfilter stats of 2.10.1: the first is the sum over exports/*/stats, so the two must not be added.
    stats = parse_stats(TIME + b"statfs 5 samples [reqs]\nstatfs 7 samples [reqs]\n", "stats")
    assert server_counters(stats, "ost") == {"statfs": 5, "obd_statfs": 7}
    assert stats.problems == []


def test_another_name_that_occurs_twice_is_reported_and_the_first_counts() -> None:
    stats = parse_stats(TIME + READ + READ.replace(b"276", b"277"), "stats")
    assert target_io_counters(stats)["read_ops"] == 276
    assert [(problem.line, "occurs again" in problem.reason) for problem in stats.problems] == [(3, True)]


def test_other_counters_keep_their_number_time_and_sum() -> None:
    text = TIME + READ + (
        b"statfs 5 samples [usecs] 2 10 40 185\nreq_qdepth 7 samples [reqs] 0 4 21 2055\n"
        b"req_timeout 3 samples [sec] 1 31 9 17\nping 2 samples [reqs]\nwarp 2 samples [reqs]\n"
    )  # fmt: skip
    stats = parse_stats(text, "stats")
    assert server_counters(stats, "ost") == {
        "statfs": 5, "statfs:us": 40, "req_qdepth": 7, "req_qdepth:total": 21, "req_timeout": 3,
        "req_timeout:us": 9_000_000, "ping": 2,
    }  # fmt: skip
    assert set(server_counters(stats, "mdt")) == {"req_qdepth", "req_qdepth:total", "req_timeout", "req_timeout:us"}


def test_counters_without_a_column_are_known_and_quiet() -> None:
    text = TIME + b"get_page 1 samples [usec] 0 1 1 1\ncache_hit 9 samples [pages] 1 1 9\npreprw 2 samples [reqs]\n"
    assert list(unknown_counters(parse_stats(text, "stats"))) == []


def test_an_unknown_counter_is_reported_with_its_line() -> None:
    stats = parse_stats(TIME + b"teleport 5 samples [reqs]\n", "md_stats")
    assert [(problem.line, "teleport" in problem.reason) for problem in unknown_counters(stats)] == [(2, True)]


def test_an_empty_file_is_reported() -> None:
    stats = parse_stats(b"", "stats")
    assert "empty" in stats.problems[0].reason
    assert target_io_counters(stats) == {}


def test_metadata_operations_are_counted_and_zero_where_not_printed() -> None:
    counters = metadata(TIME + b"open 10 samples [reqs]\nclose 9 samples [reqs]\n")
    assert (counters["open"], counters["close"], counters["mkdir"]) == (10, 9, 0)
    assert set(counters) == set(MDT_OPERATIONS)


def test_metadata_operations_have_a_time_where_the_version_counts_it() -> None:
    counters = metadata(TIME + b"open 45 samples [usecs] 21 1766 8231 6335187\n")
    assert (counters["open"], counters["open_us"], counters["mkdir"], counters["mkdir_us"]) == (45, 8231, 0, 0)


def test_trailing_columns_of_requests_are_no_time() -> None:
    # close 128 samples [reqs] 1 1 128, in 2.12
    counters = metadata(TIME + b"close 128 samples [reqs] 1 1 128\n")
    assert counters["close"] == 128
    assert "close_us" not in counters


def test_before_renames_were_distinguished_only_eight_operations_are_certain() -> None:
    counters = metadata(TIME + b"open 3 samples [reqs]\nrename 1568 samples [reqs]\n")
    assert set(counters) == set(EARLY_MDT_OPERATIONS)


def test_request_counters_of_the_service_stand_for_operations_in_2_0_and_prove_no_zero() -> None:
    text = TIME + (
        b"req_waittime 86195 samples [usec] 14 3622 3069238 247247714\n"
        b"mds_getattr 618 samples [usec] 40 416 44370 4520662\n"
    )
    assert metadata(text) == {"getattr": 618, "getattr_us": 44370}
