"""`python -m lease` is the `lease` command."""

from lease.cli import main

if __name__ == "__main__":
    main()
