# SPDX-License-Identifier: Apache-2.0
# Tests of the tree itself: folders, documents, the build, the release, the commits.
EXTRA_DIST += \
	tests/tree/bare-root.sh \
	tests/tree/check_commits.sh \
	tests/tree/check_configure.sh \
	tests/tree/check_dist.sh \
	tests/tree/check_docs.py \
	tests/tree/check_hardening.py \
	tests/tree/check_header.py \
	tests/tree/check_install.sh \
	tests/tree/check_layers.py \
	tests/tree/check_nvcc.py \
	tests/tree/check_packaging.py \
	tests/tree/check_release.sh \
	tests/tree/check_scale_model.py \
	tests/tree/check_setup.py \
	tests/tree/release_user.sh \
	tests/tree/verdict.sh
