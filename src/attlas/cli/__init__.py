"""The commands. Every module of this folder names those it adds: COMMANDS of `attlas`, PREDICT of `attlas predict`."""

from attlas.cli.main import main as main
