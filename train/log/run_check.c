/*
 * run_check.c - tables of members, and the recursive comparison of a document with them; see run_check.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "log/run_check.h"

#include "base/ascii.h"
#include "base/json.h"
#include "log/run_file.h"
#include "log/run_log.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FILE_MAX (256u << 20)

static const struct parse_bounds bounds = {.size = 32u << 20, .depth = 8, .values = 3000000, .reals = true};

/* ---- tables ------------------------------------------------------------------------------------------------------ */

enum value_form {
    FORM_TEXT,
    FORM_FLAG,
    FORM_COUNT,  /* a whole number from least to most */
    FORM_NUMBER, /* a number from least to most */
    FORM_SCALAR, /* a text, a number or a flag */
    FORM_OBJECT, /* with these members */
    FORM_LIST,   /* from least to most values; each value is one of `of` */
    FORM_MAP     /* an object with any keys, whose values are of `of` */
};

struct member {
    const char *key; /* NULL: the end of a list, or a value without a key */
    enum value_form form;
    bool null;                /* may be null */
    bool added;               /* earlier versions did not write it */
    double least, most;       /* of a number, or how many values a list has; most 0 of a list: any number */
    const char *const *words; /* of a text; NULL: any */
    const struct member *of;  /* of FORM_OBJECT all members, of FORM_LIST and FORM_MAP each value */
};

#define COUNT   .form = FORM_COUNT, .most = 0x1p63
#define FROM(n) .form = FORM_COUNT, .least = n, .most = 0x1p63
#define REAL    .form = FORM_NUMBER, .least = -DBL_MAX, .most = DBL_MAX, .null = true
#define SECONDS .form = FORM_NUMBER, .most = DBL_MAX
#define SHARE   .form = FORM_NUMBER, .most = 1, .null = true
#define TEXT    .form = FORM_TEXT
#define OR_NULL .null = true
#define END         \
    {               \
        .key = NULL \
    }

#define WORDS(...)        \
    (const char *const[]) \
    {                     \
        __VA_ARGS__, NULL \
    }

static const struct member a_bound = {.form = FORM_NUMBER, .most = 1}, a_share = {SHARE}, a_text = {TEXT},
                           a_count = {COUNT}, a_rank_count = {FROM(1)};
static const struct member a_text_or_null = {TEXT, OR_NULL}, a_scalar = {.form = FORM_SCALAR, OR_NULL};
static const struct member a_time = {SECONDS}, a_factor = {SECONDS, OR_NULL};

#define INTERVAL .form = FORM_LIST, .least = 2, .most = 2, .of = &a_bound, .null = true
#define PARTS    .form = FORM_MAP, .of = &a_time
#define LEAKY    .form = FORM_FLAG, .added = true
#define SHORT    .form = FORM_TEXT, .added = true
#define METRICS                                                                                         \
    {"leaky", LEAKY}, {"short_run", SHORT}, {"auroc", SHARE}, {"auroc_95", INTERVAL}, {"auprc", SHARE}, \
    {                                                                                                   \
        "auprc_95", INTERVAL                                                                            \
    }
#define LINE                                                   \
    {"time", SECONDS}, {"leaky", LEAKY}, {"short_run", SHORT}, \
    {                                                          \
        "step", COUNT                                          \
    }

#define SPEED                                                                                                         \
    {"loss", REAL}, {"learning_rate", REAL}, {"images", COUNT}, {"seconds", SECONDS}, {"images_per_second", SECONDS}, \
        {"parts", PARTS}, {"skipped", COUNT}, {"loss_scale", REAL, .added = true},                                    \
    {                                                                                                                 \
        "steps_skipped", COUNT, .added = true                                                                         \
    }

static const struct member step_members[] = {LINE, {"epoch", FROM(1)}, SPEED, {"gradient_norm", REAL}, END};
static const struct member epoch_members[] = {LINE, {"epoch", FROM(1)}, SPEED, {"order", TEXT, OR_NULL}, END};
static const struct member note_members[] = {LINE, {"epoch", COUNT}, {"what", TEXT}, {"text", TEXT}, END};

static const struct member rank_members[] = {
    {"rank", COUNT},
    {"host", TEXT},
    {"seconds", SECONDS},
    {"work", SECONDS},
    {"busy", SECONDS, OR_NULL},
    {"modelled", SECONDS, OR_NULL, .added = true},
    {"cpu", SECONDS, OR_NULL, .added = true},
    {"useful", SECONDS, OR_NULL, .added = true},
    {"threads", SECONDS, OR_NULL, .added = true},
    {"parts", PARTS},
    {"cpu_parts", .form = FORM_MAP, .of = &a_factor, .added = true},
    END,
};
static const struct member a_rank = {.form = FORM_OBJECT, .of = rank_members};
static const struct member times_members[] = {
    LINE,
    {"epoch", COUNT},
    {"over", TEXT, .words = WORDS("epoch", "run")},
    {"steps", COUNT},
    {"seconds", SECONDS},
    {"ideal_seconds", SECONDS, OR_NULL},
    {"factors", .form = FORM_MAP, .of = &a_factor},
    {"ranks", .form = FORM_LIST, .least = 1, .of = &a_rank},
    {"in_use", .form = FORM_LIST, .of = &a_text, .added = true},
    {"advice", TEXT},
    END,
};

static const struct member finding_members[] = {
    {"name", TEXT}, {"positives", COUNT},   METRICS, {"youden", REAL}, {"youden_threshold", REAL},
    {"f1", REAL},   {"f1_threshold", REAL}, END,
};
static const struct member a_finding = {.form = FORM_OBJECT, .of = finding_members};
static const struct member evaluation_members[] = {
    LINE,
    {"epoch", COUNT},
    {"split", TEXT},
    {"split_sha256", TEXT, OR_NULL},
    {"weights", TEXT, .words = WORDS("parameters", "average")},
    {"tta", TEXT, .words = WORDS("none", "flip", "tencrop")},
    {"best", .form = FORM_FLAG},
    {"images", COUNT},
    {"patients", COUNT},
    {"loss", REAL},
    {"defined", COUNT},
    METRICS,
    {"findings", .form = FORM_LIST, .of = &a_finding},
    {"optimistic", .form = FORM_LIST, .of = &a_text, .added = true},
    {"seconds", SECONDS},
    {"skipped", COUNT},
    END,
};

static const struct {
    const char *kind;
    const struct member *members;
} kinds[] = {{"step", step_members},
             {"epoch", epoch_members},
             {"evaluation", evaluation_members},
             {"times", times_members},
             {"note", note_members}};

static const struct member a_kind = {TEXT, .words = WORDS("step", "epoch", "evaluation", "times", "note")};

static const struct member model_members[] = {
    {"name", TEXT}, {"parameters", COUNT}, {"init", TEXT, OR_NULL}, {"init_sha256", TEXT, OR_NULL}, END};
static const struct member split_members[] = {
    {"name", TEXT},
    {"use", TEXT, OR_NULL, .words = WORDS("train", "validation")},
    {"sha256", TEXT, OR_NULL},
    {"images", COUNT},
    {"patients", COUNT},
    {"positives", .form = FORM_MAP, .of = &a_count},
    {"known", .form = FORM_MAP, .of = &a_count, .added = true},
    END,
};
static const struct member a_split = {.form = FORM_OBJECT, .of = split_members};
static const struct member certificate_members[] = {
    {"sha256", TEXT}, {"leaky_patients", COUNT}, {"leaky_images", COUNT}, {"near_pairs", COUNT, OR_NULL}, END};
static const struct member dataset_members[] = {
    {"path", TEXT},
    {"id", TEXT},
    {"leaky_patients", COUNT, .added = true},
    {"height", COUNT},
    {"width", COUNT},
    {"resize", TEXT, .added = true},
    {"images", COUNT},
    {"splits", .form = FORM_LIST, .of = &a_split},
    {"certificate", .form = FORM_OBJECT, .of = certificate_members, OR_NULL, .added = true},
    END,
};
static const struct member session_members[] = {
    {"started", TEXT, OR_NULL},
    {"version", TEXT},
    {"command", .form = FORM_LIST, .of = &a_text},
    {"from_step", COUNT},
    {"ranks", FROM(1)},
    {"threads", COUNT},
    {"hosts", .form = FORM_MAP, .of = &a_rank_count},
    {"backend", TEXT},
    {"device", TEXT, OR_NULL},
    {"precision", TEXT, OR_NULL},
    {"cpu", TEXT, OR_NULL},
    {"libraries", .form = FORM_MAP, .of = &a_text_or_null},
    {"ended", TEXT, OR_NULL},
    {"exit", COUNT, OR_NULL},
    {"reason", TEXT, OR_NULL},
    {"to_step", COUNT, OR_NULL},
    {"epochs", COUNT, .added = true},
    END,
};
static const struct member a_session = {.form = FORM_OBJECT, .of = session_members};
static const struct member best_members[] = {{"leaky", LEAKY},
                                             {"short_run", SHORT},
                                             {"metric", TEXT, .words = WORDS("auroc", "loss")},
                                             {"value", REAL},
                                             {"step", COUNT},
                                             {"file", TEXT, OR_NULL},
                                             END};
static const struct member result_members[] = {
    {"split", TEXT},
    {"split_sha256", TEXT, OR_NULL},
    {"weights", TEXT, OR_NULL},
    {"step", COUNT},
    {"images", COUNT},
    {"patients", COUNT},
    {"defined", COUNT},
    METRICS,
    {"auroc_of", .form = FORM_MAP, .of = &a_share},
    END,
};
static const struct member a_result = {.form = FORM_OBJECT, .of = result_members};
static const struct member run_members[] = {
    {"format", .form = FORM_COUNT, .least = 1, .most = 1},
    {"tool", TEXT, .words = WORDS("chex-train")},
    {"leaky", LEAKY},
    {"short_run", SHORT},
    {"model", .form = FORM_OBJECT, .of = model_members},
    {"dataset", .form = FORM_OBJECT, .of = dataset_members},
    {"seed", COUNT},
    {"global_batch", COUNT},
    {"epoch_images", COUNT, .added = true},
    {"options", .form = FORM_MAP, .of = &a_scalar},
    {"sessions", .form = FORM_LIST, .least = 1, .of = &a_session},
    {"best", .form = FORM_OBJECT, .of = best_members, OR_NULL},
    {"results", .form = FORM_LIST, .of = &a_result, OR_NULL},
    END,
};

static const struct member a_run = {.form = FORM_OBJECT, .of = run_members};

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

struct run_walk {
    char path[120]; /* of the current value: "sessions[0].ranks" */
    char fault[RUN_CHECK_TEXT - 40];
};

/* Append to the path; returns its previous length, to which the caller truncates it after the value. */
static size_t
enter(struct run_walk *w, const char *key, size_t index)
{
    size_t length = strlen(w->path);
    char shown[40];

    if (key)
        snprintf(w->path + length, sizeof(w->path) - length, "%s%s", length > 0 ? "." : "",
                 ascii_escape(key, strlen(key), shown, sizeof(shown)));
    else
        snprintf(w->path + length, sizeof(w->path) - length, "[%zu]", index);
    return length;
}

static void
describe(const struct member *m, char *out, size_t size)
{
    static const char *const name[] = {
        [FORM_TEXT] = "a text",
        [FORM_FLAG] = "true or false",
        [FORM_COUNT] = "a whole number",
        [FORM_NUMBER] = "a number",
        [FORM_SCALAR] = "a text, a number or a flag",
        [FORM_OBJECT] = "an object",
        [FORM_LIST] = "a list",
        [FORM_MAP] = "an object",
    };
    size_t used = (size_t)snprintf(out, size, "%s", m->words ? "" : name[m->form]);
    size_t i;

    for (i = 0; m->words && m->words[i]; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%s", i > 0 ? " or " : "", m->words[i]);
    if (m->form == FORM_LIST && m->least > 0)
        snprintf(out + used, size - used, " of %s%g value%s", m->most == 0 ? "at least " : "", m->least,
                 m->least == 1 ? "" : "s");
    if ((m->form == FORM_COUNT || m->form == FORM_NUMBER) && m->least > -DBL_MAX)
        used += (size_t)snprintf(out + used, size - used, " from %g", m->least);
    if ((m->form == FORM_COUNT || m->form == FORM_NUMBER) && m->most < 0x1p63)
        snprintf(out + used, size - used, " to %g", m->most);
}

static bool
fail(struct run_walk *w, const struct member *m, const json_t *value)
{
    char found[JSON_SHOWN], wanted[80];

    describe(m, wanted, sizeof(wanted));
    snprintf(w->fault, sizeof(w->fault), "'%s' is %s, not %s", w->path, json_show(value, found), wanted);
    return false;
}

static bool
is_one_of(const char *const *words, const char *text)
{
    return !words || name_index(words, text) >= 0;
}

/* Check a value that contains no other values. */
static bool
is_plain(const struct member *m, const json_t *value)
{
    double number = json_number_value(value);

    switch (m->form) {
    case FORM_TEXT:
        return json_is_string(value) && is_one_of(m->words, json_string_value(value));
    case FORM_FLAG:
        return json_is_boolean(value);
    case FORM_COUNT:
    case FORM_NUMBER:
        return json_is_number(value) && number >= m->least && number <= m->most &&
               (m->form == FORM_NUMBER || number == floor(number));
    case FORM_SCALAR:
        return json_is_string(value) || json_is_number(value) || json_is_boolean(value);
    case FORM_LIST:
        number = (double)json_array_size(value);
        return json_is_array(value) && number >= m->least && (m->most == 0 || number <= m->most);
    case FORM_OBJECT:
    case FORM_MAP:
        return json_is_object(value);
    }
    return false;
}

static bool check_members(struct run_walk *w, const struct member *members, const json_t *object);

static bool
check_value(struct run_walk *w, const struct member *m, const json_t *value)
{
    const char *key;
    json_t *each;
    size_t i, length;
    bool good = true;

    if ((json_is_null(value) && m->null) || (!value && m->added))
        return true;
    if (!is_plain(m, value))
        return fail(w, m, value);
    if (m->form == FORM_OBJECT)
        return check_members(w, m->of, value);
    for (i = 0; m->form == FORM_LIST && good && i < json_array_size(value); i++) {
        length = enter(w, NULL, i);
        good = check_value(w, m->of, json_array_get(value, i));
        w->path[length] = '\0';
    }
    if (m->form != FORM_MAP)
        return good;
    json_object_foreach ((json_t *)value, key, each) {
        length = enter(w, key, 0);
        good = good && check_value(w, m->of, each);
        w->path[length] = '\0';
    }
    return good;
}

static bool
check_members(struct run_walk *w, const struct member *members, const json_t *object)
{
    bool good = true;

    for (; good && members->key; members++) {
        size_t length = enter(w, members->key, 0);

        good = check_value(w, members, json_object_get(object, members->key));
        w->path[length] = '\0';
    }
    return good;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

/* Check a line; a fault is in w.  CHEX_ERR_MEMORY */
static enum chex_status
check_line(const uint8_t *line, size_t size, struct run_walk *w, struct chex_error *err)
{
    const json_t *kind;
    struct chex_error why;
    json_t *value = NULL;
    enum chex_status status = parse_json(line, size, &bounds, &value, &why);
    size_t i;

    *w = (struct run_walk){.path = ""};
    if (status == CHEX_ERR_MEMORY)
        return error_memory(err);
    kind = json_object_get(value, "kind");
    if (status != CHEX_OK) { /* the line is that of the file */
        snprintf(w->fault, sizeof(w->fault), "%.200s", strncmp(why.text, "line 1: ", 8) == 0 ? why.text + 8 : why.text);
    } else if (!is_plain(&a_kind, kind)) {
        enter(w, "kind", 0);
        fail(w, &a_kind, kind);
    } else {
        for (i = 0; strcmp(kinds[i].kind, json_string_value(kind)) != 0; i++)
            continue;
        check_members(w, kinds[i].members, value);
    }
    json_decref(value);
    return CHEX_OK;
}

/* Returns whether this is the start of a line, as after a kill. */
static bool
is_beginning(const uint8_t *line, size_t size)
{
    static const char begin[] = "{\"kind\":\"";

    return memcmp(line, begin, size < strlen(begin) ? size : strlen(begin)) == 0;
}

static enum chex_status
check_metrics(const struct buffer *text, struct run_check *out, struct chex_error *err)
{
    size_t at = 0, number = 0;
    enum chex_status status = CHEX_OK;

    while (status == CHEX_OK && at < text->size) {
        const uint8_t *line = text->data + at, *newline = memchr(line, '\n', text->size - at);
        size_t size = newline ? (size_t)(newline - line) : text->size - at;
        struct run_walk w;

        number++;
        at += size + 1;
        out->cut = !newline && is_beginning(line, size);
        if (out->cut)
            break;
        status = check_line(line, size, &w, err);
        if (status == CHEX_OK && !newline && !w.fault[0])
            snprintf(w.fault, sizeof(w.fault), "the line has no end");
        if (status != CHEX_OK || !w.fault[0])
            continue;
        if (out->lines++ == 0)
            snprintf(out->metrics, sizeof(out->metrics), "%s line %zu: %.280s", RUN_LOG_METRICS, number, w.fault);
    }
    return status;
}

static enum chex_status
check_file(const struct buffer *text, struct run_check *out, struct chex_error *err)
{
    struct chex_error why;
    struct run_walk w = {.path = ""};
    json_t *value = NULL;
    enum chex_status status = text->size > 0 ? parse_json(text->data, text->size, &bounds, &value, &why)
                                             : error_set(&why, CHEX_ERR_EMPTY, "empty file");

    if (status == CHEX_ERR_MEMORY)
        return error_memory(err);
    if (status != CHEX_OK)
        snprintf(out->file, sizeof(out->file), "%s: %.180s", RUN_FILE_NAME, why.text);
    else if (!json_is_object(value))
        snprintf(out->file, sizeof(out->file), "%s: not an object", RUN_FILE_NAME);
    else if (!check_value(&w, &a_run, value))
        snprintf(out->file, sizeof(out->file), "%s: %.280s", RUN_FILE_NAME, w.fault);
    json_decref(value);
    return CHEX_OK;
}

/* Read the current content of the file: a run may be appending to it. */
static enum chex_status
read_file(const struct folder *folder, const char *name, struct buffer *out, struct chex_error *err)
{
    uint64_t size;
    int fd;
    enum chex_status status = file_open(folder->fd, name, &fd, &size, err);

    if (status != CHEX_OK)
        return status;
    if (size > FILE_MAX)
        status = error_set(err, CHEX_ERR_LIMIT, "more than %u bytes", FILE_MAX);
    if (status == CHEX_OK)
        status = buffer_reserve(out, (size_t)size + 1, err);
    if (status == CHEX_OK)
        status = file_pread(fd, 0, out->data, (size_t)size, &out->size, err);
    close(fd);
    return status;
}

/* Open and check a file; a fault is in `fault`, with CHEX_OK. */
static enum chex_status
open_checked(const struct folder *folder, const char *name, struct buffer *out, char fault[RUN_CHECK_TEXT], bool *there,
             struct chex_error *err)
{
    struct chex_error why;
    enum chex_status status = read_file(folder, name, out, &why);

    *there = status == CHEX_OK;
    if (chex_status_is_data(status))
        snprintf(fault, RUN_CHECK_TEXT, "%s: %.180s", name, why.text);
    if (status == CHEX_OK || chex_status_is_data(status) || status == CHEX_ERR_MISSING)
        return CHEX_OK;
    if (err)
        *err = why;
    return error_context(err, status, "'%s/%s'", folder->path, name);
}

enum chex_status
run_check(const struct folder *folder, struct run_check *out, struct chex_error *err)
{
    struct buffer text = {0};
    bool there;
    enum chex_status status;

    *out = (struct run_check){.lines = 0};
    status = open_checked(folder, RUN_LOG_METRICS, &text, out->metrics, &there, err);
    if (status == CHEX_OK && there)
        status = check_metrics(&text, out, err);
    text.size = 0;
    if (status == CHEX_OK)
        status = open_checked(folder, RUN_FILE_NAME, &text, out->file, &there, err);
    if (status == CHEX_OK && there)
        status = check_file(&text, out, err);
    buffer_release(&text);
    return status;
}
