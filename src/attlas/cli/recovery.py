"""`attlas recover`: a layer from a file of examples, with its certificate."""

import math
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attlas.cli.options import Json
from attlas.cli.printing import echo, print_json
from attlas.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def recover(
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA.npz",
            help="Arrays X (n, k, d) and Y (n, k, d_out), or Y of the last token; if need be, keys and padding.",
        ),
    ],
    heads: Annotated[int | None, typer.Option("--heads", min=1, help="Number of heads; found if not given.")] = None,
    bias: Annotated[
        bool, typer.Option("--bias", help="The layer has biases: one for the keys of each head, one for the outputs.")
    ] = False,
    causal: Annotated[
        bool, typer.Option("--causal", help="Tokens attend only to themselves and to those before them.")
    ] = False,
    rank: Annotated[int | None, typer.Option("--rank", min=1, help="Rank of every Theta, if it is known.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write Theta, W and biases there, as .npz.")
    ] = None,
    method: Annotated[str, typer.Option("--method", help="auto, varpro, factors, sculpt, lbfgs or adam.")] = "auto",
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="Seed of the random starts and of the held-out split.")
    ] = 0,
    max_starts: Annotated[
        int, typer.Option("--max-starts", min=1, help="Random starts for each number of heads.")
    ] = 20,
    max_steps: Annotated[
        int | None, typer.Option("--max-steps", min=1, help="Steps from each start; the method's own if not given.")
    ] = None,
    max_seconds: Annotated[
        float | None,
        typer.Option("--max-seconds", help="Also stop by the clock; the result then depends on the machine."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Recover the heads of an attention layer from examples. Exit 1 if the certificate is not met."""
    import numpy as np

    from attlas import recovery

    arrays = _arrays(data)
    if out is not None and out.suffix != ".npz":
        raise InputError(f"--out {out}: parameters are written as .npz")
    if out is not None and not out.resolve().parent.is_dir():
        raise InputError(f"--out {out}: there is no folder {out.parent}")
    if out is not None and out.is_dir():
        raise InputError(f"--out {out} is a folder; name a file")
    found = recovery.learn(
        arrays["X"],
        arrays["Y"],
        heads,
        method=method,  # type: ignore[arg-type]
        keys=arrays.get("keys"),
        bias=bias,
        causal=causal,
        padding=arrays.get("padding"),
        rank=rank,
        seed=seed,
        max_starts=max_starts,
        max_steps=max_steps,
        max_seconds=max_seconds,
        progress=lambda event: echo(event.text, err=True),
    )
    certificate = found.certificate
    tried = [(int(m), float(residual)) for m, residual in found.history]
    if out is not None:
        biases = {name: getattr(found.layer, name) for name in ("key_bias", "output_bias")} if bias else {}
        np.savez(out, Theta=found.Theta, W=found.W, **biases)
    if as_json:
        values = asdict(certificate)
        print_json({"heads": found.layer.heads, "status": found.status.value, "history": tried, "certificate": values})
    else:
        echo(f"heads              {found.layer.heads}")
        for m, residual in tried if len(tried) > 1 else ():
            echo(f"  heads = {m:<2}       held-out residual {residual:.2e}")
        echo(f"held-out residual  {certificate.residual:.2e}")
        echo(f"training residual  {certificate.training:.2e}")
        echo(f"noise in Y         {_shown(certificate.noise)}")
        echo(f"two best starts    {_shown(certificate.agreement, 'differ by ')}")
        echo(f"starts, steps      {certificate.starts}, {certificate.steps} ({certificate.source})")
        reason = certificate.reason.replace("bias=True", "--bias")
        echo(f"certificate        {'met' if certificate.met else f'NOT met ({found.status})'}: {reason}")
    if not certificate.met:
        raise typer.Exit(1)


def _shown(value: float, prefix: str = "") -> str:
    return "-" if math.isnan(value) else f"{prefix}{value:.2e}"


def _arrays(path: Path) -> "dict[str, NDArray[np.float64]]":
    """Return X and Y of a file, and keys and padding if it has any, without unpickling anything."""
    import numpy as np

    try:
        file = np.load(path, allow_pickle=False)
        if isinstance(file, np.ndarray):
            raise InputError(f"{path} holds one array; write X and Y with numpy.savez(path, X=X, Y=Y)")
        with file:
            missing = [name for name in ("X", "Y") if name not in file.files]
            if missing:
                held = ", ".join(file.files) or "none"
                raise InputError(f"{path} has no array {' and no '.join(missing)}; it holds {held}")
            return {name: file[name] for name in ("X", "Y", "keys", "padding") if name in file.files}
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{path} is not a .npz file of plain arrays, such as numpy.savez(path, X=X, Y=Y) writes"
        ) from error


COMMANDS = {"recover": recover}
