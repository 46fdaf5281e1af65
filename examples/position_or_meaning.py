"""Does a layer with positional encodings attend by place or by meaning? Theory, both minima, and what training finds."""

import argparse

from attlas import positional


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small, for a look at what it does")
    d, seeds = (100, 4) if parser.parse_args().quick else (250, 12)
    model = positional.Model(mixture=0.3, encoding=3.0)

    print(f"meaning is the better fit above alpha = {positional.switch(model, tol=1e-4).value:.3f}")
    for branch in ("positional", "semantic"):
        theory = positional.state_evolution(model, alpha=4, branch=branch, tol=1e-4)
        fit = positional.minimise(positional.sample(model, d, alpha=4, seed=0), branch)
        print(f"{branch:10s} loss {theory.loss:.4f} in theory ({theory.standing}), {fit.loss:.4f} at d = {d}", end="")
        print(f"; sharpness {fit.sharpness:.1f}")
    for encoding in (3.0, 0.0):
        tasks = [positional.sample(positional.Model(0.3, encoding), d, 4, seed) for seed in range(seeds)]
        ends = [positional.minimise(task, "random", "descent", throw=False).mechanism for task in tasks]
        print(f"encoding {encoding:g}: descent finds the meaning in {ends.count('semantic')} of {seeds} runs")


if __name__ == "__main__":
    main()
