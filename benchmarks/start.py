"""How long attlas takes to start, against Python itself, in the same run."""

import subprocess
import sys
import time


def best(*arguments):
    times = []
    for _ in range(7):
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)  # noqa: S603
        times.append(time.perf_counter() - start)
    return min(times)


def main():
    python = best("-c", "pass")
    for name, arguments in {
        "import attlas": ("-c", "import attlas"),
        "attlas --help": ("-m", "attlas", "--help"),
        "attlas list": ("-m", "attlas", "list"),
    }.items():
        seconds = best(*arguments)
        print(f"{name:16s} {seconds:5.2f} s, {seconds / python:5.1f} x starting Python")


if __name__ == "__main__":
    main()
