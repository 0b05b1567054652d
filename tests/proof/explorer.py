"""Visit every state that a small world can reach, breadth first, by the real verbs.

A state is the rows of the database, the clock, and the tickets that workers still hold, those
of a worker that woke up late included. From each state every step of the world is taken: every
verb at this instant, every verb killed before each of its statements and between COMMIT and
return, a clock that ticks and one that jumps back. A verb sees only the rows and its arguments,
so what it does in one state is remembered for all states that differ in nothing else. The rules
are tried on every step, and the first trace that breaks one is a shortest one.
"""

import sys
from collections.abc import Iterator
from contextlib import closing
from typing import Any, NamedTuple

from tests.proof.laboratory import Laboratory
from tests.proof.rules import Violation
from tests.proof.steps import Step, tickets_in
from tests.proof.store import Snapshot, Store
from tests.proof.world import Held, World, forgeries, keep, ticket_from
from tests.support.model import Ticket

#: A state: the number of its rows, the clock, the number of what the workers hold.
State = tuple[int, int, int]


class Edge(NamedTuple):
    """A step that changes the rows: the rows it leads to and the tickets it hands out."""

    step: Step
    rows: int
    tickets: Held
    delivered: bool = True

    def __str__(self) -> str:
        """Write the step as a line of a trace."""
        return f"{self.step}{'' if self.delivered else ', killed between COMMIT and return'}"


#: What a trace may name: a step, or what the clock does.
Way = Edge | str


class Broken(AssertionError):
    """A rule does not hold; carries its name and a shortest way to it."""

    def __init__(self, rule: str, trace: list[str], detail: str) -> None:
        super().__init__(rule, trace, detail)
        self.rule = rule
        self.trace = trace
        self._detail = detail

    def __str__(self) -> str:
        """Write the trace, one step a line."""
        steps = "\n".join(f"  {number}. {step}" for number, step in enumerate(self.trace, 1))
        return f"{self.rule} is broken by step {len(self.trace)}:\n{steps}\n  {self._detail}"


class Explored(NamedTuple):
    """How far an exploration went."""

    states: int
    transitions: int
    verbs: int
    crashes: int
    depth: int
    #: Whether there is nothing beyond that depth.
    complete: bool

    def __str__(self) -> str:
        """Write one line."""
        reach = f"all of them at depth {self.depth}" if self.complete else f"depth {self.depth}"
        return (
            f"{self.states:,} states, {self.transitions:,} transitions, {reach}; "
            f"{self.verbs:,} verbs run, {self.crashes:,} of them killed"
        )


class Explorer:
    """One exploration of one world."""

    def __init__(self, world: World, store: Store) -> None:
        self._world = world
        self._laboratory = Laboratory(store)
        self._rows = _Numbered()
        self._held = _Numbered()
        self._transitions = 0
        self._edges: dict[tuple[int, int, Held], tuple[list[Edge], int]] = {}
        self._start: State = (self._rows.number(store.now), 0, self._held.number(()))
        self._found: dict[State, tuple[State, Way] | None] = {self._start: None}

    def run(self, depth: int, most_states: int = sys.maxsize) -> Explored:
        """Explore to a depth, or until no state is left, or until so many are known.

        Raises:
            Broken: a rule does not hold.
        """
        layer, reached = [self._start], 0
        while layer and reached < depth:
            after: list[State] = []
            if not self._expand(layer, after, most_states):
                break
            layer = after
            reached += 1
        return Explored(
            states=len(self._found),
            transitions=self._transitions,
            verbs=self._laboratory.verbs,
            crashes=self._laboratory.crashes,
            depth=reached,
            complete=not layer,
        )

    def _expand(self, layer: list[State], after: list[State], most_states: int) -> bool:
        """Take every step out of a layer; return whether that was possible for all of it."""
        for state in layer:
            if len(self._found) >= most_states:
                return False
            try:
                ways, count = self._leaving(state)
            except Violation as violation:
                trace = [*self._path(state), str(violation.step)]
                raise Broken(violation.rule, trace, str(violation)) from None
            self._transitions += count
            for way, there in ways:
                if there not in self._found:
                    self._found[there] = (state, way)
                    after.append(there)
        return True

    def snapshots(self) -> list[Snapshot]:
        """Return the rows of every state that was found, equal ones once."""
        return list(self._rows.values)

    def _path(self, state: State) -> list[str]:
        way = []
        origin = self._found[state]
        while origin is not None:
            state, step = origin
            way.append(str(step))
            origin = self._found[state]
        return way[::-1]

    def _leaving(self, state: State) -> tuple[list[tuple[Way, State]], int]:
        """Return the ways out of a state, and how many steps were taken to find them."""
        rows, now_ms, held = state
        ways: list[tuple[Way, State]] = [
            (reading, (rows, then_ms, held)) for reading, then_ms in self._world.clock(now_ms)
        ]
        ways += [
            (f"{owner} is killed", (rows, now_ms, self._held.number(left)))
            for owner, left in self._world.deaths(self._held.values[held])
        ]
        count = len(ways)
        for tickets in self._bearers(self._held.values[held]):
            edges, taken = self._edges_of(rows, now_ms, tickets)
            count += taken
            ways += [(edge, (edge.rows, now_ms, self._handed(held, edge))) for edge in edges]
        return ways, count

    def _bearers(self, held: Held) -> Iterator[Held]:
        """Yield what a step may present: no ticket, each one, and the newest of each job."""
        yield ()
        for ticket in held:
            yield (ticket,)
        newest = tuple({ticket[0]: ticket for ticket in reversed(held)}.values())
        if len(newest) > 1:
            yield newest

    def _handed(self, held: int, edge: Edge) -> int:
        if not edge.tickets or not edge.delivered:
            return held
        most = self._world.kept_tickets
        return self._held.number(keep(self._held.values[held], edge.tickets, most))

    def _edges_of(self, rows: int, now_ms: int, held: Held) -> tuple[list[Edge], int]:
        """Take the steps that present these tickets, once for all states alike."""
        key = (rows, now_ms, held)
        if key not in self._edges:
            before = self._laboratory.verbs
            tickets = tuple(map(ticket_from, held))
            if not tickets:
                steps = self._world.steps(self._rows.values[rows].book, now_ms)
            elif len(tickets) == 1:
                steps = self._world.steps_with(tickets[0], now_ms)
            else:
                steps = self._world.steps_together(tickets, now_ms)
            edges = [edge for step in steps for edge in self._edges_by(rows, step)]
            self._edges[key] = (edges, self._laboratory.verbs - before)
        return self._edges[key]

    def _edges_by(self, rows: int, step: Step) -> list[Edge]:
        before = self._rows.values[rows]
        answer, after = self._laboratory.take(before, step)
        if after == before:
            return []
        for forged in forgeries(step):
            self._laboratory.take(before, forged)
        edge = Edge(step, self._rows.number(after), _frozen(tickets_in(answer)))
        return [edge, edge._replace(delivered=False)] if edge.tickets else [edge]


def _frozen(tickets: list[Ticket]) -> Held:
    return tuple(tuple(ticket.values()) for ticket in tickets)


def explore(world: World, last_seq: int, depth: int, most_states: int = sys.maxsize) -> Explored:
    """Explore a world on a new database, its first job numbered after `last_seq`."""
    with closing(Store(last_seq)) as store:
        return Explorer(world, store).run(depth, most_states)


class _Numbered:
    """Gives equal values one small number, so that a state is three integers."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self.values: list[Any] = []

    def number(self, value: Any) -> int:
        number = self._numbers.setdefault(value, len(self.values))
        if number == len(self.values):
            self.values.append(value)
        return number
