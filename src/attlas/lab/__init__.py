"""Plans a sweep, runs it (here, on processes, on Dask, on Slurm), resumes it, judges it.

A sweep is a list of (claim, version, point, seed); what the store holds of it is not computed again. There is no flag
for resuming and nothing to unlock.
"""

from attlas.lab.plan import Cell as Cell
from attlas.lab.plan import plan as plan
from attlas.lab.run import EXECUTORS as EXECUTORS
from attlas.lab.run import Executor as Executor
from attlas.lab.run import Expectation as Expectation
from attlas.lab.run import Summary as Summary
from attlas.lab.run import check_timeout as check_timeout
from attlas.lab.run import check_versions as check_versions
from attlas.lab.run import choose as choose
from attlas.lab.run import expect as expect
from attlas.lab.run import run as run
from attlas.lab.shipped import pack as pack
from attlas.lab.shipped import shipped as shipped
from attlas.lab.slurm import SlurmSettings as SlurmSettings
from attlas.lab.slurm import job_script as job_script
from attlas.lab.slurm import slurm_settings as slurm_settings
from attlas.lab.verdicts import Judged as Judged
from attlas.lab.verdicts import agreement as agreement
from attlas.lab.verdicts import verdicts as verdicts
