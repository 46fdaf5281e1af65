"""What a job of the explorer does, in a process of its own: ``python -m attlas.explorer.work NAME SETTINGS``.

It prints lines of JSON: {"share", "text"} on the way, {"result"} or {"error"} at the end.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from attlas.errors import AttlasError

LONGEST = 150  # seconds
Tell = Callable[[float, str], None]


def amp(tell: Tell, channel: str, tokens: int, noise: float, rho: float, alpha: float, d: int, seed: int) -> Any:
    """Run message passing on a fresh task; return its true error."""
    from attlas import aim
    from attlas.explorer.pages.aim import channel_of

    steps = 100
    tell(0.0, f"drawing {round(alpha * d * d)} sequences")
    chosen = channel_of(channel, tokens, noise)
    task = aim.sample(chosen, d, alpha, rho, seed)

    found = aim.message_passing(
        task.X,
        task.y,
        chosen,
        rho,
        S=task.S,
        max_steps=steps,
        tol=1e-5,
        throw=False,
        progress=lambda event: tell(event.share, event.text),
    )
    return {
        "error": float(found.mse[-1]),
        "steps": found.steps,
        "converged": found.converged,
        "alpha": len(task.X) / d**2,
        "d": d,
    }


def sculpt(tell: Tell, d: int, scale: float, n: int, seed: int) -> Any:
    """Sculpt a body around two heads of a small layer, and find them; return a frame for every phase."""
    from attlas.explorer.pages.recovery.sculpture import frames

    return frames(tell, d, scale, n, seed)


WORKS: dict[str, Callable[..., Any]] = {"amp": amp, "sculpt": sculpt}


def main() -> None:
    """Do one piece of work."""

    def say(**message: Any) -> None:
        sys.stdout.write(json.dumps(message, default=_plain) + "\n")
        sys.stdout.flush()

    name, settings = sys.argv[1], json.loads(sys.argv[2])
    signal.alarm(LONGEST)  # also where the server that would stop it is gone
    try:
        say(result=WORKS[name](lambda share, text: say(share=share, text=text), **settings))
    except AttlasError as error:
        say(error=str(error))
    except BrokenPipeError:  # nobody listens any more
        os._exit(1)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{type(value)} cannot be sent")


if __name__ == "__main__":
    main()
