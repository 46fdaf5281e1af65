"""Groups of features that behave alike, and how the finiteness of their number dampens each.

A head m maps functions to its d + 1 features by F_m. With X = E[F R F^T]/M given what does not concentrate in a head,
the kernel
that M heads make is A = E[F^T (1 + X)^-1 F]: a sum over groups, A = sum_g a_g(chi) L_g, with chi_g = sum mu tr(L_g
R)/(M c_g).
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Apart:
    """Groups whose features are independent: a_g = w_g/(1 + chi_g).

    Attributes
    ----------
    weights, widths : arrays of shape (groups,)
        w_g, the share of heads, and c_g, the features of a head in the group.
    """

    weights: Array = field(repr=False)
    widths: Array = field(repr=False)

    def positive(self, L: Array) -> Array:
        """Return operators (groups, sectors) as they must be: not negative; rounding may have made them so."""
        return np.maximum(L, 0.0)

    def coefficients(self, chi: Array) -> tuple[Array, Array]:
        """Return a and its derivatives by chi."""
        return self.weights / (1 + chi), np.diag(-self.weights / (1 + chi) ** 2)


@dataclass(frozen=True)
class Paired:
    """Heads whose scalar feature and whose value along their key direction belong together.

    A head prefers keys along the last row w of its matrix. The features sum_i act_i and sum_i act_i <w, x_i>/|w|
    depend on the
    same numbers of the head, so X is a 2 x 2 matrix for the two, and a number for the d - 1 directions across. It is told by
    three positive numbers, those of the scalar s, of the parallel p and of (s + p)/sqrt 2; so are the operators:

        A = (a_ss - a_sp) L_s + (a_pp - a_sp) L_p + 2 a_sp L_(s+p) + L_across/(1 + chi_across),    a = (1 + X)^-1.

    Attributes
    ----------
    shares : array of shape (laws,)
        The share of heads of each law; groups are (4, laws): s, p, their sum, across.
    d : int
    """

    shares: Array = field(repr=False)
    d: int

    @property
    def widths(self) -> Array:
        """One scalar, one parallel, one sum of them, d - 1 across."""
        return np.repeat([1.0, 1.0, 1.0, self.d - 1.0], len(self.shares))

    def positive(self, L: Array) -> Array:
        """Return operators (groups, sectors) as they must be: the pair a positive matrix in every sector."""
        s, p, both, across = L.reshape(4, len(self.shares), -1)
        cross = both - (s + p) / 2
        s, p, across = (np.maximum(part, 0.0) for part in (s, p, across))
        most = np.sqrt(s * p)
        return np.stack([s, p, (s + p) / 2 + np.clip(cross, -most, most), across]).reshape(L.shape)

    def coefficients(self, chi: Array) -> tuple[Array, Array]:
        """Return a and its derivatives by chi."""
        s, p, both, across = chi.reshape(4, -1)
        w, count = self.shares, len(self.shares)
        c = both - (s + p) / 2
        determinant = (1 + s) * (1 + p) - c * c
        ss, pp, sp = (1 + p) / determinant, (1 + s) / determinant, -c / determinant
        a = w * np.stack([ss - sp, pp - sp, 2 * sp, 1 / (1 + across)])
        slope, own = np.zeros((4, count, 4, count)), np.arange(count)
        for g, (ds, dp, dc) in enumerate(((1.0, 0.0, -0.5), (0.0, 1.0, -0.5), (0.0, 0.0, 1.0))):  # d a = -a dX a
            dss = -(ss * ss * ds + 2 * ss * sp * dc + sp * sp * dp)
            dpp = -(pp * pp * dp + 2 * pp * sp * dc + sp * sp * ds)
            dsp = -(ss * sp * ds + (ss * pp + sp * sp) * dc + sp * pp * dp)
            slope[0, own, g, own] = w * (dss - dsp)
            slope[1, own, g, own] = w * (dpp - dsp)
            slope[2, own, g, own] = 2 * w * dsp
        slope[3, own, 3, own] = -w / (1 + across) ** 2
        return a.ravel(), slope.reshape(4 * count, 4 * count)
