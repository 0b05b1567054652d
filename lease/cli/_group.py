"""A group of commands that knows what a mistyped one was meant to be."""

from difflib import get_close_matches

import click


class Group(click.Group):
    """Suggests a command's name; click does so from some version on, and only for eager ones."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or say which one looks like it."""
        names = self.list_commands(ctx)
        near = get_close_matches(args[0], names, n=1)
        if args[0] not in names and near:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)
