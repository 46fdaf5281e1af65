"""Draws the static site from the store."""

from attlas.report.diagrams import diagram as diagram
from attlas.report.site import write as write
from attlas.report.site import write_sweep as write_sweep
