# SPDX-License-Identifier: Apache-2.0
# Libraries to be preloaded, without the sanitizers of what they are loaded into, and what runs with them.
# Not by libtool: it is needed under --disable-shared too.
preloaded = tests/faults/inject.so tests/faults/slow_math.so tests/faults/fast_clock.so tests/faults/count_calls.so \
	tests/faults/other_pixels.so
check_DATA += $(preloaded)
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
tests/faults/other_pixels.so: tests/faults/other_pixels.c
	$(AM_V_GEN)$(MKDIR_P) tests/faults && \
	$(CC) -O2 -Wall -Wextra -fPIC -shared -o $@ $(srcdir)/tests/faults/other_pixels.c -ldl
CLEANFILES += $(preloaded)

EXTRA_DIST += \
	tests/faults/README.md \
	tests/faults/check_faults.py \
	tests/faults/check_smoke.py \
	tests/faults/count_calls.c \
	tests/faults/fast_clock.c \
	tests/faults/inject.c \
	tests/faults/inject.h \
	tests/faults/other_pixels.c \
	tests/faults/slow_math.c \
	tests/faults/wrap_files.c \
	tests/faults/wrap_memory.c
