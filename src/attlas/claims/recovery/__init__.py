"""Claims about recovering the parameters of a layer."""

from attlas.claims.door import Door

DOOR = Door(
    key="recovery",
    order=2,
    title="Recovery",
    question="Can the parameters of a multi-head layer be recovered, from random examples or from queries?",
    about="All matrices of the layer are unknown; a learner sees random examples, or chooses what to ask.",
    formula=r"F(X)=\sum_{i=1}^{m}\operatorname{softmax}(X\Theta_iX^\top)\,XW_i",
    papers=("chen2024provably", "bhattamishra2026provably"),
    headline="recovery.hard-instances",
)
