"""Claims about attention by place and by meaning."""

from attlas.claims.door import Door

DOOR = Door(
    key="positional",
    order=6,
    title="Position or meaning",
    question="Does a layer attend by place or by content, when does it switch, and does training find it?",
    about=(
        "A teacher mixes attention by place with attention by content. A student with positional encodings learns it from"
        " n = α d sequences of two tokens: its loss has a minimum for either, and more data change which is lower."
    ),
    formula=(
        r"y=\bigl[(1-\omega)\operatorname{softmax}(zz^\top)+\omega A\bigr]x,\qquad"
        r"\hat y=\operatorname{softmax}(hh^\top)\,x,\qquad h_a=\frac{(x_a+c\,p_a e)\cdot Q}{\sqrt d}"
    ),
    papers=("cui2024phase", "troiani2025fundamental"),
    headline="positional.trap",
)
