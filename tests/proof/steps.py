"""A step is data: the name of a verb and its arguments, to be run on a file or on the model.

A recorded step names a ticket by its number among those handed out before it, and may alter
fields of it: `{"issued": 0, "token": 7}`.
"""

import sqlite3
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from lease import jobs
from tests.proof.store import read_book
from tests.support.model import VERBS, Book, Raised, Ticket

FIELDS = ("id", "qty", "owner", "token", "attempt", "lease_until")


class Step(NamedTuple):
    """One call of a verb; the arguments are keywords, spelled as the verb spells them."""

    verb: str
    arguments: dict[str, Any]

    def __str__(self) -> str:
        """Write the call as Python does."""
        arguments = (f"{name}={value!r}" for name, value in self.arguments.items())
        return f"{self.verb}({', '.join(arguments)})"


def on_file(con: sqlite3.Connection, step: Step) -> Any:
    """Run the real verb; an error that it is meant to raise is an answer."""
    verb: Callable[..., Any] = getattr(jobs, step.verb)
    try:
        return verb(con, **step.arguments)
    except ValueError as refused:
        return Raised("ValueError" if type(refused) is ValueError else type(refused).__name__)
    except Exception as error:
        if type(error).__module__ != "lease.errors":
            raise
        return Raised(type(error).__name__)


def on_model(book: Book, step: Step) -> tuple[Any, Book]:
    """Run the model's verb."""
    return VERBS[step.verb](book, **step.arguments)


def tickets_in(answer: Any) -> list[Ticket]:
    """Return the tickets in a verb's answer, in order."""
    if isinstance(answer, dict) and tuple(answer) == FIELDS:
        return [answer]
    if isinstance(answer, (list, tuple)):
        return [ticket for each in answer for ticket in tickets_in(each)]
    return []


class Subject(Protocol):
    """What steps are taken on."""

    def run(self, step: Step) -> Any:
        """Take a step whose tickets are spelled out."""

    def book(self) -> Book:
        """Return all rows as they stand."""


class Model:
    """The model, from an empty book."""

    def __init__(self) -> None:
        self._book = Book()

    def run(self, step: Step) -> Any:
        """Take a step by the model."""
        answer, self._book = on_model(self._book, step)
        return answer

    def book(self) -> Book:
        """Return the rows that the model expects."""
        return self._book


class File:
    """The real verbs on a connection to a new queue."""

    def __init__(self, con: sqlite3.Connection) -> None:
        self._con = con

    def run(self, step: Step) -> Any:
        """Take a step by the real verb, which leaves no transaction open."""
        answer = on_file(self._con, step)
        assert not self._con.in_transaction

        return answer

    def book(self) -> Book:
        """Read the rows."""
        return read_book(self._con)


class Recorded:
    """Takes recorded steps on a subject, and finds the tickets that they name by number."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self.issued: list[Ticket] = []

    def take(self, step: Step) -> tuple[Any, Book]:
        """Take a step; return its answer and all rows after it."""
        answer = self._subject.run(step._replace(arguments=self.spelled_out(step.arguments)))
        self.issued += tickets_in(answer)
        return answer, self.book()

    def book(self) -> Book:
        """Return all rows as they stand."""
        return self._subject.book()

    def spelled_out(self, value: Any) -> Any:
        """Return a value of a recorded step with its tickets in the place of their numbers."""
        if isinstance(value, dict):
            if "issued" in value:
                altered = {name: each for name, each in value.items() if name != "issued"}
                return {**self.issued[value["issued"]], **altered}
            plain = {name: self.spelled_out(each) for name, each in value.items()}
            if "results" in plain:
                plain["results"] = [tuple(result) for result in plain["results"]]
            return plain
        if isinstance(value, (list, tuple)):
            return [self.spelled_out(each) for each in value]
        return value
