/*
 * sheet.c - the command `sheet`: selects the images of a contact sheet and writes it; see inspect/command.h
 *
 * One walk reads every record without its pixels and selects the images.  Then the command reads only the selected
 * records whole.  A random selection takes the images with the smallest SHA-256 of "chex-sheet:SEED:NAME", so it
 * depends only on the seed and the names.  draw.c draws the sheet.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/sheet/sheet.h"

#include "base/ascii.h"
#include "base/sha256.h"
#include "image/resample.h"
#include "inspect/command.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_IMAGES  24
#define DEFAULT_COLUMNS 6

/* ---- the choice -------------------------------------------------------------------------------------------------- */

struct candidate {
    uint64_t key; /* the selection takes the smallest keys */
    uint32_t shard, index;
};

struct choice {
    struct inspect *in;
    struct sheet *sheet;
    struct digest *digest;
    struct candidate *candidate;
    size_t count, capacity;
};

static uint64_t
random_key(struct choice *c, struct chex_bytes name)
{
    uint8_t hash[DIGEST_SIZE];
    uint64_t key = 0;
    char head[64];
    int i, length = snprintf(head, sizeof(head), "chex-sheet:%" PRIu64 ":", c->in->options->seed);

    digest_start(c->digest);
    digest_add(c->digest, head, (size_t)length);
    digest_add(c->digest, name.data, name.size);
    digest_finish(c->digest, hash);
    for (i = 0; i < 8; i++)
        key = key << 8 | hash[i];
    return key;
}

static enum chex_status
on_record(void *context, const struct walk_record *r, struct chex_error *err)
{
    struct choice *c = context;
    struct candidate *grown;
    unsigned i;

    if (r->values->weight == 0 || !r->selected)
        return CHEX_OK;
    for (i = 0; i < c->sheet->findings->count; i++)
        c->sheet->positives[i] += r->values->label[i] == 1;
    c->sheet->no_finding += labels_are_none(r->values->label, c->sheet->findings->count);
    grown = array_grow(c->candidate, &c->capacity, c->count, sizeof(*grown));
    if (!grown)
        return error_memory(err);
    c->candidate = grown;
    c->candidate[c->count] = (struct candidate){c->in->options->random ? random_key(c, r->values->name) : c->count,
                                                r->shard, r->index};
    c->count++;
    return CHEX_OK;
}

static int
by_key(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    if (x->shard != y->shard)
        return x->shard < y->shard ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Set shard and index of each s->item. */
static enum chex_status
choose(struct inspect *in, const struct target *t, struct sheet *s, int *code, struct chex_error *err)
{
    const struct inspect_options *o = in->options;
    struct choice c = {.in = in, .sheet = s, .digest = digest_new()};
    struct walk w = {.in = in, .target = t, .record = on_record, .context = &c, .threads = 1};
    size_t wanted = o->random ? o->random : o->first ? o->first : DEFAULT_IMAGES, i;
    enum chex_status status = c.digest ? walk_run(&w, err) : error_memory(err);

    if (status == CHEX_OK && c.count == 0)
        status = inspect_no_image(t, err);
    if (status == CHEX_OK) {
        *code = inspect_walk_code(&w);
        s->selected = c.count;
        s->count = (uint32_t)(c.count < wanted ? c.count : wanted);
        qsort(c.candidate, c.count, sizeof(*c.candidate), by_key);
        s->item = calloc(s->count, sizeof(*s->item));
        if (!s->item)
            status = error_memory(err);
        for (i = 0; status == CHEX_OK && i < s->count; i++) {
            s->item[i].shard = c.candidate[i].shard;
            s->item[i].index = c.candidate[i].index;
        }
    }
    digest_free(c.digest);
    free(c.candidate);
    return status;
}

/* ---- the images -------------------------------------------------------------------------------------------------- */

void
sheet_fit(uint32_t width, uint32_t height, struct sheet *s)
{
    uint32_t side = width > height ? width : height, times = SHEET_TILE / side;

    if (side > SHEET_TILE) {
        s->width = (uint32_t)(((uint64_t)width * SHEET_TILE + side / 2) / side);
        s->height = (uint32_t)(((uint64_t)height * SHEET_TILE + side / 2) / side);
        s->width += s->width == 0;
        s->height += s->height == 0;
    } else {
        s->width = width * times;
        s->height = height * times;
    }
}

static enum chex_status
scale(const struct chex_record *r, const struct sheet *s, struct resampler *resampler, uint8_t *out,
      struct chex_error *err)
{
    struct image in = {.width = r->width, .height = r->height, .stride = r->width};
    uint32_t times = s->width / r->width, x, y;

    if (s->width < r->width || s->height < r->height) {
        in.data = (uint8_t *)(uintptr_t)r->pixels;
        return resampler_run(resampler, RESAMPLE_AREA, &in, s->width, s->height, out, err);
    }
    for (y = 0; y < s->height; y++)
        for (x = 0; x < s->width; x++)
            out[(size_t)y * s->width + x] = r->pixels[(size_t)(y / times) * r->width + x / times];
    return CHEX_OK;
}

static void
describe(struct sheet_item *item, const struct chex_record *r)
{
    inspect_text(r->name, item->name);
    inspect_text(r->patient, item->patient);
    inspect_text(r->view, item->view);
    item->age = r->age;
    item->sex = r->sex;
    memcpy(item->label, r->label, r->finding_count);
}

enum chex_status
sheet_read_item(struct inspect *in, const struct chex_dataset *ds, const struct sheet *s, struct resampler *resampler,
                struct buffer *b, struct sheet_item *item, int *code)
{
    struct chex_error err;
    struct chex_record r;
    enum chex_status status = inspect_read_record(ds, item->shard, item->index, b, false, &r, &err);

    item->split = ds->split[ds->shard[item->shard].split].name;
    if (status == CHEX_OK) {
        describe(item, &r);
        status = inspect_read_record(ds, item->shard, item->index, b, true, &r, &err);
    }
    if (status == CHEX_OK) {
        item->gray = malloc((size_t)s->width * s->height);
        status = item->gray ? scale(&r, s, resampler, item->gray, &err) : error_memory(&err);
    }
    if (status != CHEX_OK && status != CHEX_ERR_MEMORY) {
        item->damaged = true;
        *code = inspect_worse(*code, status == CHEX_ERR_READ || error_is_denied(&err) ? EXIT_MISSING : EXIT_DATA);
        progress_line_fault(&in->line, "%s: %s", in->program->name, err.text);
        return CHEX_OK;
    }
    return status;
}

static int
by_name(const void *a, const void *b)
{
    const struct sheet_item *x = a, *y = b;
    int order = strcmp(x->name, y->name);

    if (order == 0)
        order = x->shard < y->shard ? -1 : x->shard > y->shard;
    return order ? order : x->index < y->index ? -1 : x->index > y->index;
}

static enum chex_status
read_items(struct inspect *in, const struct target *t, struct sheet *s, int *code, struct chex_error *err)
{
    struct resampler resampler = {.method = RESAMPLE_AREA};
    struct buffer b = {0};
    enum chex_status status = CHEX_OK;
    uint32_t i;

    for (i = 0; i < s->count && status == CHEX_OK; i++)
        status = sheet_read_item(in, t->dataset, s, &resampler, &b, &s->item[i], code);
    /* Sort by name, so that the images of a patient are adjacent. */
    qsort(s->item, s->count, sizeof(*s->item), by_name);
    resampler_release(&resampler);
    buffer_release(&b);
    return status == CHEX_OK ? CHEX_OK : error_memory(err);
}

/* ---- words ------------------------------------------------------------------------------------------------------- */

static void
append(char *text, size_t size, const char *a, const char *b)
{
    size_t used = strlen(text);

    if (used < size)
        snprintf(text + used, size - used, "%s%s", a, b);
}

/* Append the word and the term as the user typed it. */
static void
append_term(struct sheet *s, const struct where_term *t, const char *before)
{
    char text[128], shown[128];

    snprintf(text, sizeof(text), "%.*s", (int)(t->source.size < 100 ? t->source.size : 100), t->source.data);
    append(s->selection, sizeof(s->selection), before, ascii_escape(text, strlen(text), shown, sizeof(shown)));
}

static void
write_words(const struct inspect_options *o, const struct target *t, struct sheet *s)
{
    const struct chex_dataset *ds = t->dataset;
    unsigned i, splits = 0, last = UINT32_MAX;
    char number[64];

    s->id = ds->info.id;
    s->title = o->title;
    s->synthetic = ds->manifest.synthetic;
    for (i = t->first; i < t->first + t->count; i++) {
        if (ds->shard[i].split == last)
            continue;
        last = ds->shard[i].split;
        append(s->splits, sizeof(s->splits), splits++ ? ", " : "split ", ds->split[last].name);
    }
    s->one_split = splits == 1;
    if (t->count == 1 && ds->info.shard_count > 1) {
        snprintf(number, sizeof(number), "%u", t->first);
        append(s->splits, sizeof(s->splits), ", shard ", number);
    }
    for (i = 0; i < o->where.count; i++)
        append_term(s, &o->where.term[i],
                    i ? o->where.term[i - 1].clause != o->where.term[i].clause ? ", and " : " or " : "where ");
    if (!s->selection[0])
        snprintf(s->selection, sizeof(s->selection), "no selection");
    if (o->random)
        snprintf(s->choice, sizeof(s->choice), "random choice, seed %" PRIu64, o->seed);
    else
        snprintf(s->choice, sizeof(s->choice), s->count < s->selected ? "the first ones" : "all of them");
    if (s->width == ds->info.width && s->height == ds->info.height)
        snprintf(s->size, sizeof(s->size), "%ux%u pixels", s->width, s->height);
    else
        snprintf(s->size, sizeof(s->size), "%ux%u pixels, shown at %ux%u", ds->info.width, ds->info.height, s->width,
                 s->height);
}

static void
report(struct inspect *in, const struct target *t, const struct sheet *s)
{
    const char *output = in->options->output;
    char a[FORMAT_THINGS];
    json_t *images;
    uint32_t i;

    if (!in->common->json) {
        if (!in->common->quiet)
            printable_line(stderr, "%s: %s of %s, %ux%u pixels", output, COUNT_TEXT(s->count),
                           format_things(s->selected, "image", a), s->sheet_width, s->sheet_height);
        return;
    }
    images = json_array();
    for (i = 0; i < s->count; i++)
        inspect_json_push(&images,
                          json_pack("{s:s, s:i, s:i, s:s, s:s, s:o, s:b}", "split", s->item[i].split, "shard",
                                    (int)s->item[i].shard, "index", (int)s->item[i].index, "name", s->item[i].name,
                                    "patient", s->item[i].patient, "labels",
                                    inspect_json_labels(s->findings, s->item[i].label), "damaged", s->item[i].damaged));
    inspect_json_add(in, json_pack("{s:o, s:o, s:o, s:i, s:i, s:i, s:o}", "path", text_json(t->path), "output",
                                   text_json(output), "selected", count_json(s->selected), "columns", (int)s->columns,
                                   "width", (int)s->sheet_width, "height", (int)s->sheet_height, "images", images));
}

/* ---- all together ------------------------------------------------------------------------------------------------ */

static enum chex_status
write_sheet(const char *output, struct sheet *s, struct chex_error *err)
{
    char shown[128];
    struct picture_note notes[8] = {{"Software", "chex-tools " PACKAGE_VERSION},
                                    {"Comment", PICTURE_RESEARCH},
                                    {"dataset", s->id},
                                    {"splits", s->splits},
                                    {"selection", s->selection},
                                    {"images", shown}};
    struct picture_spec spec = {.width = s->sheet_width,
                                .height = s->sheet_height,
                                .channels = 3,
                                .notes = notes,
                                .note_count = 6,
                                .row = sheet_row,
                                .context = s};
    struct buffer out = {0};
    bool png = picture_name_ends(output, ".png");
    enum chex_status status;

    if (s->title)
        notes[spec.note_count++] = (struct picture_note){"Title", s->title};
    if (s->synthetic)
        notes[spec.note_count++] = (struct picture_note){"Source", PICTURE_SYNTHETIC};
    snprintf(shown, sizeof(shown), "%u of %" PRIu64, s->count, s->selected);
    if (!png && (s->sheet_width > PICTURE_JPEG_MAX || s->sheet_height > PICTURE_JPEG_MAX))
        return error_set(err, CHEX_ERR_USAGE,
                         "'%s' would have %ux%u pixels, and a JPEG has at most %d a side: use .png, "
                         "other --columns or fewer images",
                         output, s->sheet_width, s->sheet_height, PICTURE_JPEG_MAX);
    status = png ? picture_png(&spec, &out, err) : picture_jpeg(&spec, &out, err);
    if (status == CHEX_OK)
        status = inspect_put_file(output, &out, err);
    buffer_release(&out);
    return status;
}

static int
make_sheet(struct inspect *in, struct target *t)
{
    const struct inspect_options *o = in->options;
    struct sheet s = {.columns = o->columns ? o->columns : DEFAULT_COLUMNS, .findings = &t->dataset->manifest.findings};
    struct chex_error err;
    int code = EXIT_GOOD;
    enum chex_status status = choose(in, t, &s, &code, &err);

    sheet_fit(t->dataset->info.width, t->dataset->info.height, &s);
    if (s.columns > s.count && s.count > 0)
        s.columns = s.count;
    if (status == CHEX_OK)
        status = read_items(in, t, &s, &code, &err);
    if (status == CHEX_OK) {
        write_words(o, t, &s);
        status = sheet_layout(&s, &err);
    }
    if (status == CHEX_OK)
        status = write_sheet(o->output, &s, &err);
    if (status == CHEX_OK)
        report(in, t, &s);
    else
        code = inspect_fail(in, t->path, &err);
    sheet_release(&s);
    return code;
}

/* ---- command line ------------------------------------------------------------------------------------------------ */

static enum chex_status
check_options(const struct inspect_options *o, const struct cli_common *common, struct chex_error *err)
{
    (void)common;
    if (o->first && o->random)
        return error_set(err, CHEX_ERR_USAGE, "--first and --random cannot go together");
    if (o->seed_given && !o->random)
        return error_set(err, CHEX_ERR_USAGE, "--seed goes with --random");
    if (!o->output)
        return error_set(err, CHEX_ERR_USAGE, "'sheet' needs -o FILE.png or FILE.jpg");
    if (!picture_name_ends(o->output, ".png") && !picture_name_ends(o->output, ".jpg") &&
        !picture_name_ends(o->output, ".jpeg"))
        return error_set(err, CHEX_ERR_USAGE, "'%s': the name must end in .png or .jpg", o->output);
    return CHEX_OK;
}

static const struct cli_option options[] = {
    {AT_TEXT(output), 'o', "output", "FILE", NULL, NULL, "file to write: FILE.png or FILE.jpg"},
    ROW_SPLIT,
    ROW_WHERE,
    {ID_FIRST, 0, "first", "N", NULL, NULL, "show the first N images of the selection; default 24"},
    {ID_RANDOM, 0, "random", "N", NULL, NULL, "show N random images; they depend only on --seed and the names"},
    {ID_SEED, 0, "seed", "N", NULL, NULL, "seed of --random; default 0"},
    {ID_COLUMNS, 0, "columns", "N", NULL, NULL, "images in a row; default 6"},
    ROW_TITLE,
    ROW_END,
};

const struct inspect_command inspect_sheet_command = {
    .cli = {.name = "sheet",
            .summary = "make a contact sheet of selected images",
            .usage = "-o FILE.png|FILE.jpg [--where TERMS]... [--split NAME]\n"
                     "  [--first N | --random N [--seed N]] [--columns N]\n"
                     "  [--title TEXT] PATH",
            .examples = "chex-inspect sheet -o hernia.png --where Hernia --random 24 shards\n"
                        "chex-inspect sheet -o p.png --where patient=00000013 --first 200 shards",
            .options = options},
    .action = INSPECT_SHEET,
    .min = 1,
    .max = 1,
    .operands = "one PATH",
    .check = check_options,
    .each = make_sheet,
};
