"""What can go wrong, in sentences a person can act on."""


class AttlasError(Exception):
    """Any failure attlas foresees. ``exit_code`` is what the command line returns for it."""

    exit_code = 1


class InputError(AttlasError, ValueError):
    """Something given to attlas is not acceptable; the message says what is, on one line whatever it quotes."""

    exit_code = 2

    def __init__(self, message: object = "") -> None:
        super().__init__(" ".join(str(message).split()))


class ConvergenceError(AttlasError, ArithmeticError):
    """An iteration did not converge. ``solution`` holds how far it came."""

    def __init__(self, message: str, solution: object) -> None:
        super().__init__(message)
        self.solution = solution

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (str(self), self.solution)


class StoreError(AttlasError):
    """The store cannot be used: it is damaged, too new, full or of another program."""

    exit_code = 3


class DamagedStore(StoreError):
    """Bytes in the store are not those that were written."""


class Stopped(AttlasError):
    """The run was asked to stop (Ctrl-C or SIGTERM) and did so cleanly."""

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), (str(self), self.exit_code - 128)
