"""``python -m late_chunking``: the command line, for launchers that start modules."""

from late_chunking.cli import main

main()
