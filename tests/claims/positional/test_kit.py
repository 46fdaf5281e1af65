import numpy as np
import pytest

from attlas import positional
from attlas.claims import Measurement
from attlas.claims.positional import kit
from attlas.claims.positional.state_evolution import Point


def test_tasks_of_other_settings_and_sizes_share_no_number():
    points = [Point(alpha=2, d=20), Point(alpha=3, d=20), Point(alpha=2, d=21), Point(alpha=2, d=20, encoding=2)]
    first = {float(kit.draw_task(point, point.alpha, 5).X[0, 0, 0]) for point in points}
    assert len(first) == len(points)


def test_the_spread_has_mean_one_and_scatters_with_the_loss_of_position():
    point = Point(alpha=3, d=100)
    tasks = [kit.draw_task(point, 3, seed) for seed in range(60)]
    spreads = np.array([kit.spread(task) for task in tasks])
    assert abs(spreads.mean() - 1) < 4 * spreads.std() / np.sqrt(60)
    losses = [positional.minimise(task, "positional").loss for task in tasks]
    assert np.corrcoef(spreads, losses)[0, 1] > 0.8


def test_the_first_samples_of_a_task():
    task = kit.draw_task(Point(alpha=3, d=20), 3, 0)
    less = kit.part(task, 1.5)
    assert less.alpha == pytest.approx(1.5)
    assert np.array_equal(less.X, task.X[:30])


def test_leaks_touch_the_first_seed_of_every_place():
    points = [Point(alpha=2, d=20), Point(alpha=3, d=20)]
    rows = [Measurement(p, seed, {"error": 2.0, "other": 1.0}) for p in points for seed in (5, 3)]
    changed = kit.leaks("error", "missing")(rows, 0.5)
    assert [m.result["error"] for m in changed] == [2, 1, 2, 1]
    assert all(m.result["other"] == 1 for m in changed)


def test_theory_and_crossings():
    """The checked numbers of the door."""
    model = positional.Model(0.3, 3.0)
    assert kit.theory(model, 3.0, "semantic").loss == pytest.approx(0.1071504940, rel=2e-4)
    assert kit.switch(model) == (pytest.approx(2.565915, rel=1e-3), True)
    assert kit.crossing(model) == (pytest.approx(1.835, rel=1e-3), True)
