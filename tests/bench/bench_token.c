/* SPDX-License-Identifier: Apache-2.0
 *
 * How fast a vocabulary is made ready and a text is encoded:
 *     bench_token MODEL.gguf TEXT [IDS.out]
 * Processor time of one thread. first: all of it new, process, tokenizer and text; again: the best
 * of the later rounds, when the words are known. IDS.out receives the ids as int32. Not part of the
 * test suite.
 */
#include "base/memory.h"
#include "model/vocab.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 40, ENOUGH_BYTES = 1 << 20 };

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
    double first = 0, best = 1e9;
    pith_ids ids = {0};
    pith_error error = {0};
    for (int round = 0; round < ROUNDS; round++) {
        /* the clock counts microseconds: short texts are encoded several times */
        size_t times = round && text.size < ENOUGH_BYTES ? ENOUGH_BYTES / (text.size + 1) + 1 : 1;
        double start = seconds();
        for (size_t i = 0; i < times; i++) {
            pith_ids_deinit(&ids);
            if (pith_tokenizer_encode(tokenizer, &span, 1, false, &ids, &error)) puts(error.text);
        }
        double took = (seconds() - start) / (double)times;
        if (!round) first = took;
        if (took < best) best = took;
    }
    printf("%zu bytes, %zu ids: first %.0f us, %.1f MB/s; again %.1f us, %.1f MB/s\n", text.size,
           ids.size, first * 1e6, (double)text.size / first / 1e6, best * 1e6,
           (double)text.size / best / 1e6);
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
    double start = seconds();
    pith_status status = pith_vocab_load(gguf, false, &tokenizer, &error);
    double took = seconds() - start, best = took;
    if (status != PITH_OK) {
        fprintf(stderr, "bench_token: %s\n", error.text);
        return 1;
    }
    encode_rounds(tokenizer, (pith_span){text, size}, argc > 3 ? argv[3] : NULL);
    printf("%u tokens ready: first %.1f ms, ", pith_tokenizer_size(tokenizer), took * 1e3);
    for (int round = 0; round < ROUNDS / 4; round++) {
        pith_tokenizer_free(tokenizer);
        start = seconds();
        if (pith_vocab_load(gguf, false, &tokenizer, &error)) puts(error.text);
        took = seconds() - start;
        if (took < best) best = took;
    }
    printf("best %.1f ms\n", best * 1e3);
    pith_tokenizer_free(tokenizer);
    pith_gguf_close(gguf);
    free(text);
    return 0;
}
