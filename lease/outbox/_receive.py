"""Take deliveries out of an accelerator; from then on only the outbox remembers them."""

from lease.checks import integer
from lease.errors import AcceleratorError
from lease.outbox._hint import decode
from lease.outbox.accelerator import Accelerator
from lease.outbox.model import MAX_POP, Record


def receive(accelerator: Accelerator, count: int) -> list[Record]:
    """Pop at most `count` deliveries and check the shape of each.

    Args:
        accelerator: the transient queue.
        count: most deliveries to take, 1-10000.

    Returns:
        The deliveries, for `apply`; none if the queue is empty.

    Raises:
        ValueError: `count` is not of its exact type or out of range; nothing was popped.
        AcceleratorError: the pop failed, or an item is no copy of a record. What was popped
            with it is lost to the queue and still pending in the outbox.

    Hooks: none.
    """
    integer("count", count, 1, MAX_POP)
    items = accelerator.pop(count)
    try:
        return [decode(item) for item in items]
    except ValueError as error:
        raise AcceleratorError(
            f"{accelerator.name}: a popped item is no record: {error}"
        ) from error
