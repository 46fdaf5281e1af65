"""What a visitor can turn: sliders and choices, their state in the address bar, and the check of what comes back."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dash import Input, dcc, html

from attlas.errors import InputError


@dataclass(frozen=True)
class Slider:
    """A number between `low` and `high` in steps; with `powers` the slider holds its decimal logarithm."""

    name: str
    label: str
    low: float
    high: float
    step: float
    start: float
    powers: bool = False

    def position(self, given: Any) -> float:
        """Return the position nearest to what is given; anything that is none is refused."""
        try:
            number = float(given)
        except (TypeError, ValueError, OverflowError):
            raise self._refused(given) from None
        if not self.low - 1e-9 <= number <= self.high + 1e-9:
            raise self._refused(given)
        return round(self.low + round((number - self.low) / self.step) * self.step, 10)

    def read(self, given: Any) -> float:
        """Return the number that a position stands for."""
        return 10 ** self.position(given) if self.powers else self.position(given)

    def _refused(self, given: Any) -> InputError:
        return InputError(f"{self.name} must be from {self.low:g} to {self.high:g}; got {str(given)[:40]!r}")

    def show(self, door: str, given: Mapping[str, Any]) -> Any:
        """Return the labelled control, set to what is given for it."""
        name = identity(door, self.name)
        kind = "powers" if self.powers else "number"
        label = [self.label, html.Span(id=name | {"shown": kind}, className="shown")]
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

    def position(self, given: Any) -> str:
        """Return the name, if it is one of the options."""
        if not isinstance(given, str) or given not in self.options:
            raise InputError(f"{self.name} must be {', '.join(self.options)}; got {str(given)[:40]!r}")
        return given

    read = position

    def show(self, door: str, given: Mapping[str, Any]) -> Any:
        """Return the labelled radio buttons, set to what is given for them."""
        options: Any = [{"value": value, "label": label} for value, label in self.options.items()]
        value = given.get(self.name, self.start)
        buttons = dcc.RadioItems(options=options, value=value, id=identity(door, self.name), className="choices")
        return html.Fieldset([html.Legend(self.label), buttons], className="control")


Control = Slider | Choice


def read(controls: Sequence[Control], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state that `given` (an address, a form) describes; what it does not name is at its start."""
    return {control.name: control.read(given.get(control.name, control.start)) for control in controls}


def identity(door: str, name: str) -> dict[str, str]:
    """Return the id of a control in the page."""
    return {"control": f"{door}:{name}"}  # no dot: Dash ends ids of outputs at dots


def inputs(door: str, controls: Sequence[Control]) -> dict[str, Input]:
    """Return the inputs of a callback that is handed the positions of these controls by name."""
    return {control.name: Input(identity(door, control.name), "value") for control in controls}


def panel(door: str, controls: Sequence[Control], given: Mapping[str, Any]) -> Any:
    """Return all controls, set to `given`."""
    shown = [control.show(door, given) for control in controls]
    return html.Div(shown, className="controls", role="group", **{"aria-label": "Settings"})
