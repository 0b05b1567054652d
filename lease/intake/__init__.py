"""Take in files of events; apart from `lease.jobs`, whose import stays free of parsers."""

from lease.intake._enqueue_file import Intake, OnProblem, enqueue_file
from lease.intake._records import LONGEST_LINE, Format, Record, read_records

__all__ = [
    "LONGEST_LINE",
    "Format",
    "Intake",
    "OnProblem",
    "Record",
    "enqueue_file",
    "read_records",
]
