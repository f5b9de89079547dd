/*
 * more_answers.c - the answers in words about several runs, --labels and --maps; see run.h
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "inspect/diff/runs.h"
#include "inspect/run/each.h"
#include "inspect/run/run.h"

#include <math.h>

#define NUMBER(value) run_number(value, 3, (char[RUN_DIGITS]){0})
#define COUNT(n)      format_count(n, (char[FORMAT_TEXT]){0})

#define POOR_KAPPA 0.4

/* The network against other labels, and the finding on which both label sets agree least. */
static void
answer_labels(struct run_report *r)
{
    const struct run_labels *l = r->labels;
    double own = 0, other = 0;
    unsigned k, n = 0, least = r->p.outputs;
    struct run_answer *a;

    if (!l)
        return;
    a = run_answer_begin(r, "labels", "Other labels", RUN_GOOD);
    for (k = 0; k < r->p.outputs; k++) {
        const struct run_agreement *g = &l->agreement[k];

        if (!isnan(g->own.value) && !isnan(g->other.value)) {
            own += g->own.value;
            other += g->other.value;
            n++;
        }
        if (!isnan(g->kappa) && (least == r->p.outputs || g->kappa < l->agreement[least].kappa))
            least = k;
    }
    run_say(a, "The file of --labels has %s of these images.", COUNT(l->report->p.count));
    if (n > 0)
        run_say(a, " Mean AUROC over %u finding%s: %s against its labels, %s against those of the run.", n,
                RUN_PLURAL(n), NUMBER(other / n), NUMBER(own / n));
    else
        run_say(a, " No finding has enough patients for a number against both labels.");
    if (least < r->p.outputs && l->agreement[least].kappa >= 1) {
        run_say(a, " The label sets agree on every finding that has enough images.");
    } else if (least < r->p.outputs) {
        const struct run_agreement *g = &l->agreement[least];

        run_say(a,
                " The label sets agree least on %s (kappa %s): %s images are positive in both, %s only in the run, %s "
                "only in the file.",
                r->finding[least].name, NUMBER(g->kappa), COUNT(g->count[1][1]), COUNT(g->count[1][0]),
                COUNT(g->count[0][1]));
        if (g->kappa < POOR_KAPPA)
            a->level = RUN_LOOK;
    }
    if (l->strange > 0)
        run_say(a,
                l->strange == 1 ? " %s label of the file is no finding of the run."
                                : " %s labels of the file are no finding of the run.",
                COUNT(l->strange));
    if (n == 0 || l->strange > 0)
        a->level = a->level == RUN_LOOK ? RUN_LOOK : RUN_NOTE;
}

static void
answer_many(struct run_report *r)
{
    const struct run_many *m = r->many;
    const struct run_spread *s;
    struct run_answer *a;

    if (!m)
        return;
    a = run_answer_begin(r, RUN_SEVERAL, "Several runs", m->findings > 0 ? RUN_GOOD : RUN_NOTE);
    if (m->findings == 0) {
        run_say(a, "n/a: no finding has enough patients.");
        return;
    }
    s = &m->measure[RUN_AUROC];
    run_say(a, "Mean AUROC of %u runs, over the %u finding%s with enough patients: %s, SD %s, %s to %s; ensemble %s.",
            m->diff->count, m->findings, RUN_PLURAL(m->findings), NUMBER(s->mean), NUMBER(s->deviation),
            NUMBER(s->least), NUMBER(s->most), NUMBER(s->ensemble));
    if (m->twin > 0) {
        run_say(a, " Run %u has the same predictions as run %u: mean, SD and ensemble count it again.", m->twin + 1,
                m->twin_of + 1);
        a->level = RUN_LOOK;
    }
    if (m->each->used > 0) {
        run_say(
            a, " %u of the runs were trained on these images, or made choices by them: mean and ensemble are too good.",
            m->each->used);
        a->level = RUN_LOOK;
    }
    if (!m->only_seeds)
        run_say(a, " The runs are not known to differ only in their seed.");
    if (m->each->groups > 0 && r->groups->tested > 0 && m->each->some == 0)
        run_say(a, " No gap between groups remains after Holm's correction, in any run.");
    else if (m->each->some > 0)
        run_say(a,
                " Gaps between groups that remain after Holm's correction: %u in at least one run, %u of them in every "
                "run.",
                m->each->some, m->each->all);
    run_say(
        a,
        " The bootstrap's intervals do not include the variance of seeds. The other answers are about the first run.");
}

#define ALIKE 0.5 /* rank correlation of maps that need a look, of the mean or of a finding */

static void
say_boxes(struct run_answer *a, const struct run_report *r)
{
    static const char *const words[] = {"", "a constant box", "a maximum in the middle", "chance"};
    const struct map_boxes *b = &r->maps->mean;
    const struct measured *point;
    unsigned k, best = BOX_MAP;

    for (k = 0; b->boxes == 0 && k < r->p.outputs; k++) /* a single finding has values */
        if (r->maps->finding[k].boxes.enough)
            b = &r->maps->finding[k].boxes;
    point = b->value[0];
    for (k = BOX_CONSTANT; k < BOX_METHODS; k++)
        if (!isnan(point[k].value) && (best == BOX_MAP || point[k].value > point[best].value))
            best = k;
    if (!b->enough || isnan(point[BOX_MAP].value) || best == BOX_MAP) {
        run_say(a, " No finding has enough boxes for a number.");
        return;
    }
    run_say(a, " The hottest pixel is in %s of the boxes, that of the best control (%s) in %s.",
            NUMBER(point[BOX_MAP].value), words[best], NUMBER(point[best].value));
    if (point[BOX_MAP].value <= point[best].value) {
        run_say(a, " So the maps find the boxes no better than a control without a network.");
        a->level = RUN_LOOK;
    }
}

/* Returns the finding whose maps change least with random weights, outputs: none. */
static unsigned
most_alike(const struct run_report *r)
{
    unsigned k, most = r->p.outputs;

    for (k = 0; k < r->p.outputs; k++) {
        double x = r->maps->finding[k].correlation;

        if (!isnan(x) && (most == r->p.outputs || fabs(x) > fabs(r->maps->finding[most].correlation)))
            most = k;
    }
    return most;
}

static void
answer_maps(struct run_report *r)
{
    const struct map_file *m = r->maps;
    char options[RUN_MAPS_OPTIONS];
    struct run_answer *a;
    unsigned most;

    if (!m)
        return;
    a = run_answer_begin(r, "maps", "Maps", RUN_GOOD);
    run_say(a, "chex-predict%s made maps of %s of the %s images of this report", run_maps_options(m, options),
            COUNT(m->covered), COUNT(r->p.count));
    if (m->images > m->covered)
        run_say(a, ", and of %s others, which its numbers include", COUNT(m->images - m->covered));
    run_say(a, ". ");
    if (isnan(m->correlation) || m->compared == 0) {
        a->level = RUN_NOTE;
        run_say(a, "n/a: no map of the images that were compared has two different values.");
    } else {
        run_say(a, "Rank correlation of the maps with those of random weights: %s, over %s image%s",
                NUMBER(m->correlation), COUNT(m->compared), RUN_PLURAL(m->compared));
        most = most_alike(r);
        if (most < r->p.outputs)
            run_say(a, "; the largest is that of %s, %s", r->finding[most].name, NUMBER(m->finding[most].correlation));
        run_say(a, ". A map that hardly changes when the weights are random does not explain the network.");
        if (fabs(m->correlation) >= ALIKE || (most < r->p.outputs && fabs(m->finding[most].correlation) >= ALIKE))
            a->level = RUN_LOOK;
    }
    if (m->images > m->covered)
        a->level = RUN_LOOK;
    if (m->box_images > 0)
        say_boxes(a, r);
}

void
run_report_answer_more(struct run_report *r)
{
    answer_many(r);
    answer_labels(r);
    answer_maps(r);
}
