"""Claims about learning in context."""

from attlas.claims.door import Door

DOOR = Door(
    key="context",
    order=5,
    title="Learning in context",
    question="What does a layer learn to learn, from how many tasks, contexts and examples?",
    about=(
        "A layer of linear attention reads examples of a task it has never seen and predicts the next label. It was"
        " trained on finitely many tasks and sequences; the theory says what it does with new tasks and with those of"
        " training."
    ),
    formula=(
        r"\hat y=x^\top\Gamma h,\quad h=\left[\frac{d}{\ell}\sum_i y_i x_i;\;\frac{1}{\ell}\sum_i y_i^2\right],\quad"
        r"\min_\Gamma\sum_\mu(y_\mu-x_\mu^\top\Gamma h_\mu)^2+\frac{n}{d}\lambda\lVert\Gamma\rVert^2"
    ),
    papers=("lu2024asymptotic", "letey2025pretrain", "raventos2023pretraining", "zhang2025training"),
    headline="context.not-bayes",
)
