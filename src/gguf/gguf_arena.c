/* SPDX-License-Identifier: Apache-2.0
 * Memory of an open file that lives and dies with it: names, copies of strings, lists of spans.
 *
 * Invariant: what was handed out never moves, so spans into it stay valid until deinit, also after
 * the arena was adopted by another (shards joining the first file). Blocks double from 4 KiB to 1
 * MiB, and a request larger than a block gets a block of its own: an arena costs at most about
 * twice what was asked of it. Also here: how text from a file is shown in messages. Next:
 * gguf_header.c, the main user. */
#include "base/memory.h"
#include "gguf/gguf_internal.h"

#include <string.h>

enum { FIRST_BLOCK = 4096, LARGEST_BLOCK = 1 << 20, ALIGN = 16 };

struct pith_gguf_block {
    pith_gguf_block *next;
    size_t used, size; /* bytes after the head */
};

#define HEAD_BYTES ((sizeof(pith_gguf_block) + ALIGN - 1) / ALIGN * ALIGN)

static pith_gguf_block *add_block(pith_gguf_arena *arena, size_t size) {
    if (arena->next_bytes < FIRST_BLOCK) arena->next_bytes = FIRST_BLOCK;
    size_t room = size > arena->next_bytes ? size : arena->next_bytes, total;
    if (!pith_size_add(room, HEAD_BYTES, &total)) return NULL;
    pith_gguf_block *block = pith_alloc(total);
    if (!block) return NULL;
    block->used = 0;
    block->size = room;
    if (arena->next_bytes < LARGEST_BLOCK) arena->next_bytes *= 2;
    /* A block that one large request fills goes behind the current one, whose rest stays usable. */
    if (arena->blocks && room == size) {
        block->next = arena->blocks->next;
        arena->blocks->next = block;
    } else {
        block->next = arena->blocks;
        arena->blocks = block;
    }
    return block;
}

void *pith_gguf_arena_alloc(pith_gguf_arena *arena, size_t size) {
    if (size > SIZE_MAX - ALIGN) return NULL;
    size_t rounded = (size + ALIGN - 1) / ALIGN * ALIGN;
    pith_gguf_block *block = arena->blocks;
    if (!block || block->size - block->used < rounded) block = add_block(arena, rounded);
    if (!block) return NULL;
    uint8_t *memory = (uint8_t *)block + HEAD_BYTES + block->used;
    block->used += rounded;
    return memory;
}

pith_span pith_gguf_arena_copy(pith_gguf_arena *arena, pith_span text) {
    pith_span copy = {NULL, 0};
    size_t size;
    if (!pith_size_add(text.size, 1, &size)) return copy;
    char *memory = pith_gguf_arena_alloc(arena, size);
    if (!memory) return copy;
    if (text.size > 0) memcpy(memory, text.data, text.size);
    memory[text.size] = '\0';
    copy.data = memory;
    copy.size = text.size;
    return copy;
}

void pith_gguf_arena_adopt(pith_gguf_arena *to, pith_gguf_arena *from) {
    pith_gguf_block **end = &to->blocks;
    while (*end) end = &(*end)->next;
    *end = from->blocks;
    from->blocks = NULL;
}

void pith_gguf_arena_deinit(pith_gguf_arena *arena) {
    while (arena->blocks) {
        pith_gguf_block *next = arena->blocks->next;
        pith_free(arena->blocks);
        arena->blocks = next;
    }
    arena->next_bytes = 0;
}

static bool is_control(uint32_t code) {
    return code < 0x20 || (code >= 0x7F && code < 0xA0);
}

pith_gguf_shown pith_gguf_show(pith_span text) {
    pith_gguf_shown shown;
    size_t used = 0;
    for (size_t at = 0; at < text.size;) {
        uint32_t code;
        size_t length = pith_utf8_decode(text.data + at, text.size - at, &code);
        bool plain = code != PITH_UTF8_INVALID && !is_control(code);
        size_t shown_bytes = plain ? length : 1;
        if (used + shown_bytes > sizeof shown.text - 4) { /* room for "..." */
            memcpy(shown.text + used, "...", 3);
            used += 3;
            break;
        }
        if (plain)
            memcpy(shown.text + used, text.data + at, length);
        else
            shown.text[used] = '?';
        used += shown_bytes;
        at += length;
    }
    shown.text[used] = '\0';
    return shown;
}

pith_gguf_shown pith_gguf_label(const pith_source *source) {
    const char *name = pith_source_name(source), *label = name;
    for (const char *at = name; *at; at++)
        if ((*at == '/' || *at == '\\') && at[1]) label = at + 1;
    return pith_gguf_show(pith_span_of(label));
}
