"""What a claim is, what a door is, and the registry that finds them; the claims of a door are in its folder."""

from attlas.claims.claim import Claim as Claim
from attlas.claims.claim import Cost as Cost
from attlas.claims.claim import Difference as Difference
from attlas.claims.claim import Measurement as Measurement
from attlas.claims.claim import Numbers as Numbers
from attlas.claims.claim import Settings as Settings
from attlas.claims.claim import Sweep as Sweep
from attlas.claims.claim import Tier as Tier
from attlas.claims.claim import Unfinished as Unfinished
from attlas.claims.door import Door as Door
from attlas.claims.registry import door as door
from attlas.claims.registry import doors as doors
from attlas.claims.registry import find as find
from attlas.claims.registry import names as names
from attlas.claims.series import Series as Series
from attlas.claims.verdict import Outcome as Outcome
from attlas.claims.verdict import Verdict as Verdict
