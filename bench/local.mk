# SPDX-License-Identifier: Apache-2.0
# make bench-convert: compares chex-convert with kornia-rs, imagecodecs, OpenCV, Pillow, TensorFlow and Python worker
# processes, for loose files and archives, and at five sizes (peers: bench/requirements.txt).
# BENCH_FLAGS=--markdown prints doc/benchmarks.md.
# BENCH_IMAGES names a folder of real images, BENCH_FLAGS is handed on (--count, --sizes, --threads, ...).
# make bench-inspect: chex-inspect check --full beside cat; BENCH_FLAGS='--dataset FOLDER' takes one that is there.
EXTRA_PROGRAMS = bench-stages
bench_stages_SOURCES = bench/stages.c
bench_stages_LDADD = libchexcore.la $(ISAL_LIBS)
CLEANFILES += bench-stages
EXTRA_DIST += bench/convert.py bench/full_check.py bench/requirements.txt doc/benchmarks.md

#: bench-convert      compares chex-convert with its peers at five sizes, and prints its stages
bench-convert: bench-stages chex-convert chex-synth
	BUILDDIR='$(abs_builddir)' $(PYTHON) $(srcdir)/bench/convert.py $(BENCH_FLAGS)

#: bench-inspect      chex-inspect check --full beside cat
bench-inspect: chex-inspect chex-convert chex-synth
	BUILDDIR='$(abs_builddir)' $(PYTHON) $(srcdir)/bench/full_check.py $(BENCH_FLAGS)

# make bench-train: a training step and inference beside PyTorch.  BENCH_FLAGS is handed on (--batch, --rounds, ...).
EXTRA_PROGRAMS += train-loop
train_loop_SOURCES = bench/train_loop.c
train_loop_CPPFLAGS = $(train_cppflags)
train_loop_LDADD = libtrain.la -lm
CLEANFILES += train-loop
EXTRA_DIST += bench/train.py

#: bench-train        a training step and inference beside PyTorch
bench-train: train-loop
	BUILDDIR='$(abs_builddir)' $(PYTHON) $(srcdir)/bench/train.py $(BENCH_FLAGS)

# make bench-loader: images a second of the loader alone, from memory, page cache and disk, beside a DataLoader of
# PyTorch.  BENCH_FLAGS='--dataset FOLDER' takes one that is there; of that many bytes leave the page cache by --cold.
EXTRA_PROGRAMS += loader-loop
loader_loop_SOURCES = bench/loader.c
loader_loop_CPPFLAGS = $(train_cppflags)
loader_loop_LDADD = libtrain.la -lm
CLEANFILES += loader-loop
# The same with the store of the emulated GPU (tests/cuda/local.mk).
EXTRA_PROGRAMS += loader-loop-emulated
loader_loop_emulated_SOURCES = bench/loader.c
nodist_loader_loop_emulated_SOURCES = $(emulated_backends)
loader_loop_emulated_CPPFLAGS = $(train_cppflags)
loader_loop_emulated_LDADD = $(emulated_ldadd) libtrain.la -lm
loader_loop_emulated_LINK = $(emulated_link) $(AM_LDFLAGS) $(LDFLAGS) -o $@
CLEANFILES += loader-loop-emulated
if EMULATOR
loader_loops = loader-loop loader-loop-emulated
else
loader_loops = loader-loop
endif
# Then what Python reads the shards with, beside other formats (peers: bench/requirements.txt);
# READERS_FLAGS='--python PROGRAM' adds a Python.
EXTRA_DIST += bench/loader.py bench/readers.py

#: bench-loader       the loader beside a DataLoader of PyTorch; 1, 4 and 8 ranks of a node; then bench-readers
bench-loader: $(loader_loops) chex-convert chex-synth
	BUILDDIR='$(abs_builddir)' $(PYTHON) $(srcdir)/bench/loader.py $(BENCH_FLAGS)
	BUILDDIR='$(abs_builddir)' $(PYTHON) $(srcdir)/bench/readers.py $(READERS_FLAGS)

#: bench-readers      README's recipe for PyTorch beside memmap, tf.data, WebDataset and MosaicML streaming
bench-readers: chex-convert chex-synth
	BUILDDIR='$(abs_builddir)' $(PYTHON) $(srcdir)/bench/readers.py $(READERS_FLAGS)

# make bench-stream: what an image costs in every epoch, from PNGs and from shards.  STREAM_FLAGS as READERS_FLAGS.
EXTRA_DIST += bench/stream.py

#: bench-stream       shards by chex-train --device none and tf.data beside PNGs by Pillow and DataLoader
bench-stream: chex-train chex-convert chex-synth
	BUILDDIR='$(abs_builddir)' $(PYTHON) $(srcdir)/bench/stream.py $(STREAM_FLAGS)

# make bench-collective: a sum of 28 MB over ranks, ours and MPI_Allreduce.  BENCH_FLAGS: floats, floats a bucket,
# rounds.
EXTRA_DIST += bench/collective.c
if MPI_LINKED
EXTRA_PROGRAMS += bench-collective-ranks
bench_collective_ranks_SOURCES = bench/collective.c
bench_collective_ranks_CPPFLAGS = $(train_cppflags) $(MPI_CFLAGS)
bench_collective_ranks_LDADD = libtrain.la $(launcher_ldadd) $(tools_ldadd)
CLEANFILES += bench-collective-ranks

#: bench-collective   a sum over ranks beside MPI_Allreduce
bench-collective: bench-collective-ranks
	for n in 1 2 4; do $(MPIRUN) --oversubscribe -np $$n ./bench-collective-ranks $(BENCH_FLAGS) || exit 1; done
endif

# make bench-gpu: speed on a GPU beside PyTorch; BENCH_FLAGS is handed on (--quick, --out FOLDER, ...).
gpu_loop = bench/gpu_kernels.c bench/gpu_kernels.h bench/gpu_loop.c $(device_word)
EXTRA_PROGRAMS += gpu-loop
gpu_loop_SOURCES = $(gpu_loop)
gpu_loop_CPPFLAGS = $(train_cppflags) -iquote $(srcdir)/tests/cuda/device
gpu_loop_LDADD = libtrain.la -lm
CLEANFILES += gpu-loop
# The same on the emulated GPU (tests/cuda/local.mk): bench/gpu.py --device cuda-emulated.
EXTRA_PROGRAMS += tests/gpu-loop-emulated
tests_gpu_loop_emulated_SOURCES = $(gpu_loop)
nodist_tests_gpu_loop_emulated_SOURCES = $(emulated_backends)
tests_gpu_loop_emulated_CPPFLAGS = $(emulated_cppflags) -iquote $(srcdir)/tests/cuda/device
tests_gpu_loop_emulated_LDADD = $(emulated_ldadd) libtrain.la -lm
tests_gpu_loop_emulated_LINK = $(emulated_link) $(AM_LDFLAGS) $(LDFLAGS) -o $@
CLEANFILES += tests/gpu-loop-emulated
EXTRA_DIST += bench/gpu.py bench/gpu_rates.cu bench/gpu_table.py bench/gpu_torch.py

#: bench-gpu          on a GPU: bandwidth, steps and inference beside PyTorch, bytes of each kernel
bench-gpu: gpu-loop
	BUILDDIR='$(abs_builddir)' srcdir='$(srcdir)' NVCC='$(NVCC)' $(PYTHON) $(srcdir)/bench/gpu.py $(BENCH_FLAGS)

# make bench-scale: a model, no measurement: steps and epochs on 1 to 256 GPUs.  BENCH_FLAGS is handed on (--case ...).
EXTRA_DIST += bench/scale.py bench/scale_model.py doc/scale.svg

#: bench-scale        how training scales to 256 GPUs, modelled
bench-scale:
	$(PYTHON) $(srcdir)/bench/scale.py $(BENCH_FLAGS)

# make bench-scaling: the figures of chex-inspect scaling, by the wall time of the commands and by POP's formulas.
EXTRA_DIST += bench/scaling.py
if HAVE_MPI
#: bench-scaling      speed-up and POP's factors of 1, 2 and 4 ranks against the wall time; also all on one core
bench-scaling: chex-train chex-inspect chex-convert chex-synth
	BUILDDIR='$(abs_builddir)' MPIRUN='$(MPIRUN)' $(PYTHON) $(srcdir)/bench/scaling.py $(BENCH_FLAGS)
endif

.PHONY: bench-collective bench-convert bench-gpu bench-inspect bench-loader bench-readers bench-scale bench-scaling \
	bench-stream bench-train
