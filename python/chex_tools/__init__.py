# SPDX-License-Identifier: Apache-2.0
"""Reads the data sets of chex-convert."""
from ._version import __version__

__all__ = ["__version__"]
