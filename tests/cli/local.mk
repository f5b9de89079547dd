# SPDX-License-Identifier: Apache-2.0
# Tests that run command lines.
# A tool of NVTX.
if NVTX
check_DATA += tests/nvtx_injection.so
endif
tests/nvtx_injection.so: tests/cli/nvtx_injection.c
	$(AM_V_GEN)$(MKDIR_P) tests && \
	$(CC) -O2 -Wall -Wextra $(NVTX_CPPFLAGS) -fPIC -shared -o $@ $(srcdir)/tests/cli/nvtx_injection.c -lpthread
CLEANFILES += tests/nvtx_injection.so

# A small data set of several shards a split, for check_inspect.py.
check_DATA += tests/dataset.stamp
tests/dataset.stamp: chex-synth$(EXEEXT) chex-convert$(EXEEXT)
	$(AM_V_GEN)rm -rf tests/dataset tests/dataset.images && $(MKDIR_P) tests && \
	./chex-synth -q -n 120 --size 64 -o tests/dataset.images && \
	./chex-convert -q -i tests/dataset.images/images -l tests/dataset.images/Data_Entry_2017_v2020.csv \
	  -o tests/dataset --size 32 --shard-size 16 && touch $@
CLEANFILES += tests/dataset.stamp

# The module with each Python: PYTHONS='/usr/bin/python3.9 ~/venv/bin/python'; those without NumPy are skipped.
PYTHONS = `ls /usr/bin/python3.? /usr/bin/python3.?? /usr/local/bin/python3.? /usr/local/bin/python3.?? 2>/dev/null`
#: check-pythons      the module chex_tools with each Python; PYTHONS=LIST
check-pythons: $(bin_PROGRAMS)
	@code=0; for python in $(PYTHONS); do \
	  "$$python" -c 'import numpy' 2>/dev/null || { echo "skip $$python: no NumPy"; continue; }; \
	  echo "$$python: `"$$python" -V`"; \
	  for test in module faults; do \
	    CHEX_PYTHON=$$python BUILDDIR='$(abs_builddir)' srcdir='$(srcdir)' PYTHON='$(PYTHON)' \
	      $(SHELL) $(srcdir)/tests/python.sh $(srcdir)/tests/cli/check_python_$$test.py || code=1; \
	  done; \
	done; exit $$code
.PHONY: check-pythons

EXTRA_DIST += \
	tests/cli/check_archive.py \
	tests/cli/check_audit.py \
	tests/cli/check_boxes.py \
	tests/cli/check_checkpoints.py \
	tests/cli/check_commands.py \
	tests/cli/check_compare.py \
	tests/cli/check_completion.py \
	tests/cli/check_convert.py \
	tests/cli/check_diff.py \
	tests/cli/check_findings.py \
	tests/cli/check_gate.py \
	tests/cli/check_fold.py \
	tests/cli/check_inspect.py \
	tests/cli/check_inspect_hostile.py \
	tests/cli/check_interop.py \
	tests/cli/check_late.py \
	tests/cli/check_learns.py \
	tests/cli/check_leaky.py \
	tests/cli/check_libraries.py \
	tests/cli/check_messages.py \
	tests/cli/check_maps.py \
	tests/cli/check_near.py \
	tests/cli/check_nvtx.py \
	tests/cli/check_onnx.py \
	tests/cli/check_pictures.py \
	tests/cli/check_predict.py \
	tests/cli/check_profile.py \
	tests/cli/check_python_faults.py \
	tests/cli/check_python_module.py \
	tests/cli/check_python_torch.py \
	tests/cli/check_quiet.py \
	tests/cli/check_recipes.py \
	tests/cli/check_report.py \
	tests/cli/check_reshard.py \
	tests/cli/check_resume.py \
	tests/cli/check_run_labels.py \
	tests/cli/check_run_many.py \
	tests/cli/check_run_maps.py \
	tests/cli/check_run_published.py \
	tests/cli/check_run_report.py \
	tests/cli/check_run_suspects.py \
	tests/cli/check_scale.sh \
	tests/cli/check_scaling.py \
	tests/cli/check_sheet.py \
	tests/cli/check_short.py \
	tests/cli/check_thresholds.py \
	tests/cli/check_source.py \
	tests/cli/check_stage.py \
	tests/cli/check_synth.py \
	tests/cli/check_times.py \
	tests/cli/check_torch_file.py \
	tests/cli/check_train.py \
	tests/cli/check_train_again.py \
	tests/cli/check_train_hostile.py \
	tests/cli/check_train_plan.py \
	tests/cli/check_trained_on.py \
	tests/cli/check_wheel.py \
	tests/cli/check_withdraw.py \
	tests/cli/commands/convert.txt \
	tests/cli/commands/inspect.txt \
	tests/cli/commands/mistakes.txt \
	tests/cli/commands/predict.txt \
	tests/cli/commands/synth.txt \
	tests/cli/commands/train.txt \
	tests/cli/hires_cam.py \
	tests/cli/nvtx_injection.c \
	tests/cli/read_tensorflow.py
