/*
 * report.c - prints the table of `source`; see source.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/source/source.h"

#include "base/ascii.h"
#include "common/shell_word.h"
#include "common/wrap.h"

#include <math.h>
#include <string.h>

#define SHOWN   5  /* names of one kind */
#define FOLDERS 40 /* lines of the table */

#define TEXT(number) format_count(number, (char[FORMAT_TEXT]){0})

/* Size of an escaped name or path. */
#define ROOM (4 * 4096 + 1)
static const char *
shown(const char *text, char out[ROOM])
{
    return ascii_escape(text, strlen(text), out, ROOM);
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static void
print_labels(const struct source_check *c)
{
    const struct labels *l = &c->labels;
    size_t i;
    char name[ROOM];

    if (c->labels_err.status != CHEX_OK) {
        printf("labels   %s%s%s\n", c->in->color.red, printable_text(c->labels_err.text, name), c->in->color.off);
        return;
    }
    printf("labels   %s rows, %s images of %s patients", TEXT(l->row_count), TEXT(l->count), TEXT(l->patient_count));
    if (!isnan(l->age_min))
        printf(", ages %g-%g", (double)l->age_min, (double)l->age_max);
    printf("\n");
    if (l->duplicate_rows > 0)
        printf("         note: %s repeated\n", format_things(l->duplicate_rows, "row", (char[FORMAT_THINGS]){0}));
    if (l->unknown_ages > 0)
        printf("         note: %s unknown", format_things(l->unknown_ages, "age", (char[FORMAT_THINGS]){0}));
    if (l->impossible_ages > 0)
        printf(", %s of them impossible", TEXT(l->impossible_ages));
    if (l->unknown_ages > 0)
        printf("\n");
    for (i = 0; i < l->reject_count && i < SHOWN; i++)
        printf("         %sline %u: %s: %s%s\n", c->in->color.red, l->reject[i].line, shown(l->reject[i].name, name),
               l->reject[i].reason, c->in->color.off);
    if (l->reject_count > SHOWN)
        printf("         %sand %s that cannot be used%s\n", c->in->color.red,
               format_things(l->reject_count - SHOWN, "more row", (char[FORMAT_THINGS]){0}), c->in->color.off);
}

/* ---- faults ------------------------------------------------------------------------------------------------------ */

static void
print_more(uint64_t count, size_t listed)
{
    if (count > listed)
        printf("         and %s more: --format csv names all\n", TEXT(count - listed));
}

/* Print "short    3: the end is lacking ..." and the first names. */
static void
print_items(const struct source_check *c, enum source_fault fault, const char *what)
{
    const struct color *color = &c->in->color;
    bool extra = fault == SOURCE_EXTRA;
    char text[ROOM];
    size_t i, listed = 0;

    if (c->count_of[fault] == 0)
        return;
    printf("%-8s %s%s: %s%s\n", source_fault_name(fault), extra ? "" : color->red, TEXT(c->count_of[fault]), what,
           extra ? "" : color->off);
    for (i = 0; i < c->count && listed < SHOWN; i++) {
        const struct source_item *item = &c->item[i];

        if (extra ? !item->extra : item->fault != fault)
            continue;
        printf("         %s", shown(item->name, text));
        printf("  in %s%s%s\n", shown(c->place[item->place].path, text), !extra && item->detail ? ": " : "",
               !extra && item->detail ? item->detail : "");
        listed++;
    }
    print_more(c->count_of[fault], listed);
}

static void
print_conflicts(const struct source_check *c)
{
    size_t count = (size_t)c->count_of[SOURCE_CONFLICT], i;
    char text[ROOM];

    if (count == 0)
        return;
    printf("conflict %s%s: the name of another image, but other content%s\n", c->in->color.red, TEXT(count),
           c->in->color.off);
    for (i = 0; i < count && i < SHOWN; i++) {
        const struct source_conflict *conflict = &c->conflict[i];
        bool same = conflict->place == conflict->other;

        printf("         %s", shown(conflict->name, text));
        printf("  %s %s", same ? "twice in" : "in", shown(c->place[conflict->place].path, text));
        printf("%s%s\n", same ? "" : " and ", same ? "" : shown(c->place[conflict->other].path, text));
    }
    print_more(count, i);
}

static void
print_missing(const struct source_check *c)
{
    char name[ROOM];
    size_t i;

    if (c->preflight.missing == 0)
        return;
    printf("missing  %s%s without an image%s\n", c->in->color.red,
           format_things(c->preflight.missing, "row", (char[FORMAT_THINGS]){0}), c->in->color.off);
    for (i = 0; i < SHOWN && i < PREFLIGHT_SAMPLES && i < c->preflight.missing; i++)
        printf("         %s\n", shown(c->preflight.sample[i], name));
    print_more(c->preflight.missing, i);
}

static void
print_faults(const struct source_check *c)
{
    print_missing(c);
    print_items(c, SOURCE_EMPTY, "no bytes");
    print_items(c, SOURCE_SHORT, "the end is lacking, the download was cut");
    print_items(c, SOURCE_TYPE, "no image");
    print_items(c, SOURCE_UNREADABLE, "cannot be read");
    print_items(c, SOURCE_LARGE, "above 256 MiB, chex-convert does not read that");
    print_items(c, SOURCE_LOST, "in the damage of the archive");
    print_conflicts(c);
    print_items(c, SOURCE_EXTRA, "without a row, left out");
}

/* ---- the table of places ----------------------------------------------------------------------------------------- */

static void
print_cell(const struct source_check *c, int width, uint64_t n, bool fault)
{
    printf("%s%*s%s ", fault && n ? c->in->color.red : "", width, n ? TEXT(n) : "-",
           fault && n ? c->in->color.off : "");
}

const char *
source_archive_text(const struct source_place *p, char out[SOURCE_TEXT])
{
    if (p->opened)
        snprintf(out, SOURCE_TEXT, "%s at byte %s of %s: %s", p->error.status == CHEX_ERR_LIMIT ? "refused" : "damaged",
                 TEXT(p->offset), TEXT(p->size), p->error.text);
    else
        snprintf(out, SOURCE_TEXT, "%s", p->error.text);
    return out;
}

/* Print the fault of an archive and the extent of its undamaged part, below its line. */
static void
print_damage(const struct source_check *c, const struct source_place *p)
{
    char text[ROOM], damage[SOURCE_TEXT];

    printf("%10s%s%s%s\n", "", c->in->color.red, source_archive_text(p, damage), c->in->color.off);
    if (!p->opened)
        return;
    printf("%10s%s read before that", "", format_things(p->before, "image", (char[FORMAT_THINGS]){0}));
    if (p->last)
        printf(", up to %s", shown(p->last, text));
    if (p->after > 0)
        printf("; %s after it", TEXT(p->after));
    printf("\n");
}

static void
print_place(const struct source_check *c, const struct source_place *p)
{
    char text[ROOM], bytes[FORMAT_TEXT];

    print_cell(c, 8, p->images, false);
    print_cell(c, 8, p->missing, true);
    print_cell(c, 8, p->brief, true);
    print_cell(c, 8, p->damaged, true);
    print_cell(c, 10, p->extra, false);
    printf("%9s  %s\n", p->bytes ? format_bytes(p->bytes, bytes) : "-", shown(p->path, text));
    if (p->error.status != CHEX_OK)
        print_damage(c, p);
}

/* Print a line for `missing` images that are not in the given places. */
static void
print_nowhere(const struct source_check *c, size_t missing, const char *path)
{
    struct source_place nowhere = {.path = path, .missing = missing};

    print_place(c, &nowhere);
}

/* Returns true if a place has images of several NIH archives: they were unpacked into one folder. */
static bool
unpacked_together(const struct source_check *c)
{
    unsigned i, j;

    for (i = 0; c->preflight.whole && i < PREFLIGHT_ARCHIVES; i++)
        for (j = 0; j < i; j++)
            if (c->nih[i] >= 0 && c->nih[i] == c->nih[j])
                return true;
    return false;
}

static void
print_places(const struct source_check *c)
{
    size_t folders = c->place_count - c->archive_count, i;
    char name[32];

    printf("%s  images  missing    short  damaged     no row     bytes%s\n", c->in->color.dim, c->in->color.off);
    for (i = folders; i < c->place_count; i++)
        print_place(c, &c->place[i]);
    for (i = 0; i < folders && i < FOLDERS; i++)
        print_place(c, &c->place[i]);
    if (folders > FOLDERS)
        printf("%10sand %s more folders\n", "", TEXT(folders - FOLDERS));
    for (i = 0; c->preflight.whole && !unpacked_together(c) && i < PREFLIGHT_ARCHIVES; i++) {
        snprintf(name, sizeof(name), "(images_%03zu: nothing of it)", i + 1);
        if (c->nih[i] < 0)
            print_nowhere(c, c->preflight.archive[i].wanted, name);
    }
    if (c->nowhere > 0 && (!c->preflight.whole || unpacked_together(c)))
        print_nowhere(c, (size_t)c->nowhere, "(in none of these)");
}

/* Print NIH's archives, inferred from the order of the names, if they were unpacked into one folder. */
static void
print_nih(const struct source_check *c)
{
    const struct preflight *p = &c->preflight;
    unsigned i;

    printf("%s  images  missing  of NIH's archive%s\n", c->in->color.dim, c->in->color.off);
    for (i = 0; i < PREFLIGHT_ARCHIVES; i++) {
        print_cell(c, 8, p->archive[i].found, false);
        print_cell(c, 8, p->archive[i].wanted - p->archive[i].found, true);
        printf(" images_%03u.tar.gz\n", i + 1);
    }
}

/* ---- next steps -------------------------------------------------------------------------------------------------- */

/* Returns true if an archive is damaged, or is not an archive. */
static bool
is_broken(const struct source_check *c, const char *path)
{
    size_t i;

    for (i = c->place_count - c->archive_count; i < c->place_count; i++)
        if (c->place[i].error.status != CHEX_OK && strcmp(c->place[i].path, path) == 0)
            return true;
    return false;
}

/* Print the command without the broken inputs; print nothing if no image remains. */
static void
print_command(const struct source_check *c, const char *before)
{
    const struct inspect_options *o = c->in->options;
    struct wrap w = {.out = stdout};
    uint64_t left = 0, lost = 0;
    char word[SHELL_WORD];
    size_t i;

    for (i = 0; i < c->place_count; i++)
        *(c->place[i].error.status == CHEX_OK ? &left : &lost) += c->place[i].images;
    if (left == 0)
        return;
    wrap_command(&w, before);
    wrap_put(&w, " ", "chex-convert -n%s -i", c->preflight.missing + lost > 0 ? " --allow-missing" : "");
    for (i = 0; i < o->input_count + o->path_count; i++) {
        const char *path = i < o->input_count ? o->input[i] : o->path[i - o->input_count];

        if (is_broken(c, path))
            continue;
        wrap_put(&w, " ", "%s", shell_word(relative_path(path), word));
    }
    wrap_put(&w, " ", "-l %s", shell_word(relative_path(o->labels), word));
    wrap_put(&w, " ", "-o shards");
    wrap_end(&w);
}

/*
 * Returns true if images of this NIH archive are missing, unless print_fetch() already names a broken archive with its
 * images.
 */
static bool
is_wanted(const struct source_check *c, size_t i)
{
    const struct preflight *p = &c->preflight;

    return p->whole && i < PREFLIGHT_ARCHIVES && p->archive[i].found < p->archive[i].wanted &&
           !(c->nih[i] >= 0 && c->place[c->nih[i]].error.status != CHEX_OK);
}

/* "next     fetch: ..., images_002.tar.gz to images_005.tar.gz"; returns false if there is nothing to fetch. */
static bool
print_fetch(const struct source_check *c)
{
    char text[ROOM], archives[64];
    struct wrap w = {.out = stdout};
    const char *before = "next     fetch: ";
    size_t i, last;

    for (i = 0; i < c->place_count; i++)
        if (c->place[i].error.status != CHEX_OK) {
            wrap_put(&w, w.column > 0 ? ", " : "next     fetch again: ", "%s", shown(c->place[i].path, text));
            before = ", ";
        }
    for (i = 0; i < PREFLIGHT_ARCHIVES; i = last + 1) {
        for (last = i; is_wanted(c, i) && is_wanted(c, last + 1); last++)
            ;
        if (!is_wanted(c, i))
            continue;
        snprintf(archives, sizeof(archives), "images_%03zu.tar.gz", i + 1);
        if (last > i)
            snprintf(archives, sizeof(archives), "images_%03zu.tar.gz%simages_%03zu.tar.gz", i + 1,
                     last > i + 1 ? " to " : ", ", last + 1);
        wrap_put(&w, before, "%s", archives);
        before = ", ";
    }
    if (w.column == 0)
        return false;
    wrap_end(&w);
    return true;
}

static void
print_next(const struct source_check *c)
{
    const uint64_t *n = c->count_of;
    char word[SHELL_WORD];

    if (c->labels_err.status != CHEX_OK || c->source_err.status != CHEX_OK) {
        printf("next     fix this first, then check again\n");
        return;
    }
    if (c->preflight.found == 0 && c->source.unopened > 0) {
        wrap_line(stdout, "next", "give the archives by name, as -i %s",
                  shell_word(relative_path(c->source.unopened_first), word));
        return;
    }
    if (c->preflight.found == 0) {
        wrap_line(stdout, "next", "no image has a row: are these the right images, and is it the right label file?");
        return;
    }
    if (c->read_errors > 0) {
        printf("next     the files that cannot be read may be good: look again when they can be read\n");
        return;
    }
    if (n[SOURCE_CONFLICT] > 0) {
        wrap_line(stdout, "next", "leave out the wrong one of each conflict: chex-convert refuses to choose");
        return;
    }
    if (n[SOURCE_EMPTY] + n[SOURCE_SHORT] + n[SOURCE_TYPE] + n[SOURCE_UNREADABLE] + n[SOURCE_LARGE] > 0)
        wrap_line(stdout, "", "the files named above are rejected at conversion, unless they come again");
    print_command(c, print_fetch(c) ? "         or do without:" : "next    ");
}

/* ---- all together ------------------------------------------------------------------------------------------------ */

static void
print_images(const struct source_check *c)
{
    uint64_t folders = c->place_count - c->archive_count;
    char bytes[FORMAT_TEXT];
    struct wrap w = {.out = stdout};

    wrap_put(&w, "", "images   %s in", format_things(c->count, "file", (char[FORMAT_THINGS]){0}));
    if (folders > 0 || c->archive_count == 0)
        wrap_put(&w, " ", "%s%s", format_things(folders, "folder", (char[FORMAT_THINGS]){0}),
                 c->archive_count ? " and" : "");
    if (c->archive_count > 0)
        wrap_put(&w, " ", "%s", format_things(c->archive_count, "archive", (char[FORMAT_THINGS]){0}));
    wrap_put(&w, ", ", "%s", format_bytes(c->bytes, bytes));
    if (c->labels_err.status == CHEX_OK)
        wrap_put(&w, "; ", "%s of %s rows have one", TEXT(c->preflight.found), TEXT(c->preflight.wanted));
    wrap_end(&w);
    if (c->repeated > 0)
        printf("         note: %s repeated, with the same content\n",
               format_things(c->repeated, "image", (char[FORMAT_THINGS]){0}));
    if (c->source.unopened > 0)
        printf("         note: %s in these folders not looked into; give archives by name\n",
               format_things(c->source.unopened, "archive", (char[FORMAT_THINGS]){0}));
    if (c->source.unreadable > 0)
        printf("         %s%s may not be listed%s\n", c->in->color.red,
               format_things(c->source.unreadable, "folder", (char[FORMAT_THINGS]){0}), c->in->color.off);
    if (c->misnamed > 0)
        printf("         note: %s named like the other of PNG and JPEG: that does no harm\n",
               format_things(c->misnamed, "image", (char[FORMAT_THINGS]){0}));
}

void
source_print_table(void *result)
{
    const struct source_check *c = result;
    char text[ROOM];

    if (c->in->common->quiet && source_check_good(c))
        return;
    print_labels(c);
    if (c->source_err.status != CHEX_OK) {
        printf("images   %s%s%s\n", c->in->color.red, printable_text(c->source_err.text, text), c->in->color.off);
        print_next(c);
        return;
    }
    print_images(c);
    if (c->place_count > 0)
        print_places(c);
    if (unpacked_together(c) && c->preflight.missing > 0)
        print_nih(c);
    print_faults(c);
    if (source_check_good(c))
        printf("%sgood%s     every row has an image that begins and ends as it should\n", c->in->color.green,
               c->in->color.off);
    print_next(c);
}
