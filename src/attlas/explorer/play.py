"""Buttons under a plot that go through its steps, and play them."""

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Player:
    """Play, step back and step forward; ``assets/play.js`` does what they say, also by the arrow keys.

    Where steps end the plot may say: ``layout.meta.last`` is the last position of the slider that does something. Under
    reduced motion nothing plays by itself, and what is played moves at most every 1.5 seconds.

    Attributes
    ----------
    control : str
        Name of the slider of the section that is moved. Without one the player has a slider of its own, and the browser
        shows of every trace with a ``meta.fade`` the points up to the step of the slider, fainter by that factor with every
        step after them, down to ``meta.least``. Once Run was pressed, the next new ``meta.take`` plays by itself; with
        ``meta.more`` the player waits at the end for more points.
    seconds : float
        From step to step.
    label : str
        Of its own slider.
    """

    control: str = ""
    seconds: float = 1.0
    label: str = "Step"

    def show(self, door: str, plot: str) -> Any:
        """Return the buttons, and the slider if it has its own."""
        from dash import dcc, html

        from attlas.explorer.controls import identity

        name = f"{door}-{plot}-step"
        target = json.dumps(identity(door, self.control), separators=(",", ":")) if self.control else name
        buttons = [
            html.Button(
                className=act, type="button", disabled=True, title=text, **{"data-act": act, "aria-label": text}
            )
            for act, text in (("back", "Step back"), ("play", "Play"), ("forward", "Step forward"))
        ]
        own = [
            html.Label([self.label, html.Span(className="value")], htmlFor=name),
            dcc.Input(id=name, type="range", min=0, max=1, step=1, value=1),
        ]
        says: Any = {"data-moves": target, "data-seconds": str(self.seconds), "aria-label": "Play step by step"}
        children = [*buttons, *([] if self.control else [html.Div(own, className="control")])]
        return html.Div(children, className="player", role="group", **says)
