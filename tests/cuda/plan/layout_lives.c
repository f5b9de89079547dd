/*
 * layout_lives.c - checks that everything a launch of a plan reads was written before by the right launch
 *
 *     layout_lives [MODEL SIDE BATCH PROCESSORS MAJOR]
 *
 * Nothing is launched.  A plan is made twice: normally, and with `keep`, where buffers share no memory.  Both have
 * the same launches.  For every 16 bytes of both plans, a table records which launch wrote them last, over two steps of
 * two micro-batches and both evaluations.  What a launch reads must come from the same launch in both plans, and must
 * have been written at all.  The cost model (plan/cost.h) gives the accesses of a launch.  Of tables it knows only the
 * size, so their contents are read here.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "layout_fixture.h"

#include "cuda/cudnn/engine.h"
#include "cuda/plan/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GRAIN     16
#define NOBODY    0
#define THE_HOST  1
#define MOST_GRID 65535 /* limit of a grid along y and z */
#define PIECES    4096

/* ---- writers ----------------------------------------------------------------------------------------------------- */

/* A plan at address BASE, and the last writer of each grain: launches from 2 on. */
#define BASE ((uintptr_t)1 << 40)
struct memory {
    struct cuda_layout layout;
    uint32_t *writer;
    size_t grains;
};

static bool
is_inside(const struct memory *m, uintptr_t at, size_t bytes)
{
    return at >= BASE && bytes <= m->layout.bytes && at - BASE <= m->layout.bytes - bytes;
}

static void
stamp(struct memory *m, uintptr_t at, size_t bytes, uint32_t who)
{
    size_t i;

    if (bytes > 0 && is_inside(m, at, bytes))
        for (i = (at - BASE) / GRAIN; i <= (at - BASE + bytes - 1) / GRAIN; i++)
            m->writer[i] = who;
}

/* All rows that a launch accesses, which may be more than struct cuda_areas can hold. */
struct touched {
    struct cuda_area area[PIECES];
    unsigned count;
};

static void
add(struct touched *t, const void *at, size_t bytes)
{
    if (bytes > 0 && t->count < PIECES)
        t->area[t->count++] = (struct cuda_area){(uintptr_t)at, 1, bytes, bytes};
}

static void
add_areas(struct touched *t, const struct cuda_areas *a)
{
    unsigned i;

    for (i = 0; i < a->count && t->count < PIECES; i++)
        t->area[t->count++] = a->area[i];
}

static size_t
weights_of(unsigned stem, unsigned out, unsigned in, unsigned taps)
{
    return stem ? (size_t)out * 3 * STEM_KERNEL * STEM_KERNEL : (size_t)out * in * taps;
}

/* Adds an entry of fold_weights. */
static void
add_folded(const struct cuda_place *place, const struct fold_weights_args *a, const struct fold_entry *e,
           struct touched *read, struct touched *written)
{
    const struct pack_entry *p = &e->pack;
    size_t bytes = p->out * sizeof(float);

    if (p->packed) {
        add(read, a->master + p->master, weights_of(p->stem, p->out, p->in, p->taps) * sizeof(float));
        add(written, p->packed,
            (p->stem ? (size_t)p->out * 4 * STEM_IN : (size_t)p->out * p->in * p->taps) * place->value_bytes);
    } else {
        add(written, e->scale, bytes);
    }
    if (!e->shift)
        return;
    add(written, e->shift, bytes);
    add(read, a->master + e->gamma, bytes);
    add(read, a->master + e->beta, bytes);
    add(read, a->statistics + e->mean, bytes);
    add(read, a->statistics + e->variance, bytes);
}

/* Adds what cuda_add_alone() did not keep. */
static void
add_alone(const struct cuda_place *place, const struct cuda_op *op, struct touched *read, struct touched *written)
{
    unsigned i;

    if (op->kernel == CUDA_PACK_WEIGHTS) {
        const struct pack_weights_args *a = &op->args.pack;
        const struct pack_entry *e = cuda_known(place, a->entry);

        for (i = 0; i < a->entries; i++, e++) {
            add(read, a->master + e->master, weights_of(e->stem, e->out, e->in, e->taps) * sizeof(float));
            add(written, e->packed,
                (e->stem ? (size_t)e->out * 4 * STEM_IN : (size_t)e->out * e->in * e->taps) * place->value_bytes);
        }
    } else if (op->kernel == CUDA_SUM_ALL) {
        const struct sum_all_args *a = &op->args.sum_all;
        const struct splits_entry *e = cuda_known(place, a->entry);

        for (i = 0; i < a->entries; i++, e++) {
            size_t each = e->stem ? (size_t)e->out * 4 * STEM_IN : (size_t)e->out * e->in * e->taps;

            add(read, e->partial, e->splits * each * PARTIAL_SIZE(e->splits, place->value_bytes));
            add(written, a->gradient + e->gradient, weights_of(e->stem, e->out, e->in, e->taps) * sizeof(float));
        }
    } else if (op->kernel == CUDA_FOLD_WEIGHTS) {
        const struct fold_weights_args *a = &op->args.fold_weights;
        const struct fold_entry *e = cuda_known(place, a->entry);

        for (i = 0; i < a->entries; i++, e++)
            add_folded(place, a, e, read, written);
    } else if (op->kernel == CUDA_LOSS) {
        const struct norm_running_args *a = &op->args.loss.running;
        const struct running_entry *e = cuda_known(place, a->entry);

        for (i = 0; i < a->entries; i++, e++) {
            add(read, e->mean, e->channels * sizeof(float));
            add(read, e->variance, e->channels * sizeof(float));
        }
    } else if (op->kernel == CUDA_WIDEN) {
        add(read, op->args.widen.values, (size_t)op->args.widen.count * place->value_bytes);
    }
    if (op->by_cudnn)
        add(written, op->workspace, CUDNN_WORKSPACE);
}

static void
touched_by(const struct memory *m, const struct cuda_op *op, struct touched *read, struct touched *written)
{
    struct cuda_place place = cuda_place_of(&m->layout);
    struct cuda_work w;

    cuda_work_of(&place, op, &w);
    read->count = written->count = 0;
    add_areas(read, &w.read);
    add_areas(written, &w.written);
    expect(w.read.count < CUDA_AREAS && w.written.count < CUDA_AREAS, "more areas than there is room for");
    add_alone(&place, op, read, written);
    expect(read->count < PIECES && written->count < PIECES, "more pieces than there is room for");
}

/* ---- one launch in both plans ------------------------------------------------------------------------------------ */

static const char *
name_of(const struct cuda_op *op)
{
    return cuda_kernels_fp16[op->kernel].name;
}

/* Compares the writers of one row of bytes that is read, in both plans. */
static void
compare_row(const struct memory *used, const struct memory *kept, uintptr_t at, uintptr_t other, size_t bytes,
            const struct cuda_op *op)
{
    size_t count = ((at - BASE) % GRAIN + bytes + GRAIN - 1) / GRAIN, i;
    const uint32_t *a = used->writer + (at - BASE) / GRAIN, *b = kept->writer + (other - BASE) / GRAIN;

    for (i = 0; i < count && a[i] == b[i] && a[i] != NOBODY; i++)
        ;
    expect(i == count, "%s, node %d: reads what launch %u wrote, not launch %u", name_of(op), (int)op->node,
           i < count ? a[i] : 0, i < count ? b[i] : 0);
}

static void
compare_reads(const struct memory *used, const struct memory *kept, const struct touched *a, const struct touched *b,
              const struct cuda_op *op)
{
    unsigned i;
    size_t row;

    expect(a->count == b->count, "%s: %u areas are read, and %u", name_of(op), a->count, b->count);
    for (i = 0; i < a->count && i < b->count; i++) {
        const struct cuda_area *x = &a->area[i], *y = &b->area[i];
        bool good = is_inside(used, x->at, (x->rows - 1) * x->step + x->width) &&
                    is_inside(kept, y->at, (y->rows - 1) * y->step + y->width);

        expect(good && x->rows == y->rows && x->width == y->width && x->step == y->step,
               "%s, node %d: area %u that it reads is not the same or not inside", name_of(op), (int)op->node, i);
        for (row = 0; good && row < x->rows; row++)
            compare_row(used, kept, x->at + row * x->step, y->at + row * y->step, x->width, op);
    }
}

/* Returns true if two areas share a byte.  Areas of several rows are the same if a launch changes what it reads. */
static bool
meet(const struct cuda_area *a, const struct cuda_area *b)
{
    uintptr_t a_end = a->at + (a->rows - 1) * a->step + a->width, b_end = b->at + (b->rows - 1) * b->step + b->width;
    size_t row, first, last;

    if (a->at >= b_end || b->at >= a_end)
        return false;
    for (row = 0; row < a->rows; row++) {
        uintptr_t from = a->at + row * a->step, to = from + a->width;

        if (to <= b->at || from >= b_end)
            continue;
        first = from > b->at ? (from - b->at) / b->step : 0;
        last = (to - 1 - b->at) / b->step;
        for (; first <= last && first < b->rows; first++)
            if (b->at + first * b->step < to && from < b->at + first * b->step + b->width)
                return true;
    }
    return false;
}

static bool
is_state(const struct memory *m, const struct cuda_area *a)
{
    return a->at >= m->layout.state && a->at < m->layout.state + sizeof(struct step_state);
}

/* A launch changes an area that it reads, or a part of one row of it. */
static bool
changes(const struct cuda_area *w, const struct cuda_area *r)
{
    bool alike = r->at == w->at && r->rows == w->rows && r->width == w->width && r->step == w->step;

    return alike || (r->rows == 1 && w->rows == 1 && w->at >= r->at && w->at + w->width <= r->at + r->width);
}

/*
 * The areas that a launch writes must not overlap, and may overlap an area that it reads only if it changes exactly
 * that.
 */
static void
check_writes(const struct memory *m, const struct touched *read, const struct touched *written,
             const struct cuda_op *op)
{
    unsigned i, k;

    for (i = 0; i < written->count; i++) {
        const struct cuda_area *w = &written->area[i];

        expect(is_inside(m, w->at, (w->rows - 1) * w->step + w->width), "%s, node %d: it writes outside", name_of(op),
               (int)op->node);
        for (k = 0; k < i; k++)
            expect(!meet(w, &written->area[k]) || is_state(m, w), "%s, node %d: what it writes is not apart: %u, %u",
                   name_of(op), (int)op->node, k, i);
        for (k = 0; k < read->count; k++) {
            const struct cuda_area *r = &read->area[k];

            expect(changes(w, r) || is_state(m, w) || !meet(w, r), "%s, node %d: it writes %u and reads %u",
                   name_of(op), (int)op->node, i, k);
        }
    }
}

static void
stamp_all(struct memory *m, const struct touched *t, uint32_t who)
{
    unsigned i;
    size_t row;

    for (i = 0; i < t->count; i++)
        for (row = 0; row < t->area[i].rows; row++)
            stamp(m, t->area[i].at + row * t->area[i].step, t->area[i].width, who);
}

static uint32_t next_launch = THE_HOST + 1;

static void
run_launch(struct memory *used, struct memory *kept, const struct cuda_op *a, const struct cuda_op *b, bool once)
{
    static struct touched read, other_read, written, other_written;
    bool same = a->kernel == b->kernel && a->x == b->x && a->y == b->y && a->z == b->z && a->node == b->node &&
                a->final == b->final && a->shared == b->shared;

    expect(same, "launches differ: %s, %s", name_of(a), name_of(b));
    if (!same)
        return;
    touched_by(used, a, &read, &written);
    touched_by(kept, b, &other_read, &other_written);
    compare_reads(used, kept, &read, &other_read, a);
    if (once)
        check_writes(used, &read, &written, a);
    expect(a->x > 0 && a->y > 0 && a->z > 0 && a->x < 1u << 31 && a->y <= MOST_GRID && a->z <= MOST_GRID,
           "%s: a grid of %u x %u x %u", name_of(a), a->x, a->y, a->z);
    expect(cuda_kernels_fp16[a->kernel].shared + a->shared <= cuda_kernels_fp16[a->kernel].most,
           "%s: %u bytes more of shared memory", name_of(a), a->shared);
    stamp_all(used, &written, next_launch);
    stamp_all(kept, &other_written, next_launch);
    next_launch++;
}

static void
run_one(struct memory *used, struct memory *kept, enum cuda_list_id id, bool once)
{
    const struct cuda_list *a = &used->layout.list[id], *b = &kept->layout.list[id];
    size_t i;

    expect(a->count == b->count, "list %d has %zu launches, and %zu", (int)id, a->count, b->count);
    for (i = 0; i < a->count && i < b->count; i++)
        run_launch(used, kept, &a->op[i], &b->op[i], once);
}

/* ---- plans ------------------------------------------------------------------------------------------------------- */

static void
write_by_host(struct memory *m)
{
    const struct cuda_layout *l = &m->layout;
    int i;

    for (i = 0; i < ARENA_COUNT; i++)
        if (l->arena[i] && i != ARENA_GRADIENTS)
            stamp(m, l->arena[i], arena_floats(l->graph, (enum arena_id)i) * sizeof(float), THE_HOST);
    for (i = 0; i < CUDA_TABLE_COUNT; i++)
        stamp(m, l->table[i].at, l->table[i].bytes, THE_HOST);
    for (i = 0; i < CUDA_SLOTS; i++)
        stamp(m, l->slots[i], l->slot.bytes, THE_HOST);
    stamp(m, l->state, sizeof(struct step_state), THE_HOST);
    stamp(m, l->end_block, sizeof(struct end_block), THE_HOST);
    stamp(m, l->step_block, sizeof(struct step_block), THE_HOST);
}

static bool
make_memory(struct memory *m, const struct plan_options *o, const struct cuda_chip *chip)
{
    struct chex_error err = {.text = ""};
    enum chex_status status = cuda_layout_make(&m->layout, o, chip, 0, &err);
    size_t bytes = m->layout.bytes;

    expect(status == CHEX_OK, "%s", err.text);
    cuda_layout_free(&m->layout);
    if (status != CHEX_OK)
        return false;
    check(cuda_layout_make(&m->layout, o, chip, BASE, &err), &err);
    expect(m->layout.bytes == bytes, "the same plan is of %zu and of %zu bytes", bytes, m->layout.bytes);
    m->grains = bytes / GRAIN + 1;
    m->writer = take(m->grains, sizeof(*m->writer));
    write_by_host(m);
    return true;
}

static void
free_memory(struct memory *m)
{
    free(m->writer);
    cuda_layout_free(&m->layout);
}

static void
run_steps(struct memory *used, struct memory *kept)
{
    int step, micro;

    for (step = 0; step < 2; step++) {
        for (micro = 0; micro < 2 && used->layout.options->train; micro++) {
            run_one(used, kept, micro == 0 ? CUDA_LIST_INPUT0 : CUDA_LIST_INPUT1, step == 0);
            if (micro == 0)
                run_one(used, kept, CUDA_LIST_BEGIN, step == 0);
            run_one(used, kept, CUDA_LIST_FORWARD, step == 0);
            run_one(used, kept, CUDA_LIST_BACKWARD, step == 0);
        }
        run_one(used, kept, CUDA_LIST_END, step == 0);
        run_one(used, kept, CUDA_LIST_UPDATE, step == 0);
        run_one(used, kept, CUDA_LIST_INPUT0, step == 0);
        run_one(used, kept, CUDA_LIST_PACK, step == 0);
        run_one(used, kept, CUDA_LIST_SCORE, step == 0);
        run_one(used, kept, CUDA_LIST_PACK_AVERAGE, step == 0);
        run_one(used, kept, CUDA_LIST_SCORE_AVERAGE, step == 0);
    }
}

/* Returns the bytes of the plan that is used; 0 if there is none. */
static size_t
follow(const char *model, unsigned side, unsigned batch, struct cuda_chip chip, enum engine engine, bool train)
{
    struct plan_options o = {.batch = batch,
                             .source = side + BORDER,
                             .train = train,
                             .maps = true,
                             .average = true,
                             .engine = engine,
                             .precision = PRECISION_FP16};
    struct memory used = {.grains = 0}, kept = {.grains = 0};
    struct plan_options all;
    struct chex_error err;
    struct graph *g;
    unsigned before = failed;
    size_t bytes = 0;

    check(graph_new(model, side, OUTPUTS, &g, &err), &err);
    o.graph = g;
    o.optimizer = optimizer_default(OPTIMIZER_ADAM);
    all = o;
    all.keep = true;
    if (make_memory(&used, &o, &chip) && make_memory(&kept, &all, &chip)) {
        bytes = used.layout.bytes;
        run_steps(&used, &kept);
    }
    free_memory(&used);
    free_memory(&kept);
    graph_free(g);
    if (failed > before)
        printf("^ %s, %u px, batch %u, %u processors of %u.x, engine %s\n", model, side, batch, chip.processors,
               chip.major, engine_names[engine]);
    return bytes;
}

static struct cuda_chip
chip_of(unsigned processors, unsigned major)
{
    return (struct cuda_chip){.set = cuda_kernels_fp16, .value_bytes = 2, .processors = processors, .major = major};
}

/* ---- many of them ------------------------------------------------------------------------------------------------ */

/* Returns bytes and launches without a table of writers; 0 if there is no such plan. */
static size_t
size_of(const struct graph *g, unsigned batch, struct cuda_chip chip)
{
    struct plan_options o = {.graph = g, .batch = batch, .source = 224, .train = true, .precision = PRECISION_FP16};
    struct chex_error err = {.text = ""};
    struct cuda_layout l;
    enum chex_status status;
    size_t bytes;

    o.optimizer = optimizer_default(OPTIMIZER_ADAM);
    status = cuda_layout_make(&l, &o, &chip, 0, &err);
    bytes = status == CHEX_OK ? l.bytes : 0;
    expect(status == CHEX_OK, "batch %u, %u processors of %u.x: %s", batch, chip.processors, chip.major, err.text);
    cuda_layout_free(&l);
    return bytes;
}

/*
 * More images must take more memory.  For one more image the plan may choose other tiles and fewer splits, whose
 * partial sums take less: up to 3 % of all memory.  Nothing searches for a batch by its memory.
 */
static void
grow(const char *model, unsigned processors, unsigned major)
{
    static const unsigned batches[] = {1, 2, 3, 5, 7, 8, 16, 31, 32, 33, 64, 128, 256, 512};
    struct chex_error err;
    struct graph *g;
    size_t last = 0, i;

    check(graph_new(model, 224, OUTPUTS, &g, &err), &err);
    for (i = 0; i < sizeof(batches) / sizeof(*batches); i++) {
        size_t bytes = size_of(g, batches[i], chip_of(processors, major));
        bool one_more = i > 0 && batches[i] == batches[i - 1] + 1;

        expect(bytes > last - (one_more ? last * 3 / 100 : 0),
               "%s, %u processors of %u.x: batch %u takes %zu bytes, and %zu with fewer images", model, processors,
               major, batches[i], bytes, last);
        last = bytes;
    }
    graph_free(g);
}

static void
follow_many(void)
{
    static const unsigned processors[] = {1, 2, 7, 80, 108, 132, 200};
    static const char *const models[] = {"densenet-micro", "densenet121", "resnet50"};
    size_t i, k;
    unsigned major;

    for (k = 0; k < sizeof(models) / sizeof(*models); k++)
        for (i = 0; i < sizeof(processors) / sizeof(*processors); i++) {
            major = 7 + (unsigned)(i + k) % 4;
            (void)follow(models[k], 32, 3, chip_of(processors[i], major), ENGINE_OWN, true);
            (void)follow(models[k], i % 2 == 0 ? 64 : 45, 1 + (unsigned)i, chip_of(processors[i], major),
                         i % 2 == 0 ? ENGINE_CUDNN : ENGINE_OWN, true);
        }
    (void)follow("densenet121", 64, 2, chip_of(132, 9), ENGINE_OWN, false);
    for (i = 0; i < sizeof(processors) / sizeof(*processors); i++)
        grow("densenet121", processors[i], 7 + (unsigned)i % 4);
    grow("resnet50", 132, 9);
}

int
main(int argc, char **argv)
{
    if (argc > 5) {
        size_t bytes = follow(argv[1], (unsigned)strtoul(argv[2], NULL, 10), (unsigned)strtoul(argv[3], NULL, 10),
                              chip_of((unsigned)strtoul(argv[4], NULL, 10), (unsigned)strtoul(argv[5], NULL, 10)),
                              argc > 6 ? ENGINE_CUDNN : ENGINE_OWN, true);

        printf("%zu bytes, %u launches\n", bytes, next_launch - THE_HOST - 1);
    } else {
        follow_many();
    }
    printf("%u passed, %u failed\n", passed, failed);
    return failed > 0;
}
