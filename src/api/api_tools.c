/* SPDX-License-Identifier: Apache-2.0
 * pith.h, "Tools": which form a model writes calls in, the grammar of replies with calls, and
 * replies taken apart.
 *
 * Invariant: what the vocabulary has as one control token or marker is handled as that token in
 * both directions: the grammar asks for the token, and of the texts of control tokens a message
 * sees those alone that belong to its format. Forms and grammars are src/sample's, messages
 * src/chat's. */
#include "api/api_argument.h"
#include "api/api_call_check.h"
#include "api/api_text.h"
#include "base/memory.h"
#include "chat/chat.h"
#include "sample/grammar.h"

#include <string.h>

bool pith_tool_format_at(size_t index, pith_tool_format *out) {
    const pith_tool_format *format = pith_tool_format_get(index);
    if (!format || !out) return false;
    *out = *format;
    out->size = sizeof *out;
    return true;
}

pith_status pith_model_tool_format(const pith_model *model, pith_tool_format *out,
                                   pith_error *error) {
    if (!out) return pith_fail_null(error, "out");
    *out = (pith_tool_format){.size = sizeof *out};
    if (!model) return pith_fail_null(error, "model");
    const pith_tool_format *format = pith_tool_format_find(model->chat_template);
    if (format) *out = *format;
    out->size = sizeof *out;
    pith_tool_format_thought(model->chat_template, out);
    if (format) return PITH_OK;
    return pith_fail(error, PITH_ERROR_NOT_FOUND,
                     "the model's chat template does not say in a known form how tools are called: "
                     "take a model that was taught to call them (Qwen 2.5 or 3, Llama 3, Mistral)");
}

/* The options in full; format is then in *format. */
static pith_status take_options(const pith_model *model, const pith_tool_options *given,
                                pith_tool_options *options, pith_tool_format *format,
                                pith_error *error) {
    pith_status status = pith_copy_options(options, sizeof *options, given, "options", error);
    if (status != PITH_OK) return status;
    if (options->choice < PITH_TOOLS_AUTO || options->choice > PITH_TOOLS_NONE)
        return pith_fail(error, PITH_ERROR_ARGUMENT, "choice is %d", (int)options->choice);
    if (!options->format) return pith_model_tool_format(model, format, error);
    return pith_copy_options(format, sizeof *format, options->format, "format", error);
}

/* Tokens that are written as one: a template's own, not words. */
static int32_t find_mark(void *user, const char *text, size_t size) {
    const pith_tokenizer *tokenizer = user;
    int32_t id = pith_tokenizer_find(tokenizer, (pith_span){text, size});
    if (id < 0) return -1;
    pith_token_type type = pith_tokenizer_type(tokenizer, id);
    return type == PITH_TOKEN_CONTROL || type == PITH_TOKEN_USER_DEFINED ? id : -1;
}

pith_status pith_grammar_new_tools(const pith_model *model, const char *tools_json, size_t size,
                                   const pith_tool_options *options, pith_grammar **out,
                                   pith_error *error) {
    pith_tool_options full;
    pith_tool_format format;
    if (!out) return pith_fail_null(error, "out");
    *out = NULL;
    pith_status status = pith_check_vocabulary(model, error);
    if (status != PITH_OK) return status;
    if (!tools_json) return pith_fail_null(error, "tools_json");
    if (size > PITH_GRAMMAR_MAX_TEXT)
        return pith_fail(error, PITH_ERROR_LIMIT, "the tools have %zu bytes; at most %d are read",
                         size, PITH_GRAMMAR_MAX_TEXT);
    status = take_options(model, options, &full, &format, error);
    if (status != PITH_OK) return status;
    if (full.content_schema_size > PITH_GRAMMAR_MAX_TEXT)
        return pith_fail(error, PITH_ERROR_LIMIT,
                         "the answer's schema has %zu bytes; at most %d are read",
                         full.content_schema_size, PITH_GRAMMAR_MAX_TEXT);
    pith_grammar_tokens tokens = {model->tokenizer, find_mark};
    pith_tool_rules rules = {.format = &format,
                             .choice = full.choice,
                             .only = full.only,
                             .parallel = full.parallel,
                             .in_thought = full.in_thought,
                             .content_schema = {full.content_schema, full.content_schema_size},
                             .tokens = &tokens};
    return pith_grammar_from_tools(tools_json, size, &rules, out, error);
}

/* ---- messages ---- */

struct pith_message {
    const pith_model *model;
    pith_tool_format format;
    pith_reply_reader *reader;
    pith_call_schemas schemas; /* of the tools that the reader asked of */
    pith_buffer marks; /* the format's strings, owned: they outlive the options; each ends with 0 */
};

/* The marks as copies in one buffer. */
static bool own_marks(pith_message *message) {
    pith_tool_format *f = &message->format;
    const char **const marks[] = {&f->name,          &f->marker,      &f->begin,    &f->open,
                                  &f->close,         &f->between,     &f->end,      &f->middle,
                                  &f->thought_begin, &f->thought_end, &f->arguments};
    enum { N = sizeof marks / sizeof *marks };
    size_t at[N];
    for (size_t i = 0; i < N; i++) {
        at[i] = message->marks.size;
        if (*marks[i]) pith_buffer_append(&message->marks, *marks[i], strlen(*marks[i]) + 1);
    }
    for (size_t i = 0; i < N && !message->marks.failed; i++)
        if (*marks[i]) *marks[i] = message->marks.data + at[i];
    return !message->marks.failed;
}

/* Calls without marks count where the reply may have calls, and is not JSON anyway. */
static pith_status offer(pith_message *message, const pith_tool_options *options,
                         pith_error *error) {
    bool counts = options->choice != PITH_TOOLS_NONE && !options->content_schema;
    if (!options->tools_json || !counts) return PITH_OK;
    const pith_span tools = {options->tools_json, options->tools_json_size};
    const pith_call_check check = {&message->schemas, pith_call_schemas_ask};
    return pith_reply_reader_offer(message->reader, tools, options->only, options->parallel, check,
                                   error);
}

pith_status pith_message_new(const pith_model *model, const pith_tool_options *options,
                             pith_message **out, pith_error *error) {
    pith_tool_options full;
    pith_tool_format format;
    if (!out) return pith_fail_null(error, "out");
    *out = NULL;
    pith_status status = pith_check_vocabulary(model, error);
    if (status != PITH_OK) return status;
    status = take_options(model, options, &full, &format, error);
    if (status != PITH_OK && status != PITH_ERROR_NOT_FOUND) return status;
    pith_message *message = pith_alloc_zero(1, sizeof *message);
    if (!message) return pith_fail_memory(error, "a message", sizeof *message);
    message->model = model;
    message->format = format;
    status = own_marks(message)
                 ? pith_reply_reader_new(&message->format, full.in_thought, &message->reader, error)
                 : pith_fail_memory(error, "a message", message->marks.size);
    if (status == PITH_OK) status = offer(message, &full, error);
    if (status == PITH_OK)
        *out = message;
    else
        pith_message_free(message);
    return status;
}

void pith_message_free(pith_message *message) {
    if (!message) return;
    pith_reply_reader_free(message->reader);
    pith_call_schemas_deinit(&message->schemas);
    pith_buffer_deinit(&message->marks);
    pith_free(message);
}

/* Is the token's text a part of the format? */
static bool is_of_format(const pith_message *message, const char *piece) {
    const pith_tool_format *f = &message->format;
    const char *const marks[] = {f->marker, f->begin,  f->open,          f->close,      f->between,
                                 f->end,    f->middle, f->thought_begin, f->thought_end};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (marks[i] && strstr(marks[i], piece)) return true;
    return false;
}

/* Less the text of a control token that the format does not know, such as the end of a turn. */
static pith_span visible(const pith_message *message, int32_t id, pith_span text) {
    if (id < 0 || !pith_token_is_control(message->model, id)) return text;
    const char *piece = pith_token_piece(message->model, id);
    size_t size = strlen(piece);
    if (size > text.size || memcmp(text.data + text.size - size, piece, size) != 0) return text;
    if (is_of_format(message, piece)) return text;
    return (pith_span){text.data, text.size - size};
}

static pith_status push(pith_message *message, pith_span text, bool at_end, pith_message_part *part,
                        pith_error *error) {
    size_t content = pith_reply_reader_content(message->reader).size;
    size_t reasoning = pith_reply_reader_reasoning(message->reader).size;
    pith_status status = pith_reply_reader_push(message->reader, text, at_end, error);
    if (status != PITH_OK || !part) return status;
    pith_span all = pith_reply_reader_content(message->reader);
    pith_span thought = pith_reply_reader_reasoning(message->reader);
    *part = (pith_message_part){.content = all.data + content,
                                .content_size = all.size - content,
                                .reasoning = thought.data + reasoning,
                                .reasoning_size = thought.size - reasoning,
                                .n_calls = pith_reply_reader_n_calls(message->reader)};
    return PITH_OK;
}

pith_status pith_message_push(pith_message *message, int32_t id, const char *text, size_t size,
                              pith_message_part *part, pith_error *error) {
    if (part) *part = (pith_message_part){.content = "", .reasoning = ""};
    if (!message) return pith_fail_null(error, "message");
    if (!text && size > 0) return pith_fail_null(error, "text");
    return push(message, visible(message, id, (pith_span){text, size}), false, part, error);
}

pith_status pith_message_finish(pith_message *message, pith_message_part *part, pith_error *error) {
    if (part) *part = (pith_message_part){.content = "", .reasoning = ""};
    if (!message) return pith_fail_null(error, "message");
    return push(message, (pith_span){"", 0}, true, part, error);
}

static const char *give(pith_span text, size_t *size) {
    if (size) *size = text.size;
    return text.data;
}

const char *pith_message_content(const pith_message *message, size_t *size) {
    return give(message ? pith_reply_reader_content(message->reader) : (pith_span){"", 0}, size);
}

const char *pith_message_reasoning(const pith_message *message, size_t *size) {
    return give(message ? pith_reply_reader_reasoning(message->reader) : (pith_span){"", 0}, size);
}

bool pith_message_call_at(const pith_message *message, size_t index, pith_tool_call *out) {
    return message && out && pith_reply_reader_call(message->reader, index, out);
}
