/* SPDX-License-Identifier: Apache-2.0
 *
 * From the vocabulary's spelling of a token to the bytes that running text has.
 *
 * MAPPED (byte-level BPE): bytes 21-7E, A1-AC and AE-FF are spelled as the character of the same
 * number, the other 68 in increasing order as U+0100, U+0101, ...: 00-20, 7F, 80-A0, AD. So a
 * space is U+0120 and a newline U+010A. SPACED (SentencePiece, WordPiece, Unigram, raw BPE):
 * U+2581 stands for a space. A text that has no such reading (it holds an unmapped character, or a
 * plain space) never comes out of running text. Read next: piece_table.h.
 */
#include "token/token_internal.h"

#include <string.h>

/* The byte that a mapped character stands for, or -1. */
static int byte_of_code(uint32_t code) {
    if (code < 0x100) {
        bool printable = (code >= 0x21 && code <= 0x7E) || (code >= 0xA1 && code != 0xAD);
        return printable ? (int)code : -1;
    }
    uint32_t n = code - 0x100;
    if (n <= 0x20) return (int)n;
    if (n == 0x21) return 0x7F;
    if (n <= 0x42) return (int)(n - 0x22 + 0x80);
    return n == 0x43 ? 0xAD : -1;
}

static size_t write_mapped(pith_span text, char *out) {
    const unsigned char *in = (const unsigned char *)text.data;
    size_t n = 0;
    for (size_t i = 0; i < text.size; n++) {
        unsigned char first = in[i++];
        if (first >= 0x21 && first <= 0x7E) {
            out[n] = (char)first;
            continue;
        }
        /* all other mapped characters have two bytes, C2 to C5 in front */
        if (first < 0xC2 || first > 0xC5 || i == text.size || (in[i] & 0xC0) != 0x80)
            return SIZE_MAX;
        int byte = byte_of_code((uint32_t)(first & 0x1F) << 6 | (in[i++] & 0x3Fu));
        if (byte < 0) return SIZE_MAX;
        out[n] = (char)byte;
    }
    return n;
}

static size_t write_spaced(pith_span text, char *out) {
    size_t n = 0;
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        if (c == ' ') return SIZE_MAX;
        if (c == '\xE2' && text.size - i >= 3 && !memcmp(text.data + i, "\xE2\x96\x81", 3)) {
            c = ' ';
            i += 2;
        }
        out[n++] = c;
    }
    return n;
}

size_t pith_piece_form_write(pith_piece_form form, pith_span text, char *out) {
    return form == PITH_FORM_MAPPED ? write_mapped(text, out) : write_spaced(text, out);
}
