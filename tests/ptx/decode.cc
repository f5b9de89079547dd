/*
 * decode.cc - finds the function that executes an instruction, by the words of its opcode and its operands
 *
 * Only the forms that nvcc makes of kernels of this kind are known.  Any other form is refused, so that no modifier is
 * ignored by mistake.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core.h"

#include <algorithm>

namespace ptx
{
typedef std::vector<std::string> word_list;

class decoder
{
  public:
    decoder(instruction &to, std::vector<uint32_t> &list, const word_list &opcode, std::vector<operand> &operands,
            row_maker &m)
        : i(to), rows(list), words(opcode), o(operands), maker(m)
    {
    }

    void decode()
    {
        i.first = (uint32_t)rows.size();
        if (words[0] == "ld" || words[0] == "st")
            memory();
        else if (words[0] == "mov" && o.size() == 2 && (is_vector(0) || is_vector(1)))
            pack_or_unpack();
        else if (words[0] == "shfl" || words[0] == "vote")
            exchange();
        else if (words[0] == "ldmatrix")
            matrices();
        else if (words[0] == "mma")
            products();
        else if (words[0] == "cp")
            copies();
        else if (!control_flow())
            compute();
        if (!i.run)
            maker.refuse("an instruction that is not known");
    }

  private:
    instruction &i;
    std::vector<uint32_t> &rows;
    const word_list &words;
    std::vector<operand> &o;
    row_maker &maker;

    bool is(const word_list &opcode) const
    {
        return words == opcode;
    }

    bool is_vector(size_t n) const
    {
        return o[n].what == operand::VECTOR;
    }

    void need(bool condition, const char *why)
    {
        if (!condition)
            maker.refuse(why);
    }

    /* `width`: of the register, or PREDICATE.  As a predicate, the number 0 is false and all others are true. */
    void push(operand &v, unsigned width)
    {
        bool predicate = width == PREDICATE;

        width = predicate ? 4 : width;
        need(v.parts.empty(), "a second register that the instruction does not have");
        if (v.what == operand::NUMBER)
            need(v.width == 0 || v.width == width, "a number of another type");
        if (v.what == operand::NUMBER)
            v.row = maker.constant_row(predicate ? v.number != 0 : v.number, width);
        else if (v.what == operand::NOTHING)
            v.row = maker.new_row(width);
        else
            need(v.what == operand::REGISTER && v.width == width && (v.declared == PRED) == predicate,
                 "an operand of another kind or width");
        rows.push_back(v.row);
    }

    void push_all(std::vector<operand> &list, size_t count, unsigned width)
    {
        need(list.size() == count, "another number of registers");
        for (operand &v : list)
            push(v, width);
    }

    /* A mask of lanes that execute the instruction together. */
    void meet_by(const operand &mask)
    {
        i.what = MEETING;
        i.members = mask.what == operand::NUMBER ? maker.constant_row(mask.number, 4) : mask.row;
    }

    static void nothing(warp &, const instruction &, uint32_t)
    {
    }

    static void copy_words(warp &w, const instruction &i, uint32_t mask)
    {
        uint32_t *d = w.operand<uint32_t>(i, 0);
        const uint32_t *a = w.operand<uint32_t>(i, 1);

        each_lane(mask, [=](unsigned lane) { d[lane] = a[lane]; });
    }

    static void copy_long_words(warp &w, const instruction &i, uint32_t mask)
    {
        uint64_t *d = w.operand<uint64_t>(i, 0);
        const uint64_t *a = w.operand<uint64_t>(i, 1);

        each_lane(mask, [=](unsigned lane) { d[lane] = a[lane]; });
    }

    /* ld.param.f64 and st.param.f64 of a function's parameter, which is a row */
    void function_parameter(operand &value, operand &address, bool load)
    {
        operand row = address;

        row.what = operand::REGISTER;
        need(address.number == 0, "a part of a parameter");
        push(load ? value : row, address.width);
        push(load ? row : value, address.width);
        i.run = address.width == 8 ? copy_long_words : copy_words;
    }

    /* ld and st: .volatile and .nc only say how memory is cached */
    void memory()
    {
        static const char *const spaces[] = {"", "global", "shared", "param"};
        bool load = words[0] == "ld";
        type t = type_of(words.back());
        space s = GENERIC;
        unsigned width = width_of(t), vector = 1;

        need(o.size() == 2 && o[load ? 1 : 0].what == operand::ADDRESS && t != NO_TYPE, "a form that is not known");
        operand &value = o[load ? 0 : 1], &address = o[load ? 1 : 0];
        for (size_t k = 1; k + 1 < words.size(); k++) {
            auto named = std::find(spaces + 1, spaces + 4, words[k]);

            if (named != spaces + 4)
                s = (space)(named - spaces);
            else if (words[k] == "v2" || words[k] == "v4")
                vector = (unsigned)(words[k][1] - '0');
            else
                need(words[k] == "nc" || words[k] == "volatile", "a form that is not known");
        }
        if (address.parameter_row) {
            function_parameter(value, address, load);
            return;
        }
        std::vector<operand> parts = is_vector(load ? 0 : 1) ? value.parts : std::vector<operand>{value};
        if (parts[0].what == operand::REGISTER)
            width = parts[0].width; /* may be larger than that of the type */
        need(s == SHARED || address.width == 8, "an address of another width than its space has");
        rows.push_back(address.row);
        push_all(parts, vector, width);
        i.count = (uint8_t)vector;
        i.immediate = (int64_t)address.number;
        i.wide = address.width == 8;
        i.run = load ? load_operation(s, t, width) : store_operation(s, t, width);
    }

    /* mov.b64 {a, b}, c and mov.b64 c, {a, b} */
    void pack_or_unpack()
    {
        unsigned bytes = words.back() == "b64" ? 8 : 4, vector = is_vector(0) ? 0 : 1;

        need(words.size() == 2 && (words[1] == "b64" || words[1] == "b32"), "a form of mov that is not known");
        if (vector == 0) {
            push_all(o[0].parts, 2, 4);
            push(o[1], bytes);
        } else {
            push(o[0], bytes);
            push_all(o[1].parts, 2, 4);
        }
        i.run = vector == 0 ? unpack_operation(bytes) : pack_operation(bytes);
    }

    /* shfl.sync.bfly.b32 d|p, a, b, c, mask; vote.sync.ballot.b32 d, p, mask */
    void exchange()
    {
        bool shuffle = words[0] == "shfl";

        need(words.size() == 4 && words[1] == "sync" && words[3] == "b32" && o.size() == (shuffle ? 5 : 3),
             "a form that is not known");
        std::vector<operand> second;
        if (shuffle)
            second.swap(o[0].parts);
        push(o[0], 4);
        if (shuffle && second.empty())
            rows.push_back(maker.new_row(4));
        else if (shuffle)
            push(second[0], PREDICATE);
        for (size_t k = 1; k + 1 < o.size(); k++)
            push(o[k], shuffle ? 4 : PREDICATE);
        meet_by(o.back());
        i.run = shuffle ? shuffle_operation(words[2]) : vote_operation(words[2]);
    }

    /* ldmatrix.sync.aligned.m8n8.x4[.trans].shared.b16 {d, ...}, [address] */
    void matrices()
    {
        bool transposed = words.size() == 8 && words[5] == "trans";

        need(words.size() == (transposed ? 8 : 7) && words[3] == "m8n8" && words[words.size() - 2] == "shared" &&
                 words.back() == "b16" && o[1].width == 4,
             "a form of ldmatrix that is not known");
        i.what = MEETING;
        i.count = (uint8_t)(words[4][1] - '0');
        i.immediate = (int64_t)o[1].number;
        rows.push_back(o[1].row);
        push_all(o[0].parts, i.count, 4);
        i.run = matrices_operation(transposed, i.count);
    }

    /* mma.sync.aligned.SHAPE.LAYOUT.LAYOUT.f32.TYPE.TYPE.f32 d, a, b, c */
    void products()
    {
        bool large = words[3] == "m16n8k16", half = words[3] == "m16n8k8", small = words[3] == "m8n8k4";
        const unsigned large_counts[] = {4, 4, 2, 4}, half_counts[] = {4, 2, 1, 4}, small_counts[] = {8, 2, 2, 8};
        bool tf32 = half && words.size() == 10 && words[7] == "tf32"; /* with as many registers as `large` */

        need(words.size() == 10 && (large || half || small) && words[6] == "f32" && words[9] == "f32" &&
                 words[7] == words[8] && (words[7] == "f16" || (large && words[7] == "bf16") || tf32) && o.size() == 4,
             "a form of mma that is not known");
        need(small || (words[4] == "row" && words[5] == "col"), "a form of mma that is not known");
        i.what = MEETING;
        for (unsigned k = 0; k < 4; k++) {
            for (const operand &part : o[k].parts)
                need(part.what != operand::REGISTER || (part.declared == F32) == (k == 0 || k == 3),
                     "mma with registers of other types");
            push_all(o[k].parts, large || tf32 ? large_counts[k] : half ? half_counts[k] : small_counts[k], 4);
        }
        i.run = large  ? mma_16816_operation(words[7] == "bf16")
                : tf32 ? mma_1688_tf32_operation()
                : half ? mma_1688_operation()
                       : mma_884_operation(words[4] == "col", words[5] == "row");
    }

    /* cp.async.cg.shared.global [to], [from], 16[, valid] */
    void copies()
    {
        if (is({"cp", "async", "commit_group"})) {
            i.run = commit_operation();
        } else if (is({"cp", "async", "wait_group"})) {
            need(o.size() == 1 && o[0].what == operand::NUMBER, "a wait that is not known");
            i.immediate = (int64_t)o[0].number;
            i.run = wait_operation();
        } else if (is({"cp", "async", "cg", "shared", "global"})) {
            operand all;

            all.what = operand::NUMBER;
            all.number = 16;
            need((o.size() == 3 || o.size() == 4) && o[2].number == 16 && o[0].width == 4 && o[1].width == 8,
                 "a copy that is not known");
            rows.push_back(o[0].row);
            rows.push_back(o[1].row);
            push(o.size() > 3 ? o[3] : all, 4);
            rows.push_back(maker.constant_row(o[0].number, 4));
            rows.push_back(maker.constant_row(o[1].number, 8));
            i.run = copy_operation();
        }
    }

    /* Returns false if it is an instruction of another kind. */
    bool control_flow()
    {
        if (is({"bra"}) || is({"bra", "uni"})) {
            i.what = BRANCH;
        } else if (is({"ret"}) || is({"exit"})) {
            i.what = RETURN;
        } else if (is({"bar", "sync"})) {
            need(o.size() == 1 && o[0].what == operand::NUMBER && o[0].number == 0,
                 "a barrier that is not number 0 of all threads");
            i.what = BARRIER;
        } else if (is({"bar", "warp", "sync"})) {
            meet_by(o[0]);
        } else if (is({"griddepcontrol", "wait"})) {
            i.run = dependency_wait_operation();
        } else if (is({"griddepcontrol", "launch_dependents"})) {
            i.run = launch_dependents_operation();
        } else {
            return false;
        }
        if (!i.run)
            i.run = nothing;
        return true;
    }

    void compute()
    {
        arithmetic a = find_arithmetic(words);

        need(a.run && a.widths.size() == o.size(), "an instruction that is not known");
        for (size_t k = 0; k < o.size(); k++)
            push(o[k], a.widths[k]);
        i.run = a.run;
    }
};

void
decode(instruction &i, std::vector<uint32_t> &rows, const word_list &words, std::vector<operand> &operands,
       row_maker &maker)
{
    decoder(i, rows, words, operands, maker).decode();
}
} // namespace ptx
