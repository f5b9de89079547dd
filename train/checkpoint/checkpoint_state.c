/*
 * checkpoint_state.c - the state of a run as JSON in the metadata of its model file; see checkpoint.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "checkpoint/checkpoint_private.h"

#include "base/ascii.h"
#include "checkpoint/weights.h"
#include "io/digest_file.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* reals: accept numbers of any size, so that a bad value can be reported with its field. */
static const struct parse_bounds bounds = {.size = 65536, .depth = 2, .values = 100, .reals = true};

#define SHOWN_BYTES 100 /* of a list of findings in an error */
#define SHOWN       (4 * SHOWN_BYTES + 4)

void
checkpoint_name(uint64_t step, char out[CHECKPOINT_NAME])
{
    snprintf(out, CHECKPOINT_NAME, "step-%06llu", (unsigned long long)step);
}

void
checkpoint_file_name(const char *name, const char *suffix, char out[CHECKPOINT_FILE])
{
    snprintf(out, CHECKPOINT_FILE, "%s%s", name, suffix);
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

/* Format the state as one terminated line. */
static enum chex_status
format_state(const struct checkpoint_state *state, struct buffer *b, struct chex_error *err)
{
    const struct state_field *f = state_fields;
    enum chex_status status = state_check(state, err);
    json_t *top;

    if (status != CHEX_OK)
        return status;
    top = json_object();
    while (f->name && json_object_set_new(top, f->name, state_format(f, state)) == 0)
        f++;
    status = f->name ? error_memory(err) : append_json(top, JSON_COMPACT | JSON_ENSURE_ASCII, b, err);
    json_decref(top);
    if (status == CHEX_OK)
        b->data[b->size - 1] = '\0'; /* replaces the newline */
    return status;
}

/* Append the names of the logits, separated by commas, and a terminator. */
static enum chex_status
append_findings(const struct graph *g, struct buffer *b, struct chex_error *err)
{
    unsigned outputs = g->buffer[g->output].channels, i;
    enum chex_status status = CHEX_OK;

    for (i = 0; status == CHEX_OK && i < outputs; i++) {
        status = i > 0 ? buffer_append(b, ",", 1, err) : CHEX_OK;
        if (status == CHEX_OK)
            status = buffer_append(b, g->findings[i], strlen(g->findings[i]), err);
    }
    return status == CHEX_OK ? buffer_append(b, "", 1, err) : status;
}

enum chex_status
checkpoint_write_model(const struct folder *folder, const char *file, const struct graph *g,
                       const struct checkpoint_state *state, const struct checkpoint_arrays *arrays,
                       const char *operating, char *hex, struct chex_error *err)
{
    struct buffer text = {0}, findings = {0};
    struct metadata metadata[9];
    char format[16];
    size_t count = 0;
    enum chex_status status = format_state(state, &text, err);

    if (status == CHEX_OK && g->findings)
        status = append_findings(g, &findings, err);
    snprintf(format, sizeof(format), "%d", CHECKPOINT_FORMAT);
    if (status == CHEX_OK) {
        metadata[count++] = (struct metadata){"chex_format", format};
        if (g->findings)
            metadata[count++] = (struct metadata){"labels", (const char *)findings.data};
        if (state->leaky)
            metadata[count++] = (struct metadata){WEIGHTS_LEAKY,
                                                  "trained or chosen with a patient or image in two splits"};
        metadata[count++] = (struct metadata){"note", "Research use only, not for diagnosis."};
        if (operating)
            metadata[count++] = (struct metadata){WEIGHTS_OPERATING, operating};
        if (state->short_run[0])
            metadata[count++] = (struct metadata){WEIGHTS_SHORT_RUN, state->short_run};
        metadata[count++] = (struct metadata){"state", (const char *)text.data};
        metadata[count++] = (struct metadata){"tool", "chex-train"};
        metadata[count++] = (struct metadata){"version", chex_version()};
        status = weights_write(g, folder, file, arrays->params, arrays->stats, state->micro_batches, metadata, count,
                               hex, err);
    }
    buffer_release(&text);
    buffer_release(&findings);
    return status;
}

enum chex_status
checkpoint_hash(const struct folder *folder, const char *file, char hex[DIGEST_HEX], struct chex_error *err)
{
    uint64_t size;
    int fd;
    enum chex_status status = file_open(folder->fd, file, &fd, &size, err);

    if (status != CHEX_OK)
        return status;
    status = digest_file(fd, NULL, NULL, hex, err);
    close(fd);
    return status;
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

/* Files from before 0.1.0 may contain "auto", which meant fp32, the only precision at that time. */
static void
name_precision(char *settings)
{
    static const char automatic[] = "precision auto\n";
    char *at = strstr(settings, automatic);

    if (at && (at == settings || at[-1] == '\n'))
        memcpy(at, "precision fp32\n", strlen(automatic));
}

/* Returns "A,B,C", or the start of a long list. */
static const char *
shorten(const char *names, char out[SHOWN])
{
    size_t length = strlen(names);
    bool cut = length > SHOWN_BYTES;

    ascii_escape(names, cut ? SHOWN_BYTES : length, out, SHOWN - 3);
    return cut ? strcat(out, "...") : out;
}

static unsigned
count_names(const char *names)
{
    unsigned count = 1;

    for (; *names; names++)
        count += *names == ',';
    return count;
}

enum chex_status
checkpoint_check_findings(const struct safetensors *s, const struct graph *g, struct chex_error *err)
{
    const char *theirs = safetensors_metadata(s, "labels"), *ours;
    struct buffer findings = {0};
    char shown[2][SHOWN];
    enum chex_status status;

    if (!theirs || !g->findings)
        return CHEX_OK;
    status = append_findings(g, &findings, err);
    ours = (const char *)findings.data;
    if (status == CHEX_OK && strcmp(theirs, ours) != 0)
        status = error_set(err, CHEX_ERR_INCOMPATIBLE, "its findings are '%s' (%u), those of the data set '%s' (%u)",
                           shorten(theirs, shown[0]), count_names(theirs), shorten(ours, shown[1]), count_names(ours));
    buffer_release(&findings);
    return status;
}

enum chex_status
checkpoint_parse_state(const struct safetensors *s, struct checkpoint_state *state, struct chex_error *err)
{
    const char *format = safetensors_metadata(s, "chex_format"), *text = safetensors_metadata(s, "state");
    char shown[64];
    json_t *top;
    enum chex_status status;

    if (!format || !text)
        return error_set(err, CHEX_ERR_INCOMPATIBLE, "it contains weights, but no state of a run (use --init)");
    if (strcmp(format, "1") != 0)
        return error_set(err, CHEX_ERR_INCOMPATIBLE, "format %s, this build reads up to %d",
                         ascii_escape(format, strlen(format), shown, 20), CHECKPOINT_FORMAT);
    status = parse_json(text, strlen(text), &bounds, &top, err);
    if (status != CHEX_OK)
        return status == CHEX_ERR_MEMORY ? status : error_context(err, status, "the run's state");
    status = state_parse(top, state, err);
    json_decref(top);
    state->leaky = safetensors_metadata(s, WEIGHTS_LEAKY) != NULL;
    weights_short_run(s, state->short_run);
    if (status == CHEX_OK)
        name_precision(state->settings);
    return status;
}

enum chex_status
checkpoint_read_state(const struct folder *folder, const char *name, const struct graph *g,
                      struct checkpoint_state *state, struct chex_error *err)
{
    char file[CHECKPOINT_FILE];
    struct safetensors s;
    enum chex_status status;

    checkpoint_file_name(name, CHECKPOINT_SUFFIX, file);
    *state = (struct checkpoint_state){.step = 0};
    status = safetensors_open(folder->fd, file, &s, err);
    if (status == CHEX_OK)
        status = checkpoint_parse_state(&s, state, err);
    if (status == CHEX_OK && g)
        status = checkpoint_check_findings(&s, g, err);
    safetensors_close(&s);
    return status == CHEX_OK ? status : error_context(err, status, "'%s/%s'", folder->path, file);
}
