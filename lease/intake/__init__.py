"""Take in files of events; apart from `lease.jobs`, whose import stays free of parsers."""

from lease.intake._enqueue_file import Intake, OnProblem, OnProgress, enqueue_file
from lease.intake._records import LONGEST_LINE, LONGEST_SKIP, Format, Lines, Record, read_records

__all__ = [
    "LONGEST_LINE",
    "LONGEST_SKIP",
    "Format",
    "Intake",
    "Lines",
    "OnProblem",
    "OnProgress",
    "Record",
    "enqueue_file",
    "read_records",
]
