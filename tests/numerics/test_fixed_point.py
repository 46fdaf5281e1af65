import mpmath
import numpy as np
import pytest

from attlas.errors import ConvergenceError, InputError
from attlas.numerics import Status, fixed_point


def test_cosine_against_mpmath():
    exact = float(mpmath.findroot(lambda x: mpmath.cos(x) - x, 0.7))
    solution = fixed_point(np.cos, 1.0, tolerance=1e-14)
    assert solution.converged
    assert solution.value == pytest.approx(exact, abs=1e-14)
    assert solution.steps == len(solution.trace)
    assert solution.residual == solution.trace[-1]


def test_damping_turns_a_cycle_into_a_solution_and_moves_no_fixed_point():
    """x -> 2 / x jumps between two values forever; halfway steps are Newton's for sqrt(2)."""
    assert fixed_point(lambda x: 2 / x, 1.0, max_steps=50, throw=False).status is Status.OUT_OF_STEPS
    assert fixed_point(lambda x: 2 / x, 1.0, damping=0.5).value == pytest.approx(np.sqrt(2), abs=1e-10)


def test_arrays():
    A = np.array([[0.1, 0.2], [0.0, 0.3]])
    solution = fixed_point(lambda x: A @ x + 1, np.zeros(2))
    np.testing.assert_allclose(solution.value, np.linalg.solve(np.eye(2) - A, np.ones(2)), atol=1e-9)


def test_failure_raises_with_what_was_reached():
    with pytest.raises(ConvergenceError, match="out of steps after 3 steps") as error:
        fixed_point(np.cos, 1.0, max_steps=3)
    assert error.value.solution.steps == 3
    with pytest.raises(ConvergenceError, match="diverged"):
        fixed_point(lambda x: x**2, 2.0)


def test_slow_is_not_converged():
    """Damping shrinks the step but not the residual, so it cannot fake convergence."""
    solution = fixed_point(lambda x: x + 1.0, 0.0, damping=0.999999, tolerance=1e-3, max_steps=10, throw=False)
    assert solution.status is Status.OUT_OF_STEPS


@pytest.mark.parametrize("options", [{"damping": 1.0}, {"damping": -0.1}, {"tolerance": 0.0}, {"max_steps": 0}])
def test_bad_options(options):
    with pytest.raises(InputError):
        fixed_point(np.cos, 1.0, **options)


def test_a_map_that_works_in_place_is_not_taken_for_converged():
    def halve(x):
        x *= 0.5
        return x

    start = np.ones(2)
    solution = fixed_point(halve, start)
    np.testing.assert_array_equal(start, 1)
    assert np.abs(solution.value).max() < 1e-9
    with pytest.raises(InputError, match="keep the shape"):
        fixed_point(lambda x: np.ones(3), start)
