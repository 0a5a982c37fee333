/* SPDX-License-Identifier: Apache-2.0
 * The kernel check's runner (contract: check.h).
 *
 *   check_kernels [--seed N] [--filter TEXT] [--verbose]     every slot of every tier; ends with `N passed, N failed`
 *   check_kernels --bench [--tier NAME] [--filter TEXT]       speeds
 *
 * Tiers are tried from the lowest up, so that each kernel is met where the ladder of table.c first
 * chooses it. A kernel that faults (illegal instruction, bad access) is named and counted as
 * failed; the rest goes on. A kernel of a tier that this machine lacks is run with emulated
 * instructions where that exists (check_emulated.c), else told as skipped. */
#if !defined(_WIN32)
#define _DEFAULT_SOURCE
#endif

#include "check.h"

#include "kernel/kernel_list.h"

#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#define sigjmp_buf            jmp_buf
#define sigsetjmp(jump, mask) setjmp(jump)
#define siglongjmp            longjmp
#endif

typedef struct options {
    uint64_t seed;
    const char *filter, *tier;
    bool verbose, bench;
} options;

typedef struct totals {
    unsigned passed, failed, skipped;
} totals;

static sigjmp_buf fault_jump;
static volatile sig_atomic_t fault_signal;

static void on_fault(int signal_number) {
    fault_signal = signal_number;
    siglongjmp(fault_jump, 1);
}

static void catch_faults(void) {
    static const int signals[] = {
        SIGILL,
        SIGSEGV,
        SIGFPE,
#if !defined(_WIN32)
        SIGBUS
#endif
    };
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
#if defined(_WIN32)
        signal(signals[i], on_fault);
#else
        struct sigaction action;
        memset(&action, 0, sizeof action);
        action.sa_handler = on_fault;
        action.sa_flags = SA_NODEFER;
        sigaction(signals[i], &action, NULL);
#endif
    }
}

/* Slots of the list with what checks them. Plain operations are told apart by type where a shape is
 * shared. */
typedef struct slot {
    const char *name;
    size_t at;      /* offset of the pointer in the table */
    pith_type type; /* PITH_TYPE_COUNT: untyped */
} slot;

static const slot slots[] = {
#define TYPED(op, TYPE, type)                                                                      \
    {#op "[" #TYPE "]", offsetof(pith_kernels, op[PITH_TYPE_##TYPE]), PITH_TYPE_##TYPE},
#define PLAIN(op) {#op, offsetof(pith_kernels, op), PITH_TYPE_COUNT},
    PITH_KERNEL_LIST(TYPED, PLAIN)
#undef TYPED
#undef PLAIN
};

enum { N_SLOTS = sizeof slots / sizeof *slots };

typedef void (*any_fn)(void);

static any_fn pointer_of(const pith_kernels *kernels, const slot *s) {
    any_fn f;
    memcpy(&f, (const char *)kernels + s->at, sizeof f);
    return f;
}

static bool starts_with(const char *text, const char *start) {
    return strncmp(text, start, strlen(start)) == 0;
}

static void run_typed(check_context *ctx, const slot *s) {
    if (starts_with(s->name, "mul"))
        check_mul(ctx, s->type, starts_with(s->name, "mul_fast"));
    else if (starts_with(s->name, "pack"))
        check_pack(ctx, s->type);
    else
        check_panel_decode(ctx, s->type);
}

/* One line a plain slot; a slot that is missing here fails in run_slot. */
static bool run_plain(check_context *ctx, const slot *s) {
    const pith_kernels *r = ctx->ref, *t = ctx->tier;
#define CHECK(op, call)                                                                            \
    if (s->at == offsetof(pith_kernels, op)) {                                                     \
        call;                                                                                      \
        return true;                                                                               \
    }
    CHECK(quantize, check_quantize(ctx, r->quantize, t->quantize, PITH_GROUP))
    CHECK(quantize_fast, check_quantize(ctx, r->quantize_fast, t->quantize_fast, PITH_FAST_GROUP))
    CHECK(rms_norm, check_norm(ctx, r->rms_norm, t->rms_norm))
    CHECK(layer_norm, check_norm(ctx, r->layer_norm, t->layer_norm))
    CHECK(silu_mul, check_glu(ctx, r->silu_mul, t->silu_mul))
    CHECK(gelu_mul, check_glu(ctx, r->gelu_mul, t->gelu_mul))
    CHECK(gelu_erf_mul, check_glu(ctx, r->gelu_erf_mul, t->gelu_erf_mul))
    CHECK(relu2_mul, check_glu(ctx, r->relu2_mul, t->relu2_mul))
    CHECK(silu, check_unary(ctx, r->silu, t->silu))
    CHECK(gelu, check_unary(ctx, r->gelu, t->gelu))
    CHECK(gelu_erf, check_unary(ctx, r->gelu_erf, t->gelu_erf))
    CHECK(relu2, check_unary(ctx, r->relu2, t->relu2))
    CHECK(exp, check_unary(ctx, r->exp, t->exp))
    CHECK(add, check_binary(ctx, r->add, t->add))
    CHECK(mul_elements, check_binary(ctx, r->mul_elements, t->mul_elements))
    CHECK(scale, check_scale(ctx, r->scale, t->scale))
    CHECK(softcap, check_scale(ctx, r->softcap, t->softcap))
    CHECK(rope_norm, check_rope(ctx, r->rope_norm, t->rope_norm))
    CHECK(rope_neox, check_rope(ctx, r->rope_neox, t->rope_neox))
    CHECK(attend_f32, check_attend(ctx, r->attend_f32, t->attend_f32, 'f'))
    CHECK(attend_f16, check_attend(ctx, r->attend_f16, t->attend_f16, 'h'))
    CHECK(attend_i8, check_attend(ctx, r->attend_i8, t->attend_i8, 'i'))
    CHECK(merge, check_merge(ctx))
    CHECK(kv_put_f32, check_kv_put(ctx, r->kv_put_f32, t->kv_put_f32, 'f'))
    CHECK(kv_put_f16, check_kv_put(ctx, r->kv_put_f16, t->kv_put_f16, 'h'))
    CHECK(kv_put_i8, check_kv_put(ctx, r->kv_put_i8, t->kv_put_i8, 'i'))
    CHECK(max, check_reduce(ctx, r->max, t->max))
#undef CHECK
    return false;
}

static void run_slot(check_context *ctx, const slot *s) {
    if (sigsetjmp(fault_jump, 1)) {
        check_fail(ctx, "%s after %u cases",
                   fault_signal == SIGILL ? "illegal instruction"
                                          : "bad memory access or arithmetic fault",
                   ctx->n_case);
        check_release_all(ctx);
        return;
    }
    if (s->type != PITH_TYPE_COUNT)
        run_typed(ctx, s);
    else if (!run_plain(ctx, s))
        check_fail(ctx, "no check for this slot");
}

/* Checks every slot whose kernel differs from `below`. how: native or emulated. */
static void check_table(const options *o, totals *sum, const pith_kernels *below,
                        const pith_kernels *kernels, uint32_t features, const char *how) {
    pith_kernels ref;
    pith_kernels_init(&ref, 0);
    for (size_t i = 0; i < N_SLOTS; i++) {
        check_context ctx = {
            .ref = &ref, .tier = kernels, .seed = o->seed + i, .random = o->seed + i};
        if (pointer_of(kernels, &slots[i]) == pointer_of(below, &slots[i])) continue;
        if (!pith_kernels_name(features, i, &ctx.slot, &ctx.function)) continue;
        if (o->filter && !strstr(ctx.function, o->filter)) continue;
        run_slot(&ctx, &slots[i]);
        if (ctx.n_failed)
            sum->failed++;
        else
            sum->passed++;
        if (o->verbose || ctx.n_failed)
            printf("%-18s %-34s %-8s %s, %u cases\n", ctx.slot, ctx.function, how,
                   ctx.n_failed ? "FAILED" : "ok", ctx.n_case);
    }
}

/* Names of kernels that only `features` bits beyond the machine's would choose. */
static void tell_skipped(totals *sum, uint32_t machine, uint32_t tier, const char *name,
                         bool emulated) {
    const char *slot_name, *here, *there;
    unsigned n = 0;
    for (size_t i = 0; pith_kernels_name(machine, i, &slot_name, &here); i++)
        if (pith_kernels_name(machine | tier, i, &slot_name, &there) && strcmp(here, there) != 0)
            n++;
    if (n == 0 || emulated) return;
    sum->skipped += n;
    printf("skipped: %u kernels of %s, which this machine lacks\n", n, name);
}

typedef struct tier {
    uint32_t bit;
    const char *name;
} tier;

static const tier tiers[] = {{PITH_CPU_AVX2, "avx2"},     {PITH_CPU_AVXVNNI, "avxvnni"},
                             {PITH_CPU_AVX512, "avx512"}, {PITH_CPU_AMX, "amx"},
                             {PITH_CPU_NEON, "neon"},     {PITH_CPU_DOTPROD, "dotprod"},
                             {PITH_CPU_I8MM, "i8mm"}};

static void check_tiers(const options *o, totals *sum) {
    uint32_t machine = pith_cpu_detect(), features = 0, emulated_features = 0;
    pith_kernels below, kernels;
    const char *name;
    pith_kernels_init(&below, 0);
    for (size_t i = 0; i < sizeof tiers / sizeof *tiers; i++) {
        if (!(machine & tiers[i].bit)) continue;
        features |= tiers[i].bit;
        pith_kernels_init(&kernels, features);
        check_table(o, sum, &below, &kernels, features, "native");
        below = kernels;
    }
    for (size_t i = 0; (name = check_emulated(i, machine, &features, &kernels)) != NULL; i++) {
        pith_kernels_init(&below, features & machine);
        emulated_features |= features;
        if (o->verbose) printf("emulated: %s\n", name);
        check_table(o, sum, &below, &kernels, features, "emulated");
    }
    for (size_t i = 0; i < sizeof tiers / sizeof *tiers; i++)
        if (!(machine & tiers[i].bit))
            tell_skipped(sum, machine, tiers[i].bit, tiers[i].name,
                         (emulated_features & tiers[i].bit) != 0);
}

typedef struct truth {
    const char *name;
    void (*run)(check_context *ctx);
} truth;

static void check_reference(const options *o, totals *sum) {
    static const truth truths[] = {{"products", check_truth_products},
                                   {"fast products", check_truth_fast},
                                   {"vectors", check_truth_vectors},
                                   {"attention", check_truth_attention}};
    pith_kernels ref;
    pith_kernels_init(&ref, 0);
    for (size_t i = 0; i < sizeof truths / sizeof *truths; i++) {
        check_context ctx = {.ref = &ref,
                             .tier = &ref,
                             .slot = truths[i].name,
                             .function = "reference",
                             .seed = o->seed,
                             .random = o->seed};
        if (o->filter && !strstr("reference", o->filter)) continue;
        truths[i].run(&ctx);
        if (ctx.n_failed)
            sum->failed++;
        else
            sum->passed++;
        if (o->verbose)
            printf("%-18s reference against double precision: %s, %u cases\n", ctx.slot,
                   ctx.n_failed ? "FAILED" : "ok", ctx.n_case);
    }
}

static bool read_options(options *o, int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--verbose") == 0)
            o->verbose = true;
        else if (strcmp(argv[i], "--bench") == 0)
            o->bench = true;
        else if (strcmp(argv[i], "--seed") == 0 && more)
            o->seed = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--filter") == 0 && more)
            o->filter = argv[++i];
        else if (strcmp(argv[i], "--tier") == 0 && more)
            o->tier = argv[++i];
        else
            return false;
    }
    return true;
}

int main(int argc, char **argv) {
    options o = {.seed = 20240229};
    totals sum = {0, 0, 0};
    if (!read_options(&o, argc, argv)) {
        fprintf(stderr, "usage: check_kernels [--seed N] [--filter TEXT] [--verbose] | --bench "
                        "[--tier NAME] [--filter TEXT]\n");
        return 2;
    }
    if (o.bench) {
        pith_error error;
        uint32_t features;
        if (pith_cpu_limit(pith_cpu_detect(), o.tier, &features, &error) != PITH_OK) {
            fprintf(stderr, "%s\n", error.text);
            return 2;
        }
        check_bench(features, o.filter);
        return 0;
    }
    catch_faults();
    check_reference(&o, &sum);
    check_tiers(&o, &sum);
    printf("%u passed, %u failed\n", sum.passed, sum.failed);
    return sum.failed ? 1 : 0;
}
