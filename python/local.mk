# SPDX-License-Identifier: Apache-2.0
# The Python module chex_tools.  It is not compiled: pip installs it from this folder (pyproject.toml) or from the wheel
# of packaging/wheel/make_wheel.py.
EXTRA_DIST += \
	python/README.md \
	python/pyproject.toml \
	python/chex_tools/__init__.py \
	python/chex_tools/_dataset.py \
	python/chex_tools/_manifest.py \
	python/chex_tools/_maps.py \
	python/chex_tools/_programs.py \
	python/chex_tools/_run.py \
	python/chex_tools/_safetensors.py \
	python/chex_tools/_texts.py \
	python/chex_tools/_version.py \
	python/chex_tools/_where.py \
	python/chex_tools/errors.py \
	python/chex_tools/order.py \
	python/chex_tools/py.typed \
	python/chex_tools/tf.py \
	python/chex_tools/torch.py
