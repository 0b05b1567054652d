"""Single changes of the SQL, each of which breaks one rule; the explorer must find every one."""

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from lease.db.statements import statement


class Fault(NamedTuple):
    """One wrong statement, trigger or view: what is replaced, by what, and the rule it breaks."""

    name: str
    statement: str
    old: str
    new: str
    rule: str
    #: Whether a batch is needed to see it; a world without batches is searched faster.
    batch: bool = False


FAULTS = (
    Fault(
        "a repeated intake in a batch finds nothing",
        "enqueue_many_find",
        "jobs.id = wanted.value",
        "jobs.id = wanted.value AND jobs.status = 'pending'",
        "no_other_error",
        batch=True,
    ),
    Fault(
        "a new job of a batch has a token",
        "enqueue_many_insert",
        "0 AS token",
        "1 AS token",
        "token_rises",
        batch=True,
    ),
    Fault(
        "a claim of several keeps the tokens",
        "claim_many_take",
        "token = token + 1",
        "token = max(token, 1)",
        "token_rises",
        batch=True,
    ),
    Fault(
        "a finish of several is in time at the very end of the lease",
        "finish_many_find",
        "jobs.lease_until > :now_ms",
        "jobs.lease_until >= :now_ms",
        "only_the_holder",
        batch=True,
    ),
    Fault(
        "a finish of several settles only the last",
        "finish_many_settle",
        "jobs.seq = result.seq",
        "jobs.seq = result.seq AND jobs.seq = (SELECT max(seq) FROM jobs)",
        "as_the_contract_says",
        batch=True,
    ),
    Fault(
        "a finish of several grants a retry beyond the budget",
        "finish_many_settle",
        "WHEN jobs.attempts >= jobs.max_attempts THEN 'dead'",
        "WHEN jobs.attempts > jobs.max_attempts THEN 'dead'",
        "one_state",
        batch=True,
    ),
    Fault(
        "a redrive of several starts the tokens anew",
        "redrive_many_release",
        "attempts = 0",
        "attempts = 0, token = 0",
        "token_rises",
        batch=True,
    ),
    Fault(
        "a redrive of several revives the oldest alone",
        "redrive_many_release",
        "WHERE seq IN (SELECT chosen.value FROM json_each(:seqs) AS chosen)",
        "WHERE seq IN (SELECT min(chosen.value) FROM json_each(:seqs) AS chosen)",
        "one_audit_row",
        batch=True,
    ),
    Fault(
        "the audit rows of several name the tokens to come",
        "redrive_many_audit",
        "jobs.token,",
        "jobs.token + 1,",
        "one_audit_row",
        batch=True,
    ),
    Fault(
        "a repeated intake finds nothing",
        "enqueue_find",
        "WHERE id = :id",
        "WHERE id = :id AND status = 'pending'",
        "no_other_error",
    ),
    Fault(
        "a new job has used up an attempt",
        "enqueue_insert",
        "'pending',\n    0,",
        "'pending',\n    1,",
        "as_the_contract_says",
    ),
    Fault(
        "the time to live is forgotten",
        "enqueue_insert",
        ":now_ms + :ttl_ms",
        ":now_ms",
        "as_the_contract_says",
    ),
    Fault(
        "a claim of several is late for what is ready at this instant",
        "claim_find",
        "open_jobs.ready_at <= :now_ms",
        "open_jobs.ready_at < :now_ms",
        "nothing_left_lying",
        batch=True,
    ),
    Fault(
        "a claim of several takes but one",
        "claim_find",
        "LIMIT :max_jobs",
        "LIMIT min(:max_jobs, 1)",
        "nothing_left_lying",
        batch=True,
    ),
    Fault(
        "a claim is late for what is ready at this instant",
        "claim_look",
        "open_jobs.ready_at <= :now_ms",
        "open_jobs.ready_at < :now_ms",
        "nothing_left_lying",
    ),
    Fault(
        "a claim prefers the younger job",
        "claim_look",
        "tree_leaves.leaf ASC, open_jobs.seq ASC\n        LIMIT 1\n    ) AS seq",
        "tree_leaves.leaf DESC, open_jobs.seq ASC\n        LIMIT 1\n    ) AS seq",
        "nothing_left_lying",
    ),
    Fault(
        "a claim keeps the token",
        "claim_take",
        "token = token + 1",
        "token = max(token, 1)",
        "token_rises",
    ),
    Fault(
        "a claim counts no attempt",
        "claim_take",
        "attempts = attempts + 1",
        "attempts = max(attempts, 1)",
        "within_budget",
    ),
    Fault(
        "a lease outlives the job's time",
        "claim_take",
        "min(:now_ms + :lease_ms, deadline)",
        ":now_ms + :lease_ms",
        "one_state",
    ),
    Fault(
        "a claim keeps the reason of the last retry",
        "claim_take",
        "reason = NULL",
        "reason = reason",
        "one_state",
    ),
    Fault(
        "a claim takes a job whose lease runs",
        "open_jobs",
        "ELSE coalesce(lease_until, 9223372036854775807)\n    END AS ready_at",
        "ELSE available_at\n    END AS ready_at",
        "lease_is_exclusive",
    ),
    Fault(
        "a job at its deadline is not buried",
        "claim_quarantine",
        "jobs.deadline <= :now_ms",
        "jobs.deadline < :now_ms",
        "nothing_left_lying",
    ),
    Fault(
        "a job without attempts left is not buried",
        "claim_quarantine",
        "jobs.attempts >= jobs.max_attempts",
        "jobs.attempts > jobs.max_attempts",
        "within_budget",
    ),
    Fault(
        "exhausted wins over the deadline",
        "claim_quarantine",
        "WHEN deadline <= :now_ms THEN 'deadline' ELSE 'exhausted'",
        "WHEN attempts >= max_attempts THEN 'exhausted' ELSE 'deadline'",
        "reason_is_true",
    ),
    Fault(
        "a job is looked over at the very instant of its burial",
        "claim_look",
        "open_jobs.bury_at <= :now_ms",
        "open_jobs.bury_at < :now_ms",
        "nothing_left_lying",
    ),
    Fault(
        "the tree is not lowered for a job that comes back",
        "tree_lower_updated",
        "tree_leaves.ready_at <= open_jobs.ready_at",
        "tree_leaves.ready_at <= open_jobs.ready_at + 9",
        "tree_and_tally_are_right",
    ),
    Fault(
        "the tree drops a leaf that still has a job",
        "tree_recount_leaf",
        "AND NOT EXISTS (",
        "AND EXISTS (",
        "tree_and_tally_are_right",
    ),
    Fault(
        "the tally counts the block of a new job twice",
        "tally_take_block_out",
        "-count(*)",
        "count(*)",
        "tree_and_tally_are_right",
    ),
    Fault(
        "the tally forgets a new job",
        "tally_inserted",
        "1 AS jobs",
        "0 AS jobs",
        "tree_and_tally_are_right",
    ),
    Fault(
        "a finish does not ask for the token",
        "finish_settle",
        "token = :token",
        "token >= :token - 1",
        "only_the_holder",
    ),
    Fault(
        "a finish does not ask for the owner",
        "finish_settle",
        "owner = :owner",
        "owner IS NOT NULL",
        "only_the_holder",
    ),
    Fault(
        "a finish is in time at the very end of the lease",
        "finish_settle",
        "lease_until > :now_ms",
        "lease_until >= :now_ms",
        "only_the_holder",
    ),
    Fault(
        "a finish takes a ticket whose lease was another",
        "finish_settle",
        "lease_until = :lease_until",
        "lease_until <= :lease_until",
        "only_the_holder",
    ),
    Fault(
        "a finished job keeps its owner",
        "finish_settle",
        "owner = NULL",
        "owner = :owner",
        "one_state",
    ),
    Fault(
        "a retry is granted beyond the budget",
        "finish_settle",
        "WHEN attempts >= max_attempts THEN 'dead'",
        "WHEN attempts > max_attempts THEN 'dead'",
        "one_state",
    ),
    Fault(
        "a retry that would come at the deadline is granted",
        "finish_settle",
        "WHEN :now_ms + :delay_ms >= deadline THEN 'dead'",
        "WHEN :now_ms + :delay_ms > deadline THEN 'dead'",
        "one_state",
    ),
    Fault(
        "a retry gives the attempt back",
        "finish_settle",
        "owner = NULL,",
        "owner = NULL, attempts = attempts - (:outcome = 'retry'),",
        "within_budget",
    ),
    Fault(
        "a renewal is in time at the very end of the lease",
        "renew_find",
        "lease_until > :now_ms",
        "lease_until >= :now_ms",
        "only_the_holder",
    ),
    Fault(
        "a renewal may shorten the lease",
        "renew_find",
        "max(lease_until, min(:now_ms + :lease_ms, deadline))",
        "min(:now_ms + :lease_ms, deadline)",
        "lease_is_kept",
    ),
    Fault(
        "a renewed lease outlives the job's time",
        "renew_find",
        "min(:now_ms + :lease_ms, deadline)",
        ":now_ms + :lease_ms",
        "one_state",
    ),
    Fault(
        "a renewal is a new claim",
        "renew_extend",
        "SET lease_until = :new_lease_until",
        "SET lease_until = :new_lease_until, token = token + 1",
        "token_rises",
    ),
    Fault(
        "a redrive starts the tokens anew",
        "redrive_release",
        "attempts = 0",
        "attempts = 0, token = 0",
        "token_rises",
    ),
    Fault(
        "a redrive keeps the used attempts",
        "redrive_release",
        "attempts = 0",
        "attempts = attempts",
        "within_budget",
    ),
    Fault(
        "a redrive leaves an audit row for every job",
        "redrive_audit",
        "WHERE jobs.id = :job_id",
        "WHERE jobs.id >= :job_id",
        "one_audit_row",
    ),
    Fault(
        "the audit row names the token to come",
        "redrive_audit",
        "jobs.token,",
        "jobs.token + 1,",
        "one_audit_row",
    ),
)


def altered(fault: Fault, sql: str) -> str:
    """Return the wrong text for the right one.

    Raises:
        ValueError: the text to replace is not there exactly once; the patch must be renewed.
    """
    if sql.count(fault.old) != 1:
        raise ValueError(f"{fault.name}: {fault.old!r} must stand once in {fault.statement}")
    return sql.replace(fault.old, fault.new)


@contextmanager
def seeded(fault: Fault, con: sqlite3.Connection) -> Iterator[None]:
    """Put the wrong statement wherever the right one is bound, or the wrong part in the schema."""
    part = con.execute(
        "SELECT type, sql FROM sqlite_schema WHERE name = ?", (fault.statement,)
    ).fetchone()
    if part is None:
        with _bound(fault):
            yield
    else:
        con.execute(f"DROP {part[0]} {fault.statement}")
        con.execute(altered(fault, part[1]))
        yield


@contextmanager
def _bound(fault: Fault) -> Iterator[None]:
    right = statement(fault.statement)
    wrong = right._replace(sql=altered(fault, right.sql))
    bound: list[tuple[Any, str]] = [
        (module, name)
        for module_name, module in list(sys.modules.items())
        if module_name.startswith("lease.")
        for name, value in vars(module).items()
        if value is right
    ]
    if not bound:
        raise ValueError(f"{fault.name}: no verb runs {fault.statement}.sql")
    for module, name in bound:
        setattr(module, name, wrong)
    try:
        yield
    finally:
        for module, name in bound:
            setattr(module, name, right)
