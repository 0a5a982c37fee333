/* SPDX-License-Identifier: Apache-2.0
 * Guarded memory, random data and reports for the kernel check (contract: check.h). A block is
 * [guard page][canary | data | canary][guard page]; the data ends at the second guard as near as
 * its alignment allows, so that reading or writing past the end faults at once. Where pages cannot
 * be protected, canaries remain. */
#if !defined(_WIN32)
#define _DEFAULT_SOURCE
#include <sys/mman.h>
#include <unistd.h>
#endif

#include "check.h"

#include <stdlib.h>
#include <string.h>

enum { CANARY = 0xA5, MAX_BLOCKS = 64 };

typedef struct guard_block {
    uint8_t *mapping, *data;
    size_t mapping_bytes, page, n;
} guard_block;

static guard_block blocks[MAX_BLOCKS];

#if defined(_WIN32)
static size_t page_bytes(void) {
    return 4096;
}
static void *map(size_t bytes) {
    return malloc(bytes);
}
static void unmap(void *memory, size_t bytes) {
    (void)bytes;
    free(memory);
}
static void protect(void *memory, size_t bytes) {
    (void)memory;
    (void)bytes;
}
#else
static size_t page_bytes(void) {
    return (size_t)sysconf(_SC_PAGESIZE);
}
static void *map(size_t bytes) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}
static void unmap(void *memory, size_t bytes) {
    munmap(memory, bytes);
}
static void protect(void *memory, size_t bytes) {
    mprotect(memory, bytes, PROT_NONE);
}
#endif

static guard_block *find_block(const void *data) {
    for (size_t i = 0; i < MAX_BLOCKS; i++)
        if (blocks[i].data == data) return &blocks[i];
    return NULL;
}

void *check_alloc(size_t n, size_t align) {
    guard_block *b = find_block(NULL);
    size_t page = page_bytes(), inner = (n + align + page - 1) / page * page;
    if (!b || !(b->mapping = map(inner + 2 * page))) {
        fprintf(stderr, "check: out of memory\n");
        exit(2);
    }
    b->mapping_bytes = inner + 2 * page;
    b->page = page;
    b->n = n;
    memset(b->mapping, CANARY, b->mapping_bytes);
    uintptr_t end = (uintptr_t)(b->mapping + page + inner);
    b->data = (uint8_t *)((end - n) / align * align);
    memset(b->data, 0xC7, n); /* junk: a float of -102286.9 */
    protect(b->mapping, page);
    protect(b->mapping + page + inner, page);
    return b->data;
}

bool check_release(void *memory) {
    guard_block *b = find_block(memory);
    bool whole = b != NULL;
    if (!b) return false;
    for (uint8_t *p = b->mapping + b->page; p < b->data; p++) whole = whole && *p == CANARY;
    for (uint8_t *p = b->data + b->n; p < b->mapping + b->mapping_bytes - b->page; p++)
        whole = whole && *p == CANARY;
    unmap(b->mapping, b->mapping_bytes);
    memset(b, 0, sizeof *b);
    return whole;
}

bool check_release_all(check_context *ctx) {
    bool whole = true;
    for (size_t i = 0; i < MAX_BLOCKS; i++)
        if (blocks[i].data) whole = check_release(blocks[i].data) && whole;
    return whole || check_fail(ctx, "wrote outside its memory");
}

bool check_fail(check_context *ctx, const char *format, ...) {
    va_list args;
    ctx->n_failed++;
    printf("FAILED %s %s (seed %llu): ", ctx->slot, ctx->function, (unsigned long long)ctx->seed);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    return false;
}

uint64_t check_random(check_context *ctx) { /* splitmix64 */
    uint64_t z = (ctx->random += 0x9E3779B97F4A7C15u);
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

uint32_t check_below(check_context *ctx, uint32_t n) {
    return (uint32_t)(check_random(ctx) >> 32) % n;
}

float check_uniform(check_context *ctx, float low, float high) {
    return low + (high - low) * (float)(check_random(ctx) >> 40) * 0x1p-24f;
}

void check_bytes(check_context *ctx, void *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) ((uint8_t *)bytes)[i] = (uint8_t)(check_random(ctx) >> 56);
}

static float wide_float(check_context *ctx) {
    uint32_t bits = (uint32_t)(check_random(ctx) >> 32), exponent = 127 - 40 + check_below(ctx, 60);
    bits = (bits & 0x807FFFFFu) | exponent << 23;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

void check_floats(check_context *ctx, float *x, size_t n, unsigned flavour) {
    static const float odd[] = {0.0f,   -0.0f, 1.0f,   -1.0f,   0.5f,  87.3f,
                                -87.4f, 88.8f, 0.625f, -0.625f, 1e-38f};
    float constant = check_uniform(ctx, -2.0f, 2.0f);
    for (size_t i = 0; i < n; i++) {
        switch (flavour % CHECK_FLAVOURS) {
        case 0: x[i] = check_uniform(ctx, -4.0f, 4.0f); break;
        case 1: x[i] = wide_float(ctx); break;
        case 2: x[i] = check_uniform(ctx, -1.0f, 1.0f) * 1e-39f; break;
        case 3:
            x[i] = check_below(ctx, 4) ? 0.0f : odd[check_below(ctx, sizeof odd / sizeof *odd)];
            break;
        case 4: x[i] = constant; break;
        default:
            x[i] = check_uniform(ctx, -1.0f, 1.0f) * (check_below(ctx, 37) ? 1.0f : 1e4f);
            break;
        }
    }
}

bool check_same(check_context *ctx, const float *expected, const float *got, size_t n,
                const char *what) {
    for (size_t i = 0; i < n; i++) {
        if (memcmp(&expected[i], &got[i], sizeof *got) == 0) continue;
        if (expected[i] != expected[i] && got[i] != got[i])
            continue; /* NaN payloads are not promised */
        return check_fail(ctx, "%s: element %zu is %.9g, the reference says %.9g", what, i,
                          (double)got[i], (double)expected[i]);
    }
    return true;
}
