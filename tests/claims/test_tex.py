import pytest

from attlas.claims.tex import plain


@pytest.mark.parametrize(
    ("tex", "typed"),
    [
        (r"\alpha > (2\rho - \rho^2)/(T^2+T-2)", "alpha > (2 rho - rho^2)/(T^2 + T - 2)"),
        (r"\frac{2\rho-\rho^2}{T^2+T-2}", "(2 rho - rho^2)/(T^2 + T - 2)"),
        (r"1/2+\rho-\rho^2/2", "1/2 + rho - rho^2/2"),
        (r"d^{-1/2}, M^{-0.3}, 10^{-6}", "d^(-1/2), M^-0.3, 10^-6"),
        (r"\sqrt{B(f)}, \sqrt\Delta", "sqrt(B(f)), sqrt(Delta)"),
        (r"\langle x_i, x_j\rangle", "<x_i, x_j>"),
        (r"\lVert \hat S - S\rVert^2", "||S_hat - S||^2"),
        (r"\rho\to0, S\ge 0, n \gg d", "rho -> 0, S >= 0, n >> d"),
        (r"\bigl(1-\eta(1+m)\bigr)^{2T}", "(1 - eta(1 + m))^(2T)"),
        (r"Q\,(1+\delta_{ab}), d_{\text{head}} = d/H", "Q (1 + delta_ab), d_head = d/H"),
        (r"S = WW^\top", "S = WW^T"),
        (r"\operatorname{softmax}(\beta h)", "softmax(beta h)"),
        (r"-1 < x < 1", "-1 < x < 1"),
        (r"0.5\times d, 3\cdot 4", "0.5 x d, 3 * 4"),
        (r"\frac{1}{2", "1/2"),  # unfinished, and no reason to stop
        (r"x^", "x^()"),
    ],
)
def test_formulas_are_typed_on_one_line(tex, typed):
    assert plain(f"It holds for ${tex}$.") == f"It holds for {typed}."


def test_other_dollars_stay():
    assert plain("between $5 and $6, or 5 $ and 6 $") == "between $5 and $6, or 5 $ and 6 $"
