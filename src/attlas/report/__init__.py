"""Draws the static site from the store."""

from attlas.report.site import write as write
