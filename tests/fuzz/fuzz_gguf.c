/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: any bytes as a GGUF file, opened in place and through callbacks, both of which must say the same; what
 * opens is walked whole. Seeds: corpus/gguf/. */
#include "support/gguf_walk.h"

#include <string.h>

typedef struct input {
    const uint8_t *data;
    size_t size;
} input;

static int read_input(void *user, uint64_t offset, void *buffer, size_t size) {
    const input *in = user;
    if (offset > in->size || size > in->size - offset) return 1;
    if (size) memcpy(buffer, in->data + offset, size);
    return 0;
}

static pith_status walk_source(pith_source *source, uint64_t *sum) {
    pith_gguf *gguf;
    pith_error error;
    pith_status status = pith_gguf_open_source(source, &gguf, &error);
    if (status == PITH_OK)
        *sum = gguf_walk(gguf);
    else if (error.status != status || error.text[0] == '\0' || gguf)
        __builtin_trap();
    pith_gguf_close(gguf);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input in = {data, size};
    pith_reader reader = {
        .size = sizeof reader, .user = &in, .read_at = read_input, .total_bytes = size};
    pith_source *mapped, *windowed;
    uint64_t sum = 0, its_sum = 0;
    if (pith_source_open_memory(data, size, &mapped, NULL) != PITH_OK) return 0;
    pith_status status = walk_source(mapped, &sum);
    if (pith_source_open_reader(&reader, &windowed, NULL) != PITH_OK) return 0;
    pith_status its_status = walk_source(windowed, &its_sum);
    if (status != its_status || sum != its_sum) __builtin_trap();
    return 0;
}
