"""So that `python -m attlas` is `attlas`."""

from attlas.cli import main

main()
