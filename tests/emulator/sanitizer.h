/*
 * sanitizer.h - what the sanitizers are told of fibers and memory; nothing in a plain build
 *
 * In a build with the thread sanitizer the kernels are instrumented and the emulator's own files are not
 * (EMULATOR_TSAN): their work on behalf of a thread is no race.
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

/* A build that counts what kernels touch. */
#ifdef EMULATOR_COUNTED
#include "traffic.h"
#define COUNTED(...) __VA_ARGS__
#else
#define COUNTED(...)
#endif

#endif
