"""The claims about recovery: they hold at small size, and what breaks them refutes them."""

import numpy as np
import pytest

from attlas.claims import Measurement, Outcome
from attlas.claims.recovery import agreement as recovery_agreement
from attlas.claims.recovery import cost as recovery_cost
from attlas.claims.recovery import gaussian_tokens as recovery_gaussian_tokens
from attlas.claims.recovery import hard_instances as recovery_hard_instances
from attlas.claims.recovery import identifiability as recovery_identifiability
from attlas.claims.recovery import multi_head as recovery_multi_head
from attlas.claims.recovery import queries as recovery_queries
from attlas.claims.recovery import queries_low_rank as recovery_queries_low_rank
from attlas.claims.recovery import queries_multi_head as recovery_queries_multi_head
from attlas.claims.recovery import queries_noise as recovery_queries_noise
from attlas.claims.recovery import sculpting as recovery_sculpting
from attlas.claims.recovery import single_head as recovery_single_head
from attlas.claims.recovery.kit import learners as recovery_learners
from attlas.claims.recovery.kit import tasks as recovery_tasks
from attlas.recovery import Layer

from .broken import verdict_of


@pytest.mark.parametrize(
    ("module", "points", "seeds"),
    [
        (recovery_single_head, [recovery_single_head.Point(d=4, k=3, n=200)], 3),
        (recovery_queries, [recovery_queries.Point(d=d) for d in (1, 6)], 2),
        (recovery_queries_low_rank, [recovery_queries_low_rank.Point(d=8, rank=2)], 3),
        (recovery_queries_noise, [recovery_queries_noise.Point(noise=10.0**-e, d=5) for e in (6, 5, 4)], 5),
        (recovery_queries_multi_head, [recovery_queries_multi_head.Point(heads=3, d=6)], 25),
        (recovery_identifiability, [recovery_identifiability.Point(pair=p) for p in recovery_identifiability.PAIRS], 2),
        (
            recovery_agreement,
            [recovery_agreement.Point(heads=m, k=k, examples=4000) for m in (2, 3, 4) for k in (2, 3)],
            4,
        ),
    ],
)
def test_it_holds_at_small_size_and_can_be_drawn(module, points, seeds):
    claim = module.CLAIM
    results = [Measurement(p, s, claim.measure(p, s)) for p in points for s in range(seeds)]
    assert claim.judge(results).outcome is Outcome.SUPPORTED
    assert claim.draw(results).axes
    assert all(claim.cost(p).seconds > 0 for p in points)


def test_a_leaked_truth_is_a_failure(monkeypatch):
    """An error of exactly zero means that the learner has seen the answer."""

    def leaked(learner, data, heads, seed, *rest):
        truth, _, _ = recovery_tasks.planted("boolean", heads, 4, 3, 3.0, 200, seed)
        return truth

    monkeypatch.setattr(recovery_single_head, "learned", leaked)
    points = [recovery_single_head.Point(d=4, k=3, n=200)]
    assert verdict_of(recovery_single_head.CLAIM, points, seeds=2).outcome is Outcome.REFUTED


def runs(errors, module=recovery_multi_head):
    point = module.Point(heads=2)
    return [
        Measurement(point, seed, {"varpro": error, "lbfgs": 1e-8, "adam": 0.3}) for seed, error in enumerate(errors)
    ]


@pytest.mark.parametrize("module", [recovery_multi_head, recovery_gaussian_tokens])
def test_successes_are_counted(module):
    assert module.judge(runs([1e-13] * 12, module)).outcome is Outcome.SUPPORTED
    assert module.judge(runs([1e-13] * 3, module)).outcome is Outcome.INCONCLUSIVE
    assert module.judge(runs([0.5] * 12, module)).outcome is Outcome.REFUTED
    assert module.judge(runs([0.0] + [1e-13] * 11, module)).outcome is Outcome.REFUTED
    assert module.judge(runs([np.nan] * 12, module)).outcome is Outcome.REFUTED
    assert len(module.draw(runs([1e-13] * 3, module)).axes) == 1


def test_every_learner_gets_the_same_data():
    point = recovery_multi_head.Point(heads=1, d=4, k=3, n=200, adam_steps=1500)
    result = recovery_multi_head.measure(point, 0)
    assert set(result) == set(recovery_learners.LEARNERS)
    assert 0 < result["varpro"] < 1e-9
    assert 0 < result["lbfgs"] < 1e-4
    assert 0 < result["adam"] < 0.5


def parities(accuracy=0.5, control=1e-9, deviation=1e-15):
    rng = np.random.default_rng(0)
    rows = []
    for seed in range(10):
        result = {"deviation": deviation}
        for name in recovery_tasks.LEARNERS:
            result |= {f"accuracy_{name}": accuracy + rng.normal(0, 0.01), f"control_{name}": control}
            result[f"parity_{name}"] = 0.7
        rows.append(Measurement(recovery_hard_instances.Point(), seed, result))
    return rows


def test_a_parity_must_be_exact_unlearned_and_its_control_solved():
    judge = recovery_hard_instances.judge
    assert judge(parities()).outcome is Outcome.SUPPORTED
    assert judge(parities(accuracy=0.9)).outcome is Outcome.REFUTED
    assert judge(parities(deviation=1e-3)).outcome is Outcome.REFUTED
    assert judge(parities(deviation=np.nan)).outcome is Outcome.REFUTED
    assert judge(parities(control=0.3)).outcome is Outcome.INCONCLUSIVE
    assert len(recovery_hard_instances.draw(parities()).axes) == 2


def test_a_parity_is_measured():
    point = recovery_hard_instances.Point(heads=3, d=6, n=100, adam_steps=50, starts=1, steps=3)
    result = recovery_hard_instances.measure(point, 0)
    assert result["deviation"] < 1e-12
    assert 0 <= result["accuracy_varpro"] <= 1


def test_agreement_that_does_not_fade_refutes():
    def counts(slope):
        return [
            Measurement(
                recovery_agreement.Point(heads=m, k=k),
                seed,
                {"agree": 1e4 * np.exp(slope * (m - 1) * (k - 1) + 0.01 * seed), "rows": 1e5},
            )
            for m in (2, 3, 4)
            for k in (2, 3)
            for seed in range(3)
        ]

    assert recovery_agreement.judge(counts(-1.0)).outcome is Outcome.SUPPORTED
    assert recovery_agreement.judge(counts(0.3)).outcome is Outcome.REFUTED
    assert recovery_agreement.judge(counts(-5.0)).outcome is Outcome.INCONCLUSIVE  # too rare to be counted


def test_wrong_counts_and_wrong_heads_refute():
    point = recovery_queries.Point(d=5)
    good = Measurement(point, 0, {"queries": 30.0, "error": 1e-15, "certificate": 1e-15})
    more = Measurement(point, 1, {"queries": 31.0, "error": 1e-15, "certificate": 1e-15})
    assert recovery_queries.judge([good]).outcome is Outcome.SUPPORTED
    assert recovery_queries.judge([good, more]).outcome is Outcome.REFUTED
    many = recovery_queries_multi_head.Point(heads=2, d=6)

    def isolated(error, certificate=1e-12, queries=200.0):
        result = {"heads": 2.0, "error": error, "certificate": certificate, "queries": queries}
        return [Measurement(many, seed, result) for seed in range(40)]

    judge = recovery_queries_multi_head.judge
    assert judge(isolated(1e-12)).outcome is Outcome.SUPPORTED
    assert judge(isolated(0.1, 0.1)).outcome is Outcome.REFUTED
    assert judge(isolated(1e-12, queries=400.0)).outcome is Outcome.REFUTED  # the bound is 285
    lied = isolated(1e-12)
    lied[0].result.update(error=0.1)
    lied[0] = Measurement(many, 0, {"heads": 2.0, "error": 0.1, "certificate": 1e-12, "queries": 200.0})
    assert judge(lied).outcome is Outcome.REFUTED  # a certificate that lies is worse than none


def test_noise_with_another_power_refutes():
    def noisy(power):
        rng = np.random.default_rng(0)
        return [
            Measurement(
                recovery_queries_noise.Point(noise=s), seed, {"error": 3 * s**power * np.exp(rng.normal(0, 0.05))}
            )
            for s in (1e-6, 1e-5, 1e-4)
            for seed in range(4)
        ]

    assert recovery_queries_noise.judge(noisy(1.0)).outcome is Outcome.SUPPORTED
    assert recovery_queries_noise.judge(noisy(0.5)).outcome is Outcome.REFUTED


def test_different_functions_are_not_the_same_layer(monkeypatch):
    rng = np.random.default_rng(0)
    other = Layer(*rng.standard_normal((2, 1, 5, 5)))
    monkeypatch.setattr(recovery_identifiability, "_pair", lambda *a: (other, Layer(other.Theta + 1e-6, other.W)))
    assert verdict_of(recovery_identifiability.CLAIM, seeds=1).outcome is Outcome.REFUTED


def carved(sculpted):
    rng = np.random.default_rng(0)
    return [
        Measurement(
            recovery_sculpting.Point(),
            seed,
            {
                "sculpted": sculpted * np.exp(rng.normal(0, 0.1)),
                "null": 0.6 * np.exp(rng.normal(0, 0.1)),
                "random_span": 0.5,
                "value_sum": 0.01,
                "gap": 5.0,
                "cosine": 0.9,
                "rank": 64.0,
            },
        )
        for seed in range(5)
    ]


def test_sculpting_must_beat_chance():
    assert recovery_sculpting.judge(carved(0.1)).outcome is Outcome.SUPPORTED
    assert recovery_sculpting.judge(carved(0.52)).outcome is Outcome.INCONCLUSIVE
    assert recovery_sculpting.judge(carved(2.0)).outcome is Outcome.REFUTED
    assert recovery_sculpting.judge(carved(0.1)[:2]).outcome is Outcome.INCONCLUSIVE
    assert len(recovery_sculpting.draw(carved(0.1)).axes) == 2


def worked(power, residual=1e-12):
    rng = np.random.default_rng(0)
    points = [recovery_cost.Point(d=d) for d in (4, 6, 8)]
    points += [recovery_cost.Point(k=k) for k in (2, 8)] + [recovery_cost.Point(heads=m) for m in (1, 3)]
    return [
        Measurement(
            p,
            seed,
            {
                "steps": 10.0 + rng.integers(3),
                "operations": p.d**power * p.k * p.heads**2 * np.exp(rng.normal(0, 0.1)),
                "residual": residual,
            },
        )
        for p in points
        for seed in range(3)
    ]


def test_work_must_stay_below_the_algebra():
    assert recovery_cost.judge(worked(4)).outcome is Outcome.SUPPORTED
    assert recovery_cost.judge(worked(9)).outcome is Outcome.REFUTED
    assert recovery_cost.judge(worked(4, residual=0.3)).outcome is Outcome.REFUTED
    some = worked(4)
    some[0].result["residual"] = np.nan
    assert recovery_cost.judge(some).outcome is Outcome.INCONCLUSIVE
    assert recovery_cost.judge(worked(4)[:6]).outcome is Outcome.INCONCLUSIVE
    assert len(recovery_cost.draw(worked(4)).axes) == 3
    result = recovery_cost.measure(recovery_cost.Point(heads=1, d=3, k=2, n=100), 0)
    assert 0 < result["residual"] < 1e-10
    assert result["operations"] > 1e5
