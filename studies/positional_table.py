"""Computes the table of fixed points that comes with attlas: both branches over alpha, mixture and encoding.

    python studies/positional_table.py src/attlas/positional/fixed_points.npz

About 10 minutes on one core, most of them where the encoding is weak and there is no positional solution.
"""

import sys
from pathlib import Path

import numpy as np

from attlas.positional import Model
from attlas.positional.curves import follow
from attlas.positional.shipped import FIELDS

ALPHA = np.r_[np.arange(0.25, 4.01, 0.125), 5, 6, 7, 8, 10]
MIXTURE = np.round(np.arange(0, 0.701, 0.1), 10)
ENCODING = np.array([1.5, 2, 2.5, 3, 3.5, 4, 5, 6, 8])


def main(target):
    shape = (len(MIXTURE), len(ALPHA))
    semantic, settled = np.zeros((len(FIELDS), *shape)), np.zeros(shape, bool)
    for j, mixture in enumerate(MIXTURE):
        semantic[:, j], settled[j] = branch(Model(mixture, 1.0), "semantic")
    print("semantic branch done", flush=True)
    shape = (len(ENCODING), *shape)
    positional, positional_settled = np.zeros((len(FIELDS), *shape)), np.zeros(shape, bool)
    for i, encoding in enumerate(ENCODING):
        for j, mixture in enumerate(MIXTURE):
            positional[:, i, j], positional_settled[i, j] = branch(Model(mixture, encoding), "positional")
        print(f"encoding {encoding:g} done, settled: {positional_settled[i].mean():.3f}", flush=True)
    np.savez_compressed(
        target,
        alpha=ALPHA,
        mixture=MIXTURE,
        encoding=ENCODING,
        token_scale=1.0,
        decay=0.5,
        positional=positional.astype(np.float32),
        semantic=semantic.astype(np.float32),
        positional_settled=positional_settled,
        semantic_settled=settled,
    )
    print(f"{target}: {Path(target).stat().st_size / 1000:.0f} kB, settled {settled.mean():.3f} of the semantic cells")


def branch(model, name):
    """Return the fields of one branch over alpha, followed downward, and whether each point settled.

    Where the branch does not exist m or theta is zero.
    """
    values, settled, before = np.full((len(FIELDS), len(ALPHA)), np.nan), np.zeros(len(ALPHA), bool), None
    for k in np.argsort(-ALPHA):
        before = follow(model, float(ALPHA[k]), name, before, tol=1e-4)
        values[:, k] = [before.attention[0, 0] if f == "diagonal" else getattr(before, f) for f in FIELDS]
        settled[k] = before.converged
    return values, settled


if __name__ == "__main__":
    main(sys.argv[1])
