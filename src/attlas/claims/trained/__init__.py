"""Claims about training with weight decay."""

from attlas.claims.door import Door

DOOR = Door(
    key="trained",
    order=4,
    title="Trained attention",
    question="What does training with weight decay reach, and which decay is best?",
    about="The same query-key matrix, found by gradient descent on the examples with a penalty on its size.",
    formula=r"\min_{S\ge0}\;\sum_\mu\frac{1}{4}\lVert e_\mu\rVert^2+\lambda\,d\operatorname{Tr}S",
    papers=("boncoraglio2025inductive",),
    parent="aim",
    headline="trained.double-descent",
)
