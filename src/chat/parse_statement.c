/* SPDX-License-Identifier: Apache-2.0
 *
 * Bodies: text, {{ expressions }} and tags; and the simple tags if, print, set, with, block,
 * generation, autoescape.
 *
 * A template is one file: tags that need others (extends, include, import, from) are refused by
 * name. {% block %} is rendered where it stands. {% generation %} marks what a model is trained on;
 * here it only opens a scope.
 *
 * Read next: parse_loop.c (for), parse_block.c (macro, call, filter, set with a body).
 */
#include "chat/parser.h"

#include <stdio.h>

static bool parse_text(pith_parser *parser) {
    int32_t number;
    if (!pith_parser_constant(parser, parser->token->text, &number)) return false;
    if (!pith_parser_emit(parser, PITH_OPCODE_TEXT, number, 0)) return false;
    parser->token++;
    return true;
}

static bool parse_print_tag(pith_parser *parser) {
    parser->token++;
    return pith_parse_tuple(parser, PITH_TUPLE_PLAIN) &&
           pith_parser_emit(parser, PITH_OPCODE_PRINT, 0, 0) &&
           pith_parser_expect(parser, PITH_TOKEN_PRINT_END);
}

/* {% print a, b %} */
static bool parse_print_statement(pith_parser *parser) {
    do {
        if (!pith_parse_expression(parser) || !pith_parser_emit(parser, PITH_OPCODE_PRINT, 0, 0))
            return false;
    } while (pith_parser_skip(parser, PITH_TOKEN_COMMA));
    return pith_parser_expect(parser, PITH_TOKEN_BLOCK_END);
}

bool pith_parse_end_tag(pith_parser *parser, const char *name) {
    if (!pith_parser_skip_name(parser, name)) return pith_parser_fail_expected(parser, name);
    return pith_parser_expect(parser, PITH_TOKEN_BLOCK_END);
}

/* Behind `if` or `elif`: the condition and its body; the jump to the end is added to *ends. */
static bool parse_branch(pith_parser *parser, int32_t *ends) {
    static const char *const stops[] = {"elif", "else", "endif", NULL};
    if (!pith_parse_tuple(parser, PITH_TUPLE_NO_CONDITION)) return false;
    int32_t test = pith_parser_here(parser);
    if (!pith_parser_emit(parser, PITH_OPCODE_JUMP_IF_FALSE, 0, 0)) return false;
    if (!pith_parser_expect(parser, PITH_TOKEN_BLOCK_END) || !pith_parse_body(parser, stops))
        return false;
    if (!pith_parser_emit_chained(parser, PITH_OPCODE_JUMP, ends)) return false;
    pith_parser_patch(parser, test);
    return true;
}

static bool parse_if(pith_parser *parser) {
    static const char *const stops[] = {"endif", NULL};
    int32_t ends = -1;
    parser->n_soft++;
    if (!parse_branch(parser, &ends)) return false;
    while (pith_parser_skip_name(parser, "elif")) {
        if (!parse_branch(parser, &ends)) return false;
    }
    if (pith_parser_skip_name(parser, "else")) {
        if (!pith_parser_expect(parser, PITH_TOKEN_BLOCK_END) || !pith_parse_body(parser, stops))
            return false;
    }
    pith_parser_patch_chain(parser, ends);
    parser->n_soft--;
    return pith_parse_end_tag(parser, "endif");
}

/* A body in a scope of its own, up to the end tag's name. */
static bool parse_scoped_body(pith_parser *parser, const char *end) {
    const char *const stops[] = {end, NULL};
    return pith_parser_expect(parser, PITH_TOKEN_BLOCK_END) &&
           pith_parser_emit(parser, PITH_OPCODE_SCOPE_PUSH, 0, 0) &&
           pith_parse_body(parser, stops) &&
           pith_parser_emit(parser, PITH_OPCODE_SCOPE_POP, 0, 0) &&
           pith_parser_skip_name(parser, end);
}

/* {% with a = 1, b = a %}: all values are computed in the outer scope, then stored in the new one,
 * last first. */
bool pith_parse_with(pith_parser *parser) {
    static const char *const stops[] = {"endwith", NULL};
    size_t base = parser->n_targets;
    bool is_first = true;
    for (; !pith_parser_is(parser, PITH_TOKEN_BLOCK_END); is_first = false) {
        if (!is_first && !pith_parser_expect(parser, PITH_TOKEN_COMMA)) return false;
        if (!pith_parse_target(parser, false) || !pith_parser_expect(parser, PITH_TOKEN_ASSIGN))
            return false;
        if (!pith_parse_expression(parser)) return false;
    }
    if (!pith_parser_emit(parser, PITH_OPCODE_SCOPE_PUSH, 0, 0)) return false;
    while (parser->n_targets > base) {
        size_t last =
            parser->n_targets - 1; /* each target begins with its outermost UNPACK, flagged */
        while (parser->targets[last].flags == 0) last--;
        if (!pith_parser_emit_targets(parser, last)) return false;
    }
    return pith_parser_expect(parser, PITH_TOKEN_BLOCK_END) && pith_parse_body(parser, stops) &&
           pith_parser_emit(parser, PITH_OPCODE_SCOPE_POP, 0, 0) &&
           pith_parse_end_tag(parser, "endwith");
}

bool pith_parse_generation(pith_parser *parser) {
    pith_parser_loop *loop = parser->loop;
    parser->loop = NULL; /* it is a call: break and continue do not reach through */
    if (!parse_scoped_body(parser, "endgeneration")) return false;
    parser->loop = loop;
    return pith_parser_expect(parser, PITH_TOKEN_BLOCK_END);
}

bool pith_parse_named_block(pith_parser *parser) {
    pith_span name, again;
    if (!pith_parser_take_name(parser, &name)) return false;
    while (pith_parser_skip_name(parser, "scoped") || pith_parser_skip_name(parser, "required")) {}
    if (!parse_scoped_body(parser, "endblock")) return false;
    if (pith_parser_is(parser, PITH_TOKEN_NAME)) {
        if (!pith_parser_take_name(parser, &again)) return false;
        if (!pith_span_equal(name, again))
            return pith_parser_fail(parser, "endblock names another block");
    }
    return pith_parser_expect(parser, PITH_TOKEN_BLOCK_END);
}

bool pith_parse_autoescape(pith_parser *parser) {
    if (!pith_parser_skip_name(parser, "false") && !pith_parser_skip_name(parser, "False")) {
        return pith_parser_fail(parser, "autoescape can only be false");
    }
    return parse_scoped_body(parser, "endautoescape") &&
           pith_parser_expect(parser, PITH_TOKEN_BLOCK_END);
}

static const struct tag {
    const char *name;
    pith_statement *parse;
} tags[] = {
    {"if", parse_if},
    {"for", pith_parse_for},
    {"set", pith_parse_set},
    {"macro", pith_parse_macro},
    {"call", pith_parse_call},
    {"filter", pith_parse_filter_block},
    {"with", pith_parse_with},
    {"break", pith_parse_break},
    {"continue", pith_parse_continue},
    {"generation", pith_parse_generation},
    {"print", parse_print_statement},
    {"block", pith_parse_named_block},
    {"autoescape", pith_parse_autoescape},
};

static bool parse_tag(pith_parser *parser) {
    static const char *const refused[] = {"extends", "include", "import", "from"};
    if (!pith_parser_is(parser, PITH_TOKEN_NAME))
        return pith_parser_fail_expected(parser, "the name of a tag");
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        if (pith_parser_skip_name(parser, tags[i].name)) return tags[i].parse(parser);
    }
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        if (!pith_parser_is_name(parser, refused[i])) continue;
        return pith_parser_fail(
            parser, "{%% %s %%} needs another file; a chat template is one file", refused[i]);
    }
    return pith_parser_fail(parser, "there is no tag named '%.*s' that could stand here",
                            (int)(parser->token->text.size < 60 ? parser->token->text.size : 60),
                            parser->token->text.data);
}

static bool is_one_of(const pith_parser *parser, const char *const *names) {
    for (; names != NULL && *names != NULL; names++) {
        if (pith_parser_is_name(parser, *names)) return true;
    }
    return false;
}

static bool fail_unclosed(pith_parser *parser, const char *const *ends) {
    size_t last = 0;
    while (ends[last + 1] != NULL) last++;
    return pith_parser_fail(parser, "the template ends where {%% %s %%} is missing", ends[last]);
}

bool pith_parse_body(pith_parser *parser, const char *const *ends) {
    if (!pith_parser_enter(parser)) return false;
    for (;;) {
        bool ok;
        if (pith_parser_is(parser, PITH_TOKEN_DATA)) {
            ok = parse_text(parser);
        } else if (pith_parser_is(parser, PITH_TOKEN_PRINT_BEGIN)) {
            ok = parse_print_tag(parser);
        } else if (pith_parser_skip(parser, PITH_TOKEN_BLOCK_BEGIN)) {
            if (is_one_of(parser, ends)) break;
            ok = parse_tag(parser);
        } else {
            if (ends != NULL) return fail_unclosed(parser, ends);
            break; /* END */
        }
        if (!ok) return false;
    }
    parser->depth--;
    return true;
}
