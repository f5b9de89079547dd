# SPDX-License-Identifier: Apache-2.0
# make check: seconds to a minute or two.  make check-slow: minutes.  What each test needs is in TESTING.md.

# ---- unit tests (Check) ------------------------------------------------------------------------------------------
tests_unit_SOURCES = \
	tests/unit.c \
	tests/unit.h \
	tests/archive_fixture.c \
	tests/archive_fixture.h \
	tests/calls.c \
	tests/calls.h \
	tests/cases.h \
	tests/checkpoint_fixture.c \
	tests/checkpoint_fixture.h \
	tests/deflate_fixture.c \
	tests/deflate_fixture.h \
	tests/evaluate_fixture.c \
	tests/evaluate_fixture.h \
	tests/file_fixture.c \
	tests/file_fixture.h \
	tests/jpeg_fixture.c \
	tests/jpeg_fixture.h \
	tests/kinks.c \
	tests/kinks.h \
	tests/label_fixture.c \
	tests/label_fixture.h \
	tests/lock_fixture.c \
	tests/lock_fixture.h \
	tests/png_fixture.c \
	tests/png_fixture.h \
	tests/post_office.c \
	tests/post_office.h \
	tests/rank_fixture.c \
	tests/rank_fixture.h \
	tests/record_fixture.c \
	tests/record_fixture.h \
	tests/resume_fixture.c \
	tests/resume_fixture.h \
	tests/small_dataset.c \
	tests/small_dataset.h \
	tests/source_fixture.c \
	tests/source_fixture.h \
	tests/state_cases.c \
	tests/state_cases.h \
	tests/step_fixture.c \
	tests/step_fixture.h \
	tests/store_fixture.c \
	tests/store_fixture.h \
	tests/verify_fixture.c \
	tests/verify_fixture.h \
	tests/test_crc32c.c \
	tests/test_journal.c \
	tests/test_dataset.c \
	tests/test_decode.c \
	tests/test_digest.c \
	tests/test_error.c \
	tests/test_example.c \
	tests/test_file.c \
	tests/test_file_read.c \
	tests/test_findings.c \
	tests/test_jpeg.c \
	tests/test_labels.c \
	tests/test_label_errors.c \
	tests/test_inflate_streams.c \
	tests/test_lock.c \
	tests/test_lock_faults.c \
	tests/test_manifest.c \
	tests/test_manifest_check.c \
	tests/test_names.c \
	tests/test_threads.c \
	tests/test_part.c \
	tests/test_preflight.c \
	tests/test_plan.c \
	tests/test_png.c \
	tests/test_png_bounds.c \
	tests/test_png_faults.c \
	tests/test_png_fast.c \
	tests/test_progress.c \
	tests/test_rank_times.c \
	tests/test_ranks.c \
	tests/test_record.c \
	tests/test_record_faults.c \
	tests/test_resample.c \
	tests/test_resume.c \
	tests/test_shard_scan.c \
	tests/test_source.c \
	tests/test_archive.c \
	tests/test_ascii.c \
	tests/test_gunzip.c \
	tests/test_keyed_hash.c \
	tests/test_queue.c \
	tests/test_split.c \
	tests/test_split_rule.c \
	tests/test_store.c \
	tests/test_store_folder.c \
	tests/test_table.c \
	tests/test_verify.c \
	tests/test_verify_folder.c \
	tests/test_backends.c \
	tests/test_padding.c \
	tests/test_calls.c \
	tests/test_convert.c \
	tests/test_checkpoint.c \
	tests/test_state.c \
	tests/test_weights.c \
	tests/test_settings.c \
	tests/test_collective.c \
	tests/test_collective_faults.c \
	tests/test_graph.c \
	tests/test_loader.c \
	tests/test_metrics.c \
	tests/test_random.c \
	tests/test_seam.c \
	tests/test_reader.c \
	tests/test_safetensors.c \
	tests/test_step.c \
	tests/test_evaluate.c \
	tests/test_evaluate_ranks.c \
	tests/test_inflate.c
tests_unit_CPPFLAGS = $(tools_cppflags) -iquote $(srcdir)/tests $(CHECK_CFLAGS) $(LIBPNG_CFLAGS) $(LIBJPEG_CFLAGS) \
	$(ZLIB_CFLAGS) $(PROTOBUF_C_CFLAGS) $(JANSSON_CFLAGS) $(CRYPTO_CFLAGS)
tests_unit_LDADD = $(unit_emulated) libtrain.la libchexcore.la $(LIBPNG_LIBS) $(LIBJPEG_LIBS) $(ZLIB_LIBS) $(CHECK_LIBS)
# What the library calls is to fail: tests/calls.c.
tests_unit_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=pread,--wrap=pwrite \
	-Wl,--wrap=write,--wrap=fstat,--wrap=fstatat,--wrap=openat,--wrap=open,--wrap=opendir,--wrap=nanosleep \
	-Wl,--wrap=renameat,--wrap=linkat,--wrap=unlinkat,--wrap=fsync,--wrap=close,--wrap=readdir
# Where there is the emulated GPU, it is one of the backends (emulator/local.mk).
tests_unit_LINK = $(unit_link) $(tests_unit_LDFLAGS) $(LDFLAGS) -o $@
if EMULATOR
nodist_tests_unit_SOURCES = $(emulated_backends)
unit_emulated = $(emulated_ldadd)
unit_link = $(emulated_link)
else
unit_link = $(LIBTOOL) $(AM_V_lt) --tag=CC --mode=link $(CCLD) $(AM_CFLAGS) $(CFLAGS)
endif
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

# ---- programs whose output is compared with other software ---------------------------------------------------------
check_PROGRAMS += check-images check-tables
check_images_SOURCES = tests/check_images.c
check_images_LDADD = libchexcore.la
check_tables_SOURCES = tests/check_tables.c
check_tables_LDADD = libchexcore.la

# ---- faults: a library to be preloaded, without the sanitizers of what it is loaded into -----------------------------
# Not by libtool: it is needed under --disable-shared too.
check_DATA = tests/faults/inject.so tests/faults/slow_math.so tests/faults/fast_clock.so tests/faults/count_calls.so
inject_sources = tests/faults/inject.c tests/faults/wrap_files.c tests/faults/wrap_memory.c
tests/faults/inject.so: $(inject_sources) tests/faults/inject.h
	$(AM_V_GEN)$(MKDIR_P) tests/faults && \
	$(CC) -O2 -Wall -Wextra -fPIC -ftls-model=initial-exec -shared -o $@ \
	  $(srcdir)/tests/faults/inject.c $(srcdir)/tests/faults/wrap_files.c $(srcdir)/tests/faults/wrap_memory.c \
	  -ldl -lpthread
tests/faults/slow_math.so: tests/faults/slow_math.c
	$(AM_V_GEN)$(MKDIR_P) tests/faults && \
	$(CC) -O2 -Wall -Wextra -fno-builtin -fPIC -shared -o $@ $(srcdir)/tests/faults/slow_math.c -ldl
tests/faults/fast_clock.so: tests/faults/fast_clock.c
	$(AM_V_GEN)$(MKDIR_P) tests/faults && \
	$(CC) -O2 -Wall -Wextra -fPIC -shared -o $@ $(srcdir)/tests/faults/fast_clock.c
tests/faults/count_calls.so: tests/faults/count_calls.c
	$(AM_V_GEN)$(MKDIR_P) tests/faults && \
	$(CC) -O2 -Wall -Wextra -fPIC -shared -o $@ $(srcdir)/tests/faults/count_calls.c -ldl
CLEANFILES += $(check_DATA)
EXTRA_DIST += tests/faults/slow_math.c tests/faults/fast_clock.c tests/faults/count_calls.c $(inject_sources) \
	tests/faults/inject.h tests/lsan.txt

# ---- ranges: a tool of NVTX ------------------------------------------------------------------------------------------
if NVTX
check_DATA += tests/nvtx_injection.so
endif
tests/nvtx_injection.so: tests/nvtx_injection.c
	$(AM_V_GEN)$(MKDIR_P) tests && \
	$(CC) -O2 -Wall -Wextra $(NVTX_CPPFLAGS) -fPIC -shared -o $@ $(srcdir)/tests/nvtx_injection.c -lpthread
CLEANFILES += tests/nvtx_injection.so
EXTRA_DIST += tests/nvtx_injection.c

check_PROGRAMS += train-step
train_step_SOURCES = tests/train_step.c
train_step_CPPFLAGS = $(train_cppflags)
train_step_LDADD = libtrain.la
check_PROGRAMS += check-metrics
check_metrics_SOURCES = tests/check_metrics.c
check_metrics_CPPFLAGS = $(train_cppflags)
check_metrics_LDADD = libtrain.la

check_PROGRAMS += evaluate-split
evaluate_split_SOURCES = tests/evaluate_split.c tools/train/roc_plot.c tools/train/roc_plot.h
evaluate_split_CPPFLAGS = $(tools_cppflags)
evaluate_split_LDADD = libdraw.la libtrain.la $(launcher_ldadd) $(tools_ldadd)

check_PROGRAMS += collective-ranks
collective_ranks_SOURCES = tests/collective_ranks.c
collective_ranks_CPPFLAGS = $(tools_cppflags)
collective_ranks_LDADD = libtrain.la $(launcher_ldadd) $(tools_ldadd)

check_PROGRAMS += write-run
write_run_SOURCES = tests/write_run.c
write_run_CPPFLAGS = $(train_cppflags)
write_run_LDADD = libtrain.la

# ---- chex-train with a backend that is late; its own list of backends stands before that of libtrain.la --------------
check_PROGRAMS += late-train
late_train_SOURCES = tools/chex-train.c $(train_sources) tests/late.h tests/late_backend.c tests/late_memory.c \
	tests/late_reduce.c tests/late_store.c
late_train_CPPFLAGS = $(tools_cppflags)
late_train_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free
late_train_LDADD = libdraw.la libtrain.la $(launcher_ldadd) $(tools_ldadd) -lm

# ---- a small data set of several shards a split, for check_inspect.py ------------------------------------------------
check_DATA += tests/dataset.stamp
tests/dataset.stamp: chex-synth$(EXEEXT) chex-convert$(EXEEXT)
	$(AM_V_GEN)rm -rf tests/dataset tests/dataset.images && $(MKDIR_P) tests && \
	./chex-synth -q -n 120 --size 64 -o tests/dataset.images && \
	./chex-convert -q -i tests/dataset.images/images -l tests/dataset.images/Data_Entry_2017_v2020.csv \
	  -o tests/dataset --size 32 --shard-size 16 && touch $@
CLEANFILES += tests/dataset.stamp
clean-local:
	rm -rf tests/dataset tests/dataset.images emulator gpu gpu-bundle gpu-bundle-build gpu-results nvrtc-kept

# ---- tests ---------------------------------------------------------------------------------------------------------
# The longest first: with several jobs none of them begins last and alone.
TESTS += \
	tests/check_train_ranks.py \
	tests/check_faults.py \
	tests/check_ranks.py \
	$(unit_tests) \
	tests/check_events.py \
	tests/check_times.py \
	tests/check_resume.py \
	tests/check_report.py \
	tests/check_sheet.py \
	tests/check_train_hostile.py \
	tests/check_train.py \
	tests/png_cases.py \
	tests/check_archive.py \
	tests/check_auroc.py \
	tests/check_checkpoints.py \
	tests/check_commands.py \
	tests/check_completion.py \
	tests/check_convert.py \
	tests/check_diff.py \
	tests/check_docs.py \
	tests/check_inspect.py \
	tests/check_inspect_hostile.py \
	tests/check_interop.py \
	tests/check_late.py \
	tests/check_layers.py \
	tests/check_libraries.py \
	tests/check_messages.py \
	tests/check_nvtx.py \
	tests/check_pictures.py \
	tests/check_quiet.py \
	tests/check_recipes.py \
	tests/check_scale_model.py \
	tests/check_setup.py \
	tests/check_slurm.py \
	tests/check_smoke.py \
	tests/check_source.py \
	tests/check_stage.py \
	tests/check_synth.py \
	tests/check_tables.py \
	tests/check_train_again.py \
	tests/check_train_plan.py
if EMULATOR
emulated_tests = tests/check_train_cuda.py tests/check_train_nccl.py
TESTS += $(emulated_tests)
endif
# With TensorFlow, PyTorch, DALI.
compare_tests = \
	tests/check_parity.py \
	tests/check_half.py \
	tests/check_interop.py \
	tests/check_weights.py \
	tests/check_recipes.py
slow_tests = \
	$(emulated_tests) \
	tests/check_faults.py \
	tests/check_resume.py \
	tests/check_convert.py \
	tests/check_messages.py \
	tests/check_pictures.py \
	tests/check_ranks.py \
	tests/check_slurm.py \
	tests/check_times.py \
	tests/check_train_plan.py \
	tests/check_train_ranks.py \
	$(compare_tests)
# In a build with sanitizers; all of TESTS there takes five times as long, and is for doing by hand.
sanitized_tests = $(unit_tests) tests/check_fuzz.py tests/check_smoke.py
sanitized_programs = $(unit_tests) $(fuzz_programs) $(archive_program) tests/fuzz/self_test

EXTRA_DIST += \
	quickstart.sh \
	run-tests.sh \
	tests/bare-root.sh \
	tests/check_aarch64.sh \
	tests/check_configure.sh \
	tests/check_commits.sh \
	tests/check_dist.sh \
	tests/check_install.sh \
	tests/check_kernels.c \
	tests/check_commands.py \
	tests/check_convert.py \
	tests/check_docs.py \
	tests/check_inspect.py \
	tests/check_inspect_hostile.py \
	tests/check_interop.py \
	tests/check_half.py \
	tests/check_late.py \
	tests/check_layers.py \
	tests/check_learns.py \
	tests/check_libraries.py \
	tests/check_messages.py \
	tests/check_nvtx.py \
	tests/check_pictures.py \
	tests/check_setup.py \
	tests/check_smoke.py \
	tests/check_parity.py \
	tests/check_recipes.py \
	tests/check_scale.sh \
	tests/check_scale_model.py \
	tests/check_slurm.py \
	tests/fake_slurm.py \
	tests/check_ranks.py \
	tests/check_train_ranks.py \
	tests/check_completion.py \
	tests/check_events.py \
	tests/check_times.py \
	tests/ranks.py \
	tests/check_sheet.py \
	tests/check_archive.py \
	tests/check_faults.py \
	tests/commands/convert.txt \
	tests/commands/inspect.txt \
	tests/commands/mistakes.txt \
	tests/commands/synth.txt \
	tests/commands/train.txt \
	tests/coverage.py \
	tests/faults/README.md \
	tests/faults/harness.py \
	tests/faults/replay.py \
	tests/check_synth.py \
	tests/check_tables.py \
	tests/fixtures.py \
	tests/check_train.py \
	tests/check_train_again.py \
	tests/check_train_cuda.py \
	tests/check_train_hostile.py \
	tests/check_train_nccl.py \
	tests/check_train_plan.py \
	tests/check_resume.py \
	tests/training.py \
	tests/png_cases.py \
	tests/python.sh \
	tests/read_tensorflow.py \
	tests/browser.py \
	tests/check_diff.py \
	tests/check_quiet.py \
	tests/check_report.py \
	tests/check_source.py \
	tests/check_stage.py \
	tests/read_events.py \
	tests/check_auroc.py \
	tests/check_checkpoints.py \
	tests/check_weights.py \
	tests/requirements-cuda.txt \
	tests/requirements-cudnn.txt \
	tests/requirements-dali.txt \
	tests/requirements-lint.txt \
	tests/requirements.txt \
	tests/setup.sh \
	tests/suites.sh \
	tests/support.py \
	tests/tally.sh \
	tests/timed.sh \
	tests/verdict.sh

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
	CHEX_SYNTH='$(abs_builddir)/chex-synth'; export CHEX_SYNTH; \
	CHEX_TRAIN='$(abs_builddir)/chex-train'; export CHEX_TRAIN; \
	CHEX_TRAIN_EMULATED='$(abs_builddir)/tests/chex-train-emulated'; export CHEX_TRAIN_EMULATED; \
	LATE_TRAIN='$(abs_builddir)/late-train'; export LATE_TRAIN; \
	CHECK_IMAGES='$(abs_builddir)/check-images'; export CHECK_IMAGES; \
	CHEX_DATASET='$(abs_builddir)/tests/dataset'; export CHEX_DATASET; \
	BUILDDIR='$(abs_builddir)'; export BUILDDIR; \
	LSAN_OPTIONS='print_suppressions=0:suppressions=$(abs_srcdir)/tests/lsan.txt'; export LSAN_OPTIONS; \
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
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(sanitized_tests)' check_PROGRAMS='$(sanitized_programs)' check_DATA=

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
	$(SHELL) $(srcdir)/tests/check_aarch64.sh

# By hand: every call and every allocation; kills at random times.
#: check-faults       every failing call and every allocation, by hand: minutes
check-faults: all
	CHEX_SLOW=1; export CHEX_SLOW; $(MAKE) $(AM_MAKEFLAGS) check TESTS=tests/check_faults.py

#: check-late         a trainer whose device is late leaves the bytes of the reference
check-late: all
	$(MAKE) $(AM_MAKEFLAGS) check TESTS=tests/check_late.py

# What configure says and takes, in folders of its own; the release, from two checkouts of the last commit.
#: check-configure    what configure says of what is missing, and of MPI
check-configure: all
	$(SHELL) $(srcdir)/tests/check_configure.sh '$(abs_builddir)'
#: check-dist         the release from two checkouts, and from itself
check-dist:
	$(SHELL) $(srcdir)/tests/check_dist.sh

# Lines and branches of lib/ that make check ran, in a build of its own.
#: coverage           lines and branches of lib/ that make check ran, in a build of its own
coverage:
	$(MKDIR_P) coverage
	test -f coverage/Makefile || (cd coverage && $(abs_srcdir)/configure --disable-shared PYTHON='$(PYTHON)' \
	  CFLAGS='-O0 -g --coverage' CPPFLAGS='$(CPPFLAGS)' >/dev/null)
	cd coverage && $(MAKE) all && { $(MAKE) check || :; }
	$(PYTHON) $(srcdir)/tests/coverage.py coverage

KILLS = 10000
#: check-kill         kills at random times; KILLS=10000
check-kill: all tests/faults/inject.so
	$(AM_TESTS_ENVIRONMENT) KILLS=$(KILLS) srcdir='$(srcdir)' $(PYTHON) $(srcdir)/tests/check_faults.py \
	  'random times'

# By hand: README.md's training run with three seeds, and DenseNet-121 on the real images.
#: check-learns       does it learn? by hand: minutes
check-learns: all
	$(AM_TESTS_ENVIRONMENT) srcdir='$(srcdir)' $(PYTHON) $(srcdir)/tests/check_learns.py

.PHONY: check-aarch64 check-compare check-configure check-dist check-faults check-kill check-late check-learns \
	check-sanitized check-slow coverage missing-suites tally tally-compare tally-slow

# ---- analysis, hardening ---------------------------------------------------------------------------------------------
TESTS += tests/check_hardening.py tests/check_header.py
EXTRA_DIST += tests/analyze.sh tests/analyze.txt tests/check_hardening.py tests/check_header.py \
	tests/threads.sh tests/valgrind.sh

# Static analysis of the whole code; see TESTING.md.
#: analyze            gcc -fanalyzer, clang --analyze, cppcheck
analyze: $(BUILT_SOURCES)
	CPPFLAGS='$(CPPFLAGS) $(MPI_CFLAGS)' $(SHELL) -c \
	  'exec bash $(srcdir)/tests/analyze.sh $(abs_srcdir) $(abs_builddir) $(ANALYZERS)'

# The unit tests under valgrind's memcheck, JOBS cases at once: an error or a leak ends a test's process with code 9.
#: check-valgrind     the unit tests under valgrind
check-valgrind: tests/unit
	$(SHELL) $(srcdir)/tests/valgrind.sh $${JOBS:-2} $(LIBTOOL) --mode=execute valgrind --quiet --error-exitcode=9 \
	  --leak-check=full --errors-for-leak-kinds=definite,indirect --show-leak-kinds=definite,indirect \
	  $(VALGRIND_FLAGS)

# The tests with threads, a hundred times, for a build with --enable-sanitizers=thread.
#: check-threads      the suites with threads, again and again
check-threads: tests/unit
	$(SHELL) $(srcdir)/tests/threads.sh $(TIMES)

.PHONY: analyze check-threads check-valgrind
