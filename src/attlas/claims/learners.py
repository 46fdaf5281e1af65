"""One table of learners: the name, the colour and the marker of each, the same in every figure, page and file."""

from typing import NamedTuple


class Learner(NamedTuple):
    """How a learner is shown: its name, its colour (one of ``figure.COLOURS``), its marker as matplotlib calls it."""

    name: str
    colour: str
    marker: str


LEARNERS = {
    "amp": Learner("message passing", "#009E73", "^"),
    "averaged": Learner("averaged descent", "#E69F00", "D"),
    "single": Learner("gradient descent, one run", "#CC79A7", "v"),
    "trained": Learner("training with weight decay", "#D55E00", "s"),
    "varpro": Learner("variable projection", "#56B4E9", "P"),
    "lbfgs": Learner("L-BFGS", "#D55E00", "D"),
    "adam": Learner("Adam", "#E69F00", "v"),
    "sculpt": Learner("sculpting", "#009E73", "s"),
    "queries": Learner("queries", "#0072B2", "o"),
    "kernel": Learner("attention, infinitely many heads", "#0072B2", "o"),
    "biased": Learner("biased attention, infinitely many heads", "#D55E00", "^"),
    "network": Learner("network, infinitely many neurons", "#009E73", "s"),
    "heads": Learner("attention, finitely many heads", "#000000", "X"),
    "neurons": Learner("network, finitely many neurons", "#CC79A7", "D"),
    "linear attention": Learner("linear attention", "#0072B2", "o"),
    "linear layer": Learner("linear layer", "#0072B2", "o"),
    "softmax, one head": Learner("softmax, one head", "#D55E00", "s"),
    "softmax, two heads": Learner("softmax, two heads", "#CC79A7", "D"),
    "ridge in context": Learner("ridge in context", "#009E73", "^"),
    "Bayes of the training tasks": Learner("Bayes of the training tasks", "#000000", "X"),
    "best ridge": Learner("best ridge", "#0072B2", "o"),
    "no ridge": Learner("no ridge", "#D55E00", "s"),
    "no ridge, no label energy": Learner("no ridge, no label energy", "#CC79A7", "D"),
    "no ridge, longer contexts at test time only": Learner(
        "no ridge, longer contexts at test time only", "#009E73", "^"
    ),
}


def learner(key: str) -> Learner:
    """Return how the learner of this key is shown; one that the table does not know goes by its key."""
    return LEARNERS.get(key, Learner(key, "#000000", "o"))
