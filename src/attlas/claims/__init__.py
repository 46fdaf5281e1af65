"""Every claim of the atlas: one file each, and the registry that finds them."""

from attlas.claims.claim import Claim as Claim
from attlas.claims.claim import Cost as Cost
from attlas.claims.claim import Measurement as Measurement
from attlas.claims.claim import Outcome as Outcome
from attlas.claims.claim import Settings as Settings
from attlas.claims.claim import Sweep as Sweep
from attlas.claims.claim import Tier as Tier
from attlas.claims.claim import Verdict as Verdict
from attlas.claims.registry import find as find
