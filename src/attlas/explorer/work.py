"""Does the work of one job, in a process of its own: ``python -m attlas.explorer.work DOOR JOB SETTINGS``.

It prints lines of JSON: {"share", "text", "numbers"} on the way, {"result"} or {"error"} at the end. No other page is
imported.
"""

import json
import os
import signal
import sys
from typing import Any

import numpy as np

from attlas.errors import AttlasError
from attlas.explorer.pages import find
from attlas.numerics import Event

LONGEST = 150  # seconds


def main() -> None:
    """Do one piece of work."""

    def send(**message: Any) -> None:
        sys.stdout.write(json.dumps(message, default=_plain) + "\n")
        sys.stdout.flush()

    door, job, settings = sys.argv[1:]
    signal.alarm(LONGEST)  # also where the server that would stop it is gone
    try:
        work = find(door).jobs[job].work
        send(result=work(lambda event: send(**_told(event)), **json.loads(settings)))
    except AttlasError as error:
        send(error=str(error))
    except BrokenPipeError:  # nobody listens any more
        os._exit(1)


def _told(event: Event) -> dict[str, Any]:
    """Return what is sent of an event; a number that there is not is null."""
    numbers = [number if np.isfinite(number) else None for number in (event.value, event.true_error)]
    return {"share": event.share, "text": event.text, "numbers": numbers}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{type(value)} cannot be sent")


if __name__ == "__main__":
    main()
