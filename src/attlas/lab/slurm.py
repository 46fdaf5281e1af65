"""Workers as Slurm jobs, through dask-jobqueue."""

import shutil
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from attlas.errors import AttlasError, InputError
from attlas.lab.execute import THREADS


class SlurmSettings(BaseModel):
    """What each job asks Slurm for. A job is one worker with one core."""

    model_config = ConfigDict(extra="forbid")

    queue: str | None = None
    account: str | None = None
    walltime: str = Field("01:00:00", pattern=r"^(\d+-)?\d{1,3}:\d{2}(:\d{2})?$")
    memory: str = Field("4GB", pattern=r"^\d+(\.\d+)?\s*[KMGT]i?B$")
    interface: str | None = None
    directives: list[str] = []
    prologue: list[str] = []


def slurm_settings(options: dict[str, Any]) -> SlurmSettings:
    """Return validated settings, or raise `InputError` naming the wrong one.

    Examples
    --------
    >>> from attlas import lab
    >>> lab.slurm_settings({"queue": "long", "memory": "4GB"}).queue
    'long'
    """
    try:
        return SlurmSettings(**options)
    except ValidationError as error:
        first = error.errors()[0]
        accepted = ", ".join(SlurmSettings.model_fields)
        name = ".".join(map(str, first["loc"]))
        raise InputError(f"slurm setting {name}: {first['msg']}; the settings are {accepted}") from error


def slurm_cluster(settings: SlurmSettings, submit: bool = True) -> Any:
    """Return a dask-jobqueue cluster with no workers yet; scale it to submit jobs.

    The scheduler runs here, in the driver, and listens on the network (or on `interface`), because the compute nodes
    must reach it.
    """
    try:
        from dask_jobqueue import SLURMCluster
    except ImportError as error:
        raise AttlasError('Slurm needs dask-jobqueue: pip install "attlas[slurm]"') from error
    if submit and shutil.which("sbatch") is None:
        raise InputError("there is no Slurm here: the command sbatch is not found")
    options: dict[str, Any] = {"scheduler_options": {"dashboard_address": "127.0.0.1:0"}}
    if settings.interface:
        options["interface"] = settings.interface
    try:
        return SLURMCluster(
            queue=settings.queue,
            account=settings.account,
            walltime=settings.walltime,
            memory=settings.memory,
            cores=1,
            processes=1,
            job_name="attlas",
            job_extra_directives=settings.directives,
            job_script_prologue=[*(f"export {name}=1" for name in THREADS), *settings.prologue],
            **options,
        )
    except (RuntimeError, ValueError, OSError) as error:
        raise InputError(f"the scheduler for Slurm cannot start with these settings ({error})") from error


def job_script(settings: SlurmSettings) -> str:
    """Return the script that each worker would be submitted with.

    Examples
    --------
    >>> from attlas import lab
    >>> print(lab.job_script(lab.slurm_settings({"queue": "long", "walltime": "02:00:00"})))  # doctest: +SKIP
    """
    cluster = slurm_cluster(settings, submit=False)
    try:
        return str(cluster.job_script())
    finally:
        cluster.close()
