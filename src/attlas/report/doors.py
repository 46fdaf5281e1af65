"""The questions that the atlas asks, and a sentence of what was found behind each, made of a verdict's numbers."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from attlas.lab import Judged

Numbers = Mapping[str, float]


@dataclass(frozen=True)
class Door:
    """A question, what is known and sought in it, its model in TeX, and the claim whose numbers speak for it."""

    title: str
    question: str
    about: str = ""
    formula: str = ""
    speaker: str = ""


DOORS = {
    "features": Door(
        "Random features",
        "What can a layer with frozen random heads learn, from how many samples?",
        "query-key matrices drawn at random and frozen, values trained",
        r"f(X)=\sum_{m=1}^{M}\langle v_m,\varphi_m(X)\rangle,\qquad"
        r"\varphi_m(X)=\frac{1}{N}\sum_{i=1}^{N}\operatorname{act}(\tilde x_0^\top W_m\tilde x_i)\,\tilde x_i",
        "features.bias-correlation",
    ),
    "recovery": Door(
        "Recovery",
        "Can the parameters of a multi-head layer be recovered, from random examples or from queries?",
        "all matrices unknown, all to be found",
        r"F(X)=\sum_{i=1}^{m}\operatorname{softmax}(X\Theta_iX^\top)\,XW_i",
        "recovery.hard-instances",
    ),
    "aim": Door(
        "Best possible error",
        "What is the best error any learner can reach, and which algorithms get there?",
        "a query-key matrix drawn at random, found as well as anyone can",
        r"y=\operatorname{softmax}(\beta h),\qquad h_{ab}=\frac{x_a^\top S\,x_b-\delta_{ab}\operatorname{Tr}S}{\sqrt d}",
        "aim.softmax-threshold",
    ),
    "trained": Door(
        "Trained attention",
        "What does training with weight decay reach, and which decay is best?",
        "the same matrix, found by descent",
        r"\min_{S\ge0}\;\sum_\mu\frac{1}{4}\lVert e_\mu\rVert^2+\lambda\,d\operatorname{Tr}S",
        "trained.double-descent",
    ),
    "lenses": Door(
        "One teacher, every learner",
        "What does each learner make of one and the same layer?",
        "the same data for all of them",
        speaker="lenses.one-teacher",
    ),
}


def finding(entry: Judged) -> str:
    """Return what the numbers of a verdict say, for people in passing; the verdict's own reason where that is not known."""
    if entry.verdict is None:
        return ""
    sentence = _SENTENCES.get(entry.claim.id)
    if sentence is None or not entry.holds:
        return entry.verdict.reason
    try:
        return sentence(entry.verdict.numbers)
    except LookupError:
        return entry.verdict.reason


def _bias(numbers: Numbers) -> str:
    plain, biased = _first(numbers, "exponent, no bias"), _first(numbers, "exponent, bias")
    return (
        f"A bias in the query-key matrix changes the exponent: the samples that a correlation of query and keys needs grow"
        f" as d^{plain:.2f} without it, as d^{biased:.2f} with it"
    )


def _parity(numbers: Numbers) -> str:
    best = max(_all(numbers, "on-slice accuracy"))
    solved, of = 0.0, 0
    for name, value in numbers.items():
        if found := re.search(r"controls solved, of (\d+)$", name):
            solved, of = solved + value, of + int(found[1])
    return (
        f"Two layers of the same norms: one is found by some learner in {solved:.0f} of {of} runs; the other hides a parity,"
        f" on which no learner is right more than {best:.2f} of the time, and a coin 0.50"
    )


def _threshold(numbers: Numbers) -> str:
    return (
        f"Recovery is a phase transition, at {_first(numbers, 'transition over formula'):.2f} of the samples that a formula"
        f" names: below it descent fits all data with a wrong matrix in {numbers['second solutions below']:.0f} of"
        f" {numbers['runs below']:.0f} runs, above it finds the right one in {numbers['found above']:.0f} of"
        f" {numbers['runs above']:.0f}"
    )


def _peak(numbers: Numbers) -> str:
    from math import exp

    rise, cure = (numbers[f"{name}, logarithm"] for name in ("rise to the peak", "the best decay removes the peak"))
    return (
        f"More data can hurt: with hardly any decay the error grows {exp(rise):.1f} times on the way to the interpolation"
        f" threshold; there the best decay divides it by {exp(cure):.1f}"
    )


def _ranking(numbers: Numbers) -> str:
    from math import exp

    leads = {
        name.removeprefix("message passing beats ").split(" (")[0]: exp(value)
        for name, value in numbers.items()
        if name.startswith("message passing beats ") and not name.endswith("±")
    }
    if not leads:
        raise LookupError("leads")
    told = "; ".join(f"{name}: {factor:.1f}" for name, factor in leads.items())
    near = 1 + numbers["message passing over the limit - 1"]
    return (
        f"Nobody beats the Bayes limit, and message passing comes nearest, with {near:.1f} times its error at these sizes."
        f" On the same data the others have more, in units of message passing ({told})"
    )


def _first(numbers: Numbers, ending: str) -> float:
    return _all(numbers, ending)[0]


def _all(numbers: Numbers, ending: str) -> list[float]:
    found = [value for name, value in numbers.items() if name.endswith(ending)]
    if not found:
        raise LookupError(ending)
    return found


_SENTENCES: dict[str, Callable[[Numbers], str]] = {
    "features.bias-correlation": _bias,
    "recovery.hard-instances": _parity,
    "aim.softmax-threshold": _threshold,
    "trained.double-descent": _peak,
    "lenses.one-teacher": _ranking,
}
