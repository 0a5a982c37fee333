/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of formats page 6.4. A new pre-tokenizer is one row of `pre_tokenizers`, and where it
 * needs a new shape one pattern of `patterns` (plus a scanner in word_split.c when speed matters).
 *
 * Patterns follow the models' own tokenizers: cased words know \p{Lu}, \p{M} and the like. \s is
 * spelled out as the property White_Space, because PCRE2's \s also takes U+180E. What a name
 * implies beyond its pattern (NFC, merging by whole pieces, BOS) stands in the row's flags.
 * Invariant: no pattern matches the empty text, looks behind, or backtracks more than linearly.
 * Patterns that would (`\s+$`, digits counted from the right) are stages of their own in
 * splitter.c. Read next: splitter.c.
 */
#include "token/pre_tokenizer.h"

#include <string.h>

#define WHITE                                                                                      \
    "\\t-\\r "                                                                                     \
    "\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}"
#define S     "[" WHITE "]"
#define NOT_S "[^" WHITE "]"
#define C     "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
#define U     "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define W     "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define FRONT "[^\\r\\n\\p{L}\\p{N}]?"
#define SIGNS " ?[^" WHITE "\\p{L}\\p{N}]+"
/* Ends of the cl100k and o200k shapes. */
#define BLANKS S "*[\\r\\n]+|" S "+(?!" NOT_S ")|" S "+"

#define CL100K(number) C "|" FRONT "\\p{L}+|" number "|" SIGNS "[\\r\\n]*|" BLANKS
#define O200K(number, contraction)                                                                 \
    FRONT U "*" W "+" contraction "|" FRONT U "+" W "*" contraction "|" number "|" SIGNS           \
            "[\\r\\n/]*|" BLANKS

/* Kimi: the o200k shape with Han as words of its own: U and W without Han, as what is left of all
 * categories. */
#define KIMI_U "[^\\p{Han}\\p{Ll}\\p{N}\\p{P}\\p{S}\\p{Z}\\p{C}]"
#define KIMI_W "[^\\p{Han}\\p{Lu}\\p{Lt}\\p{N}\\p{P}\\p{S}\\p{Z}\\p{C}]"

#define DEEPSEEK_LETTERS                                                                           \
    "A-Za-z\\x{B5}\\x{C0}-\\x{D6}\\x{D8}-\\x{F6}\\x{F8}-\\x{1BA}\\x{1BC}-\\x{1BF}\\x{1C4}-"        \
    "\\x{293}\\x{295}-\\x{2AF}\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37B}-\\x{37D}\\x{37F}"          \
    "\\x{386}\\x{388}-\\x{38A}\\x{38C}\\x{38E}-\\x{3A1}\\x{3A3}-\\x{3F5}\\x{3F7}-\\x{481}"         \
    "\\x{48A}-\\x{52F}\\x{531}-\\x{556}\\x{10A0}-\\x{10C5}\\x{13A0}-\\x{13F5}\\x{13F8}-"           \
    "\\x{13FD}\\x{1C90}-\\x{1CBA}\\x{1CBD}-\\x{1CBF}\\x{1D00}-\\x{1D2B}\\x{1D6B}-\\x{1D77}"        \
    "\\x{1D79}-\\x{1D9A}\\x{1E00}-\\x{1F15}\\x{1F18}-\\x{1F1D}\\x{1F20}-\\x{1F45}\\x{1F48}-"       \
    "\\x{1F4D}\\x{1F50}-\\x{1F57}\\x{1F59}\\x{1F5B}\\x{1F5D}\\x{1F5F}-\\x{1F7D}\\x{1F80}-"         \
    "\\x{1FB4}\\x{1FB6}-\\x{1FBC}\\x{1FBE}\\x{1FC2}-\\x{1FC4}\\x{1FC6}-\\x{1FCC}\\x{1FD0}-"        \
    "\\x{1FD3}\\x{1FD6}-\\x{1FDB}\\x{1FE0}-\\x{1FEC}\\x{1FF2}-\\x{1FF4}\\x{1FF6}-\\x{1FFC}"        \
    "\\x{2102}\\x{2107}\\x{210A}-\\x{2113}\\x{2115}\\x{2119}-\\x{211D}\\x{2124}\\x{2126}"          \
    "\\x{2128}\\x{212A}-\\x{212D}\\x{212F}-\\x{2134}\\x{2139}\\x{213C}-\\x{213F}\\x{2145}-"        \
    "\\x{2149}\\x{214E}\\x{2183}\\x{2184}\\x{2C00}-\\x{2C7B}\\x{2C7E}-\\x{2CE4}\\x{2CEB}-"         \
    "\\x{2CEE}\\x{2CF2}\\x{2CF3}\\x{A640}-\\x{A66D}\\x{A680}-\\x{A69B}\\x{A722}-\\x{A76F}"         \
    "\\x{A771}-\\x{A787}\\x{A78B}-\\x{A78E}\\x{AB70}-\\x{ABBF}\\x{FB00}-\\x{FB06}\\x{FB13}-"       \
    "\\x{FB17}\\x{FF21}-\\x{FF3A}\\x{FF41}-\\x{FF5A}\\x{10400}-\\x{1044F}\\x{104B0}-"              \
    "\\x{104D3}\\x{104D8}-\\x{104FB}\\x{10C80}-\\x{10CB2}\\x{10CC0}-\\x{10CF2}\\x{118A0}-"         \
    "\\x{118DF}\\x{1E900}-\\x{1E943}"

/* Patterns in the order of pith_stage, each with a NUL; empty: no pattern. */
static const char patterns[] =
    /* GPT2 */ "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+|" SIGNS "|" S "+(?!" NOT_S ")|" S "+"
               "\0"
               /* GPT2_DIGITS */ "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+|\\p{N}|" SIGNS "|" S
               "+(?=\\p{N})|" S "+(?!" NOT_S ")|" S "+"
               "\0"
    /* L3 */ CL100K("\\p{N}{1,3}") "\0"
    /* L3_RUNS */ CL100K("\\p{N}+") "\0"
    /* Q2 */ CL100K("\\p{N}") "\0"
    /* Q35 */ C "|" FRONT "[\\p{L}\\p{M}]+|\\p{N}| ?[^" WHITE
                              "\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" BLANKS "\0"
    /* SEED */ C "|" FRONT "\\p{L}+|\\p{N}|" SIGNS "|" BLANKS "\0"
    /* O2 */ O200K("\\p{N}{1,3}", C "?") "\0"
    /* O2_ONE */ O200K("\\p{N}", C "?") "\0"
    /* TEKKEN */ O200K(
        "\\p{N}",
        "") "\0"
            /* D3 */ "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|"
            "[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|" BLANKS "\0"
            /* NUMBER */ "\\p{N}"
            "\0"
            /* NUMBERS */ "\\p{N}+"
            "\0"
            /* NUMBERS_BY_3 */ "\\p{N}{1,3}"
            "\0"
            /* NUMBERS_FROM_RIGHT */ ""
            "\0"
            /* DIGITS_FROM_RIGHT */ ""
            "\0"
            /* LINES */ "[^\\n]+|\\n+"
            "\0"
    /* TRAILING_SPACE */ S "+\\z"
            "\0"
            /* PUNCT_DEFAULT */ "[\\p{P}\\$\\+<=>\\^~\\|]+"
            "\0"
            /* PUNCT_FALCON */ "[\\p{P}\\$\\+<=>\\^~\\|`]+"
            "\0"
            /* THREE_DIGITS */ "[0-9][0-9][0-9]"
            "\0"
            /* NEWLINE */ "[\\r\\n]"
            "\0"
    /* DEEPSEEK_LETTERS */ S "?[" DEEPSEEK_LETTERS "]+"
            "\0"
    /* DEEPSEEK_SIGNS */ S "?[!-/:-~\\x{FF01}-\\x{FF0F}\\x{FF1A}-\\x{FF5E}\\x{2018}-"
            "\\x{201F}\\x{3000}-\\x{3002}]+"
            "\0"
            /* DEEPSEEK_CJK */ "[\\x{4E00}-\\x{9FA5}\\x{800}-\\x{4E00}\\x{AC00}-\\x{D7FF}]+"
            "\0"
    /* CODER_LETTERS */ S "?\\p{L}+"
            "\0"
    /* CODER_PUNCT */ S "?\\p{P}+"
            "\0"
            /* CJK_KANA */ "[\\x{4E00}-\\x{9FA5}\\x{3040}-\\x{309F}\\x{30A0}-\\x{30FF}]+"
            "\0"
            /* BLOOM */ " ?[^(" WHITE "|.,!?\\x{2026}\\x{3002}\\x{FF0C}\\x{3001}\\x{964}\\x{6D4}"
            "\\x{60C})]+"
            "\0"
    /* EXAONE_MOE */ C "|" FRONT "\\p{L}\\p{M}*+(?: ?\\p{L}\\p{M}*+)*+|\\p{N}|" SIGNS
            "[\\r\\n/]?|" S "*[\\r\\n]|" S "+(?!" NOT_S ")|" S "+"
            "\0"
    /* JAIS_2 */ C "|" FRONT "\\p{L}+|\\p{N}{1,3}|" SIGNS "[\\r\\n]*|" S "*[\\r\\n]+|" S
            "{512}(?!" NOT_S ")|" S "{256}(?!" NOT_S ")|" S "{128}(?!" NOT_S ")|" S "{64}(?!" NOT_S
            ")|" S "{32}(?!" NOT_S ")|" S "{16}(?!" NOT_S ")|" S "{8}(?!" NOT_S ")|" S
            "{4}(?!" NOT_S ")|" S "{1,2}(?!" NOT_S ")|" S "\0"
            /* YOUTU */ "[\\x{AC00}-\\x{D7A3}\\x{3131}-\\x{318E}]+|[\\x{FF01}\\x{2026}\\x{201C}\\x{"
            "201D}\\x{2018}"
            "\\x{2019}\\x{2014}\\x{FF1A}\\x{FF1B}\\x{FF0C}\\x{3001}-\\x{303F}\\x{FE30}-\\x{FE4F}]+|"
            "[\\x{3105}-\\x{312F}]+|[\\x{4E00}-\\x{9FA5}\\x{3040}-\\x{309F}\\x{30A0}-\\x{30FF}]+"
            "\0"
            /* AFMOE_SCRIPTS */ "[\\x{4E00}-\\x{9FFF}\\x{3400}-\\x{4DBF}\\x{F900}-\\x{FAFF}\\x{"
            "3040}-\\x{309F}\\x{30A0}-"
            "\\x{30FF}\\x{FF65}-\\x{FF9F}\\x{2F00}-\\x{2FDF}\\x{E40}-\\x{E7F}\\x{E80}-\\x{EFF}"
            "\\x{1780}-\\x{17FF}\\x{1000}-\\x{109F}\\x{AA60}-\\x{AA7F}\\x{A9E0}-\\x{A9FF}\\x{AC00}-"
            "\\x{D7AF}\\x{1100}-\\x{11FF}]+"
            "\0"
            /* KIMI */ "\\p{Han}+|" FRONT KIMI_U "*" KIMI_W "+" C "?|" FRONT KIMI_U "+" KIMI_W "*" C
            "?|\\p{N}{1,3}|" SIGNS "[\\r\\n]*|" BLANKS "\0"
            /* CHAMELEON_SENTINEL */ "<sentinel:[0-9]+>"
            "\0"
            /* CHAMELEON_IMAGE */ "IMGIMG[A-I]{1,4}Z"
            "\0"
            /* CHAMELEON_BLANKS */ "[\\t\\n]|    |  "
            "\0"
            /* CHAMELEON_PUNCT */ "[\\p{P}!-/:-@\\[-`{-~]"
            "\0"
    /* WORDS */ NOT_S "+"
            "\0";

enum {
    IGNORE = PITH_PRE_IGNORE_MERGES,
    BOS = PITH_PRE_ADD_BOS,
    NO_BOS = PITH_PRE_NO_BOS,
    NFC = PITH_PRE_NFC,
    RAW = PITH_PRE_RAW,
    WHOLE = PITH_PRE_WHOLE_WORDS,
    STRIP = PITH_PRE_MASK_STRIPS
};

#define ONE(stage)                                                                                 \
    1, {                                                                                           \
        PITH_STAGE_##stage                                                                         \
    }
#define TWO(a, b)                                                                                  \
    2, {                                                                                           \
        PITH_STAGE_##a, PITH_STAGE_##b                                                             \
    }
#define FOR_DEFAULT                                                                                \
    4, {                                                                                           \
        PITH_STAGE_PUNCT_DEFAULT, PITH_STAGE_GPT2, PITH_STAGE_NUMBERS, PITH_STAGE_THREE_DIGITS     \
    }
#define FOR_DEEPSEEK_V3                                                                            \
    3, {                                                                                           \
        PITH_STAGE_NUMBERS_BY_3, PITH_STAGE_CJK_KANA, PITH_STAGE_D3                                \
    }

/* clang-format off */
static const pith_pre_tokenizer pre_tokenizers[] = {
    {"default", 0, FOR_DEFAULT},
    {"llama3", IGNORE | BOS, ONE(L3)}, {"llama-v3", IGNORE | BOS, ONE(L3)},
    {"llama-bpe", IGNORE | BOS, ONE(L3)}, {"falcon3", IGNORE | BOS, ONE(L3)},
    {"falcon-h1", IGNORE | BOS, ONE(L3)}, {"pixtral", IGNORE | BOS, ONE(L3)},
    {"midm-2.0", IGNORE | BOS, ONE(L3)}, {"lfm2", IGNORE | BOS, ONE(L3)},
    {"jina-v5-nano", IGNORE | BOS, ONE(L3)},
    {"dbrx", 0, ONE(L3)}, {"smaug-bpe", 0, ONE(L3)},
    {"chatglm-bpe", NO_BOS, ONE(L3)}, {"glm4", NO_BOS, ONE(L3)},
    {"qwen2", NFC, ONE(Q2)}, {"deepseek-r1-qwen", NFC, ONE(Q2)}, {"f2llmv2", NFC, ONE(Q2)},
    {"kormo", 0, ONE(Q2)},
    {"megrez", NFC, ONE(Q2)}, {"stablelm2", NFC, ONE(Q2)}, {"hunyuan", NFC, ONE(Q2)},
    {"solar-open", 0, ONE(Q2)}, {"grok-2", 0, ONE(Q2)},
    {"qwen35", NFC, ONE(Q35)},
    {"gpt-2", 0, ONE(GPT2)}, {"phi-2", 0, ONE(GPT2)}, {"gigachat", 0, ONE(GPT2)},
    {"jina-es", STRIP, ONE(GPT2)}, {"jina-de", STRIP, ONE(GPT2)},
    {"jina-v2-es", STRIP, ONE(GPT2)}, {"jina-v2-de", STRIP, ONE(GPT2)},
    {"a.x-4.0", 0, ONE(GPT2)}, {"mellum", 0, ONE(GPT2)}, {"modern-bert", NFC, ONE(GPT2)},
    {"exaone4", 0, ONE(GPT2)}, {"mpt", NFC, ONE(GPT2)}, {"olmo", NFC, ONE(GPT2)},
    {"jais", 0, ONE(GPT2)}, {"trillion", 0, ONE(GPT2)}, {"granite-docling", 0, ONE(GPT2)},
    {"jina-v1-en", 0, ONE(GPT2)}, {"jina-v2-code", STRIP, ONE(GPT2)}, {"roberta-bpe", 0, ONE(GPT2)},
    {"starcoder", 0, ONE(GPT2_DIGITS)}, {"refact", 0, ONE(GPT2_DIGITS)},
    {"codeshell", 0, ONE(GPT2_DIGITS)}, {"exaone", 0, ONE(GPT2_DIGITS)},
    {"minerva-7b", 0, ONE(GPT2_DIGITS)}, {"mellum2", 0, ONE(GPT2_DIGITS)},
    {"command-r", 0, ONE(GPT2_DIGITS)}, {"smollm", 0, ONE(GPT2_DIGITS)},
    {"falcon", 0, 3, {PITH_STAGE_PUNCT_FALCON, PITH_STAGE_GPT2, PITH_STAGE_THREE_DIGITS}},
    {"deepseek-llm", 0, 6, {PITH_STAGE_NEWLINE, PITH_STAGE_DEEPSEEK_LETTERS,
                            PITH_STAGE_DEEPSEEK_SIGNS, PITH_STAGE_TRAILING_SPACE,
                            PITH_STAGE_DEEPSEEK_CJK, PITH_STAGE_NUMBERS}},
    {"deepseek-coder", 0, 5, {PITH_STAGE_NEWLINE, PITH_STAGE_CODER_LETTERS, PITH_STAGE_CODER_PUNCT,
                              PITH_STAGE_DEEPSEEK_CJK, PITH_STAGE_NUMBER}},
    {"deepseek-v3", 0, FOR_DEEPSEEK_V3}, {"hunyuan-dense", 0, FOR_DEEPSEEK_V3},
    {"joyai-llm", 0, FOR_DEEPSEEK_V3},
    {"gpt-4o", 0, ONE(O2)}, {"llama4", 0, ONE(O2)}, {"kanana2", 0, ONE(O2)}, {"talkie", 0, ONE(O2)},
    {"minimax-m2", 0, ONE(O2)}, {"granite-embed-multi-97m", IGNORE, ONE(O2)},
    {"tiny_aya", 0, TWO(DIGITS_FROM_RIGHT, O2)}, {"cohere2moe", 0, TWO(DIGITS_FROM_RIGHT, O2)},
    {"tekken", IGNORE | BOS, ONE(TEKKEN)},
    {"poro-chat", 0, ONE(BLOOM)}, {"bloom", 0, ONE(BLOOM)}, {"gpt3-finnish", 0, ONE(BLOOM)},
    {"viking", 0, TWO(BLOOM, NUMBER)},
    {"superbpe", 0, TWO(NUMBERS, DIGITS_FROM_RIGHT)},
    {"bailingmoe", 0, ONE(Q2)}, {"bailingmoe2", 0, ONE(Q2)}, {"llada-moe", 0, ONE(Q2)},
    {"seed-coder", 0, ONE(SEED)}, {"exaone-moe", 0, ONE(EXAONE_MOE)},
    {"laguna", 0, TWO(LINES, Q2)}, {"minicpm5", IGNORE, TWO(NUMBERS_BY_3, L3_RUNS)},
    {"jais-2", 0, ONE(JAIS_2)}, {"youtu", IGNORE, TWO(YOUTU, O2_ONE)},
    {"afmoe", 0, 3, {PITH_STAGE_NUMBERS_FROM_RIGHT, PITH_STAGE_AFMOE_SCRIPTS, PITH_STAGE_D3}},
    {"kimi-k2", 0, ONE(KIMI)},
    {"chameleon", BOS, 6, {PITH_STAGE_CHAMELEON_SENTINEL, PITH_STAGE_CHAMELEON_IMAGE,
                           PITH_STAGE_CHAMELEON_BLANKS, PITH_STAGE_NUMBER,
                           PITH_STAGE_CHAMELEON_PUNCT, PITH_STAGE_GPT2}},
    {"gemma4", BOS | RAW, ONE(LINES)}, {"granite-embed-multi-311m", RAW, ONE(LINES)},
    {"sarvam-moe", RAW, ONE(LINES)},
    {"whitespace", RAW | WHOLE, ONE(WORDS)},
};
/* clang-format on */

const pith_pre_tokenizer *pith_pre_tokenizer_at(size_t index) {
    return index < sizeof pre_tokenizers / sizeof *pre_tokenizers ? &pre_tokenizers[index] : NULL;
}

const pith_pre_tokenizer *pith_pre_tokenizer_find(pith_span name) {
    if (!name.size) return &pre_tokenizers[0];
    for (size_t i = 0; i < sizeof pre_tokenizers / sizeof *pre_tokenizers; i++)
        if (pith_span_is(name, pre_tokenizers[i].name)) return &pre_tokenizers[i];
    return NULL;
}

const char *pith_stage_pattern(pith_stage stage) {
    const char *pattern = patterns;
    for (pith_stage i = 0; i < stage; i++) pattern += strlen(pattern) + 1;
    return *pattern ? pattern : NULL;
}

pith_word_split *pith_stage_scanner(pith_stage stage) {
    switch (stage) {
    case PITH_STAGE_GPT2: return pith_split_gpt2;
    case PITH_STAGE_GPT2_DIGITS: return pith_split_gpt2_digits;
    case PITH_STAGE_L3: return pith_split_l3;
    case PITH_STAGE_L3_RUNS: return pith_split_l3_runs;
    case PITH_STAGE_Q2: return pith_split_q2;
    case PITH_STAGE_Q35: return pith_split_q35;
    case PITH_STAGE_SEED: return pith_split_seed;
    case PITH_STAGE_O2: return pith_split_o2;
    case PITH_STAGE_O2_ONE: return pith_split_o2_one;
    case PITH_STAGE_TEKKEN: return pith_split_tekken;
    case PITH_STAGE_D3: return pith_split_d3;
    default: return NULL;
    }
}
