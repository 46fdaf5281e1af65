"""What works here, found without anything but the core: also told where the commands cannot be loaded."""

import os
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import metadata, util
from pathlib import Path

from attlas import __version__
from attlas.extras import EXTRAS

CORE = ("numpy", "scipy", "numba", "scikit-learn", "xarray", "pydantic", "threadpoolctl")
Finding = tuple[bool, str]


def findings(store: Path) -> dict[str, Finding]:
    """Return, by name, whether each thing works and what was found."""
    return {name: _safe(look) for name, look in _looks(store).items()}


def works(found: dict[str, Finding]) -> bool:
    """Return whether the mathematics and the store work, whatever else does not."""
    return found["core"][0] and found["store"][0]


def lines(found: dict[str, Finding]) -> list[str]:
    """Return what was found, a line each."""
    return [f"{'ok' if good else '--'}  {name:10s} {text}" for name, (good, text) in found.items()]


def versions() -> str:
    """Return the versions that matter for numbers, on a line."""
    from platform import python_version

    found = {"Python": python_version()}
    for name in ("numpy", "scipy", "numba", "scikit-learn"):
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return f"attlas {__version__} ({', '.join(f'{name} {number}' for name, number in found.items())})"


def _looks(store: Path) -> dict[str, Callable[[], Finding]]:
    return {
        "python": lambda: (sys.version_info >= (3, 11), f"{sys.version.split()[0]} on {sys.platform}"),
        "core": _core,
        "blas": _blas,
        "threads": _threads,
        "store": lambda: _store(store),
        **{f"[{extra}]": lambda extra=extra: _extra(extra) for extra in EXTRAS},  # type: ignore[misc]
        "browser": _browser,
        "slurm": lambda: _program("sbatch", "jobs can be submitted", "no sbatch: --executor slurm does not work here"),
    }


def _safe(look: Callable[[], Finding]) -> Finding:
    try:
        return look()
    except Exception as error:  # what is broken is what is asked for
        return False, f"{type(error).__name__}: {error}"


def _core() -> Finding:
    return True, ", ".join(f"{name} {metadata.version(name)}" for name in ("attlas", *CORE))


def _blas() -> Finding:
    import scipy.linalg  # noqa: F401  # loads its BLAS
    from threadpoolctl import threadpool_info

    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    text = ", ".join(f"{pool['internal_api']} {pool.get('version')} ({pool['num_threads']} threads)" for pool in pools)
    return bool(pools), text or "no BLAS was found that threadpoolctl knows: results may depend on the number of cores"


def _threads() -> Finding:
    from attlas.features.threads import cores

    chosen = [
        f"{name}={os.environ[name]}" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS") if name in os.environ
    ]
    return True, f"{cores()} cores for this process" + (f" ({', '.join(chosen)})" if chosen else "")


def _store(path: Path) -> Finding:
    if not path.exists():
        return True, f"{path}: none yet; shipped results are shown"
    from attlas.store import stored_keys

    return True, f"{path}: {len(stored_keys(path))} results (`attlas store check` verifies each)"


def _extra(name: str) -> Finding:
    missing = [module for module in EXTRAS[name] if util.find_spec(module) is None]
    return not missing, f'pip install "attlas[{name}]" brings {", ".join(missing)}' if missing else "installed"


def _browser() -> Finding:
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    return found is not None, found or "no Chromium: tests of the pages are skipped; any browser shows the pages"


def _program(name: str, good: str, bad: str) -> Finding:
    return (True, good) if shutil.which(name) else (False, bad)
