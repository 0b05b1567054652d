"""Count what is in a queue."""

import sqlite3
from typing import TypedDict

from lease import checks
from lease.db.migrations import is_about_sql
from lease.db.statements import Row, statement
from lease.errors import UnusableFile
from lease.jobs._due import next_due

STATS_STATES = statement("stats_states")
STATS_BARE_STATES = statement("stats_bare_states")
STATS_REDRIVES = statement("stats_redrives")


class Reasons(TypedDict):
    """How many dead jobs there are of each reason."""

    deadline: int
    exhausted: int
    permanent: int


class Stats(TypedDict):
    """The size of a queue: jobs by state, dead ones by reason, claims and redrives ever made."""

    jobs: int
    pending: int
    leased: int
    done: int
    dead: int
    dead_reasons: Reasons
    claims: int
    redrives: int
    next_due_ms: int | None


def stats(con: sqlite3.Connection) -> Stats:
    """Count the jobs of a queue by state and reason, and tell when it next needs a claim.

    The tally makes it cost the same among a thousand jobs and a million; only redrives are
    counted one by one, as are the jobs of a file that `open_queue` has never seen.

    Args:
        con: a connection to a queue; only read from.

    Returns:
        The counts; `next_due_ms` is what `next_due` returns. They are read one after the other,
        so that a queue at work may be a few changes apart between them.

    Raises:
        UnusableFile: a job is in no state that a job can be in.

    Hooks: none.
    """
    states = {"pending": 0, "leased": 0, "done": 0, "dead": 0}
    reasons = {"deadline": 0, "exhausted": 0, "permanent": 0}
    claims = 0
    for status, reason, jobs, claimed in _states(con):
        if status not in states:
            raise UnusableFile(
                f"{jobs} jobs are in the state {checks.shown(status)}, which is none; "
                "the file is damaged, so go back to a copy"
            )
        states[status] += jobs
        claims += claimed
        if status == "dead" and reason in reasons:
            reasons[reason] += jobs
    (redrives,) = STATS_REDRIVES.one(con)
    return Stats(
        jobs=sum(states.values()),
        pending=states["pending"],
        leased=states["leased"],
        done=states["done"],
        dead=states["dead"],
        dead_reasons=Reasons(
            deadline=reasons["deadline"],
            exhausted=reasons["exhausted"],
            permanent=reasons["permanent"],
        ),
        claims=claims,
        redrives=redrives,
        next_due_ms=next_due(con),
    )


def _states(con: sqlite3.Connection) -> list[Row]:
    """Read the tally, or count every job of a file that has none."""
    try:
        return STATS_STATES.many(con)
    except sqlite3.OperationalError as error:
        if not is_about_sql(error):
            raise
        return STATS_BARE_STATES.many(con)
