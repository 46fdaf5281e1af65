"""Claims about attention-indexed models."""

from attlas.claims.door import Door

DOOR = Door(
    key="aim",
    order=3,
    title="Bayes limits",
    question="What is the best error any learner can reach, and which algorithms get there?",
    about="A query-key matrix is drawn at random; a learner sees the attention of random sequences and knows the prior.",
    formula=r"y=\operatorname{softmax}(\beta h),\qquad h_{ab}=\frac{x_a^\top S\,x_b-\delta_{ab}\operatorname{Tr}S}{\sqrt d}",
    papers=("boncoraglio2025bayes",),
    headline="aim.softmax-threshold",
)
