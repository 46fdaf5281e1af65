"""Asking: an oracle gives the last token's output for any sequence one cares to send; one at a time, or many in a call."""

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from attlas.errors import AttlasError, InputError
from attlas.inputs import plain
from attlas.recovery.torch_modules import answer, is_module, single_precision

Array = NDArray[np.float64]
Oracle = Callable[[Array], Any]
Task = Generator[Any, Any, Any]  # yields a sequence (k, d), or Tasks, and is sent the answer, or what they return


class OutOfQueries(AttlasError):
    """The budget of queries is used up."""


class Lost(AttlasError):
    """This plane or these final tokens do not separate the heads; others may. A task may catch it of those it waits for."""


class Tasks(NamedTuple):
    """Tasks that do not depend on each other's answers."""

    each: Sequence[Task]


class CountingOracle:
    """An oracle that counts its queries, repeats and averages them, and checks every answer.

    Parameters
    ----------
    oracle : callable
        Of one sequence (k, d); of many (n, k, d), with `batch`; or a PyTorch module.
    d : int
    repeats : int
        Ask everything so often and average.
    batch : bool
        Whether the oracle takes many sequences of the same length in a call; modules do.
    max_queries : int, optional
        Beyond which `OutOfQueries` is raised.
    """

    def __init__(
        self, oracle: Oracle, d: int, repeats: int = 1, batch: bool = False, max_queries: int | None = None
    ) -> None:
        if not callable(oracle):
            raise InputError("oracle must be a function of an array (k, d) that returns the last token's output")
        self.single = False
        if is_module(oracle):
            module, batch, self.single = oracle, True, single_precision(oracle)

            def oracle(X: Array) -> Array:
                return answer(module, X)

        self._oracle, self._d, self._repeats = oracle, d, repeats
        self.batch, self.max_queries = batch, max_queries
        self.queries = self.calls = 0
        self.outputs: int | None = None
        self.offset: Array | float = 0.0  # an output bias that is known, and taken off every answer

    def rounded(self, X: Array) -> Array:
        """Return tokens as an oracle of single precision would round them."""
        return X.astype(np.float32).astype(float) if self.single else X

    def __call__(self, X: Array) -> Array:
        """Return the answer (d_out,), averaged over repeats."""
        return self.many([X])[0]

    def many(self, sequences: Sequence[Array]) -> list[Array]:
        """Return the answers to several sequences; those of the same length in one call, if the oracle takes many."""
        totals = [np.zeros(0)] * len(sequences)
        if not self.batch:
            for place, X in enumerate(sequences):
                totals[place] = np.asarray(sum(self._ask(X) for _ in range(self._repeats)) / self._repeats)
        else:
            lengths = np.array([len(X) for X in sequences])
            for length in np.unique(lengths).tolist():
                places = np.flatnonzero(lengths == length).tolist()
                X = np.array([sequences[place] for place in places])
                found = np.asarray(sum(self._ask_many(X) for _ in range(self._repeats)) / self._repeats)
                for place, one in zip(places, found, strict=True):
                    totals[place] = one
        return [total - self.offset for total in totals]

    def run(self, *tasks: Task) -> list[Any]:
        """Run tasks and return what they return: one after the other, or in step, their queries asked in one call."""
        if not self.batch:
            return [self._run_alone(task) for task in tasks]
        top = _Job(None, None, 0)
        ready = top.split(Tasks(tasks))
        while ready:
            asking: list[tuple[_Job, Array]] = []
            while ready:
                job, value = ready.pop(0)
                if job.task is None or not job.alive:
                    continue
                try:
                    request = job.task.throw(value) if isinstance(value, Lost) else job.task.send(value)
                except StopIteration as end:
                    ready += job.ended(end.value)
                except Lost as lost:
                    ready += job.lost(lost)
                else:
                    if isinstance(request, Tasks):
                        ready += job.split(request)
                    else:
                        asking.append((job, request))
            asking = [(job, X) for job, X in asking if job.alive]
            answers = self.many([X for _, X in asking]) if asking else []
            ready = [(job, found) for (job, _), found in zip(asking, answers, strict=True)]
        return top.results

    def _run_alone(self, task: Task) -> Any:
        value: Any = None
        while True:
            try:
                request = task.throw(value) if isinstance(value, Lost) else task.send(value)
            except StopIteration as end:
                return end.value
            if not isinstance(request, Tasks):
                value = self(request)
                continue
            try:
                value = [self._run_alone(one) for one in request.each]
            except Lost as lost:
                value = lost

    def _spend(self, queries: int) -> None:
        if self.max_queries is not None and self.queries + queries > self.max_queries:
            raise OutOfQueries(
                f"{self.queries} of a budget of {self.max_queries} queries are spent, and it takes {queries} more"
            )
        self.queries += queries
        self.calls += 1

    def _ask(self, X: Array) -> Array:
        self._spend(1)
        found = np.atleast_1d(self._answer(X.copy()))
        if found.ndim != 1 or not len(found) or (self.outputs is not None and len(found) != self.outputs):
            expected = "(d_out,)" if self.outputs is None else f"({self.outputs},), as before"
            raise InputError(
                f"the oracle must return the last token's output, shape {expected}; for {X.shape} tokens it returned shape"
                f" {found.shape}"
            )
        self.outputs = len(found)
        return found

    def _ask_many(self, X: Array) -> Array:
        self._spend(len(X))
        found = self._answer(X.copy())
        found = found[:, -1] if found.ndim == 3 and found.shape[:2] == X.shape[:2] else found
        found = found[:, None] if found.shape == (len(X),) else found
        if found.ndim != 2 or len(found) != len(X) or self.outputs not in (None, found.shape[1]) or not found.shape[1]:
            expected = "d_out" if self.outputs is None else f"{self.outputs}, as before"
            raise InputError(
                f"an oracle of many sequences must return ({len(X)}, {expected}), or the outputs of all tokens; for"
                f" {X.shape} tokens it returned shape {found.shape}"
            )
        self.outputs = found.shape[1]
        return found

    def _answer(self, X: Array) -> Array:
        """Return what the oracle says as finite floats, of whatever shape."""
        try:
            said = self._oracle(X)
        except Exception as error:
            raise InputError(f"the oracle raised {type(error).__name__} at query {self.queries}: {error}") from error
        if callable(getattr(said, "detach", None)):  # a tensor that carries gradients
            said = said.detach()
        try:
            if np.iscomplexobj(said):
                raise TypeError
            found = plain(said, "the oracle's answer", "real numbers").astype(float)
        except (TypeError, ValueError) as error:
            if isinstance(said, np.ma.MaskedArray):
                raise
            raise InputError(
                f"the oracle must return real numbers of shape (d_out,); got {type(said).__name__}"
            ) from error
        if not np.isfinite(found).all():
            raise InputError(f"the oracle's answer to query {self.queries} is not finite")
        return np.asarray(found)


class _Job:
    """A task that runs, whom it reports to, and those that it waits for, with their results."""

    def __init__(self, task: Task | None, parent: "_Job | None", place: int) -> None:
        self.task, self.parent, self.place = task, parent, place
        self.children: list[_Job] = []
        self.results: list[Any] = []
        self.waits, self.dropped = 0, False

    @property
    def alive(self) -> bool:
        """Whether somebody still waits for it."""
        return not self.dropped and (self.parent is None or self.parent.alive)

    def split(self, tasks: Tasks) -> list[tuple["_Job", Any]]:
        """Wait for other tasks; return them as ready."""
        self.waits, self.results = len(tasks.each), [None] * len(tasks.each)
        self.children = [_Job(one, self, place) for place, one in enumerate(tasks.each)]
        return [(child, None) for child in self.children] or [(self, [])]

    def ended(self, value: Any) -> list[tuple["_Job", Any]]:
        """Report to the parent; return it as ready if this was the last that it waited for."""
        if self.parent is None:
            return []
        self.parent.results[self.place] = value
        self.parent.waits -= 1
        return [(self.parent, self.parent.results)] if not self.parent.waits else []

    def lost(self, error: Lost) -> list[tuple["_Job", Any]]:
        """Report a failure to the parent, which drops the others it waits for; raise it if that is nobody."""
        if self.parent is None or self.parent.task is None:
            raise error
        for child in self.parent.children:
            child.dropped = True
        return [(self.parent, error)]
