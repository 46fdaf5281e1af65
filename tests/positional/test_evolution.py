"""Both branches of the state evolution: checked numbers, the envelope, stability, and what is said where theory ends."""

import numpy as np
import pytest

from attlas.errors import ConvergenceError, InputError
from attlas.numerics import Status
from attlas.positional import Model, Order, curve, state_evolution
from tests.positional.settings import HALF, F, G, P, point

NAMES = ("q", "order", "V", "loss", "test", "train", "envelope")
# an independent program, with the digits that it printed; alpha = 3 at its finest rule
ROWS = [
    (F, 2, "positional", "0.047265089 0.149155458 0.87491061 0.076382336 0.095825784 0.064566064 0.039431688"),
    (F, 2, "semantic", "0.1910017 0.3960145 1.299860 0.0860441 0.0674283 0.0382936 0.0257195"),
    (F, 3, "positional", "0.0460407691 0.1503841958 0.663582745 0.1166501284 0.0953077001 0.0700932908 0.0409302027"),
    (F, 3, "semantic", "0.2657606257 0.4941897827 0.946469618 0.1071504940 0.0440885806 0.0271402251 0.0173626421"),
    (F, 4, "positional", "0.043728346 0.151021810 0.52990087 0.158006470 0.094406142 0.073537192 0.041703660"),
    (F, 4, "semantic", "0.3220316 0.5550377 0.735474 0.1219925 0.0312675 0.0207423 0.0127446"),
    (HALF, 4.2, "positional", "0.032668579 0.145599868 0.52178608 0.096587296 0.053189994 0.042104834 0.023669175"),
    (HALF, 4.2, "semantic", "0.2297218 0.4622899 0.906764 0.1026440 0.0306463 0.0215302 0.0128670"),
    (G, 2, "positional", "0.02299938 0.16937463 7.178420 0.003548641 0.005632435 0.003088653 0.002095543"),
    (G, 2, "semantic", "0.1148174 0.1581586 12.6684 0.00359062 0.00280841 nan nan"),
    (P, 1.25, "positional", "0.04710044 0.25241118 14.903436 0.002719796 0.006790214 0.002844460 0.002258885"),
    (P, 1.25, "semantic", "0.0816248 0.1179264 18.32112 0.00272106 0.00469821 0.00174170 0.00143846"),
]


@pytest.mark.parametrize(("model", "alpha", "branch", "digits"), ROWS)
def test_checked_numbers(model, alpha, branch, digits):
    """To the digits printed and the accuracy of the rules behind them: 2e-9 at alpha = 3, 3e-6 elsewhere."""
    found = point(model, alpha, branch, 1e-8)
    own = found.m if branch == "positional" else found.theta
    values = (found.q, own, found.V, found.loss, found.test, found.train, found.envelope)
    for name, value, text in zip(NAMES, values, digits.split(), strict=True):
        if text != "nan":
            half = 0.55 * 10.0 ** -len(text.split(".")[1])
            relative = 2e-9 if alpha == 3 else 3e-6
            assert abs(value - float(text)) <= half + relative * abs(value), (name, value, text)
    assert found.converged
    assert found.residual < 1e-9


@pytest.mark.parametrize(
    ("model", "alpha", "branch"), [(F, 3, "positional"), (F, 3, "semantic"), (P, 1.25, "positional")]
)
def test_the_usual_tolerance_is_kept(model, alpha, branch):
    usual, fine, coarse = (point(model, alpha, branch, tol) for tol in (1e-6, 1e-8, 1e-4))
    for name in ("loss", "test", "train", "q", "V", "envelope"):
        assert getattr(usual, name) == pytest.approx(getattr(fine, name), rel=2e-6), name
        assert getattr(coarse, name) == pytest.approx(getattr(fine, name), rel=3e-4), name
    assert usual.rule_error < 3e-4


def test_the_envelope_is_the_slope_of_the_loss():
    """Simpson's rule over alpha = 2, 3, 4: 0.081619 against 0.081624, and 0.035972 against 0.035948."""
    for branch, simpson, rise in (("positional", 0.081619, 0.081624), ("semantic", 0.035972, 0.035948)):
        two, three, four = (point(F, alpha, branch, 1e-8) for alpha in (2, 3, 4))
        assert (two.envelope + 4 * three.envelope + four.envelope) / 3 == pytest.approx(simpson, abs=6e-7)
        assert four.loss - two.loss == pytest.approx(rise, abs=6e-7)
        near = point(F, 3.001, branch)
        assert (near.loss - point(F, 3, branch).loss) / 0.001 == pytest.approx(three.envelope, rel=1e-3)


def test_stability():
    """The semantic branch is unstable to position below alpha = 1.09; the positional one is stable to meaning."""
    assert point(F, 1.1, "semantic").slope == pytest.approx(0.852, abs=6e-4)
    unstable = point(F, 1.0, "semantic")
    assert unstable.slope == pytest.approx(1.995, abs=6e-4)
    assert not unstable.stable
    assert any("unstable" in note for note in unstable.notes)
    for alpha, slope in ((2.566, 0.242), (8, 0.475), (32, 0.625)):
        found = state_evolution(F, alpha, "positional", tol=1e-4)
        assert found.slope == pytest.approx(slope, abs=1e-3)
        assert found.stable


def test_where_the_theory_is_exact_and_where_it_is_not():
    for alpha in (2, 3):
        for branch in ("positional", "semantic"):
            found = point(F, alpha, branch)
            assert found.exact
            assert found.replica < 0.16
            assert found.notes == ()
    published = point(P, 1.25, "positional")
    assert published.jump_share == pytest.approx(0.0592, abs=2e-4)
    assert not published.exact
    assert "approximate" in published.notes[0]
    assert point(P, 1.25, "semantic").jump_share == pytest.approx(0.0093, abs=1e-4)
    assert point(G, 2, "positional").jump_share == pytest.approx(1.2e-4, abs=1e-5)
    few = state_evolution(P, 0.8, "semantic", tol=1e-4)
    assert few.theta == pytest.approx(0.0593, abs=1e-4)
    assert few.jump_share == pytest.approx(0.227, abs=2e-3)


def test_a_weak_encoding_has_no_positional_minimum():
    found = state_evolution(Model(0.3, 0.3), 3, "positional", tol=1e-4)
    assert found.converged
    assert found.mechanism == "none"
    assert found.m == 0
    assert any("no positional solution" in note for note in found.notes)
    assert found.standing == "none, approximate"
    strong = state_evolution(Model(0.3, 100.0), 3, "positional", tol=1e-4)
    assert strong.mechanism == "positional"  # m is small since c m is what counts
    assert 100 * strong.m == pytest.approx(0.519, abs=2e-3)


def test_the_semantic_branch_does_not_know_the_encoding():
    other = state_evolution(Model(0.3, 0.0), 3, "semantic", tol=1e-4)
    same = point(F, 3, "semantic", 1e-4)
    assert other.order == same.order
    assert other.slope == 0


def test_tokens_that_are_not_alike():
    """Both branches exist for A_11 != A_22 too; the reference is a simulation, within four standard errors."""
    from attlas.positional import minimise, sample

    model = Model(0.3, 3.0, positional_matrix=[[0.8, 0.2], [0.4, 0.6]])
    for branch, name in (("positional", "m"), ("semantic", "theta")):
        theory = state_evolution(model, 3, branch, tol=1e-4)
        fits = [minimise(sample(model, 400, 3, seed), branch) for seed in range(12)]
        for field in ("loss", "q", name):
            values = np.array([getattr(fit, field) for fit in fits])
            error = values.std(ddof=1) / np.sqrt(len(values))
            assert abs(values.mean() - getattr(theory, field)) < 4 * error + 1e-3 * values.mean(), (branch, field)
    assert theory.attention.sum(1) == pytest.approx([1, 1])


@pytest.mark.parametrize("scale", [3.01, 60.0, 5e-4])
def test_tokens_that_the_integrals_do_not_resolve(scale):
    with pytest.raises(InputError, match=f"token_scale between 0.001 and 3.*got token_scale = {scale:g}"):
        state_evolution(Model(0.3, 3.0, scale), 3, "positional", tol=1e-4, max_steps=1, throw=False)


@pytest.mark.parametrize("scale", [0.05, 0.01])
def test_small_tokens_learn_nothing_at_no_cost(scale):
    """With a decay that is large beside sigma^4 the minimum is Q = 0, whose loss is an integral over the teacher alone."""
    model = Model(0.3, 3.0, scale)
    x, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    targets = model.targets(scale * x[:, None], scale * x)
    expected = 3 * scale**2 * sum(weights @ (t - 0.5) ** 2 @ weights for t in targets)
    found = state_evolution(model, 3, "semantic", tol=1e-4)
    assert found.q == found.theta == 0
    assert found.loss == pytest.approx(expected, rel=2e-4)


def test_meaning_in_small_tokens():
    """theta goes as sigma^2: at sigma = 0.2, with a decay to match, it is below 0.01 and a meaning all the same."""
    from attlas.positional import minimise, sample

    scaled = Model(0.3, 0.0, 0.2, 0.6 * 0.2**4)
    found = state_evolution(scaled, 4, "semantic", tol=1e-4)
    assert found.theta < 0.01
    assert found.mechanism == "semantic"
    fits = [minimise(sample(scaled, 400, 4, seed), "semantic", tol=1e-8, throw=False) for seed in range(8)]
    assert {fit.mechanism for fit in fits} == {"semantic"}
    losses = [fit.loss for fit in fits]
    assert abs(np.mean(losses) - found.loss) < 4 * np.std(losses, ddof=1) / np.sqrt(8)


def test_where_the_equations_have_no_solution_a_search_says_so():
    """A weak encoding, jumps that carry half of the response: for any m the map leads below it."""
    from attlas.positional.averages import COARSE, averages
    from attlas.positional.evolution import response

    model = Model(0.0, 1.5)
    found = state_evolution(model, 2, "positional", tol=1e-4)
    assert found.converged
    assert found.m == 0
    assert found.standing == "none, approximate"
    assert any("may still have a positional minimum" in note for note in found.notes)
    for m, q, V in (
        (0.22, 0.1347, 1.3608),
        (0.15, 0.1861, 1.7646),
        (0.06, 0.2206, 2.0418),
    ):  # q and V settled at this m
        at = averages(model, COARSE, V, q, m, 0.0)
        _, D = response(model, 2, Order(q, m, 0.0, V), at)
        assert np.sqrt(2) * 2 * 1.5 * at.f_s / D < 0.95 * m
    meaning = state_evolution(Model(0.7, 3.0), 1, "semantic", tol=1e-4)
    assert meaning.standing == "none, approximate"


def test_the_search_finds_what_the_iteration_finds():
    """Also between the values that it looks at: at c = 1.5, omega = 0.05, alpha = 8 the map leads up on a short stretch."""
    from attlas.positional.evolution import _Walk, start_of

    for model, alpha, branch in ((F, 3, "semantic"), (Model(0.05, 1.5), 8, "positional")):
        walk = _Walk(model, alpha, branch, 150, None)
        begin = walk.vector(start_of(model, alpha, branch))
        x, status = walk.search(begin, begin)
        assert status is Status.CONVERGED
        expected = state_evolution(model, alpha, branch, tol=1e-4)
        assert np.exp(x[2]) == pytest.approx(expected.m + expected.theta, rel=1e-4)


def test_how_a_point_stands():
    assert point(F, 3, "positional").standing == "exact"
    assert point(F, 1.0, "semantic").standing == "unstable, approximate"
    assert point(P, 1.25, "positional").standing == "approximate"
    assert point(G, 2, "positional").standing == "nearly exact"
    short = state_evolution(F, 3, "positional", max_steps=2, throw=False)
    assert short.standing == "not converged (out of steps)"
    assert len(repr(point(F, 3, "positional"))) < 200
    assert "test=0.0953077" in repr(point(F, 3, "positional"))
    assert type(point(F, 3, "semantic").cosine) is float


def test_starts_and_statuses():
    before = point(F, 3, "positional", 1e-4)
    near = state_evolution(F, 3.05, "positional", start=before, tol=1e-4)
    cold = state_evolution(F, 3.05, "positional", tol=1e-4)
    assert near.steps < cold.steps
    assert near.loss == pytest.approx(cold.loss, rel=1e-5)
    again = state_evolution(F, 3, "positional", start=Order(*before.order), tol=1e-4)
    assert again.steps == 1
    short = state_evolution(F, 3, "positional", max_steps=2, throw=False)
    assert short.status is Status.OUT_OF_STEPS
    assert "Not converged" in short.notes[0]
    with pytest.raises(ConvergenceError, match="positional branch at alpha = 3"):
        state_evolution(F, 3, "positional", max_steps=2)
    with pytest.raises(InputError, match="start must have V"):
        state_evolution(F, 3, "semantic", start=Order(0.1, 0.0, 0.5, 1.0))
    events = []
    state_evolution(F, 3, "semantic", tol=1e-4, progress=events.append)
    assert events[-1].value < 1e-5


def test_curve():
    alphas = [2.0, 4.0, 3.0]
    data = curve(F, alphas, tol=1e-4)
    assert data["loss"].dims == ("branch", "alpha")
    assert data["converged"].all()
    assert data["present"].all()
    assert data["exact"].all()
    assert data["stable"].all()
    assert (data["status"] == "exact").all()
    few = curve(F, [1.0, 0.25], tol=1e-4)
    assert list(few["status"].sel(branch="semantic").values) == ["unstable, approximate", "none, approximate"]
    assert not few["stable"].sel(branch="semantic", alpha=1.0)
    for i, branch in enumerate(("positional", "semantic")):
        for j, alpha in enumerate(alphas):
            assert float(data["loss"][i, j]) == pytest.approx(point(F, int(alpha), branch, 1e-8).loss, rel=2e-4)
    assert data.attrs["baseline"] == pytest.approx(0.0728612832)
    alone = curve(Model(0.3, 0.0), 3.0, tol=1e-4)
    assert np.isnan(alone["loss"].sel(branch="positional")).all()
    assert (alone["status"].sel(branch="positional") == "none: no encoding").all()
    assert alone["converged"].sel(branch="semantic").all()
    with pytest.raises(InputError, match="alpha must be a number or a list"):
        curve(F, [[1.0]])
