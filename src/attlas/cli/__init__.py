"""The commands: `attlas list | show | run | verdicts | export | report | store check`."""

from attlas.cli.main import main as main
