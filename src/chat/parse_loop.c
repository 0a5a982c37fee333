/* SPDX-License-Identifier: Apache-2.0
 *
 * {% for %}, {% break %}, {% continue %}.
 *
 *   for t in items if cond          one pass, when the body does not mention `loop`:
 *       items  LOOP_BEGIN
 *    n: LOOP_NEXT->e  t  cond  LOOP_CHECK->n  body  JUMP->n
 *    e: LOOP_END->  else body
 *
 *   two passes, when it does (loop.last and loop.length must count the items that are left):
 *       items  LOOP_BEGIN
 *    f: LOOP_NEXT->k  t  cond  LOOP_KEEP  JUMP->f
 *    k: LOOP_REWIND
 *    n: LOOP_NEXT->e  t  body  JUMP->n
 *    e: LOOP_END->  else body
 *
 * A recursive loop is a subroutine: LOOP_ENTER runs it as a call, RETURN stands at its end,
 * loop(items) calls it again.
 */
#include "chat/parser.h"

/* From the current token up to the end tag of this loop, does the body mention `loop`? */
static bool body_mentions_loop(const pith_parser *parser) {
    int nesting = 0;
    for (const pith_token *token = parser->token; token->kind != PITH_TOKEN_END; token++) {
        if (token->kind == PITH_TOKEN_NAME && pith_span_is(token->text, "loop")) return true;
        if (token->kind != PITH_TOKEN_BLOCK_BEGIN || token[1].kind != PITH_TOKEN_NAME) continue;
        if (pith_span_is(token[1].text, "for")) nesting++;
        if (pith_span_is(token[1].text, "endfor") && nesting-- == 0) return false;
    }
    return false;
}

/* Does the tag end with the word `recursive`? */
static bool tag_is_recursive(const pith_parser *parser) {
    const pith_token *token = parser->token;
    while (token->kind != PITH_TOKEN_BLOCK_END && token->kind != PITH_TOKEN_END) token++;
    return token > parser->token && token[-1].kind == PITH_TOKEN_NAME &&
           pith_span_is(token[-1].text, "recursive");
}

static const pith_token *end_of_tag(const pith_parser *parser) {
    const pith_token *token = parser->token;
    while (token->kind != PITH_TOKEN_BLOCK_END && token->kind != PITH_TOKEN_END) token++;
    return token->kind == PITH_TOKEN_END ? token : token + 1;
}

/* LOOP_NEXT and the stores into the targets from `targets` on, which stay for a second use. Sets
 * *next. */
static bool emit_next(pith_parser *parser, size_t targets, int32_t *next) {
    *next = pith_parser_here(parser);
    if (!pith_parser_emit(parser, PITH_OPCODE_LOOP_NEXT, 0, 0)) return false;
    size_t n = parser->n_targets;
    if (!pith_parser_emit_targets(parser, targets)) return false;
    parser->n_targets = n;
    return true;
}

/* Behind `if`: the pass that chooses items, before the pass that runs the body. */
static bool parse_choosing_pass(pith_parser *parser, size_t targets) {
    int32_t next;
    if (!emit_next(parser, targets, &next) || !pith_parse_expression(parser)) return false;
    if (!pith_parser_emit(parser, PITH_OPCODE_LOOP_KEEP, 0, 0) ||
        !pith_parser_emit_back(parser, next))
        return false;
    pith_parser_patch(parser, next);
    return pith_parser_emit(parser, PITH_OPCODE_LOOP_REWIND, 0, 0);
}

/* From behind the items: the head's rest, the body. Leaves the end tag or `else` as the current
 * token. */
static bool parse_passes(pith_parser *parser, size_t targets, pith_parser_loop *loop) {
    static const char *const stops[] = {"else", "endfor", NULL};
    pith_parser rest = *parser;
    rest.token = end_of_tag(parser);
    bool has_condition = pith_parser_skip_name(parser, "if"), two_passes = false;
    if (has_condition && body_mentions_loop(&rest)) {
        two_passes = true;
        if (!parse_choosing_pass(parser, targets)) return false;
    }
    if (!emit_next(parser, targets, &loop->next)) return false;
    parser->program->code[loop->next].flags =
        !has_condition || two_passes; /* no LOOP_CHECK comes */
    if (has_condition && !two_passes) {
        if (!pith_parse_expression(parser) ||
            !pith_parser_emit(parser, PITH_OPCODE_LOOP_CHECK, 0, 0))
            return false;
        int32_t check = pith_parser_here(parser) - 1;
        parser->program->code[check].a = loop->next - check - 1;
    }
    pith_parser_skip_name(parser, "recursive");
    parser->n_targets = targets;
    if (!pith_parser_expect(parser, PITH_TOKEN_BLOCK_END) || !pith_parse_body(parser, stops))
        return false;
    if (!pith_parser_emit_back(parser, loop->next)) return false;
    pith_parser_patch(parser, loop->next);
    pith_parser_patch_chain(parser, loop->breaks);
    return true;
}

static bool parse_else(pith_parser *parser) {
    static const char *const stops[] = {"endfor", NULL};
    int32_t end = pith_parser_here(parser);
    if (!pith_parser_emit(parser, PITH_OPCODE_LOOP_END, 0, 0)) return false;
    if (!pith_parser_skip_name(parser, "else")) return true;
    if (!pith_parser_expect(parser, PITH_TOKEN_BLOCK_END) ||
        !pith_parser_emit(parser, PITH_OPCODE_SCOPE_PUSH, 0, 0) ||
        !pith_parse_body(parser, stops) || !pith_parser_emit(parser, PITH_OPCODE_SCOPE_POP, 0, 0)) {
        return false;
    }
    pith_parser_patch(parser, end);
    return true;
}

bool pith_parse_for(pith_parser *parser) {
    size_t targets = parser->n_targets;
    pith_parser_loop loop = {.breaks = -1}, *outer = parser->loop;
    if (pith_parser_is_name(parser, "loop"))
        return pith_parser_fail(parser, "'loop' cannot be a loop's variable");
    if (!pith_parse_target(parser, false)) return false;
    if (!pith_parser_skip_name(parser, "in")) return pith_parser_fail_expected(parser, "'in'");
    bool is_recursive = tag_is_recursive(parser);
    if (!pith_parse_tuple(parser, PITH_TUPLE_NO_CONDITION)) return false;
    int32_t enter = pith_parser_here(parser);
    if (is_recursive && !pith_parser_emit(parser, PITH_OPCODE_LOOP_ENTER, 0, 0)) return false;
    if (!pith_parser_emit(parser, PITH_OPCODE_LOOP_BEGIN, 0, 0)) return false;
    parser->program->code[pith_parser_here(parser) - 1].flags = is_recursive;
    parser->loop = &loop;
    if (!parse_passes(parser, targets, &loop)) return false;
    parser->loop = outer;
    if (!parse_else(parser)) return false;
    if (is_recursive) {
        if (!pith_parser_emit(parser, PITH_OPCODE_RETURN, 0, 0)) return false;
        pith_parser_patch(parser, enter);
    }
    return pith_parse_end_tag(parser, "endfor");
}

bool pith_parse_break(pith_parser *parser) {
    if (parser->loop == NULL) return pith_parser_fail(parser, "'break' outside of a loop");
    return pith_parser_emit_chained(parser, PITH_OPCODE_JUMP, &parser->loop->breaks) &&
           pith_parser_expect(parser, PITH_TOKEN_BLOCK_END);
}

bool pith_parse_continue(pith_parser *parser) {
    if (parser->loop == NULL) return pith_parser_fail(parser, "'continue' outside of a loop");
    return pith_parser_emit_back(parser, parser->loop->next) &&
           pith_parser_expect(parser, PITH_TOKEN_BLOCK_END);
}
