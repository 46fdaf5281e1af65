"""Recover a whole block by asking: attention, residuals and a ReLU network, with a certificate from fresh queries."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from attlas.errors import ConvergenceError
from attlas.inputs import flag, integer, real
from attlas.numerics import Event, Progress, Solution, Status, stream
from attlas.recovery.block.asking import Asking
from attlas.recovery.block.canonical import Block
from attlas.recovery.block.cells import isolated_heads
from attlas.recovery.block.network import Network
from attlas.recovery.block.neurons import network_from_single_tokens
from attlas.recovery.block.pairs import one_head, sum_of_values, values
from attlas.recovery.block.polish import polished
from attlas.recovery.certificate import EXACT, Certificate, small_output_missed
from attlas.recovery.clock import Clock
from attlas.recovery.oracle import CountingOracle, Lost, Oracle, OutOfQueries

Array = NDArray[np.float64]

_ROUNDING = 1e-15
_LOUDEST = 1e-6  # noise that is not tried
_SINGLE = 1e-7  # noise of a module in single precision
_LOST = 300.0  # by how much fresh answers may exceed the noise
_LENGTHS = range(1, 13)  # of the fresh queries of a certificate
_SIZES = (1.0, 5.0)  # of their tokens
_POLISHED = 1e-9  # an error below this leaves nothing to polish
_HOPELESS = 0.3  # an error above this leaves nothing to polish either
_STAGES = 10  # told to `progress`, at most


@dataclass(frozen=True, kw_only=True)
class BlockRecovery(Solution[Block | None]):
    """A recovered block and its certificate.

    Attributes
    ----------
    value, block : Block or None
        The best guess, also where the certificate is not met; None if not even the network was found.
    status : Status
        Converged if and only if the certificate is met. Else out of steps, if `max_queries` ended the search; inaccurate, if
        it ended by itself.
    residual : float
        That of the certificate.
    steps : int
        Ways that were tried.
    history : array
        The residual of each on fresh queries.
    certificate : Certificate
    """

    certificate: Certificate

    @property
    def block(self) -> Block | None:
        """The block that was found."""
        return self.value

    def or_raise(self, what: str = "the block") -> Self:
        """Return self if the certificate is met, else raise `ConvergenceError` with the reason why it is not."""
        if not self.converged:
            raise ConvergenceError(f"{what} is not certified ({self.status}): {self.certificate.reason}", self)
        return self


def learn_block_from_queries(
    oracle: Oracle,
    d: int,
    *,
    noise: float = 0.0,
    max_queries: int | None = None,
    seed: int = 0,
    throw: bool = False,
    progress: Progress | None = None,
) -> BlockRecovery:
    """Recover a whole block from an oracle of its last token's output.

    out(X) = g(a(X)), a(X) = r_a x_N + sum_i sum_j softmax_j(x_N^T Theta_i x_j) x_j W_i,
    g(z) = r_g z + B relu(A z + a0) + b0, x_N the last token.
    Neither the number of heads or neurons nor the residuals are told.

    The network comes from single tokens: kinks along a line are its neurons, and with signs known the rest is linear. Heads
    come from tokens inside a cell where the network is linear: one head from pairs, several by isolating them. Tokens are as
    large as 1e5, and 1e8 for several heads.

    Parameters
    ----------
    oracle : callable
        ``oracle(X)`` with X (k, d), any k >= 1, returns (d_out,) or a number. Or a PyTorch module of sequences (n, k, d),
        asked in evaluation mode; in single precision it has noise of 1e-7, so give ``module.double()``.
    d : int
        Dimension of a token.
    noise : float, default 0
        Of the oracle, relative to its outputs, if it has any; below 1e-6. Kinks, cells and heads are then told from it, and
        the certificate is held against it.
    max_queries : int, optional
        Stop there, with the best so far. About 2.3 (h + 1)(d + 1) + 10 h are needed for the network, 5 d^2 for one head, and
        H d (d + 7) + 22 H and more for several.
    seed : int
        Of the queries. The same seed and answers give the same block.
    throw : bool, default False
        Raise `ConvergenceError` if the certificate is not met.
    progress : callable, optional
        Called with an `Event` after every stage.

    Returns
    -------
    BlockRecovery
        With a certificate from 24 fresh queries of one to twelve tokens. Where it is not met it says why.

    References
    ----------
    bhattamishra2026provably, rolnick2020reverse, carlini2020cryptanalytic.

    Examples
    --------
    >>> from attlas import recovery
    >>> truth = recovery.planted_block(heads=2, d=4, hidden=6, seed=0)
    >>> found = recovery.learn_block_from_queries(truth, d=4)
    >>> found.certificate.met, found.block.heads, found.block.hidden
    (True, 2, 6)
    >>> bool(recovery.block_error(found.block, recovery.canonical_block(truth)) < 1e-9)
    True
    """
    d = integer(d, "d")
    most = None if max_queries is None else integer(max_queries, "max_queries")
    counted = CountingOracle(oracle, d, max_queries=most)
    eps = max(_SINGLE if counted.single else _ROUNDING, real(noise, "noise", least=0, below=_LOUDEST))
    search = _Search(Asking(counted, d, eps), seed, progress)
    flag(throw, "throw")
    try:
        search.run()
    except OutOfQueries as spent:
        search.failed(f"{spent}; allow more (max_queries)", Status.OUT_OF_STEPS)
    found = search.recovery()
    return found.or_raise() if throw else found


class _Search:
    """An oracle that is asked one stage after another."""

    def __init__(self, ask: Asking, seed: int, progress: Progress | None) -> None:
        self.ask, self.seed, self._progress = ask, seed, progress
        self.clock, self.checks, self._told = Clock(), 0, 0
        self.tried: list[tuple[Certificate, Block]] = []
        self.network: Network | None = None
        self.why, self.ended = "", Status.INACCURATE

    def run(self) -> None:
        """Find the network, then the heads, until fresh queries bear a block out."""
        try:
            network = self.network = network_from_single_tokens(self.ask, self._stream("network"))
            self._tell(f"network of {len(network.t)} neurons from {self.ask.queries} queries")
            S = network.seen()
            if not S.shape[1]:
                self.certify(_without_heads(network, S), "single tokens")
                return
            total, pairs = sum_of_values(self.ask, network, S, self._stream("pairs"))
            if float(np.linalg.norm(total)) < _POLISHED:
                self.certify(_without_heads(network, S), "single tokens")
            else:
                theta, missed = one_head(self.ask, network, S, total, pairs, self._stream("one head"))
                self._tell(f"one head misses logits by {missed:.1e}", missed)
                if missed < max(1e-6, 1e4 * self.ask.eps):
                    self.improved(Block(network, theta[None], S, total[None]), "one head")
            if not self.met and self.ask.d >= 2:
                self._several(network, S, total)
            elif not self.met:
                self.failed("not a block of one head, and several are told apart from d = 2 on only")
        except Lost as why:
            self.failed(str(why))

    def _several(self, network: Network, S: Array, total: Array) -> None:
        rng = self._stream("cells")
        for found in isolated_heads(self.ask, network, S, total, rng):
            if isinstance(found, str):
                self.failed(f"heads were not separated: {found}")
                self._tell(self.why)
                continue
            try:
                V = values(self.ask, network, S, found, rng)
            except Lost as why:
                self.failed(f"{len(found)} heads were isolated, but {why}")
                self._tell(self.why)
                continue
            self.improved(Block(network, found, S, V), "isolated")
            if self.met:
                return

    @property
    def met(self) -> bool:
        """Whether a certificate is met."""
        return any(certificate.met for certificate, _ in self.tried)

    def failed(self, why: str, ended: Status = Status.INACCURATE) -> None:
        """Remember why a stage failed."""
        self.why, self.ended = why, ended

    def improved(self, block: Block, source: str) -> None:
        """Certify a block, and once more after a polish if it is close but not exact."""
        error = self.certify(block, source)
        if _POLISHED < error < _HOPELESS:
            self.certify(polished(self.ask, block, self._stream("polish", str(len(self.tried)))), f"{source}, polished")

    def certify(self, block: Block, source: str) -> float:
        """Hold a block's answers to fresh queries against the oracle's, keep it with its certificate, return its error."""
        before, rng = self.ask.queries, self._stream("certificate", str(len(self.tried)))
        fresh = [size * rng.standard_normal((k, self.ask.d)) for size in _SIZES for k in _LENGTHS]
        answers = np.array([self.ask(X) for X in fresh])
        self.checks += self.ask.queries - before
        mine = np.array([block(X) for X in fresh])
        error = _error(mine, answers)
        goal = max(EXACT, _LOST * self.ask.eps)
        unlike = small_output_missed(mine, answers, _LOST * self.ask.eps)
        met = bool(error <= goal) and not unlike
        reason = f"{len(fresh)} fresh queries of 1 to 12 tokens are answered to {error:.1e}"
        if unlike and error <= goal:
            reason += f", but {unlike}"
        elif not met:
            reason += f", not {goal:g}: {self._suspicion(block)}"
        self.tried.append((Certificate(met, reason, error, source=source, starts=1), block))
        self._tell(f"{block.heads} heads, {source}: {reason}", error)
        return error

    def _suspicion(self, block: Block) -> str:
        d, s = block.S.shape
        if s < d and s < block.hidden:
            return f"single tokens show the network in {s} of {d} directions only: r_a I + sum_i W_i may be singular"
        return "two heads may be nearly the same, the oracle noisy, or not such a block"

    def recovery(self) -> BlockRecovery:
        """Return the best of what was tried, certified blocks first."""
        best = min(self.tried, key=lambda one: (not one[0].met, one[0].residual), default=None)
        block = None if best is None else best[1]
        certificate = Certificate(False, self.why, float("inf")) if best is None else best[0]
        reason = certificate.reason
        if self.why and not certificate.met and self.why not in reason:
            reason = f"{reason}; {self.why}"
        certificate = Certificate(
            certificate.met,
            reason,
            certificate.residual,
            source=certificate.source,
            starts=len(self.tried),
            queries=self.ask.queries - self.checks,
            seconds=self.clock.seconds,
        )
        if block is None and self.network is not None:
            block = _without_heads(self.network, self.network.seen())
        return BlockRecovery(
            block,
            Status.CONVERGED if certificate.met else self.ended,
            certificate.residual,
            len(self.tried),
            np.array([one.residual for one, _ in self.tried]),
            certificate=certificate,
        )

    def _stream(self, *names: str) -> np.random.Generator:
        return stream(self.seed, "block", *names)

    def _tell(self, text: str, value: float = float("nan")) -> None:
        if self._progress is not None:
            self._told = min(self._told + 1, _STAGES)
            self._progress(Event(self._told, _STAGES, text, value))


def _without_heads(network: Network, S: Array) -> Block:
    d, s = S.shape
    return Block(network, np.empty((0, d, d)), S, np.empty((0, d, s)))


def _error(mine: Array, theirs: Array) -> float:
    """Return the largest error of an answer, relative to itself or to the root mean square of all, whichever is larger."""
    sizes = np.linalg.norm(theirs, axis=1)
    floor = float(np.sqrt(np.mean(sizes**2)))
    return float(np.max(np.linalg.norm(mine - theirs, axis=1) / np.maximum(sizes, floor if floor > 0 else 1.0)))
