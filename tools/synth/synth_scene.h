/*
 * synth_scene.h - one synthetic radiograph: from a study to pixels
 *
 *   scene_make()      the numbers: geometry of this patient and this study, exposure, film
 *   body_draw()       anatomy without bones        (synth_body.c)
 *   findings_draw()   the 14 findings              (synth_findings.c)
 *   bones_draw()      ribs, clavicles, shoulders   (synth_body.c)
 *   film_expose()     canvas to 8-bit pixels       (synth_film.c)
 *
 * Sides: 0 is the patient's right lung, at the left of the picture; 1 is the left lung.  A point of a lung is (u, y),
 * where u is the distance from the midline, so the same code draws both sides.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef CHEX_TOOLS_SYNTH_SCENE_H
#define CHEX_TOOLS_SYNTH_SCENE_H

#include "synth/synth_canvas.h"
#include "synth/synth_people.h"
#include "synth/synth_random.h"

enum finding {
    ATELECTASIS,
    CARDIOMEGALY,
    EFFUSION,
    INFILTRATION,
    MASS,
    NODULE,
    PNEUMONIA,
    PNEUMOTHORAX,
    CONSOLIDATION,
    EDEMA,
    EMPHYSEMA,
    FIBROSIS,
    PLEURAL_THICKENING,
    HERNIA
};

struct lung {
    float apex, dome;              /* y of the top; y of the highest point of the diaphragm */
    float medial, centre, lateral; /* u of the border at the spine, of the apex, of the wall */
    float drop;                    /* how far the diaphragm falls toward the wall */
};

struct scene {
    uint64_t study_key; /* for draws of this study */
    uint64_t body_key;  /* for draws that all studies of the patient share */
    unsigned findings;
    bool female, ap;

    struct lung lung[2];
    float lung_density; /* how much darker than soft tissue */
    struct point heart;
    float heart_width, heart_height;
    float torso, shoulder; /* half width of the torso, y of the shoulders */
    float rib_first, rib_pitch, rib_slope;

    struct {
        float turn, zoom, x, y;  /* the patient's position: rotation, zoom, shift */
        float gain, bias, curve; /* exposure */
        float grain;             /* standard deviation in grey levels */
        float blind[4];          /* collimation: hidden fraction of the film at left, right, top, bottom */
        bool marker;             /* an "L" at the patient's left */
    } film;
};

static inline bool
scene_has(const struct scene *s, enum finding f)
{
    return s->findings >> f & 1;
}

/* Returns the draws for one purpose of one study; they do not depend on its other draws. */
static inline struct draws
scene_draws(const struct scene *s, unsigned purpose)
{
    return draws_of(s->study_key, purpose);
}

void scene_make(const struct population *p, const struct study *study, struct scene *out);

/* Returns the distance from (u, y) to the nearest border of the lung, negative outside; the second, to its wall. */
float lung_depth(const struct lung *l, float u, float y);
float lung_wall_depth(const struct lung *l, float u, float y);
/* Returns u of the outer border at this height; the second, y of the diaphragm. */
float lung_lateral(const struct lung *l, float y);
float lung_diaphragm(const struct lung *l, float u);

/* Returns the x in the picture for u on this side. */
static inline float
side_x(int side, float u)
{
    return side ? u : -u;
}

void body_draw(struct film_canvas *c, const struct scene *s);
void findings_draw(struct film_canvas *c, const struct scene *s);
void bones_draw(struct film_canvas *c, const struct scene *s);

#define FILM_MOST 4096

/* film has room for CANVAS * CANVAS values, out for size * size; size is at most FILM_MOST. */
void film_expose(const struct film_canvas *c, const struct scene *s, uint16_t *film, unsigned size, uint8_t *out);

#endif
