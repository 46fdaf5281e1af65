"""The interactive page: three doors to play with, on this machine only."""

from attlas.explorer.server import serve as serve
