"""What was tried on the way to a layer, and what it took."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from attlas.numerics import Event, Progress, Status
from attlas.recovery.certificate import Certificate, Recovery
from attlas.recovery.clock import Clock
from attlas.recovery.layer import Layer


class Attempt(NamedTuple):
    """A layer that was tried, its certificate, and how the search for it ended if that is not met."""

    layer: Layer
    certificate: Certificate
    ended: Status

    def refused(self, reason: str) -> "Attempt":
        """Return the same, its certificate not met."""
        return self._replace(certificate=replace(self.certificate, met=False, noise=float("nan"), reason=reason))


class Attempts(list[Attempt]):
    """All attempts so far. `most` is how often it will tell of its progress at most."""

    def __init__(self, clock: Clock, progress: Progress | None, most: int) -> None:
        super().__init__()
        self.clock, self._progress, self._most, self._told = clock, progress, most, 0

    def tell(self, text: str, value: float) -> None:
        """Report one more step."""
        self._told += 1
        if self._progress is not None:
            self._progress(Event(self._told, self._most, text, value))

    def recovery(self, best: Attempt, queries: int = 0, tokens: int | None = None) -> Recovery:
        """Return one of the attempts as the result, with what all of them took."""
        certificate = replace(
            best.certificate,
            starts=sum(one.certificate.starts for one in self),
            steps=sum(one.certificate.steps for one in self),
            queries=queries,
            seconds=self.clock.seconds,
        )
        return Recovery(
            best.layer,
            Status.CONVERGED if certificate.met else best.ended,
            certificate.residual,
            certificate.steps,
            np.array([(one.layer.heads, one.certificate.residual) for one in self]),
            certificate=certificate,
            tokens=tokens,
        )
