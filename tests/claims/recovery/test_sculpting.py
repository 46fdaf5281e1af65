"""recovery.sculpting: a sculpted body must beat chance."""

import numpy as np

from attlas import lab, recovery, tokens
from attlas.claims import Measurement, Outcome
from attlas.claims.recovery.kit.section import section
from attlas.claims.recovery.sculpting import CLAIM, Point
from attlas.numerics import stream

from .small import turned, worded


def carved(sculpted, cosine=0.95, seeds=6):
    rng = np.random.default_rng(0)
    return [
        Measurement(
            point,
            seed,
            {
                "sculpted": sculpted * np.exp(rng.normal(0, 0.1)),
                "null": 0.6 * np.exp(rng.normal(0, 0.1)),
                "random_span": 0.5,
                "value_sum": 0.01,
                "gap": 5.0,
                "cosine": cosine + rng.normal(0, 0.01),
                "rank": 64.0,
            },
        )
        for point in (Point(d=6), Point())
        for seed in range(seeds)
    ]


def test_sculpting_must_beat_chance():
    turned(CLAIM, carved(0.1))
    assert CLAIM.verdict(carved(0.25)).outcome is Outcome.INCONCLUSIVE
    assert CLAIM.verdict(carved(0.45)).outcome is Outcome.REFUTED
    assert CLAIM.verdict(carved(0.1, cosine=0.3)).outcome is Outcome.REFUTED
    assert CLAIM.verdict(carved(0.0)).outcome is Outcome.REFUTED
    assert CLAIM.verdict(carved(0.1, seeds=1)).outcome is Outcome.INCONCLUSIVE
    assert len(CLAIM.draw(carved(0.1)).axes) == 2
    worded(CLAIM, carved(0.1), ") times as large", "random starts do as well after the polish")


def test_a_section_of_the_body_can_be_drawn(tmp_path):
    """The true heads lie along the flattest direction, on both sides of the proxy."""
    truth = recovery.Layer(*recovery.planted_layer(2, 6, stream(0, "teacher"), 3.0))
    X = tokens.boolean(5000, 2, 6, stream(0, "data"))
    figure = section(recovery.sculpt(X, truth(X), 2), truth)
    figure.savefig(tmp_path / "body.png")
    (axis,) = figure.axes
    true = next(line for line in axis.lines if line.get_label() == "true heads")
    assert np.ptp(true.get_xdata()) > 3 * np.ptp(true.get_ydata())
    assert len(axis.lines) > 100


def test_no_two_rows_of_the_figure_have_the_same_name(tmp_path):
    (entry,) = lab.verdicts(["recovery.sculpting"], "full", store=tmp_path / "none.db", shipped=True)
    axis = entry.claim.draw(entry.measurements()).axes[0].yaxis
    named = [axis.get_major_formatter()(at, i) for i, at in enumerate(axis.get_majorticklocs())]
    assert len(set(named)) == len(named) == 5
