"""How long an attack lasts: a few seconds in CI, minutes with `make attack`."""

import os

LONG = os.environ.get("ATTLAS_ATTACK") == "long"


def times(short, long):
    return long if LONG else short


def tell(text):
    """Print a line of the table in docs/running.md, where somebody looks (`make attack`)."""
    if LONG:
        print(f"\n{text}")  # noqa: T201
