"""The commands, found by where their files are; each module names those it adds."""

from attlas.cli.main import main as main
