# SPDX-License-Identifier: Apache-2.0
# What makes packages of an installed tree or of the release.

# ---- the wheel: packaging/wheel --------------------------------------------------------------------------------------
EXTRA_DIST += packaging/wheel/make_wheel.py
