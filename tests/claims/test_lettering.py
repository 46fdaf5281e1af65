import itertools

import pytest

from attlas.claims.figure import filled_and_hollow, finished, panels
from attlas.claims.lettering import maths, name_ends, powers

from . import pictures


@pytest.mark.parametrize(
    ("label", "said"),
    [
        ("rho = 0.5, T = 2", r"$\rho$ = 0.5, $T$ = 2"),
        ("samples over d²", "samples over $d^2$"),
        ("penalty 1e-06, step 2e-3", r"penalty $10^{-6}$, step $2\times10^{-3}$"),
        ("L-BFGS, a head of sign -1", "L-BFGS, a head of sign −1"),
        ("S >= 0 alone", "$S$ ≥ 0 alone"),
        ("mean of $h_{ab}$", "mean of $h_{ab}$"),
        ("loss - 1", "loss − 1"),
    ],
)
def test_symbols_are_italic_and_signs_true(label, said):
    assert maths(label) == said


def test_one_legend_below_all_panels_where_they_agree():
    figure, axes = panels(2)
    for axis in axes:
        axis.plot([1, 2], [1, 2], "o", color="red", label="one")
    axes[1].plot([1, 2], [2, 3], "s", color="blue", label="alpha = 2")
    finished(figure)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["one", r"$\alpha$ = 2"]
    assert not any(axis.get_legend() for axis in axes)


def test_a_legend_for_each_panel_where_the_same_look_means_another_thing():
    figure, axes = panels(2)
    for axis, label in zip(axes, ("one", "other"), strict=True):
        axis.plot([1, 2], [1, 2], "o", color="red", label=label)
        axis.plot([1, 2], [2, 1], "o", color="red", label=label)
        axis.set(xlabel="x", ylabel="y")
    finished(figure)
    assert [[text.get_text() for text in axis.get_legend().get_texts()] for axis in axes] == [["one"], ["other"]]
    assert pictures.crowded(pictures.laid_out(figure)) == []


def test_settings_have_filled_and_hollow_marks():
    _, (axis,) = panels(1)
    filled_and_hollow(axis, "first", "others")
    first, others = axis.lines
    assert (first.get_label(), others.get_label()) == ("first", "others")
    assert first.get_markerfacecolor() != others.get_markerfacecolor() == "white"


@pytest.mark.parametrize(
    ("ends", "numbers"),
    [
        ((1, 900), ["1", "10", "100"]),
        ((0.3, 3), ["0.5", "1", "2"]),
        ((1e-9, 2), ["$10^{-8}$", "$10^{-6}$", "$10^{-4}$", "$10^{-2}$", "1"]),
    ],
)
def test_logarithmic_axes_have_plain_numbers(ends, numbers):
    figure, (axis,) = panels(1)
    axis.set(xscale="log", yscale="log", ylim=ends)
    axis.plot([1, 2], ends)
    axis.set_ylim(*ends)
    finished(figure)
    written = [text.get_text() for text in pictures.numbers(pictures.laid_out(figure).axes[0].yaxis)]
    assert written[: len(numbers)] == numbers


def test_logarithms_are_written_as_the_powers_that_they_are():
    figure, (axis,) = panels(1)
    axis.plot([0, 1], [-14.3, -11.8])
    powers(axis.yaxis)
    assert axis.get_ylim() == (-15, -11)
    pictures.laid_out(figure)
    assert pictures.numbers(axis.yaxis)[0].get_text() == "$10^{-15}$"


def test_names_at_the_ends_of_lines_do_not_overlap():
    figure, (axis,) = panels(1)
    for height in (1.0, 1.01, 3.0):
        axis.plot([0, 1], [0, height], label=f"ends at {height}")
    name_ends(axis)
    finished(pictures.laid_out(figure))
    boxes = sorted((text.get_window_extent() for text in axis.texts), key=lambda box: box.y0)
    assert len(boxes) == 3
    assert all(low.y1 <= high.y0 + 1 for low, high in itertools.pairwise(boxes))
    assert not figure.legends
