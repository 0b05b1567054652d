"""Single changes of the SQL, each of which breaks one rule; the explorer must find every one."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from lease.db.statements import Statement, statement


class Fault(NamedTuple):
    """One wrong statement: what is replaced, by what, and the rule that no longer holds."""

    name: str
    statement: str
    old: str
    new: str
    rule: str


FAULTS = (
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


def altered(fault: Fault) -> Statement:
    """Return the wrong statement.

    Raises:
        ValueError: the text to replace is not there exactly once; the patch must be renewed.
    """
    right = statement(fault.statement)
    if right.sql.count(fault.old) != 1:
        raise ValueError(f"{fault.name}: {fault.old!r} must stand once in {fault.statement}.sql")
    return right._replace(sql=right.sql.replace(fault.old, fault.new))


@contextmanager
def seeded(fault: Fault) -> Iterator[None]:
    """Put the wrong statement wherever the right one was bound at import."""
    right, wrong = statement(fault.statement), altered(fault)
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
