/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: how it is cut, then any bytes as a reply with calls of tools.
 * First byte: low 2 bits the format, next bit whether the prompt has begun a thought, next bit whether tools f and g are offered; second byte: size of the pieces. The pieces give what
 * the whole gives; arguments are JSON; nothing but space and marks is lost. Seeds: corpus/chat_message/. */
#include "base/memory.h"
#include "chat/chat.h"

#include <string.h>

static void check(bool good) {
    if (!good) __builtin_trap();
}

static const pith_tool_format formats[4] = {
    {.marker = "<tool_call>",
     .open = "<tool_call>\n",
     .close = "\n</tool_call>",
     .between = "\n",
     .arguments = "arguments",
     .thought_begin = "<think>",
     .thought_end = "</think>"},
    {.marker = "[C]", .begin = "[C][", .between = ", ", .end = "]", .arguments = "arguments"},
    {.marker = "", .arguments = "parameters", .thought_begin = "<t>", .thought_end = "</t>"},
    {.marker = "<c>",
     .begin = "<c>",
     .open = "<f>",
     .middle = "\n<a>",
     .close = "</f>",
     .between = "\n",
     .end = "</c>"},
};

static const char tools[] = "[{\"function\": {\"name\": \"f\", \"parameters\": {\"properties\": "
                            "{\"a\": {}}}}}, {\"name\": \"g\"}]";

/* Some values are valid, some are not, and of some it cannot be told. */
static pith_status ask(void *user, json_t *parameters, pith_span arguments) {
    (void)user;
    check(json_is_object(parameters) && arguments.size > 1 && arguments.data[0] == '{');
    return arguments.size % 3 == 0   ? PITH_ERROR_FORMAT
           : arguments.size % 3 == 1 ? PITH_ERROR_UNSUPPORTED
                                     : PITH_OK;
}

static pith_reply_reader *read(const pith_tool_format *format, uint8_t how, pith_span text,
                               size_t step) {
    pith_reply_reader *reader = NULL;
    check(pith_reply_reader_new(format, (how & 4) != 0, &reader, NULL) == PITH_OK);
    if (how & 8)
        check(pith_reply_reader_offer(reader, pith_span_of(tools), NULL, (how & 16) == 0,
                                      (pith_call_check){NULL, ask}, NULL) == PITH_OK);
    for (size_t at = 0; at < text.size; at += step) {
        size_t size = text.size - at < step ? text.size - at : step;
        pith_span piece = {text.data + at, size};
        check(pith_reply_reader_push(reader, piece, false, NULL) == PITH_OK);
    }
    check(pith_reply_reader_push(reader, (pith_span){"", 0}, true, NULL) == PITH_OK);
    return reader;
}

static void check_calls(const pith_reply_reader *a, const pith_reply_reader *b) {
    pith_tool_call one, other;
    check(pith_reply_reader_n_calls(a) == pith_reply_reader_n_calls(b));
    for (size_t i = 0; pith_reply_reader_call(a, i, &one); i++) {
        json_t *json = NULL;
        check(pith_reply_reader_call(b, i, &other));
        check(strcmp(one.name, other.name) == 0 && strcmp(one.arguments, other.arguments) == 0);
        check(pith_json_parse(pith_span_of(one.arguments), &json, NULL) == PITH_OK);
        check(json_is_object(json) && one.name[0] != 0);
        json_decref(json);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    const pith_tool_format *format = &formats[data[0] % 4];
    const pith_span text = {(const char *)data + 2, size - 2};
    pith_reply_reader *whole = read(format, data[0], text, size);
    pith_reply_reader *cut = read(format, data[0], text, 1 + data[1] % 16);
    pith_span content = pith_reply_reader_content(whole);
    pith_span thought = pith_reply_reader_reasoning(whole);
    check(pith_span_equal(content, pith_reply_reader_content(cut)));
    check(pith_span_equal(thought, pith_reply_reader_reasoning(cut)));
    check(content.size + thought.size <= text.size);
    if (pith_reply_reader_n_calls(whole) == 0 && format->thought_end == NULL)
        check(pith_span_equal(content, text));
    check_calls(whole, cut);
    pith_reply_reader_free(whole);
    pith_reply_reader_free(cut);
    return 0;
}
