"""Place and meaning: theory as multiples of one 2048 x 2048 matrix product (G), a fit as a multiple of its own products."""

import numpy as np

from attlas import positional
from timing import best


def main():
    a = np.random.default_rng(0).standard_normal((2048, 2048))
    product = best(lambda: a @ a)
    model = positional.Model(mixture=0.3, encoding=3.0)
    positional.state_evolution(model, 3, "semantic", tol=1e-4)  # compiles
    for tol, aim in ((1e-4, 1), (1e-6, 3), (1e-8, 10)):
        for branch in ("positional", "semantic"):
            taken = best(lambda tol=tol, branch=branch: positional.state_evolution(model, 3, branch, tol=tol), 2)
            print(f"fixed point, {branch}, tol {tol:g}: {taken / product:.2f} G (aim: {aim})")
    taken = best(lambda: positional.switch(model), 1)
    print(f"switch: {taken / product:.1f} G (aim: 10)")
    taken = best(lambda: positional.curve(model, np.linspace(0.5, 5, 30), tol=1e-4), 1)
    print(f"curve of 30 points, two branches, tol 1e-4: {taken / product:.1f} G (aim: 50)")

    task = positional.sample(model, d=500, alpha=3, seed=0)
    fit = positional.minimise(task, "semantic")
    calls, rotated, Q = len(fit.history), task.X.reshape(-1, task.d), task.Q
    g = rotated @ Q
    products = calls * (best(lambda: rotated @ Q, 10) + best(lambda: g @ rotated, 10))
    objective = positional.Objective(task)
    taken = best(lambda: objective.value_and_gradient(Q), 10)
    print(f"objective and gradient at d=500, alpha=3: {taken * calls / products:.2f} x their products alone (aim: 1.5)")
    taken = best(lambda: positional.minimise(task, "semantic"))
    print(f"fit there, {calls} calls and all around them: {taken / products:.2f} x its products alone (aim: 4)")
    taken = best(lambda: positional.sharpness(task, fit.value))
    products = positional.sharpness(task, fit.value).steps / calls * products
    print(f"sharpness there: {taken / products:.2f} x its products alone (aim: 3)")

    data = positional.sample_teacher(2, 1000, 0.6, 0)
    found = positional.message_passing(data.X, z=data.z[:, :, 0])
    flat, Q = data.X.reshape(-1, 1000), data.W[:, 0]
    g = flat @ Q
    products = found.steps * (best(lambda: flat @ Q, 10) + best(lambda: g @ flat, 10))
    taken = best(lambda: positional.message_passing(data.X, z=data.z[:, :, 0]))
    print(f"message passing at d=1000, {found.steps} steps: {taken / products:.2f} x its products alone (aim: 1.5)")


if __name__ == "__main__":
    main()
