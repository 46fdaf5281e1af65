"""The runs that a visitor has made, as the browser holds them: checked when they come back, the last ones kept."""

from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

R = TypeVar("R", bound=BaseModel)
MOST = 20  # runs that are shown


class Visits(Generic[R]):
    """What pages with a job do with the runs of a visitor.

    Parameters
    ----------
    run : type
        The model of one run; it has a ``seed``.
    """

    def __init__(self, run: type[R]) -> None:
        self.run = run
        self._list = TypeAdapter(list[run])  # type: ignore[valid-type]

    def parse(self, found: Any) -> list[R]:
        """Return a visitor's runs; what a browser sends that is anything else counts as none."""
        try:
            return self._list.validate_python(found)[-MOST:]
        except ValidationError:
            return []

    def next_seed(self, runs: Sequence[R]) -> int:
        """Return a seed that none of the runs has."""
        return 1 + max((run.seed for run in runs), default=-1)  # type: ignore[attr-defined]

    def added(self, runs: Sequence[R], made: Mapping[str, Any]) -> Any:
        """Return the runs and one more, made of those entries that a run has, as the browser is sent them."""
        return self.dumped([*runs, self.run(**{name: made[name] for name in self.run.model_fields})])

    def dumped(self, runs: Sequence[R]) -> Any:
        """Return the last runs, as the browser is sent them."""
        return self._list.dump_python(list(runs)[-MOST:])
