/*
 * rules.h - what the tests of the interpreter share: kernels of a few instructions
 *
 * A kernel reads 32-bit words from `in` and writes `out`, one row of each for every lane of a warp.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef PTX_RULES_H
#define PTX_RULES_H

#include <stdint.h>
#include <string>
#include <vector>

typedef std::vector<uint32_t> words;

/* Counts a test, and prints what is wrong. */
void expect(bool good, const std::string &what);

/*
 * Runs this body in each block of a grid, with `threads` threads.  Registers: %r0 the thread, %rd0 the address of its
 * row of `in`, %rd1 that of its row of `out` (rows have 8 words), %r1 the address of 1,024 bytes of shared memory
 * (`buffer`).  %r2.., %rd2.., %f0.., %d0.., %h0.. and %p0.. are free.  ARGUMENT is the name of the argument; its
 * bytes 16 to 31 are the words 0x80000001 to 0x80000004.
 */
static const char BEGIN[] = "griddepcontrol.wait;\ngriddepcontrol.launch_dependents;\n";
words run(const std::string &body, const words &in, unsigned threads = 32, const char *begin = BEGIN,
          const std::string &functions = "", const std::vector<unsigned> &grid = {1, 1, 1});

/* Word 0 of the first lane, after instructions that leave it in %r9; %r2, %r3, %r4 have the inputs. */
uint32_t compute(const std::string &body, uint32_t a, uint32_t b = 0, uint32_t c = 0);

/* -- rule_values.cc -- */
void instructions_compute();
/* -- rule_forms.cc -- */
void forms_compute();

#endif
