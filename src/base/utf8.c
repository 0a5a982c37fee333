/* SPDX-License-Identifier: Apache-2.0
 *
 * The one UTF-8 decoder (Unicode 15, table 3-7 "well-formed UTF-8 byte sequences").
 *
 *   code            first   second   third    fourth
 *   0000..007F      00..7F
 *   0080..07FF      C2..DF  80..BF
 *   0800..0FFF      E0      A0..BF   80..BF            no overlong forms
 *   1000..CFFF      E1..EC  80..BF   80..BF
 *   D000..D7FF      ED      80..9F   80..BF            no surrogates
 *   E000..FFFF      EE..EF  80..BF   80..BF
 *   10000..3FFFF    F0      90..BF   80..BF   80..BF   no overlong forms
 *   40000..FFFFF    F1..F3  80..BF   80..BF   80..BF
 *   100000..10FFFF  F4      80..8F   80..BF   80..BF   nothing above
 *
 * Invariant: only the second byte's range depends on the first; what the table does not list is
 * ill-formed and each such byte stands alone. Read next: text.h.
 */
#include "base/text.h"

/* Length that the first byte announces; 0: cannot start a character. */
static size_t announced_length(uint8_t first) {
    if (first < 0x80) return 1;
    if (first < 0xC2) return 0;
    if (first < 0xE0) return 2;
    if (first < 0xF0) return 3;
    return first < 0xF5 ? 4 : 0;
}

static bool second_fits(uint8_t first, uint8_t second) {
    uint8_t low = 0x80, high = 0xBF;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
    return second >= low && second <= high;
}

/* How many of the `size` bytes at `data` fit the character that data[0] announces, up to its
 * length. */
static size_t fitting_bytes(const uint8_t *data, size_t size, size_t length) {
    size_t n = 1;
    while (n < size && n < length) {
        bool fits = n == 1 ? second_fits(data[0], data[1]) : (data[n] & 0xC0) == 0x80;
        if (!fits) break;
        n++;
    }
    return n;
}

size_t pith_utf8_decode(const char *data, size_t size, uint32_t *code) {
    const uint8_t *bytes = (const uint8_t *)data;
    size_t length = announced_length(bytes[0]);
    if (length == 1) {
        *code = bytes[0];
        return 1;
    }
    if (length == 0 || fitting_bytes(bytes, size, length) < length) {
        *code = PITH_UTF8_INVALID;
        return 1;
    }
    uint32_t value = bytes[0] & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) value = value << 6 | (bytes[i] & 0x3Fu);
    *code = value;
    return length;
}

size_t pith_utf8_encode(uint32_t code, char out[4]) {
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return 0;
    size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (code & 0x3F));
        code >>= 6;
    }
    out[0] = (char)((0xF00u >> length & 0xF0u) | code);
    return length;
}

size_t pith_utf8_incomplete(const char *data, size_t size) {
    const uint8_t *bytes = (const uint8_t *)data;
    for (size_t n = 1; n <= 3 && n <= size; n++) {
        const uint8_t *start = bytes + size - n;
        if ((*start & 0xC0) == 0x80) continue; /* not a first byte: look further back */
        size_t length = announced_length(*start);
        return length > n && fitting_bytes(start, n, length) == n ? n : 0;
    }
    return 0;
}
