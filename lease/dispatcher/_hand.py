"""One job in hand: claimed, and not yet recorded."""

from lease.model import Ticket


class Hand:
    """A job's current ticket, and whether its lease is to be renewed.

    Each renewal changes the ticket. Whoever changes it, or presents it to the queue, does so in a
    turn of `Turns`; otherwise a renewal could slip in between and make the presented one stale.

    Args:
        ticket: what the claim returned.
        is_clipped: whether the lease ends at the job's deadline, beyond which there is none.
    """

    __slots__ = ("is_clipped", "is_let_go", "is_lost", "ticket")

    def __init__(self, ticket: Ticket, *, is_clipped: bool) -> None:
        self.ticket = ticket
        self.is_clipped = is_clipped
        #: The send has ended in a way that cannot be recorded: the lease is left to run out.
        self.is_let_go = False
        #: The lease has ended, or the job is another's.
        self.is_lost = False

    def wants_renewal(self) -> bool:
        """Return whether a longer lease is possible and of use."""
        return not (self.is_clipped or self.is_let_go or self.is_lost)
