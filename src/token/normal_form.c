/* SPDX-License-Identifier: Apache-2.0
 *
 * NFC, a stretch at a time. Most characters are stable: they are in NFC, combine with nothing in
 * front of them, and so nothing behind them changes what stands before. Stretches between stable
 * characters are decomposed, put in canonical order and composed; all else is copied, or, where
 * nothing of a text changes, not even that.
 *
 *   a b c e ' d        e and the accent: one stretch, from the last stable character to the next
 *         |---|
 *
 * The canonical ordering is ours: the library's own takes time that grows with the square of a run
 * of marks. Sorting is by counting, stable and linear. `stable` is a list of ranges on the safe
 * side: what is missing there only costs time. Invariant: the result is in NFC; ill-formed bytes
 * are kept and end a stretch. Read next: byte_bpe.c.
 */
#include "token/normal_form.h"

#include "base/byte_block.h"
#include "base/memory.h"

#include <string.h>
#include <utf8proc.h>

/* Ranges whose characters all have NFC_Quick_Check = Yes and combining class 0 and are never the
 * second of a pair. */
static const uint32_t stable[][2] = {
    {0x0000, 0x02FF}, {0x0400, 0x0482},   {0x048A, 0x052F}, {0x05D0, 0x05EA}, {0x0620, 0x064A},
    {0x0660, 0x066F}, {0x0671, 0x06D5},   {0x0904, 0x0939}, {0x0E01, 0x0E37}, {0x0E3F, 0x0E47},
    {0x2010, 0x2027}, {0x2030, 0x205E},   {0x2190, 0x2328}, {0x232B, 0x2ADB}, {0x3000, 0x3029},
    {0x3041, 0x3096}, {0x309B, 0x30FF},   {0x3400, 0x4DBF}, {0x4E00, 0x9FFF}, {0xAC00, 0xD7A3},
    {0xFF00, 0xFFEF}, {0x1F000, 0x1FAFF},
};

static bool is_stable(uint32_t code) {
    if (code < 0x300) return true;
    for (size_t i = 1; i < sizeof stable / sizeof *stable && code >= stable[i][0]; i++)
        if (code <= stable[i][1]) return true;
    return code == PITH_UTF8_INVALID;
}

size_t pith_decompose(uint32_t code, int32_t codes[PITH_DECOMPOSED_CODES]) {
    int bound = 0;
    utf8proc_ssize_t n =
        utf8proc_decompose_char((utf8proc_int32_t)code, codes, PITH_DECOMPOSED_CODES,
                                UTF8PROC_STABLE | UTF8PROC_DECOMPOSE, &bound);
    if (n > 0 && n <= PITH_DECOMPOSED_CODES) return (size_t)n;
    codes[0] = (int32_t)code;
    return 1;
}

struct stretch {
    int32_t *codes, *sorted; /* [room] */
    size_t n, room;
};

static bool make_room(struct stretch *stretch, size_t n) {
    if (n <= stretch->room) return true;
    size_t room = n + n / 2 + 64;
    pith_free(stretch->sorted);
    stretch->sorted = pith_alloc_array(room, sizeof *stretch->sorted);
    int32_t *codes = pith_realloc(stretch->codes, room * sizeof *codes);
    if (codes) stretch->codes = codes;
    if (!codes || !stretch->sorted) return false;
    stretch->room = room;
    return true;
}

static unsigned combining_class(int32_t code) {
    return (unsigned)utf8proc_get_property(code)->combining_class & 0xFF;
}

/* Stable sort of codes[from, to), all of class > 0, by class. */
static void sort_run(struct stretch *stretch, size_t from, size_t to) {
    size_t at[257] = {0};
    for (size_t i = from; i < to; i++) at[combining_class(stretch->codes[i]) + 1]++;
    for (size_t c = 1; c < 257; c++) at[c] += at[c - 1];
    for (size_t i = from; i < to; i++)
        stretch->sorted[at[combining_class(stretch->codes[i])]++] = stretch->codes[i];
    memcpy(stretch->codes + from, stretch->sorted, (to - from) * sizeof *stretch->codes);
}

static void put_in_order(struct stretch *stretch) {
    for (size_t i = 0; i < stretch->n;) {
        size_t from = i;
        bool ordered = true;
        unsigned before = 0;
        for (; i < stretch->n; i++) {
            unsigned class = combining_class(stretch->codes[i]);
            if (!class) break;
            ordered = ordered && class >= before;
            before = class;
        }
        if (!ordered) sort_run(stretch, from, i);
        if (i == from) i++;
    }
}

static bool append_normal(struct stretch *stretch, pith_span text, pith_buffer *out) {
    stretch->n = 0;
    for (size_t at = 0; at < text.size;) {
        uint32_t code;
        at += pith_utf8_decode(text.data + at, text.size - at, &code);
        if (!make_room(stretch, stretch->n + PITH_DECOMPOSED_CODES)) return false;
        stretch->n += pith_decompose(code, stretch->codes + stretch->n);
    }
    put_in_order(stretch);
    utf8proc_ssize_t n = utf8proc_normalize_utf32(stretch->codes, (utf8proc_ssize_t)stretch->n,
                                                  UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    for (utf8proc_ssize_t i = 0; i < n; i++) {
        char bytes[4];
        pith_buffer_append(out, bytes, pith_utf8_encode((uint32_t)stretch->codes[i], bytes));
    }
    return n >= 0;
}

static bool is_ascii_block(const char *data) {
    const pith_byte_block block = pith_byte_block_load(data);
    return !pith_byte_block_high(&block);
}

/* Where the text stops being plainly stable: `last` is the stable character in front of that. */
static size_t first_unstable(pith_span text, size_t at, size_t *last) {
    *last = at;
    while (at < text.size) {
        if (text.size - at >= PITH_BYTE_BLOCK && is_ascii_block(text.data + at)) {
            at += PITH_BYTE_BLOCK;
            *last = at - 1;
            continue;
        }
        size_t size = 1;
        uint32_t code = (unsigned char)text.data[at];
        if (code >= 0x80) size = pith_utf8_decode(text.data + at, text.size - at, &code);
        if (!is_stable(code)) return at;
        *last = code == PITH_UTF8_INVALID ? at + size : at;
        at += size;
    }
    return at;
}

static size_t next_stable(pith_span text, size_t at) {
    while (at < text.size) {
        uint32_t code;
        size_t size = pith_utf8_decode(text.data + at, text.size - at, &code);
        if (is_stable(code)) return at;
        at += size;
    }
    return at;
}

pith_span pith_normal_form_c(pith_span text, pith_buffer *out, bool *failed) {
    struct stretch stretch = {0};
    pith_buffer form = {0};
    size_t copied = 0, start, at = first_unstable(text, 0, &start);
    pith_buffer_reset(out);
    while (at < text.size && !*failed) {
        size_t end = next_stable(text, at), size = end - start;
        pith_buffer_reset(&form);
        if (!append_normal(&stretch, (pith_span){text.data + start, size}, &form) || form.failed)
            *failed = true;
        else if (form.size != size || memcmp(form.data, text.data + start, size) != 0) {
            pith_buffer_append(out, text.data + copied, start - copied);
            pith_buffer_append(out, form.data, form.size);
            copied = end;
        }
        at = first_unstable(text, end, &start);
    }
    if (copied) pith_buffer_append(out, text.data + copied, text.size - copied);
    *failed = *failed || out->failed;
    pith_buffer_deinit(&form);
    pith_free(stretch.codes);
    pith_free(stretch.sorted);
    return copied ? (pith_span){out->data, out->size} : text;
}
