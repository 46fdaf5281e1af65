"""Does the work of one job, in a process of its own: ``python -m attlas.explorer.work DOOR JOB SETTINGS``.

It prints lines of JSON: {"share", "text"} on the way, {"result"} or {"error"} at the end. No other page is imported.
"""

import json
import os
import signal
import sys
from typing import Any

import numpy as np

from attlas.errors import AttlasError
from attlas.explorer.pages import find

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
        send(result=work(lambda event: send(share=event.share, text=event.text), **json.loads(settings)))
    except AttlasError as error:
        send(error=str(error))
    except BrokenPipeError:  # nobody listens any more
        os._exit(1)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{type(value)} cannot be sent")


if __name__ == "__main__":
    main()
