"""Claims that look at one layer through every door."""

from attlas.claims.door import Door

DOOR = Door(
    key="lenses",
    order=100,
    title="One teacher, every learner",
    question="What does each learner make of one and the same layer?",
    about="One softmax layer, the same examples for every learner of the atlas, and the limit that none can beat.",
    papers=("boncoraglio2025bayes", "boncoraglio2025inductive", "chen2024provably", "fu2023random"),
    headline="lenses.one-teacher",
)
