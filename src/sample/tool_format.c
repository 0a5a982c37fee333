/* SPDX-License-Identifier: Apache-2.0
 * How models write calls of tools: one table, and which of its rows a chat template speaks of.
 *
 * A template is known by the strings that it puts around calls of earlier turns: a model answers in
 * the form in which it sees its own calls. Forms that look alike at the start but are others
 * (<function=f>, <arg_key>) are told apart first: better none than a wrong one. Thoughts are a
 * matter of their own. Read next: tool_grammar.c, pith.h at pith_tool_format. */
#include "sample/grammar.h"

#include <string.h>

static const pith_tool_format formats[] = {
    {.name = "hermes", /* Hermes 2 and 3, Qwen 2.5 and 3, SmolLM3, Granite 4 */
     .marker = "<tool_call>",
     .begin = "",
     .open = "<tool_call>\n",
     .close = "\n</tool_call>",
     .between = "\n",
     .end = "",
     .arguments = "arguments"},
    {.name = "llama3", /* Llama 3.x with JSON calls */
     .marker = "",
     .begin = "",
     .open = "",
     .close = "",
     .between = "",
     .end = "",
     .arguments = "parameters",
     .single = true},
    {.name = "mistral", /* v3: Nemo, 7B v0.3 */
     .marker = "[TOOL_CALLS]",
     .begin = "[TOOL_CALLS][",
     .open = "",
     .close = "",
     .between = ", ",
     .end = "]",
     .arguments = "arguments"},
    {.name = "granite3",
     .marker = "<|tool_call|>",
     .begin = "<|tool_call|>[",
     .open = "",
     .close = "",
     .between = ", ",
     .end = "]",
     .arguments = "arguments"},
    {.name = "phi4-mini",
     .marker = "<|tool_call|>",
     .begin = "",
     .open = "<|tool_call|>",
     .close = "<|/tool_call|>",
     .between = "",
     .end = "",
     .arguments = "arguments"},
    {.name = "deepseek3",
     .marker = "<｜tool▁calls▁begin｜>",
     .begin = "<｜tool▁calls▁begin｜>",
     .open = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
     .middle = "\n```json\n",
     .close = "\n```<｜tool▁call▁end｜>",
     .between = "\n",
     .end = "<｜tool▁calls▁end｜>"},
    {.name = "deepseek3.1",
     .marker = "<｜tool▁calls▁begin｜>",
     .begin = "<｜tool▁calls▁begin｜>",
     .open = "<｜tool▁call▁begin｜>",
     .middle = "<｜tool▁sep｜>",
     .close = "<｜tool▁call▁end｜>",
     .between = "",
     .end = "<｜tool▁calls▁end｜>"},
};

enum { N_FORMATS = sizeof formats / sizeof *formats };

const pith_tool_format *pith_tool_format_get(size_t index) {
    return index < N_FORMATS ? &formats[index] : NULL;
}

/* In the order of asking: `has` must occur (both), `lacks` must not. */
static const struct {
    const char *has, *too, *lacks, *name;
} signs[] = {
    {"<\xEF\xBD\x9Ctool\xE2\x96\x81"
     "calls\xE2\x96\x81"
     "begin\xEF\xBD\x9C>",
     "```json", "", "deepseek3"},
    {"<\xEF\xBD\x9Ctool\xE2\x96\x81"
     "calls\xE2\x96\x81"
     "begin\xEF\xBD\x9C>",
     "", "```json", "deepseek3.1"},
    {"<|tool_call|>", "<|/tool_call|>", "", "phi4-mini"},
    {"<|tool_call|>", "", "<|/tool_call|>", "granite3"},
    {"<tool_call>", "arguments", "<function=", "hermes"},
    {"[TOOL_CALLS]", "", "[ARGS]", "mistral"},
    {"\"parameters\": dictionary of argument name", "", "", "llama3"},
};

static bool occurs(const char *text, const char *part) {
    return part[0] != 0 && strstr(text, part) != NULL;
}

const pith_tool_format *pith_tool_format_find(const char *template_text) {
    if (template_text == NULL || occurs(template_text, "<arg_key>")) return NULL;
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        if (!occurs(template_text, signs[i].has) || occurs(template_text, signs[i].lacks)) continue;
        if (signs[i].too[0] != 0 && !occurs(template_text, signs[i].too)) continue;
        for (size_t k = 0; k < N_FORMATS; k++)
            if (strcmp(formats[k].name, signs[i].name) == 0) return &formats[k];
    }
    return NULL;
}

void pith_tool_format_thought(const char *template_text, pith_tool_format *format) {
    format->thought_begin = format->thought_end = NULL;
    if (template_text == NULL || !occurs(template_text, "</think>")) return;
    format->thought_begin = "<think>";
    format->thought_end = "</think>";
}
