# SPDX-License-Identifier: Apache-2.0
# What makes packages of an installed tree or of the release.

# ---- the wheel: packaging/wheel --------------------------------------------------------------------------------------
EXTRA_DIST += packaging/wheel/make_wheel.py

# ---- the release: packaging/release ----------------------------------------------------------------------------------
EXTRA_DIST += \
	doc/releasing.md \
	packaging/release/check_sbom.py \
	packaging/release/cuda.sh \
	packaging/release/gates.py \
	packaging/release/libraries.py \
	packaging/release/libraries.sh \
	packaging/release/libraries.toml \
	packaging/release/make_release.sh \
	packaging/release/notes.py \
	packaging/release/nvcc.py \
	packaging/release/programs.sh \
	packaging/release/requirements-checks.txt \
	packaging/release/requirements-cuda.txt \
	packaging/release/requirements.txt \
	packaging/release/runtime.c \
	packaging/release/sbom.py \
	packaging/release/toolchain.sh \
	packaging/release/verify_release.sh
# Words for make_release.sh: '-m x86_64' is the machine of most users alone.
RELEASE_FLAGS =
#: release            all files of a release into release/: doc/releasing.md
release: dist-xz
	@cd '$(srcdir)' && { ! test -e .git || test -z "`git status --porcelain --untracked-files=no`"; } || \
	  { echo 'make release: there are changes without a commit' >&2; exit 1; }
	rm -rf release
	$(SHELL) $(srcdir)/packaging/release/make_release.sh $(RELEASE_FLAGS) '$(distdir).tar.xz' release
#: verify-release     TARBALL=FILE: make this file of a release again, and compare
verify-release:
	$(SHELL) $(srcdir)/packaging/release/verify_release.sh '$(TARBALL)'
.PHONY: release verify-release

# ---- the Debian package and the recipes of other package managers: packaging/README.md -------------------------------
EXTRA_DIST += packaging/README.md packaging/apptainer packaging/conda packaging/debian packaging/easybuild \
	packaging/module packaging/spack
# dpkg-buildpackage shall not take this make for its own.
#: deb                Debian packages of the release, in debian-build/; DEB_FLAGS are for dpkg-buildpackage
deb: dist
	rm -rf debian-build
	$(MKDIR_P) debian-build
	cp '$(distdir).tar.xz' 'debian-build/$(PACKAGE)_$(VERSION).orig.tar.xz'
	tar -C debian-build -xf '$(distdir).tar.xz'
	cp -R 'debian-build/$(distdir)/packaging/debian' 'debian-build/$(distdir)/debian'
	cd 'debian-build/$(distdir)' && \
	  env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u MAKEOVERRIDES dpkg-buildpackage -us -uc $(DEB_FLAGS)
.PHONY: deb
