"""What a visitor can move: sliders and choices, their positions in the address bar, and the check of what comes back."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from attlas.errors import InputError

if TYPE_CHECKING:
    from dash import Input

State = dict[str, Any]  # the value of every control, by name


@dataclass(frozen=True)
class Slider:
    """A number between `low` and `high` in steps.

    Attributes
    ----------
    name : str
        In the address.
    label : str
    low, high, step, start : float
        Of its position.
    powers : bool
        The position is the decimal logarithm of the value.
    scale : callable, optional
        ``scale(state) -> float``: the value is the position times this, which may depend on the controls before it.
    """

    name: str
    label: str
    low: float
    high: float
    step: float
    start: float
    powers: bool = False
    scale: Callable[[State], float] | None = None

    def position(self, given: Any) -> float:
        """Return the position nearest to what is given; raise `InputError` where there is none."""
        try:
            number = float(given)
        except (TypeError, ValueError, OverflowError):
            raise self._refused(given) from None
        if not self.low - 1e-9 <= number <= self.high + 1e-9:
            raise self._refused(given)
        return round(self.low + round((number - self.low) / self.step) * self.step, 10)

    def read(self, given: Any, state: State | None = None) -> float:
        """Return the value at the position that is given; `state` has the values of the controls before this one."""
        position = self.position(given)
        return 10**position if self.powers else position * self.scale(state or {}) if self.scale else position

    def _refused(self, given: Any) -> InputError:
        return InputError(f"{self.name} must be from {self.low:g} to {self.high:g}; got {str(given)[:40]!r}")

    def show(self, door: str, given: Mapping[str, Any]) -> Any:
        """Return the labelled control, set to the position that is given for it."""
        from dash import dcc, html

        name = identity(door, self.name)
        kind = "power" if self.powers else "computed" if self.scale else "number"
        label = [self.label, html.Span(id=name | {"value": kind}, className="value")]
        value = given.get(self.name, self.start)
        control = dcc.Input(id=name, type="range", min=self.low, max=self.high, step=self.step, value=value)
        return html.Div(
            [html.Label(label, htmlFor=json.dumps(name, separators=(",", ":"))), control], className="control"
        )


@dataclass(frozen=True)
class Choice:
    """One of a few names."""

    name: str
    label: str
    options: Mapping[str, str] = field(hash=False)
    start: str
    scale: ClassVar[None] = None

    def position(self, given: Any) -> str:
        """Return the name, if it is one of the options; raise `InputError` otherwise."""
        if not isinstance(given, str) or given not in self.options:
            raise InputError(f"{self.name} must be one of {', '.join(self.options)}; got {str(given)[:40]!r}")
        return given

    def read(self, given: Any, _state: State | None = None) -> str:
        """Return the name that is given."""
        return self.position(given)

    def show(self, door: str, given: Mapping[str, Any]) -> Any:
        """Return the labelled radio buttons, set to what is given for them."""
        from dash import dcc, html

        options: Any = [{"value": value, "label": label} for value, label in self.options.items()]
        value = given.get(self.name, self.start)
        buttons = dcc.RadioItems(options=options, value=value, id=identity(door, self.name), className="choices")
        return html.Fieldset([html.Legend(self.label), buttons], className="control")


Control = Slider | Choice


def read(controls: Sequence[Control], given: Mapping[str, Any]) -> State:
    """Return the state at the positions that are given (by an address, by a page); others are at their start."""
    state: State = {}
    for control in controls:
        state[control.name] = control.read(given.get(control.name, control.start), state)
    return state


def identity(door: str, name: str) -> dict[str, str]:
    """Return the id of a control in the page."""
    return {"control": f"{door}:{name}"}  # no dot: Dash ends ids of outputs at dots


def inputs(door: str, controls: Sequence[Control]) -> "dict[str, Input]":
    """Return the inputs of a callback that is handed the positions of these controls by name."""
    from dash import Input

    return {control.name: Input(identity(door, control.name), "value") for control in controls}
