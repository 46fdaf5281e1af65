"""Mathematics with no attention in it: solutions with a status, progress, random streams, intervals."""

from attlas.numerics.adam import Adam as Adam
from attlas.numerics.intervals import Line as Line
from attlas.numerics.intervals import fit_line as fit_line
from attlas.numerics.intervals import mean_interval as mean_interval
from attlas.numerics.intervals import rank_correlation as rank_correlation
from attlas.numerics.intervals import share_interval as share_interval
from attlas.numerics.progress import Event as Event
from attlas.numerics.progress import Progress as Progress
from attlas.numerics.solution import Solution as Solution
from attlas.numerics.solution import Status as Status
from attlas.numerics.streams import Seed as Seed
from attlas.numerics.streams import generator as generator
from attlas.numerics.streams import stream as stream
