/*
 * jpeg_decode.c - see jpeg_decode.h
 *
 * Same structure as png_decode.c: one struct decoded_jpeg on the stack, which libjpeg's callbacks reach, and one
 * setjmp().
 *
 * Before libjpeg reads the file, find_frame() reads the marker of the coding process.  So the refused files do not
 * depend on how libjpeg was built: versions differ in arithmetic, 12-bit and lossless coding.  If libjpeg asks for more
 * bytes than the file has, it gets an end-of-image marker, and the job records that the file was too short.
 *
 * Markers: ITU-T T.81, table B.1.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <config.h>

#include "image/jpeg_decode.h"

#include "base/number_format.h"

#include <limits.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jerror.h>
#include <jpeglib.h>

#define MAX_SCANS 500

struct decoded_jpeg {
    const uint8_t *data;
    size_t size;
    const struct decode_limits *limits;
    struct image_traits *traits;
    struct chex_error *err;
    enum chex_status status; /* the first error; CHEX_OK until then */
    bool ran_out;            /* libjpeg asked for more bytes than the file has */
    bool rows_done;
    char message[JMSG_LENGTH_MAX];

    struct jpeg_decompress_struct codec; /* its client_data is the job */
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    jmp_buf out;
};

bool
is_jpeg(const uint8_t *data, size_t size)
{
    return size >= 2 && memcmp(data, "\xff\xd8\xff", size < 3 ? size : 3) == 0;
}

/* ---- the coding process -------------------------------------------------------------------------------------- */

struct frame {
    uint8_t marker; /* SOF0 .. SOF15: 0xc0 .. 0xcf */
    uint8_t precision;
};

/* DHT, JPG and DAC are in the range of the frame markers. */
static bool
is_frame_marker(uint8_t marker)
{
    return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

/* Find the first frame header.  Returns false if none precedes the first scan; libjpeg will report that. */
static bool
find_frame(const uint8_t *data, size_t size, struct frame *frame)
{
    size_t at = 2;

    while (at < size && size - at >= 5) {
        uint8_t marker = data[at + 1];

        if (data[at] != 0xff || marker == 0xda || marker == 0xd9)
            return false;
        if (marker == 0xff) { /* fill byte */
            at++;
            continue;
        }
        if (is_frame_marker(marker)) {
            *frame = (struct frame){.marker = marker, .precision = data[at + 4]};
            return true;
        }
        at += 2 + ((size_t)data[at + 2] << 8 | data[at + 3]);
        if (at > size)
            return false;
    }
    return false;
}

static enum chex_status
check_process(struct decoded_jpeg *job)
{
    static const char *const processes[16] = {
        [3] = "lossless",
        [5] = "hierarchical",
        [6] = "hierarchical",
        [7] = "hierarchical",
        [9] = "arithmetic-coded",
        [10] = "arithmetic-coded",
        [11] = "lossless arithmetic-coded",
        [13] = "hierarchical arithmetic-coded",
        [14] = "hierarchical arithmetic-coded",
        [15] = "hierarchical arithmetic-coded",
    };
    struct frame frame;

    if (!find_frame(job->data, job->size, &frame))
        return CHEX_OK;
    job->traits->bit_depth = frame.precision;
    job->traits->interlaced = frame.marker == 0xc2;
    if (processes[frame.marker & 15])
        return error_set(job->err, CHEX_ERR_UNSUPPORTED, "%s JPEG", processes[frame.marker & 15]);
    if (frame.precision != 8)
        return error_set(job->err, CHEX_ERR_UNSUPPORTED, "%u-bit JPEG", frame.precision);
    return CHEX_OK;
}

/* ---- callbacks of libjpeg ------------------------------------------------------------------------------------- */

/* Leave libjpeg. */
static _Noreturn void
stop(struct decoded_jpeg *job, enum chex_status status)
{
    job->status = status;
    longjmp(job->out, 1);
}

static void
on_error(j_common_ptr codec)
{
    struct decoded_jpeg *job = codec->client_data;

    codec->err->format_message(codec, job->message);
    switch (codec->err->msg_code) {
    case JERR_OUT_OF_MEMORY:
        stop(job, CHEX_ERR_MEMORY);
    case JERR_NO_BACKING_STORE: /* it needs more than max_memory_to_use */
        snprintf(job->message, sizeof(job->message), "would need too much memory");
        stop(job, CHEX_ERR_LIMIT);
    case JERR_IMAGE_TOO_BIG:
        stop(job, CHEX_ERR_LIMIT);
    default:
        stop(job, CHEX_ERR_DAMAGED);
    }
}

/* Level -1 is a warning.  Two warnings concern only an application header, all others the image. */
static void
on_message(j_common_ptr codec, int level)
{
    struct decoded_jpeg *job = codec->client_data;

    if (level >= 0)
        return;
    if (codec->err->msg_code == JWRN_JFIF_MAJOR || codec->err->msg_code == JWRN_ADOBE_XFORM)
        job->traits->warnings++;
    else
        on_error(codec);
}

static void
on_progress(j_common_ptr codec)
{
    struct decoded_jpeg *job = codec->client_data;
    const atomic_bool *stop_wanted = job->limits->stop;

    if (stop_wanted && atomic_load_explicit(stop_wanted, memory_order_relaxed))
        stop(job, CHEX_ERR_STOPPED);
    if (job->codec.input_scan_number > MAX_SCANS) {
        snprintf(job->message, sizeof(job->message), "more than %d scans", MAX_SCANS);
        stop(job, CHEX_ERR_LIMIT);
    }
}

static void
on_source(j_decompress_ptr codec)
{
    (void)codec;
}

static boolean
on_fill(j_decompress_ptr codec)
{
    static const JOCTET end_of_image[] = {0xff, JPEG_EOI};
    struct decoded_jpeg *job = codec->client_data;

    job->ran_out = true;
    job->source.next_input_byte = end_of_image;
    job->source.bytes_in_buffer = sizeof(end_of_image);
    return TRUE;
}

static void
on_skip(j_decompress_ptr codec, long count)
{
    struct decoded_jpeg *job = codec->client_data;

    if (count <= 0)
        return;
    if ((unsigned long)count > job->source.bytes_in_buffer) {
        on_fill(codec);
        return;
    }
    job->source.next_input_byte += count;
    job->source.bytes_in_buffer -= (size_t)count;
}

/* ---- the whole file ------------------------------------------------------------------------------------------ */

static void
set_up(struct decoded_jpeg *job)
{
    job->codec.client_data = job;
    jpeg_create_decompress(&job->codec);
    job->source = (struct jpeg_source_mgr){
        .next_input_byte = job->data,
        .bytes_in_buffer = job->size,
        .init_source = on_source,
        .fill_input_buffer = on_fill,
        .skip_input_data = on_skip,
        .resync_to_restart = jpeg_resync_to_restart,
        .term_source = on_source,
    };
    job->codec.src = &job->source;
    job->progress.progress_monitor = on_progress;
    job->codec.progress = &job->progress;
}

static enum chex_status
check_colours(struct decoded_jpeg *job)
{
    int components = job->codec.num_components;

    job->traits->channels = (unsigned)components;
    job->traits->colour = components == 3;
    if (components == 1 || components == 3)
        return CHEX_OK;
    if (components == 4)
        return error_set(job->err, CHEX_ERR_UNSUPPORTED, "CMYK JPEG");
    return error_set(job->err, CHEX_ERR_UNSUPPORTED, "JPEG of %d components", components);
}

/*
 * Memory for the coefficients of a whole image, which more than one scan needs: 2 bytes each, at most three components,
 * plus room for tables and for blocks that extend beyond a narrow image.
 */
static long
memory_bound(uint32_t width, uint32_t height)
{
    uint64_t bound = ((uint64_t)width + 64) * ((uint64_t)height + 64) * 8 + (UINT64_C(4) << 20);

    return bound > LONG_MAX ? LONG_MAX : (long)bound;
}

/*
 * Check the coding process that libjpeg found.  It tolerates more before the frame header than find_frame() does, such
 * as markers without a length or with length 0.
 */
static enum chex_status
check_header(struct decoded_jpeg *job)
{
    job->traits->bit_depth = (unsigned)job->codec.data_precision;
    job->traits->interlaced = job->codec.progressive_mode;
    if (job->codec.arith_code)
        return error_set(job->err, CHEX_ERR_UNSUPPORTED, "arithmetic-coded JPEG");
    if (job->codec.data_precision != 8)
        return error_set(job->err, CHEX_ERR_UNSUPPORTED, "%d-bit JPEG", job->codec.data_precision);
    return check_colours(job);
}

static enum chex_status
read_all(struct decoded_jpeg *job, struct image *out)
{
    struct jpeg_decompress_struct *codec = &job->codec;
    enum chex_status status;

    jpeg_read_header(codec, TRUE);
    status = check_header(job);
    if (status == CHEX_OK)
        status = decode_limits_check(job->limits, codec->image_width, codec->image_height, job->err);
    if (status == CHEX_OK)
        status = image_resize_buffer(out, codec->image_width, codec->image_height, job->err);
    if (status != CHEX_OK)
        return status;
    codec->out_color_space = JCS_GRAYSCALE;
    codec->mem->max_memory_to_use = memory_bound(out->width, out->height);
    jpeg_start_decompress(codec);
    while (codec->output_scanline < codec->output_height) {
        JSAMPROW row = out->data + codec->output_scanline * out->stride;

        jpeg_read_scanlines(codec, &row, 1);
    }
    /* With several scans, a truncated file has all rows, but without the details of the missing scans. */
    job->rows_done = !jpeg_has_multiple_scans(codec);
    jpeg_finish_decompress(codec);
    if (job->ran_out)
        return CHEX_ERR_TRUNCATED;
    if (job->source.bytes_in_buffer > 0)
        job->traits->warnings++;
    return CHEX_OK;
}

/* Set the error text if the status has none, and decide the final status. */
static enum chex_status
explain(struct decoded_jpeg *job, enum chex_status status)
{
    if (status == CHEX_ERR_MEMORY)
        return error_memory(job->err);
    if (status == CHEX_ERR_STOPPED)
        return error_stopped(job->err);
    if (status == CHEX_ERR_LIMIT)
        return error_set(job->err, CHEX_ERR_LIMIT, "%s", job->message);
    if (!job->ran_out)
        return error_set(job->err, CHEX_ERR_DAMAGED, "damaged JPEG (%s)", job->message);
    if (!job->rows_done)
        return error_set(job->err, CHEX_ERR_TRUNCATED, "truncated at byte %s", COUNT_TEXT(job->size));
    if (!job->limits->lenient)
        return error_set(job->err, CHEX_ERR_TRUNCATED, "no end-of-image marker (file cut short?)");
    job->traits->warnings++;
    return CHEX_OK;
}

static enum chex_status
guarded(struct decoded_jpeg *job, struct image *out)
{
    enum chex_status status;

    if (setjmp(job->out))
        return explain(job, job->status);
    set_up(job);
    status = read_all(job, out);
    return status == CHEX_ERR_TRUNCATED ? explain(job, status) : status;
}

enum chex_status
decode_jpeg(const uint8_t *data, size_t size, const struct decode_limits *limits, struct image *out,
            struct image_traits *traits, struct chex_error *err)
{
    struct decoded_jpeg job = {.data = data, .size = size, .limits = limits, .traits = traits, .err = err};
    enum chex_status status;

    *traits = (struct image_traits){.container = IMAGE_JPEG};
    status = check_process(&job);
    if (status != CHEX_OK)
        return status;
    job.codec.err = jpeg_std_error(&job.errors);
    job.errors.error_exit = on_error;
    job.errors.emit_message = on_message;
    status = guarded(&job, out);
    jpeg_destroy_decompress(&job.codec);
    return status;
}
