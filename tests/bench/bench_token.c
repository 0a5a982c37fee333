/* SPDX-License-Identifier: Apache-2.0
 *
 * How fast a vocabulary is made ready and a text is encoded:  bench_token MODEL.gguf TEXT
 * [IDS.out] Processor time of one thread. cold: the first text of a new tokenizer; warm: the best
 * of the later ones. IDS.out receives the ids as int32. Not part of the test suite.
 */
#include "base/memory.h"
#include "model/vocab.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 40 };

static double seconds(void) {
    return (double)clock() / CLOCKS_PER_SEC;
}

static char *read_file(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    char *data = NULL;
    if (!file) return NULL;
    if (fseek(file, 0, SEEK_END) == 0) {
        long end = ftell(file);
        rewind(file);
        if (end >= 0) data = malloc((size_t)end + 1);
        if (data) *size = fread(data, 1, (size_t)end, file);
    }
    fclose(file);
    return data;
}

static void encode_rounds(const pith_tokenizer *tokenizer, pith_span text, const char *out) {
    pith_text_span span = {text, false};
    double cold = 0, best = 1e9;
    pith_ids ids = {0};
    pith_error error = {0};
    for (int round = 0; round < ROUNDS; round++) {
        pith_ids_deinit(&ids);
        double start = seconds();
        if (pith_tokenizer_encode(tokenizer, &span, 1, false, &ids, &error)) puts(error.text);
        double took = seconds() - start;
        if (!round) cold = took;
        if (took < best) best = took;
    }
    printf("%zu bytes, %zu ids: cold %.1f MB/s, warm %.1f MB/s\n", text.size, ids.size,
           (double)text.size / cold / 1e6, (double)text.size / best / 1e6);
    FILE *file = out ? fopen(out, "wb") : NULL;
    if (file) {
        fwrite(ids.data, sizeof *ids.data, ids.size, file);
        fclose(file);
    }
    pith_ids_deinit(&ids);
}

int main(int argc, char **argv) {
    pith_error error = {0};
    pith_gguf *gguf = NULL;
    pith_tokenizer *tokenizer = NULL;
    if (argc < 3) {
        fprintf(stderr, "usage: bench_token MODEL.gguf TEXT [IDS.out]\n");
        return 2;
    }
    size_t size = 0;
    char *text = read_file(argv[2], &size);
    if (!text || pith_gguf_open_path(argv[1], &gguf, &error)) {
        fprintf(stderr, "bench_token: %s\n", text ? error.text : "the text cannot be read");
        return 1;
    }
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        pith_tokenizer_free(tokenizer);
        double start = seconds();
        if (pith_vocab_load(gguf, false, &tokenizer, &error)) {
            fprintf(stderr, "bench_token: %s\n", error.text);
            return 1;
        }
        double took = seconds() - start;
        if (took < best) best = took;
        if (!round) printf("ready in %.1f ms at first, ", took * 1e3);
    }
    printf("%.1f ms at best: %u tokens\n", best * 1e3, pith_tokenizer_size(tokenizer));
    encode_rounds(tokenizer, (pith_span){text, size}, argc > 3 ? argv[3] : NULL);
    pith_tokenizer_free(tokenizer);
    pith_gguf_close(gguf);
    free(text);
    return 0;
}
