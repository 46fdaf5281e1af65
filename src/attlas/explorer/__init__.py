"""The explorer: a page for each door with sliders to move, served on this machine only."""

from attlas.explorer.server import serve as serve
