"""The lease queue's verbs, with bounds that the caller chooses."""

from lease.jobs._backoff import retry_delay
from lease.jobs._backup import backup
from lease.jobs._claim import claim
from lease.jobs._claim_many import claim_many
from lease.jobs._dead_ids import dead_ids
from lease.jobs._doctor import Finding, doctor
from lease.jobs._due import next_due
from lease.jobs._enqueue import enqueue
from lease.jobs._enqueue_many import enqueue_many
from lease.jobs._finish import finish
from lease.jobs._finish_and_claim import finish_and_claim
from lease.jobs._finish_many import finish_many
from lease.jobs._integrity import integrity_check
from lease.jobs._list import Job, Reason, Status, list_jobs
from lease.jobs._open import create_queue, open_queue
from lease.jobs._redrive import redrive
from lease.jobs._redrive_many import Release, redrive_check, redrive_many
from lease.jobs._renew import renew
from lease.jobs._run import run_file, run_once
from lease.jobs._stats import Stats, stats
from lease.jobs._tally import tally_check, tally_rebuild
from lease.jobs._tree import tree_check, tree_rebuild

__all__ = [
    "Finding",
    "Job",
    "Reason",
    "Release",
    "Stats",
    "Status",
    "backup",
    "claim",
    "claim_many",
    "create_queue",
    "dead_ids",
    "doctor",
    "enqueue",
    "enqueue_many",
    "finish",
    "finish_and_claim",
    "finish_many",
    "integrity_check",
    "list_jobs",
    "next_due",
    "open_queue",
    "redrive",
    "redrive_check",
    "redrive_many",
    "renew",
    "retry_delay",
    "run_file",
    "run_once",
    "stats",
    "tally_check",
    "tally_rebuild",
    "tree_check",
    "tree_rebuild",
]
