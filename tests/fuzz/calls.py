"""Calling a public function with anything, and saying whether what it did is acceptable."""

import importlib
import importlib.util
import inspect
import math
import os
import pkgutil
import traceback
import warnings
from dataclasses import fields, is_dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import attlas
from attlas.errors import AttlasError
from attlas.lab.execute import TooLong, limited
from attlas.numerics import Status, stream

from .arguments import VALID
from .classes import used

SECONDS = 20.0
PLAIN = {"layers.with_one"}  # appends to an array and computes nothing
if importlib.util.find_spec("torch") is None:
    PLAIN |= {"recovery.from_torch", "recovery.to_torch"}  # an extra
VARIADIC = {"numerics.stream": lambda seed, name: stream(seed, name)}  # with names for what *names takes
# rooms above the doors act on files, processes and pages; their inputs are tested where they are
ABOVE = {"claims", "lab", "store", "report", "explorer", "cli", "errors", "extras", "inputs", "__main__", "results"}


def rooms():
    """Return the doors and the mathematics beneath them, found by their folders."""
    found = [module.name for module in pkgutil.iter_modules(attlas.__path__) if module.name not in ABOVE]
    return [importlib.import_module(f"attlas.{name}") for name in sorted(found)]


def public():
    """Return every public function of every room by "room.name", and what every public class amounts to."""
    found = {}
    for room in rooms():
        names = getattr(room, "__all__", None) or [name for name in vars(room) if not name.startswith("_")]
        for name in names:
            thing = getattr(room, name)
            full = f"{room.__name__.removeprefix('attlas.')}.{name}"
            if not getattr(thing, "__module__", "").startswith(room.__name__) or full in PLAIN:
                continue
            if inspect.isfunction(thing):
                found[full] = VARIADIC.get(full, thing)
            elif inspect.isclass(thing):
                found |= used(full, thing)
    return found


def parameters(name, function):
    """Return valid arguments of a function by name: known ones, else the default, else a guess by the type."""
    short = name.split(".")[-1]
    chosen, guessed = {}, []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        has_default = parameter.default is not parameter.empty
        keys = [f"{name}.{parameter.name}", f"{short}.{parameter.name}"]
        keys += [] if short[0].isupper() and has_default else [parameter.name]  # the options of a class mean their own
        key = next((key for key in keys if key in VALID), None)
        if key is not None:
            chosen[parameter.name] = VALID[key]
        elif has_default:
            chosen[parameter.name] = lambda default=parameter.default: default
        else:
            chosen[parameter.name] = lambda annotation=str(parameter.annotation): _guess(annotation)
            guessed.append(parameter.name)
    return chosen, guessed


def _guess(annotation):
    if "int" in annotation and "ndarray" not in annotation:
        return 3
    if "float" in annotation and "ndarray" not in annotation:
        return 0.5
    return "x" if "str" in annotation else np.ones((3, 3))


TRUSTED = {"throw", "progress"}  # a flag and a callback: what they are is Python's business


def outcome(function, arguments):
    """Return what is wrong with a call, in a few words; nothing if it is acceptable."""
    try:
        with warnings.catch_warnings(), limited(SECONDS):
            warnings.simplefilter("error")
            result = function(**arguments)
    except AttlasError as error:
        return "" if str(error).strip() and "\n" not in str(error) else f"its sentence is {str(error)!r}"
    except TooLong:
        return f"it takes longer than {SECONDS:g} s"
    except ConvergenceWarning:  # how an estimator says that it did not converge
        return ""
    except Warning as warning:
        return f"it warns: {warning}"
    except Exception as error:
        return "" if _said_by_sklearn(error) else f"it raises {type(error).__name__}: {error}"
    return _dishonest(result)


def _said_by_sklearn(error):
    """Return whether the sentence is one of scikit-learn's own checks, which its conformance tests ask for by the word."""
    frames = traceback.extract_tb(error.__traceback__)
    return isinstance(error, ValueError | TypeError) and f"{os.sep}sklearn{os.sep}" in frames[-1].filename


def _dishonest(result):
    """Return why an answer that calls itself converged, or says nothing of that, is none."""
    status = getattr(result, "status", None)
    if isinstance(status, Status):
        return "" if status is not Status.CONVERGED or _finite(result.value) else "it is NaN and says that it converged"
    if hasattr(result, "conditioning"):  # which says how far to trust the rest
        return "" if _finite(result.conditioning) else "its conditioning is NaN"
    if hasattr(result, "data_vars"):
        if "converged" not in result:
            return ""
        said = result["converged"].values
        for name in result.data_vars:
            values = result[name].values
            if values.shape == said.shape and values.dtype.kind == "f" and np.isnan(values[said]).any():
                return f"{name} is NaN where it says that it converged"
        return ""
    return "" if _finite(result) else "its answer is NaN, without a status"


def _finite(value):
    if value is None or isinstance(value, str | int):  # an integer, however large, is a number
        return True
    if isinstance(value, float | complex):
        return not math.isnan(abs(value))
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        return array.dtype.kind not in "fc" or not np.isnan(array).any()
    if isinstance(value, tuple | list):
        return all(map(_finite, value))
    if is_dataclass(value):
        return all(_finite(getattr(value, field.name)) for field in fields(value) if field.name != "history")
    return True
