"""`python -m octavo`: the command line, where the command itself is not on the path."""

from octavo.doors.cli import main

if __name__ == "__main__":
    main()
