/*
 * core.h - declarations shared by the parser, the instructions and the scheduler of the interpreter
 *
 * The registers of a warp are rows of 32 lanes, 4 or 8 bytes each, in one array; a row is named by its offset in it.
 * An instruction is a function of a warp and a mask of lanes, with the rows of its operands.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef PTX_CORE_H
#define PTX_CORE_H

#include "ptx.h"

#include <map>
#include <stdint.h>
#include <string.h>
#include <string>
#include <vector>

namespace ptx
{
/* Shared memory begins at this address of its own space, so that 0 is no address. */
enum { LANES = 32, SHARED_BASE = 1024 };
static const uint32_t ALL_LANES = 0xffffffffu;
static const uint32_t NO_PC = 0xffffffffu;

enum type : uint8_t {
    PRED,
    U8,
    S8,
    B8,
    U16,
    S16,
    B16,
    F16,
    BF16,
    U32,
    S32,
    B32,
    F32,
    F16X2,
    BF16X2,
    U64,
    S64,
    B64,
    F64,
    NO_TYPE
};
enum space : uint8_t { GENERIC, GLOBAL, SHARED, PARAM };

struct warp;
struct instruction;
typedef void (*operation)(warp &w, const instruction &i, uint32_t mask);

/* How the scheduler treats an instruction. */
enum control : uint8_t {
    NEXT,
    BRANCH,
    CALL,
    RETURN,  /* of a function, or the end of a thread */
    BARRIER, /* of the block */
    MEETING, /* all of its lanes execute it together */
};

struct instruction {
    operation run = nullptr;
    control what = NEXT;
    bool negated = false;   /* runs in lanes where the predicate is false */
    bool wide = false;      /* an address in shared memory that has 64 bits */
    uint8_t count = 0;      /* values of a vector, or matrices */
    uint32_t predicate = 0; /* row; 0: none */
    uint32_t target = 0;    /* of a branch or call: index of an instruction */
    uint32_t first = 0;     /* operands: rows, from kernel::operands[first] on */
    int64_t immediate = 0;  /* added to an address; groups of copies that may stay in progress */
    uint32_t members = 0;   /* MEETING: row of the mask; 0: all lanes */
    uint32_t line = 0;      /* of the PTX file */
    uint32_t source = 0, source_file = 0;
    const char *opcode = "";
};

/* A row that has the same value in all lanes from the beginning. */
struct constant {
    uint32_t row;
    unsigned width;
    uint64_t value;
};
/* Rows of special registers, in the order of their names in parser.cc. */
enum special { TID = 0, NTID = 3, CTAID = 6, NCTAID = 9, LANEID = 12, WARPID, PARAM_BASE, SPECIALS };

struct kernel {
    std::string name, file;
    std::vector<instruction> code;
    std::vector<uint32_t> operands;
    std::vector<constant> constants;
    uint32_t special_row[SPECIALS];
    uint32_t register_bytes = 0; /* of a warp */
    size_t static_shared = 0;
    size_t argument_size = 0;
    unsigned threads = 1024;                /* most of a block */
    std::map<uint32_t, std::string> source; /* files, by their number */
};

/* An asynchronous copy of 16 bytes in progress; `valid` of them are copied, the others become 0. */
struct pending_copy {
    size_t to; /* byte of shared memory */
    const unsigned char *from;
    uint32_t valid, group, line;
};

struct block;
struct warp {
    unsigned char *registers;
    uint32_t pc[LANES];
    uint32_t return_to[LANES]; /* pc after a call; 0: in no function */
    uint32_t alive, blocked, at_barrier;
    uint32_t waited, launched; /* lanes that have executed griddepcontrol.wait, and .launch_dependents */
    unsigned number;
    block *in;
    uint32_t group[LANES]; /* of the copies that start now */
    std::vector<pending_copy> copies[LANES];
    const instruction *now;

    template <typename T> T *row(uint32_t offset)
    {
        return (T *)(void *)(registers + offset);
    }
    /* Operand n of an instruction. */
    template <typename T> T *operand(const instruction &i, unsigned n);
};

/* The threads that last accessed a byte of shared memory, and when: counted in barriers. */
struct byte_history {
    uint32_t write_time = 0, read_time = 0;
    uint16_t writer = 0, reader = 0;
    uint32_t write_line = 0, read_line = 0;
};
static const uint16_t SEVERAL = 0xffff; /* readers */

struct block {
    const kernel *of;
    const ptx_launch *launch;
    unsigned id[3];
    unsigned char *shared; /* the byte at SHARED_BASE */
    size_t shared_size;
    std::vector<warp> warps;
    uint32_t time; /* barriers so far, over all blocks */
    std::vector<byte_history> history;
    std::vector<bool> copying; /* bytes that a copy in progress will write */
};

template <typename T>
T *
warp::operand(const instruction &i, unsigned n)
{
    return row<T>(in->of->operands[i.first + n]);
}

/* Call f for each lane of the mask, in ascending order. */
template <typename F>
static inline void
each_lane(uint32_t mask, F f)
{
    if (mask == ALL_LANES)
        for (unsigned lane = 0; lane < LANES; lane++)
            f(lane);
    else
        for (; mask; mask &= mask - 1)
            f((unsigned)__builtin_ctz(mask));
}

struct settings {
    unsigned arch;
    bool random_order;
    bool mma_as_cores;
    uint64_t seed;
};
const settings &setting();

/* End the process with a message and the place of the warp's instruction. */
[[noreturn]] void violation(const warp &w, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* -- module.cc -- */
struct span {
    size_t begin, end;
};
struct module {
    std::string name, text;
    std::map<std::string, span> entries, functions; /* from the name to the last brace */
    std::map<uint32_t, std::string> source;
};
/* The kernel of this name, or NULL.  It is parsed at the first call. */
const kernel *find_kernel(const char *name);

/* -- parser.cc -- */
void parse_kernel(const module &from, const std::string &name, kernel &to);
type type_of(const std::string &name);
/* Bytes of a lane of a register of this type: 4 or 8. */
unsigned width_of(type t);
/* Stands for the width of an operand that is a predicate: a lane has 4 bytes, and they are 0 or 1. */
static const unsigned PREDICATE = 1;

/* -- decode.cc -- */
struct operand {
    enum { REGISTER, NUMBER, ADDRESS, VECTOR, LABEL, NOTHING } what = NOTHING; /* NOTHING: "_" */
    uint32_t row = 0;   /* of a register, or of the base of an address */
    unsigned width = 0; /* of that row */
    type declared = NO_TYPE;
    uint64_t number = 0;        /* bits; of an address: the offset from the base */
    std::vector<operand> parts; /* of a vector; the second one of "d|p" */
    std::string label;
    uint32_t parameter_row = 0; /* a parameter of a function is a row; 0: it is not such a parameter */
};
/* What decoding needs of the parser. */
struct row_maker {
    virtual uint32_t constant_row(uint64_t value, unsigned width) = 0;
    virtual uint32_t new_row(unsigned width) = 0;
    [[noreturn]] virtual void refuse(const char *why) = 0;
    virtual ~row_maker() = default;
};
/* Sets what an instruction does; `words` are those of its opcode. */
void decode(instruction &i, std::vector<uint32_t> &rows, const std::vector<std::string> &words,
            std::vector<operand> &operands, row_maker &maker);

/* -- arithmetic.cc -- */
struct arithmetic {
    operation run; /* NULL: not known */
    std::vector<unsigned> widths;
};
arithmetic find_arithmetic(const std::vector<std::string> &words);

/* -- lanes.cc -- */
operation shuffle_operation(const std::string &mode);
operation vote_operation(const std::string &mode);
/* Two registers to one of this many bytes, the low half first; and the inverse. */
operation pack_operation(unsigned bytes);
operation unpack_operation(unsigned bytes);

/* -- memory.cc -- */
operation load_operation(space s, type t, unsigned width);
operation store_operation(space s, type t, unsigned width);
/* ldmatrix */
operation matrices_operation(bool transposed, unsigned count);

/* -- shared.cc -- */
/* Host address of `size` bytes of shared memory; a violation if they are not there or not aligned. */
unsigned char *shared_bytes(warp &w, unsigned lane, uint32_t address, size_t size);
bool is_shared(const block &b, const unsigned char *p);
/* A lane accesses bytes of shared memory, from byte `at` on: a violation if this is a race. */
enum access_kind { READ, WRITE, COPY_ARRIVES };
void note_access(warp &w, unsigned lane, size_t at, size_t size, access_kind kind);
operation copy_operation(), commit_operation(), wait_operation();
operation dependency_wait_operation(), launch_dependents_operation();
/* A violation if one of these lanes has not executed griddepcontrol.wait. */
void check_dependency(const warp &w, uint32_t mask);

/* -- matrix.cc -- */
operation mma_16816_operation(bool bf16);
operation mma_1688_operation();
operation mma_1688_tf32_operation();
operation mma_884_operation(bool column_a, bool row_b);

/* -- block.cc -- */
/* Run a warp until its lanes have ended or wait for the block (warp.cc). */
void run_warp(warp &w);
uint32_t next_random();
} // namespace ptx

#endif
