/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: any bytes as a safetensors file; what opens must tile its data, and its names must be known or not without
 * a fault. Seeds: corpus/model_safetensors/. */
#include "model/hf_name.h"
#include "model/safetensors.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Tensors lie one behind the other up to the end. */
static void walk(const pith_safetensors *file, size_t size) {
    size_t n = pith_safetensors_count(file);
    uint64_t end = n ? pith_safetensors_at(file, 0)->offset : size;
    for (size_t i = 0; i < n; i++) {
        const pith_safetensor *tensor = pith_safetensors_at(file, i);
        pith_hf_name name = {"", 0};
        uint8_t first;
        if (tensor->offset != end) __builtin_trap();
        end += tensor->bytes;
        if (tensor->bytes &&
            pith_source_read(pith_safetensors_source(file), end - 1, &first, 1, NULL) != PITH_OK)
            __builtin_trap();
        bool known = pith_hf_name_find(pith_span_of(tensor->name), &name);
        if (known != (name.gguf[0] != '\0') || strlen(name.gguf) >= sizeof name.gguf)
            __builtin_trap();
    }
    if (end != size) __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pith_source *source;
    pith_safetensors *file;
    pith_error error = {0};
    if (pith_source_open_memory(data, size, &source, NULL) != PITH_OK) return 0;
    pith_status status = pith_safetensors_open(source, &file, &error);
    if (status == PITH_OK)
        walk(file, size);
    else if (file || error.status != status || error.text[0] == '\0')
        __builtin_trap();
    pith_safetensors_close(file);
    return 0;
}
