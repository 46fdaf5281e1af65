"""The claims about trained attention: measured at small sizes, and what their judges make of right and wrong numbers."""

import dataclasses

import numpy as np
import pytest

from attlas import aim
from attlas.claims.claim import Measurement, Outcome
from attlas.claims.trained import double_descent as trained_double_descent
from attlas.claims.trained import implicit as trained_implicit
from attlas.claims.trained import spectrum as trained_spectrum
from attlas.claims.trained import threshold as trained_threshold
from attlas.claims.trained import weight_decay as trained_weight_decay
from attlas.numerics import stream


def made(module, points, seeds, result):
    """Measurements with results from a function of point, seed and a random stream."""
    rng = stream(0, "made")
    return [Measurement(p, s, result(p, s, rng)) for p in points for s in range(seeds)]


class TestWeightDecay:
    POINTS = tuple(trained_weight_decay.Point(d=d) for d in (20, 40, 80))

    @staticmethod
    def result(excess=1.0, apart=1e-3, gap=1e-5):
        def of(point, seed, rng):
            ratio = excess * (1 + 3 / point.d) + 0.01 * rng.standard_normal()
            theory = {f"theory_{name}": 0.5 for name in trained_weight_decay.QUANTITIES}
            mine = dict.fromkeys(trained_weight_decay.QUANTITIES, 0.5 * ratio)
            return theory | mine | {"apart": apart, "gap": gap, "descended_error": 0.5, "descended_gap": 1e-4}

        return of

    @pytest.mark.parametrize(
        ("options", "outcome"),
        [({}, Outcome.SUPPORTED), ({"excess": 1.15}, Outcome.REFUTED), ({"apart": 0.1}, Outcome.REFUTED),
         ({"gap": 0.1}, Outcome.INCONCLUSIVE)],
    )  # fmt: skip
    def test_judge(self, options, outcome):
        verdict = trained_weight_decay.judge(made(trained_weight_decay, self.POINTS, 8, self.result(**options)))
        assert verdict.outcome is outcome

    @pytest.mark.parametrize("name", ["training", "rank"])
    def test_every_quantity_counts(self, name):
        right = made(trained_weight_decay, self.POINTS, 8, self.result())
        wrong = [dataclasses.replace(m, result=m.result | {name: 2 * m.result[name]}) for m in right]
        assert trained_weight_decay.judge(wrong).outcome is Outcome.REFUTED

    def test_measure(self):
        found = trained_weight_decay.measure(trained_weight_decay.Point(d=24), 0)
        assert found["apart"] < 0.02
        assert found["gap"] < 1e-4
        assert found["error"] == pytest.approx(found["theory_error"], rel=0.4)
        assert found["trace"] == pytest.approx(found["theory_trace"], rel=0.3)


class TestSpectrum:
    POINTS = tuple(trained_spectrum.Point(d=d) for d in (20, 40, 80))

    @pytest.mark.parametrize(
        ("power", "zeros", "outcome"),
        [(-0.8, 0.5, Outcome.SUPPORTED), (0.5, 0.5, Outcome.REFUTED), (-0.1, 0.5, Outcome.REFUTED),
         (-0.8, 0.7, Outcome.REFUTED)],
    )  # fmt: skip
    def test_judge(self, power, zeros, outcome):
        def of(point, seed, rng):
            distance = point.d**power * np.exp(0.05 * rng.standard_normal())
            return {"distance": distance, "unshifted": 4 * distance, "zeros": zeros + 0.01 * rng.standard_normal(),
                    "theory_zeros": 0.5, "top": 1.0, "gap": 1e-6}  # fmt: skip

        assert trained_spectrum.judge(made(trained_spectrum, self.POINTS, 4, of)).outcome is outcome

    def test_quantiles_are_those_of_the_density(self):
        theory = aim.trained(aim.Softmax(2), 0.15, 0.5, 0.1)
        shares = (np.arange(2000) + 0.5) / 2000
        values = trained_spectrum.quantiles(theory, shares)
        assert np.mean(values == 0) == pytest.approx(theory.zero_mass, abs=1e-3)
        assert values.mean() == pytest.approx(theory.trace, abs=1e-3)

    def test_measure(self):
        found = trained_spectrum.measure(trained_spectrum.Point(d=40), 0)
        assert 0 < found["distance"] < 0.15 < found["unshifted"]


class TestThreshold:
    POINTS = tuple(trained_threshold.Point(kind=kind, d=d) for kind in ("trace", "psd") for d in (20, 40, 80))

    @pytest.mark.parametrize(
        ("moved", "end", "outcome"),
        [(0.0, True, Outcome.SUPPORTED), (0.15, True, Outcome.REFUTED), (0.0, False, Outcome.INCONCLUSIVE)],
    )
    def test_judge(self, moved, end, outcome):
        def of(point, seed, rng):
            theory = 0.84 if point.kind == "trace" else 0.875
            A = theory + moved + 0.5 / point.d + 0.01 * rng.standard_normal()
            return {"A": A, "theory": theory, "found_at_the_end": end}

        assert trained_threshold.judge(made(trained_threshold, self.POINTS, 4, of)).outcome is outcome

    @pytest.mark.parametrize("kind", ["trace", "psd"])
    def test_measure(self, kind):
        found = trained_threshold.measure(trained_threshold.Point(kind=kind, d=12), 0)
        assert found["found_at_the_end"]
        assert 0.5 < found["A"] < 1.3


class TestDoubleDescent:
    POINTS = tuple(trained_double_descent.Point(alpha=a, d=20) for a in (0.2, 0.3236, 0.5))

    @pytest.mark.parametrize(
        ("heights", "best", "outcome"),
        [((0.7, 1.2, 0.4), (0.7, 0.4, 0.2), Outcome.SUPPORTED), ((0.7, 0.5, 0.4), (0.7, 0.4, 0.2), Outcome.REFUTED),
         ((0.7, 1.2, 0.4), (3.0, 2.0, 0.2), Outcome.REFUTED)],
    )  # fmt: skip
    def test_judge(self, heights, best, outcome):
        def of(point, seed, rng, theirs=best):
            small = dict(zip((0.2, 0.3236, 0.5), heights, strict=True))[point.alpha]
            best = dict(zip((0.2, 0.3236, 0.5), theirs, strict=True))[point.alpha]
            return {"small": small + 0.02 * rng.standard_normal(), "best": best + 0.02 * rng.standard_normal(),
                    "theory_small": small, "theory_best": best, "limit": small, "bayes": best}  # fmt: skip

        verdict = trained_double_descent.judge(made(trained_double_descent, self.POINTS, 6, of))
        assert verdict.outcome is outcome
        assert verdict.numbers["threshold of interpolation, alpha"] == pytest.approx(0.3236, abs=1e-4)

    def test_measure(self):
        found = trained_double_descent.measure(trained_double_descent.Point(alpha=0.5, d=20, decay=1e-3), 0)
        assert 0 < found["best"] < found["small"]
        assert found["theory_best"] < found["theory_small"]

    def test_sizes_are_not_mixed(self):
        """A seed is a teacher only together with a size: pairing two sizes would widen every interval, or cancel a peak."""

        def of(point, seed, rng):
            size = point.d / 20
            small = {0.2: 0.7, 0.3236: 1.2, 0.5: 0.4}[point.alpha] * size
            best = {0.2: 0.7, 0.3236: 0.4, 0.5: 0.2}[point.alpha] * size
            return {"small": small * (1 + 0.01 * rng.standard_normal()), "best": best, "theory_small": small,
                    "theory_best": best, "limit": small, "bayes": best}  # fmt: skip

        points = [trained_double_descent.Point(alpha=a, d=d) for d in (20, 200) for a in (0.2, 0.3236, 0.5)]
        verdict = trained_double_descent.judge(made(trained_double_descent, points, 4, of))
        assert verdict.outcome is Outcome.SUPPORTED
        assert verdict.numbers["rise to the peak, logarithm ±"] < 0.05
        mixed = made(trained_double_descent, [*points, points[0].model_copy(update={"noise": 1.0})], 4, of)
        assert trained_double_descent.judge(mixed).outcome is Outcome.INCONCLUSIVE


class TestImplicit:
    POINTS = tuple(trained_implicit.Point(d=d) for d in (20, 40))

    @pytest.mark.parametrize(
        ("gap", "loss", "outcome"),
        [(0.2, 1e-9, Outcome.SUPPORTED), (-0.2, 1e-9, Outcome.REFUTED), (0.2, 1e-2, Outcome.INCONCLUSIVE)],
    )
    def test_judge(self, gap, loss, outcome):
        def of(point, seed, rng):
            least = 0.5 + 0.1 * rng.standard_normal()
            return {"least": least, "least_trace": 0.5, "prior": least + gap + 0.02 * rng.standard_normal(),
                    "prior_trace": 0.7, "prior_loss": loss, "small": least, "small_trace": 0.5, "small_loss": loss,
                    "theory": 0.5, "bayes": 0.4}  # fmt: skip

        assert trained_implicit.judge(made(trained_implicit, self.POINTS, 5, of)).outcome is outcome

    def test_measure(self):
        found = trained_implicit.measure(trained_implicit.Point(d=16, steps=3000), 0)
        assert found["prior_loss"] < 1e-3
        assert found["prior_trace"] > found["least_trace"]


@pytest.mark.parametrize(
    "module", [trained_double_descent, trained_implicit, trained_spectrum, trained_threshold, trained_weight_decay]
)
def test_figures(module, tmp_path):
    """Drawn from one small point of the quick tier, twice."""
    point = module.CLAIM.tiers["quick"].points[0]
    point = point.model_copy(update={"d": 12})
    result = module.measure(point, 0)
    found = [Measurement(point, 0, result), Measurement(point, 1, result)]
    module.draw(found).savefig(tmp_path / "figure.png")
    assert dataclasses.is_dataclass(module.judge(found))
