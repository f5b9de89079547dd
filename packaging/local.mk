# SPDX-License-Identifier: Apache-2.0
# What makes packages of an installed tree or of the release.

# ---- the wheel: packaging/wheel --------------------------------------------------------------------------------------
EXTRA_DIST += packaging/wheel/make_wheel.py

# ---- the release: packaging/release ----------------------------------------------------------------------------------
EXTRA_DIST += \
	packaging/release/gates.py \
	packaging/release/libraries.py \
	packaging/release/libraries.sh \
	packaging/release/libraries.toml \
	packaging/release/programs.sh \
	packaging/release/requirements.txt \
	packaging/release/toolchain.sh
