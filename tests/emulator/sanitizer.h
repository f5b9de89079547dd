/*
 * sanitizer.h - annotations of fibers and memory for the sanitizers; empty in a plain build
 *
 * With the thread sanitizer, only the kernels are instrumented, not the files of the emulator (EMULATOR_TSAN): the
 * emulator's own accesses for a thread are not races.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef EMULATOR_SANITIZER_H
#define EMULATOR_SANITIZER_H

#if defined(__SANITIZE_ADDRESS__)
#define EMULATOR_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EMULATOR_ASAN 1
#endif
#endif

#ifdef EMULATOR_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define ASAN(...) __VA_ARGS__
#else
#define ASAN(...)
#endif

#ifdef EMULATOR_TSAN
#include <sanitizer/tsan_interface.h>
extern "C" {
void __tsan_read2(void *);
void __tsan_read4(void *);
void __tsan_read8(void *);
void __tsan_write8(void *);
}
#define TSAN(...) __VA_ARGS__
#else
#define TSAN(...)
#endif

/* The build that counts memory accesses of kernels. */
#ifdef EMULATOR_COUNTED
#include "traffic.h"
#define COUNTED(...) __VA_ARGS__
#else
#define COUNTED(...)
#endif

#endif
