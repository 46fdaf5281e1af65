"""attlas: an executable atlas of what attention layers can learn.

A door is one question about attention layers and the mathematics that answers it, such as ``attlas.aim``;
``attlas.claims.doors()`` lists them all. Beneath the doors ``attlas.tokens`` draws sequences and ``attlas.layers`` holds
the layers themselves; above them ``attlas.claims`` states what the literature says, and ``attlas.lab`` runs it. Nothing is
imported before it is used.
"""

import importlib
import os
from types import ModuleType

__version__ = "0.1.0"


def _rooms() -> list[str]:
    """Return the modules and packages beside this file, as pkgutil would, which takes twenty times as long to import."""
    here = __path__[0]
    names = (name.removesuffix(".py") for name in os.listdir(here) if name[0] not in "._")
    return sorted(n for n in names if os.path.exists(f"{here}/{n}.py") or os.path.exists(f"{here}/{n}/__init__.py"))


__all__ = ["__version__", *_rooms()]  # noqa: PLE0604


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        try:
            return importlib.import_module(f"attlas.{name}")
        except ModuleNotFoundError as error:
            from attlas.extras import extra_of

            if (extra := extra_of(error.name or "")) is None:
                raise
            advice = f'attlas.{name} needs {error.name}: pip install "attlas[{extra}]"'
            raise ModuleNotFoundError(advice, name=error.name) from error
    raise AttributeError(f"attlas has no {name!r}; its rooms are {', '.join(__all__[1:])}")


def __dir__() -> list[str]:
    return sorted(__all__)
