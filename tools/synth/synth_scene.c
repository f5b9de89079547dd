/*
 * synth_scene.c - the numbers of one picture, and the shape of the lungs (see synth_scene.h)
 *
 * The patient's key determines the body, so follow-ups look like the same person.  The study's key determines
 * inspiration, position and exposure.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "synth/synth_scene.h"

#include <math.h>

enum { FOR_BODY = 11, FOR_IMAGE, FOR_POSITION, FOR_HEART, FOR_FILM };

static void
make_lungs(struct scene *s)
{
    struct draws body = draws_of(s->body_key, 0), study = scene_draws(s, FOR_POSITION);
    float wide = draw_between(&body, 0.64f, 0.78f), top = draw_between(&body, -0.74f, -0.64f);
    float dome = draw_between(&body, 0.34f, 0.44f) + draw_between(&study, -0.04f, 0.04f) - (s->ap ? 0.05f : 0.0f);
    float drop = draw_between(&body, 0.17f, 0.25f);
    int side;

    if (scene_has(s, EMPHYSEMA)) {
        dome += 0.15f;
        drop = 0.03f;
        wide += 0.04f;
    }
    if (scene_has(s, FIBROSIS))
        dome -= 0.05f;
    for (side = 0; side < 2; side++) {
        float higher = draw_between(&study, -0.01f, 0.01f), wider = draw_between(&study, -0.015f, 0.015f);

        s->lung[side] = (struct lung){
            .apex = top + higher,
            .dome = dome + (side ? 0.02f : -0.02f),
            .medial = 0.12f,
            .centre = wide * 0.47f,
            .lateral = wide + wider,
            .drop = drop,
        };
    }
    s->lung_density = draw_between(&body, 0.31f, 0.38f) - (s->ap ? 0.03f : 0.0f) +
                      (scene_has(s, EMPHYSEMA) ? 0.08f : 0.0f);
}

static void
make_heart(struct scene *s)
{
    struct draws body = draws_of(s->body_key, 1), study = scene_draws(s, FOR_HEART);
    float size = draw_between(&body, 0.9f, 1.06f) * (s->ap ? 1.1f : 1.0f);

    s->heart_width = 0.27f * size;
    s->heart_height = 0.29f * size;
    if (scene_has(s, CARDIOMEGALY)) {
        s->heart_width *= draw_between(&study, 1.55f, 1.75f);
        s->heart_height *= 1.12f;
    } else if (scene_has(s, EMPHYSEMA)) {
        s->heart_width *= 0.75f;
    }
    s->heart.x = 0.36f * s->heart_width + draw_between(&body, -0.02f, 0.02f);
    s->heart.y = s->lung[1].dome - 0.68f * s->heart_height;
}

static void
make_film(struct scene *s)
{
    struct draws d = scene_draws(s, FOR_FILM);
    int k;

    s->film.turn = draw_between(&d, -0.04f, 0.04f);
    s->film.zoom = draw_between(&d, 0.95f, 1.07f);
    s->film.x = draw_between(&d, -0.04f, 0.04f);
    s->film.y = draw_between(&d, -0.04f, 0.04f);
    s->film.gain = draw_between(&d, 0.92f, 1.08f);
    s->film.bias = draw_between(&d, -0.03f, 0.03f);
    s->film.curve = draw_between(&d, 0.0f, 0.25f);
    s->film.grain = draw_between(&d, 0.68f, 1.15f) * (s->ap ? 1.1f : 1.0f);
    for (k = 0; k < 4; k++)
        s->film.blind[k] = draw_chance(&d, 0.2f) ? draw_between(&d, 0.0f, 0.03f) : 0.0f;
    s->film.marker = draw_chance(&d, 0.6f);
}

void
scene_make(const struct population *p, const struct study *study, struct scene *out)
{
    struct draws body;
    uint64_t person = random_hash(random_hash(p->seed, FOR_BODY), study->person);

    *out = (struct scene){
        .body_key = person,
        .study_key = random_hash(random_hash(person, FOR_IMAGE), study->number),
        .findings = study->findings,
        .female = p->person[study->person].sex == 'F',
        .ap = study->ap,
    };
    body = draws_of(person, 2);
    make_lungs(out);
    make_heart(out);
    make_film(out);
    out->torso = out->lung[0].lateral + draw_between(&body, 0.1f, 0.26f);
    out->shoulder = out->lung[0].apex + draw_between(&body, 0.0f, 0.06f);
    out->rib_pitch = draw_between(&body, 0.118f, 0.132f);
    out->rib_first = out->lung[0].apex + draw_between(&body, -0.06f, -0.02f);
    out->rib_slope = draw_between(&body, 0.05f, 0.3f) + (out->ap ? 0.0f : 0.06f);
}

float
lung_lateral(const struct lung *l, float y)
{
    float t = (y - l->apex) / (l->dome - l->apex);
    float k = 1.0f - t / 0.72f;

    if (k <= 0.0f)
        return l->lateral + 0.03f * (t - 0.72f);
    return l->centre + (l->lateral - l->centre) * (k >= 1.0f ? 0.0f : sqrtf(1.0f - k * k));
}

static float
lung_medial(const struct lung *l, float y)
{
    float t = (y - l->apex) / (l->dome - l->apex);
    float k = 1.0f - t / 0.3f;

    if (k <= 0.0f)
        return l->medial;
    return l->centre - (l->centre - l->medial) * (k >= 1.0f ? 0.0f : sqrtf(1.0f - k * k));
}

float
lung_diaphragm(const struct lung *l, float u)
{
    float peak = 0.52f * l->lateral;
    float v = u > peak ? (u - peak) / (l->lateral - peak) : (peak - u) / (peak - l->medial);

    return l->dome + (u > peak ? l->drop : 0.3f * l->drop) * v * v;
}

float
lung_wall_depth(const struct lung *l, float u, float y)
{
    float depth = y - l->apex;
    float wall = lung_lateral(l, y) - u, spine = u - lung_medial(l, y);

    depth = wall < depth ? wall : depth;
    return spine < depth ? spine : depth;
}

float
lung_depth(const struct lung *l, float u, float y)
{
    float depth = lung_wall_depth(l, u, y), floor = lung_diaphragm(l, u) - y;

    return floor < depth ? floor : depth;
}
