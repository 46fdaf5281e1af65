import pytest
from hypothesis import given
from hypothesis import strategies as st

from attlas.errors import InputError
from attlas.explorer.controls import Choice, Slider, read, typeset
from attlas.explorer.plotting import written

RHO = Slider("rho", "Width", 0.05, 1.5, 0.05, 0.5)
DECAY = Slider("decay", "Decay", -4, 0, 0.25, -2, powers=True)
CHANNEL = Choice("channel", "Output", {"softmax": "softmax", "linear": "linear"}, "softmax")


SHARE = Slider("alpha", "Samples", 0.1, 1, 0.1, 0.4, scale=lambda state: 2 * state["rho"])


def test_a_slider_can_hold_a_share_of_what_the_controls_before_it_say() -> None:
    assert read((RHO, SHARE), {"rho": "0.3"})["alpha"] == pytest.approx(0.4 * 2 * 0.3)
    assert read((RHO, SHARE), {"rho": "1", "alpha": "0.52"})["alpha"] == 1.0
    with pytest.raises(InputError, match=r"alpha must be from 0\.1 to 1; got '1\.2'"):
        read((RHO, SHARE), {"alpha": "1.2"})  # a position, not a value


def test_a_state_starts_where_the_controls_start_and_takes_what_is_given() -> None:
    assert read((RHO, DECAY, CHANNEL), {"rho": "0.3", "other": "x"}) == {
        "rho": 0.3,
        "decay": 0.01,
        "channel": "softmax",
    }


@pytest.mark.parametrize("value", ["<b>", "nan", "inf", "1e9", "-1", "", None, [], {}, "0.5; DROP", "0x1"])
def test_a_slider_refuses_what_it_has_no_position_for(value: object) -> None:
    with pytest.raises(InputError, match=r"rho must be from 0\.05 to 1\.5"):
        RHO.read(value)


@pytest.mark.parametrize("value", ["<script>", "", None, 3, ["softmax"], "Softmax"])
def test_a_choice_refuses_what_is_no_option(value: object) -> None:
    with pytest.raises(InputError, match="channel must be one of softmax, linear"):
        CHANNEL.read(value)


@given(st.floats(0.05, 1.5))
def test_a_slider_snaps_to_its_steps_so_that_answers_can_be_remembered(value: float) -> None:
    found = RHO.read(value)
    assert abs(found - value) <= 0.025 + 1e-9
    assert RHO.read(found) == found
    assert abs(found / 0.05 - round(found / 0.05)) < 1e-9


def test_a_scale_is_told_for_every_position_that_it_depends_on() -> None:
    by = {"kind": ("a", "b"), "tokens": range(1, 3)}
    slider = Slider("alpha", "Samples α", 0, 1, 0.1, 0.5, scale=lambda s: ord(s["kind"]) / s["tokens"], by=by)
    assert slider.scales() == {"a,1": 97.0, "a,2": 48.5, "b,1": 98.0, "b,2": 49.0}
    assert slider.read(0.5, {"kind": "b", "tokens": 2}) == 24.5
    assert Slider("alpha", "Samples α", 0, 1, 0.1, 0.5).scales() == {}


def test_symbols_of_a_label_are_in_italics_and_words_are_not() -> None:
    def italics(text):
        return [part.children for part in typeset(text) if not isinstance(part, str)]

    assert italics("Samples α = n/d²") == ["α", "n", "d"]
    assert italics("Examples of a context α = ℓ/d") == ["α", "d"]
    assert italics("Penalty α over the kernel's trace") == ["α"]
    assert italics("Label noise") == []


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.1248, "0.125"), (1e-6, "10⁻⁶"), (-0.5, "−0.5"), (2.5e-4, "2.5 × 10⁻⁴"), (320, "320"), (0, "0")],
)
def test_numbers_are_typeset(value, text) -> None:
    assert written(value) == text
