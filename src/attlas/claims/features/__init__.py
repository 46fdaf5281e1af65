"""Claims about random-feature attention."""

from attlas.claims.door import Door

DOOR = Door(
    key="features",
    order=1,
    title="Random features",
    question="What can a layer with frozen random heads learn, from how many samples?",
    about="Query-key matrices are drawn at random and frozen; only the values are trained.",
    formula=r"f(X)=\sum_{m=1}^{M}\langle v_m,\varphi_m(X)\rangle,\qquad"
    r"\varphi_m(X)=\frac{1}{N}\sum_{i=1}^{N}\operatorname{act}(\tilde x_0^\top W_m\tilde x_i)\,\tilde x_i",
    papers=("fu2023random",),
    headline="features.bias-correlation",
)
