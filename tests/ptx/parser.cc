/*
 * parser.cc - makes instructions of the text of a kernel
 *
 * The code of the functions that a kernel calls (pow()) is appended to the code of the kernel, with registers of their
 * own.  There is no recursion, so each function needs its registers only once.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "text.h"

#include <set>
#include <stdio.h>

namespace ptx
{
static const struct {
    const char *name;
    type t;
} types[] = {{"pred", PRED}, {"u8", U8},   {"s8", S8},   {"b8", B8},       {"u16", U16},
             {"s16", S16},   {"b16", B16}, {"f16", F16}, {"bf16", BF16},   {"u32", U32},
             {"s32", S32},   {"b32", B32}, {"f32", F32}, {"f16x2", F16X2}, {"bf16x2", BF16X2},
             {"u64", U64},   {"s64", S64}, {"b64", B64}, {"f64", F64}};

static const char *const special_names[] = {"%tid.x",    "%tid.y",    "%tid.z",   "%ntid.x",  "%ntid.y",
                                            "%ntid.z",   "%ctaid.x",  "%ctaid.y", "%ctaid.z", "%nctaid.x",
                                            "%nctaid.y", "%nctaid.z", "%laneid",  "%warpid"};

type
type_of(const std::string &name)
{
    for (const auto &t : types)
        if (name == t.name)
            return t.t;
    return NO_TYPE;
}

unsigned
width_of(type t)
{
    return t >= U64 && t < NO_TYPE ? 8 : 4;
}

class parser : row_maker
{
  public:
    parser(const module &m, kernel &k) : from(m), to(k), text(m.text)
    {
        to.register_bytes = LANES * 8; /* row 0 means none */
        for (unsigned s = 0; s < SPECIALS; s++)
            to.special_row[s] = new_row(s == PARAM_BASE ? 8 : 4);
        scopes.emplace_back();
    }

    void parse(const span &entry)
    {
        parse_body(entry, true);
        for (size_t n = 0; n < called.size(); n++) { /* grows: functions call functions */
            starts[called[n]] = (uint32_t)to.code.size();
            parse_body(from.functions.at(called[n]), false);
        }
        for (const auto &c : calls)
            to.code[c.first].target = starts[c.second];
    }

    uint32_t constant_row(uint64_t value, unsigned width) override
    {
        if (width == 4)
            value &= 0xffffffffu;
        auto known = constants.find({value, width});
        if (known != constants.end())
            return known->second;
        uint32_t row = new_row(width);
        to.constants.push_back({row, width, value});
        return constants[{value, width}] = row;
    }

    uint32_t new_row(unsigned width) override
    {
        uint32_t row = to.register_bytes;

        to.register_bytes += LANES * width;
        return row;
    }

    void refuse(const char *why) override
    {
        fflush(stdout);
        fprintf(stderr, "ptx: refused: %s:%u: %s: %s\n", from.name.c_str(), line, why, statement.c_str());
        abort();
    }

  private:
    struct variable {
        uint32_t row;
        unsigned width;
        type declared;
        bool is_parameter; /* of a function */
    };
    struct function {
        std::vector<variable> parameters;
        variable result;
    };
    const module &from;
    kernel &to;
    text_reader text;
    std::vector<std::map<std::string, variable>> scopes;
    std::map<std::pair<uint64_t, unsigned>, uint32_t> constants;
    std::map<std::string, uint32_t> labels, starts;
    std::vector<std::pair<size_t, std::string>> jumps, calls;
    std::vector<std::string> called;
    std::map<std::string, function> functions;
    std::map<std::string, uint32_t> shared; /* addresses of variables */
    std::string statement;
    unsigned line = 0;
    uint32_t source = 0, source_file = 0;

    const variable *find(const std::string &name)
    {
        for (size_t n = scopes.size(); n-- > 0;) {
            auto v = scopes[n].find(name);

            if (v != scopes[n].end())
                return &v->second;
        }
        return nullptr;
    }

    const variable &must_find(const std::string &name)
    {
        const variable *v = find(name);

        if (!v)
            refuse(("there is no variable " + name).c_str());
        return *v;
    }

    /* ---- entries and functions ---- */

    /* "name(parameters) .maxntid ... { statements }" */
    void parse_body(const span &s, bool is_entry)
    {
        int depth = 0; /* -1 after the last brace */

        text.move_to(s);
        text.until('(');
        std::string parameters = text.until(')');
        if (is_entry)
            entry_parameter(parameters);
        std::string limits = text.until('{');
        size_t most = limits.find(".maxntid");
        if (is_entry && most != std::string::npos)
            to.threads = (unsigned)strtoul(limits.c_str() + most + strlen(".maxntid"), nullptr, 10);
        labels.clear();
        jumps.clear();
        scopes.emplace_back();
        while (text.skip()) {
            if (text.take('{')) {
                depth++;
                scopes.emplace_back();
            } else if (text.take('}')) {
                scopes.pop_back();
                if (depth-- == 0)
                    break;
            } else {
                parse_statement();
            }
        }
        if (depth >= 0)
            refuse("a body that has no end");
        for (const auto &j : jumps) {
            if (!labels.count(j.second))
                refuse(("there is no label " + j.second).c_str());
            to.code[j.first].target = labels[j.second];
        }
    }

    /* ".param .align 8 .b8 name[size]": an entry has one parameter. */
    void entry_parameter(const std::string &s)
    {
        size_t bracket = s.find('[');

        if (split_list(s).size() != 1 || bracket == std::string::npos)
            refuse("a kernel with other parameters than one struct");
        to.argument_size = strtoul(s.c_str() + bracket + 1, nullptr, 10);
        scopes[0][split_words(s.substr(0, bracket), ' ').back()] = {to.special_row[PARAM_BASE], 8, NO_TYPE, false};
    }

    /* ".param .b64 name": a row */
    variable function_parameter(const std::string &s)
    {
        std::vector<std::string> words = split_words(s, ' ');
        unsigned width = 4;

        for (const std::string &word : words)
            if (word[0] == '.' && type_of(word.substr(1)) != NO_TYPE)
                width = width_of(type_of(word.substr(1)));
        return scopes[0][words.back()] = {new_row(width), width, NO_TYPE, true};
    }

    /* The rows of the parameters and of the result, which is declared before the name. */
    const function &declare_function(const std::string &name)
    {
        auto known = functions.find(name);

        if (known != functions.end())
            return known->second;
        if (!from.functions.count(name))
            refuse("a function that is not there");
        called.push_back(name);
        function &f = functions[name];
        const std::string &all = from.text;
        size_t at = from.functions.at(name).begin, open = all.rfind('(', at);
        f.result = function_parameter(one_line(all.substr(open + 1, all.find(')', open) - open - 1)));
        open = all.find('(', at);
        std::string list = one_line(all.substr(open + 1, all.find(')', open) - open - 1));
        for (const std::string &part : split_words(list, ','))
            f.parameters.push_back(function_parameter(part));
        return f;
    }

    static std::string one_line(std::string s)
    {
        std::replace_if(
            s.begin(), s.end(), [](char c) { return isspace((unsigned char)c) != 0; }, ' ');
        return s;
    }

    /* ---- statements ---- */

    void parse_statement()
    {
        unsigned file, number;

        line = text.line;
        if (text.begins_with(".loc")) {
            statement = text.until('\n');
            if (sscanf(statement.c_str(), ".loc %u %u", &file, &number) == 2)
                source_file = file, source = number;
            return;
        }
        std::string name = text.label();
        if (!name.empty()) {
            if (labels.count(name))
                refuse(("a second label " + name).c_str());
            labels[name] = (uint32_t)to.code.size();
            return;
        }
        statement = text.until(';');
        if (statement.compare(0, 7, ".pragma") == 0)
            return;
        if (statement[0] == '.')
            parse_declaration();
        else
            parse_instruction();
    }

    /* ".reg .b32 %r<9>", ".reg .f32 a, b", ".param .b64 p", ".shared .align 16 .b8 name[size]" */
    void parse_declaration()
    {
        std::vector<std::string> words = split_words(statement, ' ');
        type t = NO_TYPE;
        size_t align = 1;

        for (size_t n = 1; n < words.size(); n++) {
            if (words[n] == ".align")
                align = strtoul(words[++n].c_str(), nullptr, 10);
            else if (words[n][0] == '.')
                t = type_of(words[n].substr(1));
            else
                for (const std::string &name : split_words(words[n], ','))
                    declare(words[0], t, align, name);
        }
    }

    void declare(const std::string &space, type t, size_t align, const std::string &name)
    {
        size_t bracket = name.find_first_of("<[");
        std::string stem = name.substr(0, bracket);
        size_t count = bracket == std::string::npos ? 0 : strtoul(name.c_str() + bracket + 1, nullptr, 10);
        unsigned width = width_of(t);

        if (space == ".reg" && bracket != std::string::npos) {
            for (size_t n = 0; n < count; n++)
                scopes.back()[stem + std::to_string(n)] = {new_row(width), width, t, false};
        } else if (space == ".reg" || space == ".param") {
            scopes.back()[stem] = {new_row(width), width, t, space == ".param"};
        } else if (space == ".shared" && bracket != std::string::npos && t == B8) {
            to.static_shared = (to.static_shared + align - 1) / align * align;
            shared[stem] = SHARED_BASE + (uint32_t)to.static_shared;
            to.static_shared += count;
        } else {
            refuse("a variable of a kind that is not known");
        }
    }

    void parse_instruction()
    {
        instruction i;
        std::string s = statement;

        if (s[0] == '@') {
            size_t space = s.find(' '), begin = s[1] == '!' ? 2 : 1;
            const variable &p = must_find(s.substr(begin, space - begin));

            if (p.declared != PRED)
                refuse("no predicate");
            i.predicate = p.row;
            i.negated = begin == 2;
            s = s.substr(s.find_first_not_of(' ', space));
        }
        size_t space = std::min(s.find(' '), s.size());
        std::string opcode = s.substr(0, space);
        std::vector<std::string> words = split_words(opcode, '.'), list = split_list(s.substr(space));
        if (words[0] == "call") {
            parse_call(i, list);
            return;
        }
        std::vector<operand> operands;
        for (const std::string &part : list)
            operands.push_back(parse_operand(part));
        static auto &opcodes = *new std::set<std::string>;
        i.opcode = opcodes.insert(opcode).first->c_str();
        decode(i, to.operands, words, operands, *this);
        if (i.what == BRANCH)
            jumps.push_back({to.code.size(), operands[0].label});
        emit(i);
    }

    void emit(instruction i)
    {
        i.line = line;
        i.source = source;
        i.source_file = source_file;
        to.code.push_back(i);
    }

    void emit_move(const variable &d, const variable &a)
    {
        std::vector<operand> operands(2);
        instruction i;

        operands[0].what = operands[1].what = operand::REGISTER;
        operands[0].row = d.row, operands[1].row = a.row;
        operands[0].width = d.width, operands[1].width = a.width;
        i.opcode = "call";
        decode(i, to.operands, {"mov", d.width == 8 ? "b64" : "b32"}, operands, *this);
        emit(i);
    }

    /* call.uni (result), function, (arguments) */
    void parse_call(instruction i, const std::vector<std::string> &list)
    {
        if (list.size() != 3 || list[0][0] != '(' || i.predicate)
            refuse("a form of call that is not known");
        const function f = declare_function(list[1]);
        std::vector<std::string> arguments = split_list(list[2].substr(1, list[2].size() - 2));
        if (f.parameters.size() != arguments.size())
            refuse("another number of arguments");
        for (size_t n = 0; n < arguments.size(); n++)
            emit_move(f.parameters[n], must_find(arguments[n]));
        i.what = CALL;
        i.opcode = "call";
        calls.push_back({to.code.size(), list[1]});
        emit(i);
        emit_move(must_find(list[0].substr(1, list[0].size() - 2)), f.result);
    }

    /* ---- operands ---- */

    operand parse_operand(const std::string &s)
    {
        operand o;
        size_t bar = s.find('|');

        if (s[0] == '{') {
            o.what = operand::VECTOR;
            for (const std::string &part : split_list(s.substr(1, s.size() - 2)))
                o.parts.push_back(parse_operand(part));
        } else if (s[0] == '[') {
            o = parse_address(s.substr(1, s.size() - 2));
        } else if (bar != std::string::npos) {
            o = parse_operand(s.substr(0, bar));
            o.parts.push_back(parse_operand(s.substr(bar + 1)));
        } else if (isdigit((unsigned char)s[0]) || s[0] == '-') {
            o.what = operand::NUMBER;
            if (!read_number(s, o.number, o.width))
                refuse(("not a number: " + s).c_str());
        } else if (s != "_") {
            o = parse_name(s);
        }
        return o;
    }

    operand parse_address(const std::string &s)
    {
        size_t plus = s.find('+');
        operand o = parse_operand(s.substr(0, plus));

        if (o.what == operand::NUMBER) /* a variable in shared memory */
            o.row = constant_row(o.number, 4), o.width = 4;
        else if (o.what != operand::REGISTER)
            refuse("an address that is not known");
        o.what = operand::ADDRESS;
        unsigned width = 0;
        o.number = 0;
        if (plus != std::string::npos && (!read_number(s.substr(plus + 1), o.number, width) || width))
            refuse("an offset that is not a number");
        return o;
    }

    operand parse_name(const std::string &s)
    {
        const variable *v = find(s);
        operand o;

        o.what = operand::REGISTER;
        for (unsigned n = 0; n < sizeof(special_names) / sizeof(*special_names); n++)
            if (s == special_names[n]) {
                o.row = to.special_row[n];
                o.width = 4;
                o.declared = U32;
                return o;
            }
        if (v) {
            o.row = v->row;
            o.width = v->width;
            o.declared = v->declared;
            o.parameter_row = v->is_parameter ? v->row : 0;
        } else if (shared.count(s) || is_dynamic_shared(s)) {
            o.what = operand::NUMBER;
            o.number = shared.count(s) ? shared[s] : SHARED_BASE + (to.static_shared + 127) / 128 * 128;
        } else {
            o.what = operand::LABEL;
            o.label = s;
        }
        return o;
    }

    /* ".extern .shared .align 16 .b8 name[];": it follows all other variables */
    bool is_dynamic_shared(const std::string &name)
    {
        return from.text.find(".extern .shared") != std::string::npos &&
               from.text.find(" " + name + "[];") != std::string::npos;
    }
};

void
parse_kernel(const module &from, const std::string &name, kernel &to)
{
    to.name = name;
    to.file = from.name;
    to.source = from.source;
    parser(from, to).parse(from.entries.at(name));
}
} // namespace ptx
