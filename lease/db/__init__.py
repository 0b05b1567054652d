"""How SQL gets run: the named statements, the write transaction, opening and migrating files."""
