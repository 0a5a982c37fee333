/* SPDX-License-Identifier: Apache-2.0
 * Products with 16 tokens or more on AMX tiles, in both contracts (pith_mul in kernel.h).
 *
 * 256 k of two panels are unpacked as for AVX-512 VNNI, to signed bytes: 16 of their code groups
 * are a tile of codes as they lie. For the fast contract they are requantized too. Then two tiles
 * of tokens meet them at a time; an odd panel meets four. Either way a *block* is 4 cells, a cell
 * 16 tokens x 16 rows, and 4 products a cell:
 *
 *            codes: panel 0   panel 1        depth of a product, the k under one scale:
 *   tokens a        cell 0    cell 1           fast contract                64  (256 k a block)
 *   tokens b        cell 2    cell 3           scales a group, exact        32  (128)
 *                                              scales half a group, exact   16   (64)
 *
 * The tile unit is busy 16 cycles a product, whatever its depth. Meanwhile AVX-512 rescales the
 * block before: step j of 4 starts product j of all cells, then does the float chains of cell j of
 * the block before, then stores the 4 cells of product j. 16 stored tiles lie in the first cache;
 * what a step stores takes the place of what it has just used up, so that the square turns:
 *
 *   block n: row j = cell j, column = product     block n + 1: row j = product j, column = cell
 *
 * Estimate for a block of the fast contract, 262144 products: tile unit 256 cycles; stores 320
 * (16 tiles, 64 chains) at one a cycle; 576 float operations (9 a row) 288 cycles at two; loads 277
 * at three. Hence some 75 % of the unit's peak. Unpacking two panels takes the vector unit some
 * 1000 cycles, what 96 tokens take: hence a pass of 256. Exact chains take 10 operations a row or
 * more for half or a quarter of the k.
 *
 * Chains of the exact contract that span 256 k rest in `s` and `u` between blocks. Tokens that
 * don't fill the last tile: it begins earlier, and its rows are written twice, with the same bits.
 * Tail: k of 32-element types, by blocks of fewer products. Read next: mul_wide_avx512.c (the same
 * chains without tiles), requantize_avx512.c. */
#include "kernel/x86/mul_tiles_amx.h"
#include "kernel/x86/tiles_amx.h"

#include <string.h>

enum {
    CELLS = 4,        /* of a block, and products of a cell */
    PASS_TILES = 16,  /* of tokens that meet panels unpacked once, a multiple of CELLS */
    EXACT_TILES = 8,  /* the same where sums have minima: acc holds both */
    UNPACKED = 256,   /* k */
    SHAPE_FAST = 100, /* beside the wide_shapes: any of them, requantized */
    ROW_STEP = 4      /* rows of a cell that are unrolled */
};

typedef float tile_floats[TILE_ROWS][PITH_PANEL_ROWS]; /* [token][row] */

typedef struct cell {
    size_t token; /* its first */
    const expanded *w;
    int sum; /* index in acc */
} cell;

typedef struct block {
    cell cell[CELLS];
    size_t k; /* its first */
    int n;    /* products of a cell: 4, fewer at the end of a row */
    bool is_pair;
} block;

typedef struct workspace {
    tile_sums sums[CELLS * CELLS];
    tile_floats acc[2 * PASS_TILES]; /* minima: from 2 * EXACT_TILES on */
    tile_floats s[CELLS], u[CELLS];
    expanded w[2][2]; /* by turns: [panel] in use by the last block, and by this one */
    const pith_q8 *q8;
    block before; /* n = 0: none */
    int turned;
} workspace;

/* ---- Shapes ---- */

ALWAYS_INLINE bool has_halves(const int shape) {
    return shape == WIDE_HALVES || shape == WIDE_PAIRS || shape == WIDE_FLOATS;
}

ALWAYS_INLINE bool has_minima(const int shape) {
    return shape == WIDE_AFFINE || shape == WIDE_SUPER || shape == WIDE_PAIRS;
}

/* Chains that run through all of k; others end every 256 k. */
ALWAYS_INLINE bool is_endless(const int shape) {
    return shape == WIDE_SIGNED || shape == WIDE_AFFINE || shape == WIDE_FLOATS;
}

/* k of a product. */
ALWAYS_INLINE int depth_of(const int shape) {
    return shape == SHAPE_FAST ? 64 : has_halves(shape) ? 16 : 32;
}

ALWAYS_INLINE int tiles_of(const int shape) {
    return shape == SHAPE_FAST ? PASS_TILES : EXACT_TILES;
}

/* ---- Float chains ---- */

/* What the chains of one cell need. */
typedef struct chains {
    const int32_t (*sum[CELLS])[TILE_ROWS]; /* of each product */
    float (*acc)[PITH_PANEL_ROWS], (*acc_min)[PITH_PANEL_ROWS];
    float (*s)[PITH_PANEL_ROWS], (*u)[PITH_PANEL_ROWS];
    const factors *f;
    int group; /* the block's first among the 8 */
    const float *d;
    const int32_t *row_sum;
    const int16_t *sum16;
    size_t stride;          /* of d and row_sum; sum16 twice that */
    bool is_first, is_last; /* of 256 k */
} chains;

/* Where a step finds product m of cell j of the block before, and puts cell m of product j. */
ALWAYS_INLINE tile_sums *place(workspace *work, int j, int m) {
    return &work->sums[work->turned ? CELLS * m + j : CELLS * j + m];
}

ALWAYS_INLINE chains chains_of(workspace *work, int j, const int shape) {
    const block *b = &work->before;
    const cell *at = &b->cell[j];
    const pith_q8 *q8 = work->q8;
    const int depth = depth_of(shape), group = shape == SHAPE_FAST ? PITH_FAST_GROUP : PITH_GROUP;
    size_t d = at->token * q8->d_stride + b->k / (size_t)group, in = b->k % UNPACKED;
    chains c = {.acc = work->acc[at->sum],
                .acc_min = has_minima(shape) ? work->acc[2 * EXACT_TILES + at->sum] : NULL,
                .s = work->s[j],
                .u = work->u[j],
                .f = &at->w->f,
                .group = (int)in / PITH_GROUP,
                .d = q8->d + d,
                .row_sum = q8->sum + d,
                .sum16 = q8->sum16 + 2 * d,
                .stride = q8->d_stride,
                .is_first = in == 0,
                .is_last = in + CELLS * (size_t)depth == UNPACKED};
    for (int i = 0; i < CELLS; i++) c.sum[i] = (const int32_t(*)[TILE_ROWS]) * place(work, j, i);
    return c;
}

ALWAYS_INLINE __m512 dot_at(const chains *c, int i, int r) {
    return _mm512_cvtepi32_ps(_mm512_load_si512(c->sum[i][r]));
}

/* A chain goes on from what rests in acc (endless) or in `rest`. */
ALWAYS_INLINE __m512 chain_begin(const float *acc, const float *rest, bool is_first,
                                 const int shape) {
    if (is_endless(shape)) return _mm512_load_ps(acc);
    return is_first ? _mm512_setzero_ps() : _mm512_load_ps(rest);
}

ALWAYS_INLINE void chain_end(float *acc, float *rest, __m512 chain, const float *scale,
                             bool is_last, const int shape) {
    if (is_endless(shape))
        _mm512_store_ps(acc, chain);
    else if (is_last)
        fma_store(acc, chain, _mm512_load_ps(scale));
    else
        _mm512_store_ps(rest, chain);
}

ALWAYS_INLINE void chains_fast(const chains *c) {
    const __m512 scale = _mm512_load_ps(c->f->d[0]);
    const float *d = c->d;
    for (int r0 = 0; r0 < TILE_ROWS; r0 += ROW_STEP) {
        UNROLL for (int r = r0; r < r0 + ROW_STEP; r++, d += c->stride) {
            __m512 u = _mm512_setzero_ps();
            UNROLL for (int i = 0; i < CELLS; i++) {
                u = _mm512_fmadd_ps(dot_at(c, i, r), _mm512_set1_ps(d[i]), u);
            }
            fma_store(c->acc[r], u, scale);
        }
    }
}

/* SIGNED, AFFINE, SUPER, SCALED: a scale a group. */
ALWAYS_INLINE void chains_groups(const chains *c, const int n, const int shape) {
    __m512 scale[CELLS];
    const float *d = c->d;
    UNROLL for (int i = 0; i < n; i++) {
        scale[i] = _mm512_load_ps(is_endless(shape) ? c->f->d[c->group + i]
                                                    : c->f->scale[c->group + i][0]);
    }
    for (int r = 0; r < TILE_ROWS; r++, d += c->stride) {
        __m512 s = chain_begin(c->acc[r], c->s[r], c->is_first, shape);
        UNROLL for (int i = 0; i < n; i++) {
            __m512 d_x = _mm512_set1_ps(d[i]), dot = dot_at(c, i, r);
            if (is_endless(shape))
                s = _mm512_fmadd_ps(dot, _mm512_mul_ps(scale[i], d_x), s);
            else
                s = _mm512_fmadd_ps(_mm512_mul_ps(dot, scale[i]), d_x, s);
        }
        chain_end(c->acc[r], c->s[r], s, c->f->d[0], c->is_last, shape);
    }
}

/* HALVES, PAIRS, FLOATS: n half groups. */
ALWAYS_INLINE void chains_halves(const chains *c, const int n, const int shape) {
    __m512 scale[CELLS];
    const float *d = c->d;
    UNROLL for (int i = 0; i < n; i++) {
        scale[i] = _mm512_load_ps(c->f->scale[c->group + i / 2][i % 2]);
    }
    for (int r = 0; r < TILE_ROWS; r++, d += c->stride) {
        __m512 s = chain_begin(c->acc[r], c->s[r], c->is_first, shape);
        UNROLL for (int i = 0; i < n; i += 2) {
            __m512 p = _mm512_mul_ps(dot_at(c, i, r), scale[i]);
            p = _mm512_fmadd_ps(dot_at(c, i + 1, r), scale[i + 1], p);
            s = _mm512_fmadd_ps(p, _mm512_set1_ps(d[i / 2]), s);
        }
        chain_end(c->acc[r], c->s[r], s, c->f->d[0], c->is_last, shape);
    }
}

/* d * sum of each row's groups; PAIRS: sums of half groups. */
ALWAYS_INLINE void sums_read(float (*out)[CELLS], const chains *c, const int n, const int shape) {
    const __mmask8 in = (__mmask8)((1u << n) - 1);
    const float *d = c->d;
    const int32_t *sum = c->row_sum;
    const int16_t *sum16 = c->sum16;
    for (int r = 0; r < TILE_ROWS; r++, d += c->stride, sum += c->stride, sum16 += 2 * c->stride) {
        __m128 value;
        if (shape == WIDE_PAIRS) {
            __m128i halves = _mm_loadl_epi64((const __m128i *)(const void *)sum16);
            value = _mm_cvtepi32_ps(_mm_cvtepi16_epi32(halves));
        } else {
            value = _mm_mul_ps(_mm_maskz_loadu_ps(in, d),
                               _mm_cvtepi32_ps(_mm_maskz_loadu_epi32(in, sum)));
        }
        _mm_store_ps(out[r], value);
    }
    stored();
}

/* AFFINE, SUPER, PAIRS. */
ALWAYS_INLINE void chains_minima(const chains *c, const int n, const int shape) {
    _Alignas(16) float sum[TILE_ROWS][CELLS];
    __m512 m[CELLS];
    const float *d = c->d;
    sums_read(sum, c, n, shape);
    UNROLL for (int i = 0; i < n; i++) {
        m[i] = _mm512_load_ps(shape == WIDE_PAIRS ? c->f->minimum[c->group + i / 2][i % 2]
                                                  : c->f->minimum[c->group + i][0]);
    }
    for (int r = 0; r < TILE_ROWS; r++, d += c->stride) {
        __m512 u = chain_begin(c->acc_min[r], c->u[r], c->is_first, shape);
        if (shape == WIDE_PAIRS) UNROLL for (int i = 0; i < n; i += 2) {
                __m512 both = _mm512_mul_ps(m[i], _mm512_set1_ps(sum[r][i]));
                both = _mm512_fmadd_ps(m[i + 1], _mm512_set1_ps(sum[r][i + 1]), both);
                u = _mm512_fmadd_ps(both, _mm512_set1_ps(d[i / 2]), u);
            }
        else
            UNROLL for (int i = 0; i < n; i++) {
                u = _mm512_fmadd_ps(m[i], _mm512_set1_ps(sum[r][i]), u);
            }
        chain_end(c->acc_min[r], c->u[r], u, c->f->dmin, c->is_last, shape);
    }
}

ALWAYS_INLINE void chains_exact(const chains *c, const int n, const int shape) {
    if (has_halves(shape))
        chains_halves(c, n, shape);
    else
        chains_groups(c, n, shape);
    if (has_minima(shape)) chains_minima(c, n, shape);
}

/* Cell j of the block before. Only 32-element types end within a block. */
ALWAYS_INLINE void rescale(workspace *work, int j, const int shape) {
    const chains c = chains_of(work, j, shape);
    if (shape == SHAPE_FAST)
        chains_fast(&c);
    else if (work->before.n == CELLS || (shape != WIDE_SIGNED && shape != WIDE_AFFINE))
        chains_exact(&c, CELLS, shape);
    else if (work->before.n == 3)
        chains_exact(&c, 3, shape);
    else if (work->before.n == 2)
        chains_exact(&c, 2, shape);
    else
        chains_exact(&c, 1, shape);
}

/* ---- Blocks ---- */

/* Product i of all cells, from zero. */
ALWAYS_INLINE void multiply(const pith_q8 *q8, const block *b, int i, const int shape) {
    const size_t at = b->k + (size_t)(i * depth_of(shape)), stride = q8->q_stride;
    const size_t code = at % UNPACKED * PITH_PANEL_ROWS;
    const int8_t *x[CELLS];
    const uint8_t *w = &b->cell[0].w->code[0][0][0] + code;
    for (int c = 0; c < CELLS; c++) x[c] = q8->q + b->cell[c].token * stride + at;
    TILE_ZERO(0);
    TILE_ZERO(1);
    TILE_ZERO(2);
    TILE_ZERO(3);
    TILE_LOAD(6, w, TILE_BYTES);
    TILE_LOAD(4, x[0], stride);
    TILE_DOT(0, 4, 6);
    if (b->is_pair) {
        const uint8_t *w1 = &b->cell[1].w->code[0][0][0] + code;
        TILE_LOAD(7, w1, TILE_BYTES);
        TILE_DOT(1, 4, 7);
        TILE_LOAD(5, x[2], stride);
        TILE_DOT(2, 5, 6);
        TILE_DOT(3, 5, 7);
    } else {
        TILE_LOAD(5, x[1], stride);
        TILE_DOT(1, 5, 6);
        TILE_LOAD(4, x[2], stride);
        TILE_DOT(2, 4, 6);
        TILE_LOAD(5, x[3], stride);
        TILE_DOT(3, 5, 6);
    }
}

/* The products of this block, the chains of the one before. n = 0: the chains only. */
ALWAYS_INLINE void advance(workspace *work, const block *now, const int shape) {
    for (int j = 0; j < CELLS; j++) {
        if (j < now->n) multiply(work->q8, now, j, shape);
        if (work->before.n) rescale(work, j, shape);
        if (j >= now->n) continue;
        tile_sums *at[CELLS] = {place(work, j, 0), place(work, j, 1), place(work, j, 2),
                                place(work, j, 3)};
        TILE_STORE(0, at[0]);
        TILE_STORE(1, at[1]);
        TILE_STORE(2, at[2]);
        TILE_STORE(3, at[3]);
    }
    work->turned = !work->turned;
    work->before = *now;
}

/* ---- Passes ---- */

/* Tokens that meet panels `panel` and, of a pair, the next. */
typedef struct pass {
    const pith_mul *args;
    const wide_type *type;
    uint32_t panel, first_tile, n_tile;
    bool is_pair;
} pass;

/* First token of a tile. The last tiles lie within the tokens: they repeat some. */
ALWAYS_INLINE size_t token_of(const pass *p, uint32_t tile) {
    uint32_t token = (p->first_tile + tile) * TILE_ROWS, last = p->args->n - TILE_ROWS;
    return token < last ? token : last;
}

ALWAYS_INLINE cell cell_of(const pass *p, const expanded *w, uint32_t tile, int c) {
    if (p->is_pair)
        return (cell){token_of(p, tile + (uint32_t)c / 2), w + c % 2, 2 * (int)tile + c};
    return (cell){token_of(p, tile + (uint32_t)c), w, (int)tile + c};
}

/* 256 k from k on of one panel, or what is left, as signed bytes. */
ALWAYS_INLINE void unpack(expanded *w, const pass *p, uint32_t panel, uint32_t k, const int shape) {
    const wide_type *type = p->type;
    const uint8_t *at = (const uint8_t *)p->args->w + panel * p->args->panel_bytes +
                        k / UNPACKED * type->chunk_bytes;
    uint32_t left = (p->args->k - k) / PITH_GROUP;
    int n = left < WIDE_GROUPS ? (int)left : WIDE_GROUPS;
    type->unpack(w, at, n);
    for (size_t i = 0; i < type->chunk_bytes; i += 64)
        _mm_prefetch((const char *)at + type->chunk_bytes + AHEAD_L2 + i, _MM_HINT_T1);
    if (shape == SHAPE_FAST) {
        pith_requantize_avx512(w, type, 0);
        return;
    }
    if (has_minima(shape)) return;
    const __m512i offset = _mm512_set1_epi8((char)(1 << type->offset_shift));
    for (int j = 0; j < n; j++) UNROLL for (int g = 0; g < 8; g++) {
            __m512i code = _mm512_load_si512(w->code[j][g]);
            _mm512_store_si512(w->code[j][g], _mm512_sub_epi8(code, offset));
        }
}

/* All tokens of the pass with 256 k. */
ALWAYS_INLINE void pass_unpacked(workspace *work, const pass *p, const expanded *w, uint32_t k,
                                 const int shape) {
    const uint32_t depth = (uint32_t)depth_of(shape), end = p->args->k - k;
    const uint32_t left = end < UNPACKED ? end : UNPACKED;
    block now = {.is_pair = p->is_pair};
    for (uint32_t tile = 0; tile < p->n_tile; tile += p->is_pair ? 2 : CELLS) {
        for (int c = 0; c < CELLS; c++) now.cell[c] = cell_of(p, w, tile, c);
        for (uint32_t at = 0; at < left; at += CELLS * depth) {
            uint32_t n = (left - at) / depth;
            now.k = k + at;
            now.n = n < CELLS ? (int)n : CELLS;
            advance(work, &now, shape);
        }
    }
}

ALWAYS_INLINE void pass_write(const workspace *work, const pass *p, const int shape) {
    const int n_panel = p->is_pair ? 2 : 1;
    for (int i = 0; i < (int)p->n_tile * n_panel; i++) {
        const tile_floats *acc = &work->acc[i], *acc_min = &work->acc[i];
        float *y = p->args->y + token_of(p, (uint32_t)(i / n_panel)) * p->args->y_stride +
                   PITH_PANEL_ROWS * (size_t)(p->panel + (uint32_t)(i % n_panel));
        if (has_minima(shape)) acc_min = &work->acc[2 * EXACT_TILES + i];
        for (int r = 0; r < TILE_ROWS; r++, y += p->args->y_stride) {
            __m512 sum = _mm512_load_ps((*acc)[r]), minima = _mm512_load_ps((*acc_min)[r]);
            if (shape == WIDE_AFFINE) sum = _mm512_add_ps(sum, minima);
            if (shape == WIDE_SUPER || shape == WIDE_PAIRS) sum = _mm512_sub_ps(sum, minima);
            _mm512_storeu_ps(y, sum);
        }
    }
}

ALWAYS_INLINE void pass_panels(workspace *work, const pass *p, const int shape) {
    const block none = {.n = 0};
    const size_t n_acc = p->n_tile * (p->is_pair ? 2 : 1);
    memset(work->acc, 0, n_acc * sizeof(tile_floats));
    if (has_minima(shape)) memset(work->acc + 2 * EXACT_TILES, 0, n_acc * sizeof(tile_floats));
    work->before.n = 0;
    for (uint32_t k = 0; k < p->args->k; k += UNPACKED) {
        expanded *w = work->w[k / UNPACKED % 2];
        for (uint32_t i = 0; i < (p->is_pair ? 2 : 1); i++)
            unpack(&w[i], p, p->panel + i, k, shape);
        stored();
        pass_unpacked(work, p, w, k, shape);
    }
    advance(work, &none, shape);
    pass_write(work, p, shape);
}

ALWAYS_INLINE void mul(const pith_mul *args, const wide_type *type, const int shape) {
    _Alignas(64) workspace work;
    const tile_config config = tile_config_of((unsigned)depth_of(shape));
    uint32_t n_tile = (args->n + TILE_ROWS - 1) / TILE_ROWS, most = (uint32_t)tiles_of(shape);
    pass p = {.args = args, .type = type};
    work.q8 = args->q8;
    work.turned = 0;
    TILES_LOAD(&config);
    for (p.first_tile = 0; p.first_tile < n_tile; p.first_tile += most) {
        uint32_t left = n_tile - p.first_tile;
        for (p.panel = 0; p.panel < args->n_panel; p.panel += p.is_pair ? 2 : 1) {
            p.is_pair = p.panel + 1 < args->n_panel;
            uint32_t unit = p.is_pair ? 2 : CELLS;
            p.n_tile = left < most ? (left + unit - 1) / unit * unit : most;
            pass_panels(&work, &p, shape);
        }
    }
    TILES_RELEASE();
}

void pith_mul_fast_tiles_amx(const pith_mul *args, const wide_type *type) {
    mul(args, type, SHAPE_FAST);
}

void pith_mul_tiles_amx(const pith_mul *args, const wide_type *type) {
    switch (type->shape) {
    case WIDE_SIGNED: mul(args, type, WIDE_SIGNED); break;
    case WIDE_AFFINE: mul(args, type, WIDE_AFFINE); break;
    case WIDE_SUPER: mul(args, type, WIDE_SUPER); break;
    case WIDE_SCALED: mul(args, type, WIDE_SCALED); break;
    case WIDE_HALVES: mul(args, type, WIDE_HALVES); break;
    case WIDE_PAIRS: mul(args, type, WIDE_PAIRS); break;
    case WIDE_FLOATS: mul(args, type, WIDE_FLOATS); break;
    }
}
