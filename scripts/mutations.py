"""Faults put into the code one at a time: tests must notice each.

    python scripts/mutations.py            all of them; exit code 1 when one is not noticed
    python scripts/mutations.py counters   those of paths that hold this word

Each changes one expression of a copy of the package and runs the tests named beside it that are in `make test`. A
mutation whose text is not in the file any more is an error: it has to follow the code.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).parent.parent
PACKAGE = REPOSITORY / "src" / "iolens"


class Mutation(NamedTuple):
    """Text of one file, what takes its place, and the tests that must fail then."""

    path: str
    text: str
    instead: str
    tests: str

    @property
    def files(self) -> list[str]:
        """Paths of the tests."""
        return [f"tests/{name}" for name in self.tests.split()]


MUTATIONS = (
    # Quantities and names.
    Mutation("units.py", '((1024, "ib"), (1000, "b"))', '((1000, "ib"), (1000, "b"))', "test_units.py"),
    Mutation("units.py", "amount >= _LARGEST or amount", "amount", "test_units.py"),
    Mutation("units.py", '"min": 60.0', '"min": 1.0', "test_units.py"),
    Mutation("visible_text.py", "0xDC80 <= code <= 0xDCFF", "False", "test_visible_text.py"),
    Mutation(
        "registry.py",
        "points.setdefault(other.name, RegisteredObject(other.name, other.value, group))",
        "pass",
        "test_registry.py",
    ),
    # The model of disk time.
    Mutation(
        "models/transaction_time.py",
        "return ios * latency_s, moved_bytes * s_per_byte",
        "return 0.0 * ios, moved_bytes * s_per_byte",
        "models/test_transaction_time.py",
    ),
    Mutation(
        "models/transaction_time.py", "if size_bytes > MIB:", "if size_bytes < MIB:", "models/test_transaction_time.py"
    ),
    Mutation(
        "models/transaction_time.py",
        '"""Coefficients of `read` or `write`."""\n        return self.write if direction == "write"',
        '"""Coefficients of `read` or `write`."""\n        return self.read if direction == "write"',
        "models/test_transaction_time.py",
    ),
    Mutation(
        "models/transaction_time.py",
        "if measured_pct is not None:",
        "if False:",
        "analyses/utilization/test_saturation.py",
    ),
    # Counters become intervals.
    Mutation(
        "counters/differences.py",
        "2 * len(fallen) >= had_counted",
        "2 * len(fallen) > 9 * had_counted",
        "store/test_counters.py",
    ),
    Mutation(
        "counters/differences.py",
        "and abs(before_us - now_us) > START_TOLERANCE_US",
        "and False",
        "store/test_counters.py",
    ),
    Mutation(
        "counters/differences.py",
        "max(0, value - old.get(name, 0))",
        "value - old.get(name, 0)",
        "store/test_counters.py",
    ),
    Mutation(
        "counters/differences.py",
        "else max(snapshot_us, baseline.time_us + 1)",
        "else time_us",
        "store/test_counters.py",
    ),
    Mutation(
        "counters/differences.py",
        "kept = {} if now.forgets else old",
        "kept = old",
        "store/test_counters.py sources/devices",
    ),
    Mutation(
        "counters/differences.py",
        "is_client = form.sets_add_up and bool(name) and any(baseline.sets)",
        "is_client = False",
        "store/test_counters.py sources/lustre",
    ),
    Mutation(
        "counters/differences.py", "return evidence is OrderEvidence.AFTER", "return False", "store/test_clock_steps.py"
    ),
    Mutation(
        "store/counter_series.py",
        "(moved[name] >= 0)",
        "(moved[name] >= -(10**18))",
        "store/test_counter_series.py",
    ),
    Mutation(
        "store/gate.py",
        "mask = np.asarray(numbers.fill_null(0)) > most",
        "mask = np.asarray(numbers.fill_null(0)) > 1e30",
        "store/test_counter_series.py store/test_gate.py",
    ),
    Mutation(
        "counters/ceilings.py",
        "value > self.over(name, seconds)",
        "value > 10**30",
        "store/test_clock_steps.py store/test_gate.py",
    ),
    # What the store keeps.
    Mutation(
        "store/gate.py", "type(value) is not int or not 0 <= value <= LARGEST_COUNTER", "False", "store/test_gate.py"
    ),
    Mutation(
        "counters/rows.py",
        "for name, count in moved.items() if count)",
        "for name, count in moved.items())",
        "store/test_counters.py",
    ),
    Mutation(
        "counters/rows.py",
        "if not form.sets_by_mount and (not form.moved_only or form.set_column is not None):",
        "if True:",
        "store/test_rebuild.py",
    ),
    Mutation("store/placing.py", "if tick > last_us", "if tick > 2**62", "store/test_verification.py"),
    Mutation("store/splice.py", "known[name] = value - moved", "known[name] = value", "store/test_rebuild.py"),
    Mutation(
        "store/verification.py",
        "marks.get(batch.part.identity, -1) < batch.part.part",
        "False",
        "store/test_verification.py",
    ),
    Mutation(
        "store/verification.py",
        "if promised and {hashlib.sha256(content).hexdigest()} != promised:",
        "if False:",
        "store/test_verification.py",
    ),
    Mutation("store/tables.py", "sync_all(folder / file.path for file in files)", "pass", "store/test_durable.py"),
    Mutation("store/tables.py", "sync_directory(folder)", "pass", "store/test_durable.py"),
    Mutation(
        "store/maintenance.py",
        "older_hours < YOUNGEST_HOURS and not (force or dry_run)",
        "False",
        "store/test_maintenance.py cli/test_store.py",
    ),
    Mutation(
        "store/rollup.py",
        "rolled.get(day) == rows and seen.of(day) == rebuilt.of(day)",
        "rolled.get(day) == rows",
        "store/test_rollup.py",
    ),
    Mutation("store/store.py", "if source not in known:", "if False:", "cli/test_names_that_are_not_there.py"),
    # Readers.
    Mutation("sources/reading/bounded_input.py", "if not stat.S_ISREG(mode):", "if False:", "sources/reading"),
    Mutation("sources/spool.py", "if len(text) > LARGEST_TICK:", "if False:", "sources/test_spool.py"),
    Mutation("sources/lustre/stats.py", "if name == TWICE and name in stats.counts:", "if False:", "sources/lustre"),
    Mutation("sources/lustre/lustre_lctl.py", "not named:", "False:", "sources/lustre/test_lustre_lctl.py"),
    Mutation(
        "sources/pcp/pcp_disks.py",
        "return round(scaled) if 0 <= scaled <= LARGEST else None",
        "return round(scaled)",
        "sources/pcp/test_pcp.py",
    ),
    Mutation("sources/controllers/tables.py", "odd = quotes % 2 == 1", "odd = quotes % 2 == 5", "sources/controllers"),
    # Analyses and plans.
    Mutation(
        "schema.py",
        'DATA_KINDS: Final = ("ost", *DISK_KINDS)',
        'DATA_KINDS: Final = (*DISK_KINDS, "ost")',
        "analyses/demand analyses/workload",
    ),
    Mutation("schema.py", "if name not in RENAME_KINDS)", "if name)", "analyses/demand plans"),
    Mutation(
        "analyses/intervals/buckets.py",
        "COMPLETE_PCT: Final = 95.0",
        "COMPLETE_PCT: Final = 5.0",
        "analyses/intervals/test_days.py analyses/demand",
    ),
    Mutation(
        "analyses/intervals/target_totals.py",
        "is_gap = length_us > GAP * ticks[day]",
        "is_gap = False",
        "analyses/intervals/test_coverage.py",
    ),
    Mutation(
        "analyses/latency/part.py",
        "FEWEST_PEERS: Final =",
        "FEWEST_PEERS: Final = -100 +",
        "analyses/latency views/test_latency.py",
    ),
    Mutation(
        "plans/cases.py",
        "return max(high, ends[1] if ends is not None else 0.0)",
        "return high",
        "plans views/test_plan_endurance.py",
    ),
    Mutation(
        "plans/metadata.py", "(self.data + self.parity) / self.data", "self.data / (self.data + self.parity)", "plans"
    ),
    # What people see.
    Mutation(
        "views/render/escaped_text.py",
        "with_short_words(visible(text))",
        "with_short_words(text)",
        "views/test_hostile_names.py",
    ),
    Mutation("views/render/formats.py", "if name not in names:", "if False:", "views/test_formats.py"),
    Mutation(
        "views/plan_rationale/document.py",
        "{markdown_cell(chapter.title)}",
        "{chapter.title}",
        "views/test_hostile_names.py",
    ),
    Mutation("cli/main.py", 'return _say("interrupted", INTERRUPTED)', "return _explained(error)", "cli/test_main.py"),
    Mutation(
        "agent/sampling/shipper.py",
        "if self.state.damaged or self.unread:",
        "if False:",
        "agent/sampling/test_shipper.py",
    ),
    Mutation("hub/inbox.py", "if _sha256(part) != digest:", "if False:", "hub/test_uploads.py"),
    Mutation("hub/inbox.py", "if stated != name.stem:", "if False:", "hub/test_uploads.py"),
    Mutation(
        "hub/inbox.py",
        "if header.sequence <= self._last(stream) and not self._is_in_stream(stream, header.sequence):",
        "if False:",
        "hub/test_writer.py",
    ),
    # Parts of days.
    Mutation(
        "analyses/imbalance/part.py",
        "between = self.broken | apart | later.broken_before",
        "between = self.broken | apart",
        "analyses/intervals/test_parts.py",
    ),
    Mutation(
        "analyses/imbalance/spreads.py",
        "is_lead, is_open = both & (self.lead == self.fed)",
        "is_lead, is_open = both",
        "analyses/imbalance/test_stretches.py",
    ),
    Mutation(
        "analyses/intervals/tick_matrix.py",
        "return max(0.0, later.first_s - (later",
        "return 0.0 * max(0.0, later.first_s - (later",
        "analyses/intervals/test_parts.py",
    ),
    Mutation(
        "analyses/workload/arrivals.py",
        "| self.last_unknown | later.first_unknown",
        "| later.first_unknown",
        "analyses/workload/test_silences.py",
    ),
    Mutation(
        "store/parts.py",
        "border_us // tick_us * tick_us + tick_us // 2",
        "border_us",
        "store/test_tick_days.py",
    ),
    Mutation("part_form.py", "metadata.get(FORM) != self._mark", "False", "test_part_form.py"),
    # What is remembered of an answer.
    Mutation(
        "store/selection.py",
        "{here._name(table): snapshot.paths for table, snapshot in files.items()}",
        "{}",
        "store/test_part_memory.py",
    ),
    Mutation(
        "store/selection.py",
        "list(self.targets), self.source, list(self.source_order)",
        "0, 0, 0",
        "store/test_part_memory.py",
    ),
    Mutation("store/part_memory.py", "if _digest(path, rest) != digest:", "if False:", "store/test_part_memory.py"),
    Mutation("store/snapshot.py", "epoch_us(first) >= epoch_us(since))", "first)", "store/test_part_memory.py"),
    Mutation("store/selection.py", "or read.until_us > time.time() * 1e6", "", "store/test_part_memory.py"),
    Mutation(
        "analyses/workload/bandwidth.py",
        "reporting >= LEAST_TARGETS * expected(end_us)",
        "reporting >= 0",
        "analyses/workload/test_bandwidth.py",
    ),
    # Who made it busy.
    Mutation(
        "analyses/attribution/work.py",
        "where=wanted > took",
        "where=wanted < 0",
        "analyses/attribution/test_disk_seconds.py",
    ),
    Mutation(
        "analyses/attribution/work.py",
        "np.where(is_assumed, 1.0, ratio)",
        "1.0",
        "analyses/attribution/test_disk_seconds.py",
    ),
    Mutation(
        "analyses/attribution/work.py",
        "is_next & (2 * self.from_us[interval] < start_us + end_us)",
        "is_next",
        "analyses/blame/test_blame.py",
    ),
    Mutation("analyses/attribution/work.py", "<= AROUND_US)", "<= 1 << 60)", "analyses/blame/test_blame.py"),
    Mutation(
        "store/selection.py",
        "read = self.ends.widened(AROUND_US) if maker.looks_around else self.ends",
        "read = self.ends",
        "analyses/blame/test_blame.py",
    ),
    Mutation(
        "analyses/attribution/whose.py",
        " or parts.job_id in self.contradictory",
        "",
        "analyses/blame/test_blame.py",
    ),
    Mutation("analyses/blame.py", ".argmax()", ".argmin()", "analyses/blame/test_blame.py"),
    Mutation("arrays.py", ":]), fill, values.dtype)", ":]), 0, values.dtype)", "analyses/intervals/test_parts.py"),
    # Who may reach the server.
    Mutation("web/access/tokens.py", "self.revoked_s is None and (", "(", "web/access/test_tokens.py"),
    Mutation("web/access/tokens.py", "now < self.expires_s", "True", "web/access/test_tokens.py"),
    Mutation(
        "web/access/tokens.py",
        'connection.execute("DELETE FROM sessions WHERE token = ?", row)',
        "pass",
        "web/access/test_tokens.py",
    ),
    Mutation(
        "web/access/sessions.py", "not token.is_valid(now) or now - used", "now - used", "web/access/test_tokens.py"
    ),
    Mutation("web/access/sessions.py", " or now - created >= LONGEST_S:", ":", "web/access/test_tokens.py"),
    Mutation("web/access/permissions.py", '"DELETE": OPERATORS', '"DELETE": READERS', "web/access/test_permissions.py"),
    Mutation(
        "web/access/permissions.py",
        '*_get(READERS, "/filesystems/{name}/**", ',
        '*_get(PEOPLE, "/filesystems/{name}/**", ',
        "web/access/test_permissions.py",
    ),
    Mutation("web/access/http_request.py", "or _TRICKS.search(raw)", "", "web/access/test_middleware.py"),
    Mutation("web/access/http_request.py", 'or "" in inner or', "or", "web/access/test_middleware.py"),
    Mutation(
        "web/access/http_request.py",
        '"content-length" in values and "transfer-encoding" in values',
        "False",
        "web/access/test_middleware.py",
    ),
    Mutation(
        "web/access/origins.py", "if (is_open or hosts) and name", "if hosts and name", "web/access/test_middleware.py"
    ),
    Mutation("web/access/origins.py", 'site == "same-origin"', 'site != "cross-site"', "web/access/test_middleware.py"),
    Mutation(
        "web/access/origins.py",
        ' == (request.header("host") or "").lower() != ""',
        ' != ""',
        "web/access/test_login.py",
    ),
    Mutation(
        "web/access/proxies.py",
        "if config.proxy_user_header is None or not is_trusted(peer, config):",
        "if config.proxy_user_header is None:",
        "web/access/test_access.py",
    ),
    Mutation(
        "web/access/proxies.py",
        "if not is_trusted(peer, config):\n        return peer",
        "if False:\n        return peer",
        "web/access/test_access.py",
    ),
    Mutation(
        "web/access/identity.py",
        "if any(name in request.headers for name in FORWARDED):",
        "if False:",
        "web/access/test_middleware.py",
    ),
    Mutation("web/access/identity.py", "    if wait:", "    if False:", "web/access/test_login.py"),
    Mutation(
        "web/access/access.py",
        "return not (config.require_token or config.has_proxy)",
        "return not config.require_token",
        "web/access/test_access.py",
    ),
    Mutation(
        "web/access/bodies.py", "self.received_bytes > self.bounds.bytes", "False", "web/access/test_middleware.py"
    ),
    Mutation(
        "web/access/bodies.py",
        "return min(self.bounds.time_s, rate_s)",
        "return self.bounds.time_s",
        "web/access/test_middleware.py",
    ),
    Mutation(
        "web/access/connections.py",
        'elif self.conn.their_state is h11.SEND_BODY:\n            self._enter("rest", self.rest_s)',
        "elif self.conn.their_state is h11.SEND_BODY:\n            pass",
        "web/access/test_middleware.py",
    ),
    Mutation(
        "web/access/connections.py",
        "        if phase == self._phase:\n            return\n",
        "",
        "web/access/test_middleware.py",
    ),
    Mutation(
        "web/access/middleware.py",
        "            self._check_again()",
        "            pass",
        "web/access/test_middleware.py",
    ),
    Mutation(
        "web/access/middleware.py",
        "            self.held.append(message)\n            return",
        "            pass",
        "web/access/test_middleware.py",
    ),
    Mutation("web/access/audit.py", "_plain(value) for key", "value for key", "web/access/test_audit.py"),
)


def main(words: list[str]) -> int:
    """Try them; print a line for each."""
    chosen = [item for item in MUTATIONS if not words or any(word in item.path for word in words)]
    missed = 0
    for number, mutation in enumerate(chosen, 1):
        began = time.monotonic()
        verdict = _tried(mutation)
        missed += verdict != "noticed"
        place = f"{mutation.path}: {mutation.text[:60]!r} → {mutation.instead[:40]!r}"
        print(f"{number:3}/{len(chosen)}  {verdict:12}  {time.monotonic() - began:5.1f} s  {place}", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} noticed")
    return 1 if missed else 0


def mutated(mutation: Mutation, folder: Path) -> bool:
    """A copy of the package with the fault, in that folder; False where its text is not there."""
    copy = folder / "iolens"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    path = copy / mutation.path
    text = path.read_text("utf-8")
    path.write_text(text.replace(mutation.text, mutation.instead), "utf-8")
    return mutation.text in text


def _tried(mutation: Mutation) -> str:
    with tempfile.TemporaryDirectory(prefix="iolens-mutation-") as folder:
        if not mutated(mutation, Path(folder)):
            return "NOT THERE"
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--part", "quick"]
        environment = {**os.environ, "PYTHONPATH": folder}
        done = subprocess.run(
            [*command, *mutation.files], cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False
        )
    if "ERROR collecting" in done.stdout:  # tests that cannot be read notice nothing
        return "NOT READ"
    return {0: "NOT NOTICED", 1: "noticed"}.get(done.returncode, f"exit {done.returncode}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
