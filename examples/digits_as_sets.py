"""Digits without a canvas

Take the images of handwritten digits apart: each becomes a set of inked pixels (row,
column, ink) in no order. A layer of frozen random attention heads still reads them, and can
say which pixels decided.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline

from attlas.features import RandomAttentionClassifier, StandardTokens

quick = "--quick" in sys.argv  # a small run, to see what it does
heads, shown = (40, 300) if quick else (300, 1000)

# %%
# A set is a list of tokens. Nothing tells the model that the tokens came from a grid.

images, digits = load_digits(return_X_y=True)
sets = [
    np.column_stack([*np.divmod(np.flatnonzero(image), 8), image[image > 0]])
    for image in images
]
model = make_pipeline(
    StandardTokens(), RandomAttentionClassifier(n_heads=heads, random_state=0)
)
model.fit(sets[:shown], digits[:shown])
accuracy = model.score(sets[shown:], digits[shown:])
print(
    f"accuracy on {len(sets) - shown} new digits after {shown}: {accuracy:.2f} (chance is 0.10)"
)

# %%
# Leave each pixel out in turn and see how much the score of the right digit falls: those
# marked red spoke for it.

scaled, layer = model[0].transform(sets[-200:]), model[-1]
figure, axes = plt.subplots(2, 5, figsize=(8, 3.6), layout="constrained")
for digit, axis in enumerate(axes.flat):
    at = int(np.flatnonzero(digits[-200:] == digit)[0])
    moved = layer.token_importance([scaled[at]])[0]
    moved = moved[:, digit] if moved.ndim == 2 else moved
    row, column, ink = sets[-200:][at].T
    most = np.abs(moved).max()
    axis.scatter(
        column,
        -row,
        s=8 + 9 * ink,
        c=moved,
        cmap="RdBu_r",
        vmin=-most,
        vmax=most,
        edgecolor="#555555",
        linewidth=0.4,
    )
    said = model.predict([sets[-200:][at]])[0]
    axis.set(title=f"read as {said}", aspect="equal", xlim=(-0.7, 7.7), ylim=(-7.7, 0.7))
    axis.axis("off")
figure.savefig("digits_as_sets.png", dpi=150)
