/*
 * synth_scene.h - one synthetic radiograph: from a study to pixels
 *
 *   scene_make()      the numbers: geometry of this patient and this study, exposure  (synth_body.c)
 *   body_draw()       anatomy without bones                                           (synth_body.c)
 *   findings_draw()   the 14 findings                                                 (synth_findings.c)
 *   bones_draw()      ribs, clavicles, shoulders                                      (synth_body.c)
 *   film_expose()     canvas to 8-bit pixels                                          (synth_film.c)
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
    float apex, dome;    /* y of the top; y of the highest point of the diaphragm */
    float centre, width; /* u of the middle; half the width */
    float drop;          /* how far the diaphragm falls toward the wall */
};

struct scene {
    uint64_t study_key; /* for draws of this study */
    uint64_t body_key;  /* for draws that all studies of the patient share */
    unsigned findings;
    bool female, ap, marker; /* marker: an "L" at the patient's left */
    struct lung lung[2];
    float lung_density; /* how much darker than soft tissue */
    struct point heart;
    float heart_width, heart_height, torso, shoulder, rib_pitch; /* half width of the torso, y of the shoulders */
    float turn, zoom, gain, bias, grain;                         /* grain: standard deviation in gray levels */
    struct point shift;                                          /* of the patient on the film */
};

static inline bool
scene_has(const struct scene *s, enum finding f)
{
    return s->findings >> f & 1;
}

void scene_make(const struct population *p, const struct study *study, struct scene *out);

/* Returns half the width of the lung at this height; 0 above its apex. */
float lung_half(const struct lung *l, float y);
/* Returns the distance from (u, y) to the border of the lung, negative outside; the diaphragm is no border. */
float lung_wall_depth(const struct lung *l, float u, float y);

/* Returns the point of the picture at (u, y) of this side. */
static inline struct point
at_side(int side, float u, float y)
{
    return (struct point){side ? u : -u, y};
}

/* Returns how far inside the heart's ellipse a point is: 1 in its middle, 0 at its border, negative outside. */
float heart_depth(const struct scene *s, float x, float y);

struct finding_boxes; /* synth_boxes.h */

void body_draw(struct film_canvas *c, const struct scene *s);
/* boxes: NULL, or records the boxes of the findings */
void findings_draw(struct film_canvas *c, const struct scene *s, struct finding_boxes *boxes);
void bones_draw(struct film_canvas *c, const struct scene *s);

/* Develops the canvas in place and samples it; out has room for size * size pixels. */
void film_expose(struct film_canvas *c, const struct scene *s, unsigned size, uint8_t *out);

#endif
