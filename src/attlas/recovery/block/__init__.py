"""A whole block from value queries: attention, residuals and a two-layer ReLU network, none of their sizes told.

In the order in which it is best read: `weights` is a block as people write it down, `network` and `canonical` what of it can
be known. `kinks` finds where a piecewise linear function bends along a line, `neurons` makes the network of that, `pairs`
finds one head and the values of several, `cells` several heads inside one linear piece of the network, `polish` the last
digits; `learn` puts them together and asks for a certificate.

References
----------
bhattamishra2026provably reduces a block to a learner of ReLU networks; rolnick2020reverse and carlini2020cryptanalytic find
kinks along lines. The |.| form, the linear solve with known signs, opposite pairs and scaled tokens are ours.
"""
