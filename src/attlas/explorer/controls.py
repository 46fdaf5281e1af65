"""What a visitor can move: sliders and choices, their positions in the address bar, and the check of what comes back."""

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
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
        ``scale(state) -> float``: the value is the position times this.
    by : dict
        The controls before this one that the scale depends on, and every position of each.
    only : dict
        Values of other controls under which this one does something, by name; elsewhere it is disabled.
    why : str
        What a visitor reads beside a control that is disabled.
    """

    name: str
    label: str
    low: float
    high: float
    step: float
    start: float
    powers: bool = False
    scale: Callable[[State], float] | None = None
    by: Mapping[str, Collection[Any]] = field(default_factory=dict, hash=False)
    only: Mapping[str, Collection[Any]] = field(default_factory=dict, hash=False)
    why: str = ""

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

    def scales(self) -> dict[str, float]:
        """Return the scale by the positions that it depends on, so that the browser can write the value without asking."""
        if not self.scale:
            return {}
        places = (dict(zip(self.by, place, strict=True)) for place in product(*self.by.values()))
        return {",".join(map(_plain, place.values())): self.scale(place) for place in places}

    def show(self, door: str, given: Mapping[str, Any]) -> Any:
        """Return the labelled control, set to the position that is given for it."""
        from dash import dcc, html

        name = identity(door, self.name)
        value = given.get(self.name, self.start)
        label = html.Label(
            [html.Span(typeset(self.label)), html.Span(className="value")],
            htmlFor=json.dumps(name, separators=(",", ":")),
        )
        control = dcc.Input(id=name, type="range", min=self.low, max=self.high, step=self.step, value=value)
        form = {"powers": self.powers, "scales": self.scales(), "by": list(self.by)}
        form |= {"low": self.low, "high": self.high, "step": self.step}
        return _place(self, door, form, [label, control])


@dataclass(frozen=True)
class Choice:
    """One of a few names; `only` and `why` are those of a `Slider`."""

    name: str
    label: str
    options: Mapping[str, str] = field(hash=False)
    start: str
    only: Mapping[str, Collection[Any]] = field(default_factory=dict, hash=False)
    why: str = ""
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
        form = {"options": dict(self.options)}
        return _place(self, door, form, [html.Legend(typeset(self.label)), buttons])


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


def typeset(text: str) -> list[Any]:
    """Return a label with its symbols in italics: letters that stand alone, but for the word "a"."""
    from dash import html

    parts = re.split(r"(?<![A-Za-zα-ω'])([b-zB-Zα-ω])(?![A-Za-zα-ω'])", text)
    return [html.I(part) if i % 2 else part for i, part in enumerate(parts) if part]


def _place(control: Control, door: str, form: dict[str, Any], content: list[Any]) -> Any:
    """Return the place of a control, which tells the browser its `form`, and under which settings it does something."""
    from dash import html

    only = {name: list(map(_plain, values)) for name, values in control.only.items()}
    says: Any = {"data-form": json.dumps(form | {"only": only, "why": control.why}, separators=(",", ":"))}
    name = identity(door, control.name)["control"]
    return html.Fieldset([*content, html.P(className="why")], className="control", **says, **{"data-control": name})


def _plain(value: Any) -> str:
    """Return a position as the browser writes it."""
    return value if isinstance(value, str) else f"{value:.12g}"
