# SPDX-License-Identifier: Apache-2.0
# make check: seconds to a minute or two.  make check-slow: minutes.  What each test needs is in TESTING.md.
# The fragment of each folder names its files and builds its programs.  The lists of tests are here.

# ---- unit tests (Check) ------------------------------------------------------------------------------------------
tests_unit_SOURCES = \
	tests/calls.c \
	tests/calls.h \
	tests/unit.c \
	tests/unit.h
tests_unit_CPPFLAGS = $(tools_cppflags) -iquote $(srcdir)/tests $(CHECK_CFLAGS) $(LIBPNG_CFLAGS) $(LIBJPEG_CFLAGS) \
	$(ZLIB_CFLAGS) $(PROTOBUF_C_CFLAGS) $(JANSSON_CFLAGS)
tests_unit_LDADD = $(unit_emulated) libtrain.la libchexcore.la $(LIBPNG_LIBS) $(LIBJPEG_LIBS) $(ZLIB_LIBS) $(CHECK_LIBS)
# What the library calls is to fail: tests/calls.c.
tests_unit_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=pread,--wrap=pwrite \
	-Wl,--wrap=write,--wrap=fstat,--wrap=fstatat,--wrap=openat,--wrap=open,--wrap=opendir,--wrap=nanosleep \
	-Wl,--wrap=renameat,--wrap=linkat,--wrap=unlinkat,--wrap=fsync,--wrap=close,--wrap=readdir
# Where there is the emulated GPU, it is one of the backends (cuda/local.mk).
tests_unit_LINK = $(unit_link) $(tests_unit_LDFLAGS) $(LDFLAGS) -o $@
if EMULATOR
nodist_tests_unit_SOURCES = $(emulated_backends)
unit_emulated = $(emulated_ldadd)
unit_link = $(emulated_link)
else
nodist_tests_unit_SOURCES = tests/host/train/backends.c
unit_link = $(LIBTOOL) $(AM_V_lt) --tag=CC --mode=link $(CCLD) $(AM_CFLAGS) $(CFLAGS)
endif
# The backends that have devices everywhere.
tests/host/train/backends.c: Makefile
	$(call list_backends,cpu ref)
CLEANFILES += tests/host/train/backends.c
if HAVE_CHECK
unit_tests = tests/unit
check_PROGRAMS += tests/unit
else
unit_tests =
endif
check-local:
if !HAVE_CHECK
	@echo 'skip tests/unit: the library Check was not found (Debian: apt-get install check)'
endif
if !EMULATOR
	@echo 'skip the emulated GPU: $(emulator_lacks)'
endif

check_DATA =
include tests/lib/local.mk
include tests/train/local.mk
include tests/cli/local.mk
include tests/ranks/local.mk
include tests/faults/local.mk
include tests/fuzz/local.mk
include tests/cuda/local.mk
include tests/fakes/local.mk
include tests/emulator/local.mk
include tests/ptx/local.mk
include tests/tree/local.mk
include tests/analysis/local.mk
include tests/python/local.mk

clean-local:
	rm -rf debian-build tests/dataset tests/dataset.images
	rm -rf emulator gpu gpu-bundle gpu-bundle-build gpu-results nvrtc-kept

# ---- tests ---------------------------------------------------------------------------------------------------------
# The longest first: with several jobs none of them begins last and alone.
TESTS += \
	tests/ranks/check_train_ranks.py \
	tests/faults/check_faults.py \
	tests/ranks/check_mpi_opened.py \
	tests/ranks/check_ranks.py \
	$(unit_tests) \
	$(unit_tests_gpu) \
	tests/train/log/check_events.py \
	tests/ranks/check_storage.py \
	tests/cli/check_profile.py \
	tests/cli/check_scaling.py \
	tests/cli/check_times.py \
	tests/cli/check_resume.py \
	tests/cli/check_report.py \
	tests/cli/check_run_labels.py \
	tests/cli/check_run_many.py \
	tests/cli/check_run_maps.py \
	tests/cli/check_run_published.py \
	tests/cli/check_run_report.py \
	tests/cli/check_run_suspects.py \
	tests/cli/check_sheet.py \
	tests/cli/check_train_hostile.py \
	tests/cli/check_findings.py \
	tests/cli/check_audit.py \
	tests/cli/check_gate.py \
	tests/cli/check_fold.py \
	tests/cli/check_train.py \
	tests/lib/image/png_cases.py \
	tests/cli/check_archive.py \
	tests/train/eval/check_auroc.py \
	tests/train/eval/check_operating.py \
	tests/train/maps/check_boxes.py \
	tests/cli/check_checkpoints.py \
	tests/cli/check_commands.py \
	tests/cli/check_compare.py \
	tests/cli/check_completion.py \
	tests/cli/check_convert.py \
	tests/cli/check_diff.py \
	tests/tree/check_docs.py \
	tests/cli/check_inspect.py \
	tests/cli/check_inspect_hostile.py \
	tests/cli/check_interop.py \
	tests/cli/check_late.py \
	tests/tree/check_layers.py \
	tests/cli/check_leaky.py \
	tests/cli/check_libraries.py \
	tests/cli/check_messages.py \
	tests/cli/check_boxes.py \
	tests/cli/check_maps.py \
	tests/cli/check_near.py \
	tests/cli/check_nvtx.py \
	tests/cli/check_pictures.py \
	tests/cli/check_onnx.py \
	tests/tree/check_packaging.py \
	tests/cli/check_predict.py \
	tests/cli/check_python_faults.py \
	tests/cli/check_python_module.py \
	tests/cli/check_python_torch.py \
	tests/cli/check_quiet.py \
	tests/cli/check_recipes.py \
	tests/cli/check_reshard.py \
	tests/cli/check_short.py \
	tests/cli/check_thresholds.py \
	tests/tree/check_scale_model.py \
	tests/tree/check_setup.py \
	tests/ranks/check_slurm.py \
	tests/faults/check_smoke.py \
	tests/cli/check_source.py \
	tests/cli/check_stage.py \
	tests/cli/check_synth.py \
	tests/lib/labels/check_tables.py \
	tests/cli/check_torch_file.py \
	tests/cli/check_train_again.py \
	tests/cli/check_train_plan.py \
	tests/cli/check_trained_on.py \
	tests/cli/check_wheel.py \
	tests/cli/check_withdraw.py \
	tests/tree/check_hardening.py \
	tests/tree/check_header.py \
	tests/fuzz/check_fuzz.py \
	tests/cuda/cudnn/check_cudnn.py \
	tests/cuda/device/check_scripts.py
if EMULATOR
emulated_tests = tests/cuda/run/check_train_cuda.py tests/cuda/run/check_train_nccl.py
TESTS += $(emulated_tests)
endif
# With TensorFlow, PyTorch, DALI.
compare_tests = \
	tests/train/backend/check_parity.py \
	tests/train/backend/check_crop.py \
	tests/train/backend/check_half.py \
	tests/cli/check_interop.py \
	tests/cli/check_onnx.py \
	tests/cli/check_torch_file.py \
	tests/train/checkpoint/check_weights.py \
	tests/cli/check_recipes.py
slow_tests = \
	$(emulated_tests) \
	tests/faults/check_faults.py \
	tests/cli/check_resume.py \
	tests/cli/check_convert.py \
	tests/cli/check_messages.py \
	tests/cli/check_pictures.py \
	tests/ranks/check_ranks.py \
	tests/ranks/check_slurm.py \
	tests/cli/check_times.py \
	tests/cli/check_train_plan.py \
	tests/ranks/check_train_ranks.py \
	tests/fuzz/check_fuzz.py \
	$(compare_tests)
# In a build with sanitizers; all of TESTS there takes five times as long, and is for doing by hand.
sanitized_tests = $(unit_tests) tests/fuzz/check_fuzz.py tests/faults/check_smoke.py
# The case of failing calls in check_smoke.py preloads it.
sanitized_data = tests/faults/inject.so
sanitized_programs = $(unit_tests) $(fuzz_programs) $(archive_program) tests/fuzz/self_test

EXTRA_DIST += \
	quickstart.sh \
	run-tests.sh \
	tests/python.sh \
	tests/requirements-cuda.txt \
	tests/requirements-cuda11.txt \
	tests/requirements-cudnn.txt \
	tests/requirements-dali.txt \
	tests/requirements-lint.txt \
	tests/requirements.txt \
	tests/setup.sh \
	tests/suites.sh \
	tests/tally.sh \
	tests/timed.sh

TEST_EXTENSIONS = .py
LOG_COMPILER = $(SHELL) $(srcdir)/tests/timed.sh $(SHELL) $(srcdir)/tests/suites.sh
PY_LOG_COMPILER = $(SHELL) $(srcdir)/tests/python.sh

# CHEX_NIH, a folder with files of the real data set: from the environment or the command line of make, else the one
# beside the source folder where it is there.
# Threads of PyTorch that wait for a core which another test has shall not take time for it: forty times as much.
AM_TESTS_ENVIRONMENT = \
	OMP_WAIT_POLICY=passive; export OMP_WAIT_POLICY; \
	CHEX_CONVERT='$(abs_builddir)/chex-convert'; export CHEX_CONVERT; \
	CHEX_INSPECT='$(abs_builddir)/chex-inspect'; export CHEX_INSPECT; \
	TRAIN_STEP='$(abs_builddir)/train-step'; export TRAIN_STEP; \
	COLLECTIVE_RANKS='$(abs_builddir)/collective-ranks'; export COLLECTIVE_RANKS; \
	WRITE_RUN='$(abs_builddir)/write-run'; export WRITE_RUN; \
	CHEX_PREDICT='$(abs_builddir)/chex-predict'; export CHEX_PREDICT; \
	CHEX_SYNTH='$(abs_builddir)/chex-synth'; export CHEX_SYNTH; \
	CHEX_TRAIN='$(abs_builddir)/chex-train'; export CHEX_TRAIN; \
	CHEX_TRAIN_EMULATED='$(abs_builddir)/tests/chex-train-emulated'; export CHEX_TRAIN_EMULATED; \
	LATE_TRAIN='$(abs_builddir)/late-train'; export LATE_TRAIN; \
	CHECK_IMAGES='$(abs_builddir)/check-images'; export CHECK_IMAGES; \
	CHEX_DATASET='$(abs_builddir)/tests/dataset'; export CHEX_DATASET; \
	BUILDDIR='$(abs_builddir)'; export BUILDDIR; \
	LSAN_OPTIONS='print_suppressions=0:suppressions=$(abs_srcdir)/tests/analysis/lsan.txt'; export LSAN_OPTIONS; \
	MPIRUN='$(MPIRUN)'; export MPIRUN; \
	PROTOC='$(PROTOC)'; export PROTOC; PYTHON='$(PYTHON)'; export PYTHON; \
	PYTHONDONTWRITEBYTECODE=1; export PYTHONDONTWRITEBYTECODE; \
	CHEX_NIH='$(CHEX_NIH)'; \
	if test -z "$$CHEX_NIH" && test -d '$(abs_srcdir)/../shared/nih'; then \
	  CHEX_NIH='$(abs_srcdir)/../shared/nih'; fi; \
	if test -n "$$CHEX_NIH"; then export CHEX_NIH; else unset CHEX_NIH; fi;

# Suites that this build cannot run, with what is missing: run-tests.sh counts them as failures.
#: missing-suites     suites that this build cannot run, and what they lack
missing-suites:
if !HAVE_CHECK
	@echo 'the unit tests: Check was not found (Debian: check)'
endif
if !HAVE_MPI
	@echo 'the tests of ranks: a build without MPI (Debian: libopenmpi-dev openmpi-bin)'
endif
if !HAVE_LIBARCHIVE
	@echo 'the tests of images in archives: a build without libarchive (Debian: libarchive-dev)'
endif
if !EMULATOR
	@echo 'the tests of the emulated GPU: $(emulator_lacks)'
endif
	@test -n '$(PYTHON)' || echo 'the tests in Python: there is no Python 3 (Debian: python3)'
	@test -n '$(MPIRUN)' || echo 'the tests of ranks: there is no mpirun (Debian: openmpi-bin)'

#: check-slow         all of check-compare with larger images; more kills, faults and mutations: many minutes
check-slow:
	CHEX_SLOW=1; export CHEX_SLOW; $(MAKE) $(AM_MAKEFLAGS) check TESTS='$(slow_tests)'

# Those of them that need other software, which CI runs, but for the larger images of check_parity.py; the others are
# kills, faults and mutations, more of each.
#: check-compare      comparisons with TensorFlow, PyTorch and DALI: minutes
check-compare:
	CHEX_SLOW=compare; export CHEX_SLOW; $(MAKE) $(AM_MAKEFLAGS) check TESTS='$(compare_tests)'

#: check-sanitized    for a build with sanitizers: unit tests, fuzz corpus, one run of each tool
check-sanitized:
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(sanitized_tests)' check_PROGRAMS='$(sanitized_programs)' \
	  check_DATA='$(sanitized_data)'

# For who builds a package: libchex as others use it too.  Nothing else is built for these tests.
package_tests = $(unit_tests) tests/faults/check_smoke.py tests/tree/check_header.py
#: check-package      for builds of packages: unit tests, one run of each tool, libchex
check-package: all
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(package_tests)' check_PROGRAMS='$(unit_tests)' \
	  check_DATA='tests/faults/inject.so tests/dataset.stamp'

# What the last `make check`, `make check-slow` or `make check-compare` counted.
#: tally              what the last make check counted; tally-slow, tally-compare likewise
tally:
	@$(SHELL) $(srcdir)/tests/tally.sh $(TEST_LOGS)

tally-slow:
	@$(MAKE) $(AM_MAKEFLAGS) -s tally TESTS='$(slow_tests)'

tally-compare:
	@$(MAKE) $(AM_MAKEFLAGS) -s tally TESTS='$(compare_tests)'

# The NEON kernels, cross-compiled and run by qemu-aarch64; skipped by name where one of them is missing.
#: check-aarch64      NEON kernels, cross-compiled and run by qemu-aarch64
check-aarch64:
	$(SHELL) $(srcdir)/tests/lib/kernels/check_aarch64.sh

# By hand: every call and every allocation; kills at random times.
#: check-faults       every failing call and every allocation, by hand: minutes
check-faults: all
	CHEX_SLOW=1; export CHEX_SLOW; $(MAKE) $(AM_MAKEFLAGS) check TESTS=tests/faults/check_faults.py

#: check-late         a trainer whose device is late leaves the bytes of the reference
check-late: all
	$(MAKE) $(AM_MAKEFLAGS) check TESTS=tests/cli/check_late.py

# What configure says and takes, in folders of its own; the release, from two checkouts of the last commit.
#: check-configure    what configure says of what is missing, and of MPI
check-configure: all
	$(SHELL) $(srcdir)/tests/tree/check_configure.sh '$(abs_builddir)'
#: check-dist         the release from two checkouts, and from itself
check-dist:
	$(SHELL) $(srcdir)/tests/tree/check_dist.sh

#: check-nvcc         packaging/release/nvcc.py, with the parts of CUDA of $CHEX_RELEASE_CACHE
check-nvcc:
	$(AM_TESTS_ENVIRONMENT) srcdir='$(srcdir)' \
	  $(PY_LOG_COMPILER) $(srcdir)/tests/tree/check_nvcc.py $(CHECK_CASES) || [ $$? -eq 77 ]

# As root.  TARBALL: of `make release`; ROOTS: a folder that keeps the root file systems; SUITES: bullseye, bookworm.
ROOTS = roots
#: check-anywhere     TARBALL=FILE: the programs of a release in minimal Debians 11 and 12, as a user without root
check-anywhere: all
	$(SHELL) $(srcdir)/tests/tree/check_release.sh '$(abs_builddir)' '$(TARBALL)' '$(ROOTS)' $(SUITES)

# Lines and branches of lib/ that make check ran, in a build of its own.
#: coverage           lines and branches of lib/ that make check ran, in a build of its own
coverage:
	$(MKDIR_P) coverage
	test -f coverage/Makefile || (cd coverage && $(abs_srcdir)/configure --disable-shared PYTHON='$(PYTHON)' \
	  CFLAGS='-O0 -g --coverage' CPPFLAGS='$(CPPFLAGS)' >/dev/null)
	cd coverage && $(MAKE) all && { $(MAKE) check || :; }
	$(PYTHON) $(srcdir)/tests/analysis/coverage.py coverage

KILLS = 10000
#: check-kill         kills at random times; KILLS=10000
check-kill: all tests/faults/inject.so
	$(AM_TESTS_ENVIRONMENT) KILLS=$(KILLS) srcdir='$(srcdir)' \
	  $(PY_LOG_COMPILER) $(srcdir)/tests/faults/check_faults.py 'random times'

# By hand: README.md's training run with three seeds, and DenseNet-121 on the real images.
#: check-learns       does it learn? by hand: minutes
check-learns: all
	$(AM_TESTS_ENVIRONMENT) srcdir='$(srcdir)' $(PY_LOG_COMPILER) $(srcdir)/tests/cli/check_learns.py

.PHONY: check-aarch64 check-anywhere check-compare check-configure check-dist check-faults check-kill check-late \
	check-learns check-nvcc check-package check-sanitized check-slow coverage missing-suites tally tally-compare \
	tally-slow

# ---- analysis, hardening ---------------------------------------------------------------------------------------------

# Static analysis of the whole code; see TESTING.md.
#: analyze            gcc -fanalyzer, clang --analyze, cppcheck
analyze: $(BUILT_SOURCES)
	CPPFLAGS='$(CPPFLAGS) $(MPI_CFLAGS)' $(SHELL) -c \
	  'exec bash $(srcdir)/tests/analysis/analyze.sh $(abs_srcdir) $(abs_builddir) $(ANALYZERS)'

# The unit tests under valgrind's memcheck, JOBS cases at once: an error or a leak ends a test's process with code 9.
#: check-valgrind     the unit tests under valgrind
check-valgrind: tests/unit
	$(SHELL) $(srcdir)/tests/analysis/valgrind.sh $${JOBS:-2} $(LIBTOOL) --mode=execute valgrind --quiet \
	  --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite,indirect \
	  --show-leak-kinds=definite,indirect $(VALGRIND_FLAGS)

# The tests with threads, a hundred times, for a build with --enable-sanitizers=thread.
#: check-threads      the suites with threads, again and again
check-threads: tests/unit
	$(SHELL) $(srcdir)/tests/analysis/threads.sh $(TIMES)

.PHONY: analyze check-threads check-valgrind
