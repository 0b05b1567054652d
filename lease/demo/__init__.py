"""The promise, shown with real processes: one is killed between sent and recorded.

Needs the `http` extra.
"""

from lease.demo._evidence import Evidence, JobEvidence
from lease.demo._processes import DemoError
from lease.demo._scenario import Tell, run_demo
from lease.demo._verdict import Check, judge

__all__ = ["Check", "DemoError", "Evidence", "JobEvidence", "Tell", "judge", "run_demo"]
