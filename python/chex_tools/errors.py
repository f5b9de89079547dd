# SPDX-License-Identifier: Apache-2.0
"""The exceptions of chex_tools: one for each exit code of the programs."""
from typing import Any, Optional


class ChexError(Exception):
    """The base of all exceptions of this module.  exit_code is that of the programs, see their man pages.

    An exit code without a class of its own is in exit_code of a ChexError."""

    exit_code = 70
    document: Any = None  # the JSON document of a program that failed

    def __init__(self, message: str, exit_code: Optional[int] = None) -> None:
        super().__init__(message)
        if exit_code is not None:
            self.exit_code = exit_code


class DamagedError(ChexError):
    """The data have faults: a checksum is wrong, a file is too short, or numbers contradict each other."""

    exit_code = 1


class UsageError(ChexError, ValueError):
    """An argument or an option is wrong."""

    exit_code = 2


class InputError(ChexError, OSError):
    """An input is missing, cannot be read, or is something else."""

    exit_code = 3


class OutputError(ChexError, OSError):
    """Writing failed, or memory or space was too little; the same call again resumes."""

    exit_code = 4


class InUseError(ChexError):
    """Another process uses the output."""

    exit_code = 5


class IncompatibleError(ChexError):
    """A newer format, or a file that does not belong to this data set."""

    exit_code = 6


class StoppedError(ChexError):
    """A program was stopped after it saved its work; the same call again continues."""

    exit_code = 75


BY_EXIT_CODE: dict[int, type[ChexError]] = {
    c.exit_code: c
    for c in (DamagedError, UsageError, InputError, OutputError, InUseError, IncompatibleError, StoppedError)
}
