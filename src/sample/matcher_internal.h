/* SPDX-License-Identifier: Apache-2.0
 * Inside of the matcher (private to the sample room).
 *
 *   thread   a state of the grammar and a stack: one way in which the text so far may be read
 *   frame    what a stack has on top, and the stack below it; equal stacks are one number
 *   config   the set of threads after some text; equal sets are one number
 *   row      where each class of bytes leads from a config, found when first asked
 *
 *   text ->  config 7 --'{'--> config 9 --'"'--> config 12 ...       accepted ids: [7, 9, 12 ...]
 *
 * All of it is learnt while matching and may be forgotten, except the configs that accepted ids
 * lead to, which make rewinding a step back in a list. Memory is counted; when it is used up
 * everything that can be found again is dropped, and if that is not enough the matcher fails,
 * which allows nothing. Read next: matcher_store.c (frames, configs, memory), matcher_step.c (a
 * byte), matcher_mask.c (all tokens), matcher.c (a text). */
#ifndef PITH_SAMPLE_MATCHER_INTERNAL_H
#define PITH_SAMPLE_MATCHER_INTERNAL_H

#include "sample/grammar_program.h"
#include "sample/token_trie.h"

enum {
    PITH_MATCHER_MAX_THREADS = 4096,  /* of a config */
    PITH_MATCHER_STEP_WORK = 1 << 17, /* states passed for one byte */
    PITH_MATCHER_MASK_WORK = 1 << 23, /* states passed and nodes visited for one mask */
    PITH_MATCHER_MASKS = 64,          /* kept */

    PITH_CONFIG_DEAD = 0, /* no thread */
    PITH_STACK_EMPTY = 0, /* of the whole text */
    /* Stacks of a table (matcher_table.c), where the text before is not known: below a part of the
     * grammar; below a counter whose count is relative. */
    PITH_STACK_BELOW = 1,
    PITH_STACK_OPEN = 2
};
#define PITH_NONE UINT32_MAX
/* A row's entry: the config, and for relative counts by how much they went up. */
#define PITH_ROW_CONFIG 0xFFFFFFu
#define PITH_ROW_SHIFT  24
#define PITH_LOOP_BIT   0x40000000u /* of a frame's `what` */

typedef struct pith_frame {
    uint32_t parent; /* the stack below */
    uint32_t what;   /* the state to return to, or PITH_LOOP_BIT | loop */
    uint32_t count;  /* of the loop: whole rounds */
    uint32_t next;   /* of the same hash; 0: none */
} pith_frame;

/* state << 32 | stack, so that sorting sorts by state. */
typedef uint64_t pith_thread;

typedef struct pith_config {
    uint32_t first, n; /* in threads */
    uint32_t next;     /* of the same hash; 0: none */
    uint32_t row;      /* first of n_classes in rows; PITH_NONE: not made */
    uint16_t low;      /* is_open: the least relative count */
    uint8_t done;      /* the text, or the part of the grammar, may end here */
    uint8_t tokens;    /* some thread waits for a whole token */
    uint8_t is_open;   /* counts are relative */
} pith_config;

/* A hash table of one closure: entries of older stamps are free. */
typedef struct pith_mark {
    uint64_t key;
    uint32_t loop, value, stamp;
} pith_mark;

/* What a thread's state alone says about the vocabulary; matcher_table.c. */
typedef struct pith_table pith_table;

typedef struct pith_mask {
    uint32_t config; /* PITH_NONE: free */
    uint32_t *bits;  /* [n_words]; NULL: not made */
} pith_mask;

struct pith_matcher {
    pith_grammar *grammar;
    const pith_token_trie *trie;
    size_t memory, used; /* bytes */
    const char *failed;  /* NULL: no */
    const char *trouble; /* why the running call was given up; NULL: it was not */
    bool is_full;        /* memory alone was the trouble */
    uint64_t work, work_limit;

    pith_frame *frames; /* 0 unused */
    uint32_t n_frames, frames_capacity;
    uint32_t *frame_buckets;
    uint32_t n_frame_buckets;
    pith_thread *threads;
    uint32_t n_threads, threads_capacity;
    pith_config *configs; /* 0: dead */
    uint32_t n_configs, configs_capacity;
    uint32_t *config_buckets;
    uint32_t n_config_buckets;
    uint32_t *rows; /* config after a class; PITH_NONE: not known */
    uint32_t n_rows, rows_capacity;

    /* room for one closure */
    pith_thread *todo, *found;
    uint32_t n_todo, todo_capacity, n_found, found_capacity;
    pith_mark *marks;
    uint32_t n_marks, n_marked, stamp;
    bool is_open;        /* of the closure's threads */
    uint32_t low, shift; /* set by pith_matcher_close: as in a config; as in a row */

    uint32_t start, current; /* configs */
    bool finished;           /* by an end id */
    int32_t *ids;            /* [n_ids] accepted */
    uint32_t *past;          /* [n_ids] config before each id; PITH_NONE: forgotten */
    uint32_t n_ids, ids_capacity, past_capacity;

    pith_mask masks[PITH_MATCHER_MASKS];
    uint32_t n_masks, next_mask;
    uint32_t *path;      /* [max_depth + 1] configs of a walk */
    uint32_t *risen;     /* [max_depth + 1] how much relative counts went up until there */
    pith_table **tables; /* [n_tables] of states */
    uint32_t n_tables, tables_capacity;
    size_t table_bytes;
    uint32_t *none; /* [n_words] the mask of a matcher that failed or is finished */
};

static inline pith_thread pith_thread_of(uint32_t state, uint32_t stack) {
    return (uint64_t)state << 32 | stack;
}

/* ---- matcher_store.c ---- */

/* Room for `needed` elements within the memory; NULL and the trouble otherwise. */
void *pith_matcher_grow(pith_matcher *matcher, void *array, uint32_t *capacity,
                        size_t element_bytes, uint32_t needed);
void *pith_matcher_take(pith_matcher *matcher, size_t bytes);      /* zeroed */
bool pith_matcher_give_up(pith_matcher *matcher, const char *why); /* false */
/* The stack with a frame on top; PITH_NONE on trouble. */
uint32_t pith_matcher_push(pith_matcher *matcher, uint32_t stack, uint32_t what, uint32_t count);
/* The config of the found threads, which are sorted here; DEAD on trouble. Sets is_open, low. */
uint32_t pith_matcher_intern(pith_matcher *matcher);
/* Drops all that can be found again; keeps start, current and what the past needs. */
void pith_matcher_collect(pith_matcher *matcher);
bool pith_matcher_store_init(pith_matcher *matcher);
void pith_matcher_store_deinit(pith_matcher *matcher);

/* ---- matcher_step.c ---- */

/* Begins a closure; then threads are added, then pith_matcher_close gives the config. */
void pith_matcher_open(pith_matcher *matcher);
bool pith_matcher_add(pith_matcher *matcher, uint32_t state, uint32_t stack);
uint32_t pith_matcher_close(pith_matcher *matcher);
/* The config after one byte of the class; DEAD where there is none and on trouble. */
uint32_t pith_matcher_step(pith_matcher *matcher, uint32_t config, uint32_t class);
/* The same after an id's bytes, or an id as a whole. */
uint32_t pith_matcher_step_id(pith_matcher *matcher, uint32_t config, int32_t id);

/* Bytes that may still be taken. */
static inline size_t pith_matcher_room(const pith_matcher *matcher) {
    return matcher->used < matcher->memory ? matcher->memory - matcher->used : 0;
}

/* The config after a byte class where it is known, else found. */
static inline uint32_t pith_matcher_next(pith_matcher *matcher, uint32_t config, uint32_t class) {
    uint32_t row = matcher->configs[config].row;
    if (row != PITH_NONE && matcher->rows[row + class] != PITH_NONE)
        return matcher->rows[row + class];
    return pith_matcher_step(matcher, config, class);
}

/* ---- matcher_mask.c ---- */

/* Sets the ids of nodes [node, end), whose parent's text leads to `config`. false on trouble. */
bool pith_matcher_walk(pith_matcher *matcher, uint32_t config, uint32_t node, uint32_t end,
                       uint32_t *bits);
/* The current config's mask; NULL on trouble. */
const uint32_t *pith_matcher_find_mask(pith_matcher *matcher);

/* ---- matcher_table.c ---- */

/* Sets the ids that a thread allows, by the table of its state; *looked_up: false where it has none
 * and must be walked. false on trouble. */
bool pith_matcher_look_up(pith_matcher *matcher, pith_thread thread, uint32_t *bits,
                          bool *looked_up);
void pith_matcher_drop_tables(pith_matcher *matcher);

#endif
