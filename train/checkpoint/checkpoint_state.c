/*
 * checkpoint_state.c - the state of a run as JSON in the metadata of its model file; see checkpoint.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "checkpoint/checkpoint_private.h"

#include "base/ascii.h"
#include "checkpoint/weights.h"
#include "dataset/findings.h"
#include "io/digest_file.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* reals: accept numbers of any size, so that a bad value can be reported with its field. */
static const struct parse_bounds bounds = {.size = 65536, .depth = 2, .values = 100, .reals = true};

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

const char *
checkpoint_labels(char out[CHECKPOINT_LABELS])
{
    size_t used = 0;
    unsigned i;

    for (i = 0; i < CHEX_FINDINGS; i++)
        used += (size_t)snprintf(out + used, CHECKPOINT_LABELS - used, "%s%s", i > 0 ? "," : "", chex_finding_name(i));
    return out;
}

enum chex_status
checkpoint_write_model(const struct folder *folder, const char *file, const struct graph *g,
                       const struct checkpoint_state *state, const struct checkpoint_arrays *arrays, char *hex,
                       struct chex_error *err)
{
    struct buffer text = {0};
    char labels[CHECKPOINT_LABELS], format[16];
    enum chex_status status = format_state(state, &text, err);

    if (status != CHEX_OK) {
        buffer_release(&text);
        return status;
    }
    snprintf(format, sizeof(format), "%d", CHECKPOINT_FORMAT);
    {
        const struct metadata metadata[] = {
            {"chex_format", format},
            {"labels", checkpoint_labels(labels)},
            {"note", "Research use only, not for diagnosis."},
            {"state", (const char *)text.data},
            {"tool", "chex-train"},
            {"version", chex_version()},
        };

        status = weights_write(g, folder, file, arrays->params, arrays->stats, state->micro_batches, metadata,
                               sizeof(metadata) / sizeof(metadata[0]), hex, err);
    }
    buffer_release(&text);
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

enum chex_status
checkpoint_parse_state(const struct safetensors *s, struct checkpoint_state *state, struct chex_error *err)
{
    const char *format = safetensors_metadata(s, "chex_format"), *text = safetensors_metadata(s, "state");
    const char *labels = safetensors_metadata(s, "labels");
    char ours[CHECKPOINT_LABELS], shown[CHECKPOINT_LABELS];
    json_t *top;
    enum chex_status status;

    if (!format || !text)
        return error_set(err, CHEX_ERR_INCOMPATIBLE, "it contains weights, but no state of a run (use --init)");
    if (strcmp(format, "1") != 0)
        return error_set(err, CHEX_ERR_INCOMPATIBLE, "format %s, this build reads up to %d",
                         ascii_escape(format, strlen(format), shown, 20), CHECKPOINT_FORMAT);
    if (labels && strcmp(labels, checkpoint_labels(ours)) != 0)
        return error_set(err, CHEX_ERR_INCOMPATIBLE, "its findings are '%s', in another order or others",
                         ascii_escape(labels, strlen(labels), shown, sizeof(shown)));
    status = parse_json(text, strlen(text), &bounds, &top, err);
    if (status != CHEX_OK)
        return status == CHEX_ERR_MEMORY ? status : error_context(err, status, "the run's state");
    status = state_parse(top, state, err);
    json_decref(top);
    if (status == CHEX_OK)
        name_precision(state->settings);
    return status;
}

enum chex_status
checkpoint_read_state(const struct folder *folder, const char *name, struct checkpoint_state *state,
                      struct chex_error *err)
{
    char file[CHECKPOINT_FILE];
    struct safetensors s;
    enum chex_status status;

    checkpoint_file_name(name, CHECKPOINT_SUFFIX, file);
    *state = (struct checkpoint_state){.step = 0};
    status = safetensors_open(folder->fd, file, &s, err);
    if (status == CHEX_OK)
        status = checkpoint_parse_state(&s, state, err);
    safetensors_close(&s);
    return status == CHEX_OK ? status : error_context(err, status, "'%s/%s'", folder->path, file);
}
