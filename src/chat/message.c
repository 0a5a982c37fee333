/* SPDX-License-Identifier: Apache-2.0
 * A reply -> content, thoughts, calls, one push at a time.
 *
 *   held   [ what is decided ...... | what waits ]
 *            goes out, `from` moves    the start of a mark, space before one, a call not yet whole
 *
 *   START --thought_begin--> THOUGHT --thought_end--> BODY --> TEXT --marker--> CALL <--> AFTER
 *                                                            ^  ^ |               |
 *                                                 no call,   |  | +--- a line --> UNMARKED
 *                                                 or over    +--+-----------------+
 *
 * UNMARKED is only for tools that were offered to the reader (unmarked_call.c); it is tried where a
 * line begins with a sign that may begin such a call, outside of fences that hold something else,
 * and at a marker there that began none.
 *
 * Invariant: the result depends on the text alone, not on how it was cut. What turns out to be no
 * call is content from its marker on, and the search goes on behind the marker, until objects that
 * were none came to MOST_REFUSED bytes: what follows is content. Space around thoughts and calls is
 * dropped (at most MOST_SPACE signs in front of one); no other sign ever is.
 */
#include "base/memory.h"
#include "chat/chat.h"
#include "chat/tool_call.h"
#include "chat/unmarked_call.h"

#include <string.h>

#define NO_MARK SIZE_MAX
enum { MOST_SPACE = 64, MOST_CALLS = 1 << 12, MOST_NAME = 256, MOST_REFUSED = 32 << 20 };

typedef enum reader_state {
    STATE_START,
    STATE_THOUGHT,
    STATE_BODY,
    STATE_TEXT,
    STATE_CALL,
    STATE_UNMARKED
} state;

/* Where in a line the text is. */
typedef enum line_place {
    LINE_BEGIN, /* nothing but space so far */
    LINE_ONE_TICK,
    LINE_TWO_TICKS,
    LINE_INSIDE
} line_place;

/* What of a call is expected next. */
typedef enum call_part {
    PART_BEGIN,
    PART_OPEN,
    PART_NAME, /* up to the middle, of formats without an object round it */
    PART_OBJECT,
    PART_CLOSE,
    PART_AFTER /* between and another call, or the end */
} call_part;

/* The lines of the text, for calls without marks. */
typedef struct line_walk {
    size_t at; /* of held: the first sign that has not been looked at */
    line_place place;
    bool in_fence; /* of something else */
} line_walk;

typedef struct read_call {
    char *name, *arguments;
} read_call;

struct pith_reply_reader {
    pith_tool_format format; /* no mark is NULL */
    state state;
    bool drops_space; /* what comes next is stripped in front */
    pith_buffer held;
    size_t from; /* of held: what is before it has gone out */
    size_t mark; /* of held: that was found last; NO_MARK: a call has been made of it */
    call_part part;
    size_t at;                   /* of held: where the part begins */
    size_t name_from, name_size; /* of held */
    pith_object_scan scan;
    size_t refused;   /* bytes of objects that were no calls: looked at once more */
    pith_offer offer; /* the tools whose calls need no marks */
    size_t most_calls;
    line_walk lines;
    pith_unmarked_scan unmarked;
    pith_buffer content, reasoning;
    read_call *calls; /* [n_calls] */
    size_t n_calls, calls_capacity;
    pith_error *error; /* of the push */
    pith_status status;
};

static pith_span held(const pith_reply_reader *r) {
    return (pith_span){r->held.data, r->held.size};
}

/* ---- text up to a mark ---- */

static void give(pith_reply_reader *r, pith_buffer *out, size_t end) {
    if (end > r->from) pith_buffer_append(out, r->held.data + r->from, end - r->from);
    r->from = end;
}

/* false: nothing but space is left. */
static bool strip(pith_reply_reader *r) {
    while (r->from < r->held.size && pith_is_json_space(r->held.data[r->from])) r->from++;
    return r->from < r->held.size;
}

/* Does the mark begin at `at`? An empty one is nowhere. */
static pith_match mark_at(const pith_reply_reader *r, const char *mark, size_t at) {
    const char *text = r->held.data + at;
    if (*text != *mark || *mark == 0) return PITH_MATCH_NO;
    size_t size = strlen(mark), left = r->held.size - at;
    if (memcmp(text, mark, left < size ? left : size) != 0) return PITH_MATCH_NO;
    return left < size ? PITH_MATCH_WAIT : PITH_MATCH_YES;
}

/* Where the mark, or what may become it, begins; the end where it does not occur. */
static size_t find_mark(const pith_reply_reader *r, const char *mark, bool at_end, bool *whole) {
    *whole = false;
    for (size_t i = r->from; *mark && i < r->held.size; i++) {
        pith_match match = mark_at(r, mark, i);
        *whole = match == PITH_MATCH_YES;
        if (*whole || (match == PITH_MATCH_WAIT && !at_end)) return i;
    }
    return r->held.size;
}

/* Gives out what is before `found`; keeps space in front of it while that may be dropped. */
static void give_before(pith_reply_reader *r, pith_buffer *out, size_t found, bool waits) {
    size_t end = found;
    while (waits && end > r->from && found - end < MOST_SPACE &&
           pith_is_json_space(r->held.data[end - 1]))
        end--;
    give(r, out, end);
    r->mark = found;
}

/* Gives out what is before the mark and the space in front of it; true: the mark is there. */
static bool read_until(pith_reply_reader *r, pith_buffer *out, const char *mark, bool at_end) {
    bool whole;
    if (r->drops_space && !strip(r)) return false;
    r->drops_space = false;
    size_t found = find_mark(r, mark, at_end, &whole);
    give_before(r, out, found, !at_end || whole);
    return whole;
}

/* ---- calls ---- */

static bool add_call(pith_reply_reader *r, char *name, pith_span arguments) {
    if (r->n_calls == r->calls_capacity) {
        size_t capacity = r->calls_capacity * 2 + 4;
        read_call *calls = pith_realloc(r->calls, capacity * sizeof *calls);
        if (calls != NULL) {
            r->calls = calls;
            r->calls_capacity = capacity;
        }
    }
    bool has_room = r->n_calls < r->calls_capacity;
    char *copy = has_room ? pith_copy_text(arguments.data, arguments.size) : NULL;
    if (name == NULL || copy == NULL) {
        pith_free(name);
        pith_free(copy);
        return false;
    }
    r->calls[r->n_calls++] = (read_call){name, copy};
    return true;
}

/* The call whose object has been found; false: it is none, or memory is short (r->status). */
static bool take_call(pith_reply_reader *r) {
    const pith_span object = {r->held.data + r->scan.begin, r->scan.at - r->scan.begin};
    pith_span arguments = object;
    char *name = NULL;
    pith_status status = PITH_ERROR_FORMAT;
    if (r->n_calls >= r->most_calls) return false;
    if (r->format.arguments != NULL) {
        status = pith_tool_call_read(object, r->format.arguments, &name, &arguments);
    } else if (r->name_size > 0) {
        status = pith_object_check(object);
        if (status == PITH_OK) name = pith_copy_text(r->held.data + r->name_from, r->name_size);
    }
    if (status == PITH_OK && !add_call(r, name, arguments)) status = PITH_ERROR_MEMORY;
    if (status == PITH_ERROR_MEMORY)
        r->status = pith_fail_memory(r->error, "a tool call", object.size);
    return status == PITH_OK;
}

/* The name in front of `middle`; its line has no space. */
static pith_match read_name(pith_reply_reader *r) {
    const char *middle = r->format.middle;
    size_t at = r->at;
    while (at < r->held.size && pith_is_json_space(r->held.data[at])) at++;
    size_t begin = at;
    for (; at < r->held.size; at++) {
        size_t behind = at;
        pith_match match = pith_match_mark(held(r), middle, &behind);
        if (match == PITH_MATCH_WAIT) return match;
        bool is_name = (uint8_t)r->held.data[at] > ' ' && at - begin < MOST_NAME;
        if (match == PITH_MATCH_NO && !is_name) return PITH_MATCH_NO;
        if (match == PITH_MATCH_NO) continue;
        r->name_from = begin;
        r->name_size = at - begin;
        r->at = behind;
        return match;
    }
    return PITH_MATCH_WAIT;
}

static void begin_object(pith_reply_reader *r) {
    r->part = PART_OBJECT;
    r->scan = (pith_object_scan){.begin = r->at, .at = r->at};
}

/* Behind a whole call: what comes before it has been told, and is forgotten. */
static pith_match read_after(pith_reply_reader *r) {
    const pith_tool_format *f = &r->format;
    bool is_list = f->begin[0] != 0;
    while (r->at < r->held.size && pith_is_json_space(r->held.data[r->at])) r->at++;
    r->from = r->at;
    r->mark = NO_MARK;
    if (!is_list) return PITH_MATCH_NO;
    size_t at = r->at;
    pith_match end = pith_match_mark(held(r), f->end, &at);
    if (end == PITH_MATCH_YES) {
        r->from = at;
        return PITH_MATCH_NO;
    }
    at = r->at;
    pith_match more = pith_match_mark(held(r), f->between, &at);
    if (more == PITH_MATCH_YES && end == PITH_MATCH_NO) {
        r->at = at;
        r->part = PART_OPEN;
        return more;
    }
    return end == PITH_MATCH_WAIT || more == PITH_MATCH_WAIT ? PITH_MATCH_WAIT : PITH_MATCH_NO;
}

/* One part of the call. NO: the call is over, or is none. */
static pith_match read_part(pith_reply_reader *r) {
    const pith_tool_format *f = &r->format;
    pith_match match = PITH_MATCH_NO;
    switch (r->part) {
    case PART_BEGIN:
        match = pith_match_mark(held(r), f->begin, &r->at);
        if (match == PITH_MATCH_YES) r->part = PART_OPEN;
        break;
    case PART_OPEN:
        match = pith_match_mark(held(r), f->open, &r->at);
        if (match != PITH_MATCH_YES) break;
        r->part = PART_NAME;
        if (f->arguments != NULL) begin_object(r);
        break;
    case PART_NAME:
        match = read_name(r);
        if (match == PITH_MATCH_YES) begin_object(r);
        break;
    case PART_OBJECT:
        match = pith_scan_object(held(r), &r->scan);
        r->at = r->scan.at;
        if (match == PITH_MATCH_YES) r->part = PART_CLOSE;
        break;
    case PART_CLOSE:
        match = pith_match_mark(held(r), f->close, &r->at);
        if (match == PITH_MATCH_YES && !take_call(r)) return PITH_MATCH_NO;
        if (match == PITH_MATCH_YES) r->part = PART_AFTER;
        break;
    case PART_AFTER: match = read_after(r); break;
    }
    return match;
}

/* Text goes on at `from`. */
static void begin_text(pith_reply_reader *r, line_place place) {
    r->lines.at = r->from;
    r->lines.place = place;
    r->state = STATE_TEXT;
}

static void begin_unmarked(pith_reply_reader *r) {
    r->state = STATE_UNMARKED;
    r->unmarked = (pith_unmarked_scan){.at = r->mark, .most_calls = r->most_calls - r->n_calls};
}

/* No call begins at the mark: content, or a call in a tag that is the mark. */
static void refuse_mark(pith_reply_reader *r) {
    const size_t size = strlen(r->format.marker);
    bool begins_line = r->lines.place == LINE_BEGIN && !r->lines.in_fence;
    if (r->offer.tools != NULL && r->n_calls < r->most_calls && begins_line && size > 0) {
        begin_unmarked(r);
        return;
    }
    give(r, &r->content, r->mark + size);
    begin_text(r, size > 0 ? LINE_INSIDE : LINE_BEGIN);
}

/* false: more text is needed. */
static bool read_call_parts(pith_reply_reader *r, bool at_end) {
    pith_match match;
    do match = read_part(r);
    while (match == PITH_MATCH_YES);
    if (r->status != PITH_OK || (match == PITH_MATCH_WAIT && !at_end)) return false;
    r->drops_space = r->part == PART_AFTER;
    if (r->part == PART_OBJECT || r->part == PART_CLOSE) r->refused += r->scan.at - r->scan.begin;
    if (r->mark != NO_MARK)
        refuse_mark(r);
    else /* behind a call; what stands there begins a line */
        begin_text(r, LINE_BEGIN);
    return true;
}

static void begin_call(pith_reply_reader *r) {
    r->state = STATE_CALL;
    r->part = PART_BEGIN;
    r->at = r->mark;
}

/* ---- calls without marks ---- */

/* Goes on by one sign; true: a call may begin at it. */
static bool walk(line_walk *lines, char c) {
    if (c == '\n') {
        lines->place = LINE_BEGIN;
    } else if (lines->place == LINE_BEGIN && pith_is_json_space(c)) {
        return false;
    } else if (lines->place == LINE_BEGIN && !lines->in_fence) {
        if (c == '{' || c == '[' || c == '<' || c == '`') return true;
        lines->place = LINE_INSIDE;
    } else if (c == '`' && lines->place < LINE_INSIDE) {
        lines->place++;
        if (lines->place == LINE_INSIDE) lines->in_fence = false;
    } else {
        lines->place = LINE_INSIDE;
    }
    return false;
}

/* Goes on to where a call may begin, with the mark or without, and says which: TEXT is none. */
static state find_call(pith_reply_reader *r, bool at_end) {
    line_walk *lines = &r->lines;
    if (lines->at < r->from) lines->at = r->from;
    for (; lines->at < r->held.size; lines->at++) {
        pith_match match = mark_at(r, r->format.marker, lines->at);
        if (match == PITH_MATCH_YES) return STATE_CALL;
        if (match == PITH_MATCH_WAIT && !at_end) return STATE_TEXT;
        if (walk(lines, r->held.data[lines->at])) return STATE_UNMARKED;
    }
    return STATE_TEXT;
}

/* Behind the sign at which no call began: does it begin a fence? */
static void pass_refused(pith_reply_reader *r) {
    const char *sign = r->held.data + r->mark;
    r->refused += r->unmarked.object.at - r->unmarked.object.begin;
    r->lines.in_fence = r->held.size - r->mark >= 3 && memcmp(sign, "```", 3) == 0;
    give(r, &r->content, r->mark + (r->lines.in_fence ? 3 : 1));
    begin_text(r, LINE_INSIDE);
}

/* Behind the last call. */
static void pass_over(pith_reply_reader *r) {
    const pith_unmarked_scan *s = &r->unmarked;
    if (s->object.at > s->at) r->refused += s->object.at - s->at;
    r->from = s->at;
    r->mark = NO_MARK;
    r->lines.in_fence = s->wrap == PITH_UNMARKED_FENCE && !s->is_closed;
    r->drops_space = true;
    begin_text(r, LINE_BEGIN);
}

static void take_unmarked(pith_reply_reader *r) {
    const pith_unmarked_scan *s = &r->unmarked;
    if (!add_call(r, pith_copy_text(s->name, strlen(s->name)), s->arguments))
        r->status = pith_fail_memory(r->error, "a tool call", s->arguments.size);
    r->from = s->at;
    r->mark = NO_MARK;
}

/* false: more text is needed. */
static bool read_unmarked(pith_reply_reader *r, bool at_end) {
    switch (pith_unmarked_next(&r->unmarked, held(r), at_end, &r->offer)) {
    case PITH_UNMARKED_NONE: pass_refused(r); return true;
    case PITH_UNMARKED_WAIT: return false;
    case PITH_UNMARKED_MEMORY:
        r->status = pith_fail_memory(r->error, "a tool call", r->held.size - r->from);
        return false;
    case PITH_UNMARKED_CALL: take_unmarked(r); return true;
    case PITH_UNMARKED_OVER: pass_over(r); return true;
    }
    return false;
}

/* Text up to what may be a call, with marks or without; false: more text is needed. */
static bool read_text(pith_reply_reader *r, bool at_end) {
    if (r->refused > MOST_REFUSED) {
        give(r, &r->content, r->held.size);
        return false;
    }
    if (r->offer.tools == NULL || r->n_calls >= r->most_calls) {
        if (!read_until(r, &r->content, r->format.marker, at_end)) return false;
        begin_call(r);
        return true;
    }
    if (r->drops_space && !strip(r)) return false;
    r->drops_space = false;
    state next = find_call(r, at_end);
    give_before(r, &r->content, r->lines.at, !at_end || next != STATE_TEXT);
    if (next == STATE_CALL) begin_call(r);
    if (next == STATE_UNMARKED) begin_unmarked(r);
    return next != STATE_TEXT;
}

/* ---- states ---- */

/* Does the reply begin with a thought? false: more text is needed. */
static bool read_start(pith_reply_reader *r, bool at_end) {
    const char *mark = r->format.thought_begin;
    size_t from = r->from, size = strlen(mark), i = 0;
    while (from < r->held.size && pith_is_json_space(r->held.data[from])) from++;
    while (i < size && from + i < r->held.size && r->held.data[from + i] == mark[i]) i++;
    bool is_open = from + i == r->held.size && i < size && from - r->from <= MOST_SPACE;
    if (is_open && !at_end) return false;
    r->state = STATE_BODY;
    if (i < size || size == 0 || from - r->from > MOST_SPACE) return true;
    r->from = from + size;
    r->state = STATE_THOUGHT;
    r->drops_space = true;
    return true;
}

/* The first sign of a reply decides where calls have no marker. */
static bool read_body(pith_reply_reader *r, bool at_end) {
    size_t at = r->from;
    if (r->format.marker[0] == 0 && r->format.arguments != NULL) {
        while (at < r->held.size && pith_is_json_space(r->held.data[at])) at++;
        bool is_near = at - r->from <= MOST_SPACE;
        if (at == r->held.size && !at_end && is_near) return false;
        if (at < r->held.size && r->held.data[at] == '{' && is_near) {
            r->mark = r->from;
            begin_call(r);
            return true;
        }
    }
    r->state = STATE_TEXT;
    return true;
}

/* false: what is held waits for more. */
static bool read_some(pith_reply_reader *r, bool at_end) {
    switch (r->state) {
    case STATE_START: return read_start(r, at_end);
    case STATE_BODY: return read_body(r, at_end);
    case STATE_CALL: return read_call_parts(r, at_end);
    case STATE_THOUGHT:
        if (!read_until(r, &r->reasoning, r->format.thought_end, at_end)) return false;
        r->from = r->mark + strlen(r->format.thought_end);
        r->drops_space = true;
        r->state = STATE_BODY;
        return true;
    case STATE_TEXT: return read_text(r, at_end);
    case STATE_UNMARKED: return read_unmarked(r, at_end);
    }
    return false;
}

/* Forgets what has gone out. */
static void shrink(pith_reply_reader *r) {
    const size_t n = r->from;
    size_t *const offsets[] = {&r->at,
                               &r->name_from,
                               &r->scan.begin,
                               &r->scan.at,
                               &r->lines.at,
                               &r->unmarked.at,
                               &r->unmarked.object.begin,
                               &r->unmarked.object.at};
    if (n == 0) return;
    memmove(r->held.data, r->held.data + n, r->held.size - n);
    r->held.size -= n;
    r->held.data[r->held.size] = 0;
    r->from = 0;
    if (r->mark != NO_MARK) r->mark = r->mark > n ? r->mark - n : 0;
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++)
        *offsets[i] = *offsets[i] > n ? *offsets[i] - n : 0;
}

pith_status pith_reply_reader_push(pith_reply_reader *reader, pith_span text, bool at_end,
                                   pith_error *error) {
    pith_reply_reader *r = reader;
    r->error = error;
    pith_buffer_append(&r->held, text.data, text.size);
    while (r->status == PITH_OK && !r->held.failed && read_some(r, at_end)) continue;
    if (r->held.failed || r->content.failed || r->reasoning.failed)
        r->status = pith_fail_memory(error, "a message", r->held.size + text.size);
    if (r->held.data != NULL && r->status == PITH_OK) shrink(r);
    r->error = NULL;
    return r->status;
}

/* ---- what it holds ---- */

pith_status pith_reply_reader_new(const pith_tool_format *format, bool in_thought,
                                  pith_reply_reader **out, pith_error *error) {
    pith_reply_reader *r = pith_alloc_zero(1, sizeof *r);
    *out = r;
    if (r == NULL) return pith_fail_memory(error, "a message", sizeof *r);
    r->format = *format;
    r->most_calls = MOST_CALLS;
    const char **const marks[] = {
        &r->format.marker, &r->format.begin,         &r->format.open,
        &r->format.close,  &r->format.between,       &r->format.end,
        &r->format.middle, &r->format.thought_begin, &r->format.thought_end};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (*marks[i] == NULL) *marks[i] = "";
    r->state = in_thought && r->format.thought_end[0] != 0 ? STATE_THOUGHT : STATE_START;
    r->drops_space = r->state == STATE_THOUGHT;
    return PITH_OK;
}

pith_status pith_reply_reader_offer(pith_reply_reader *reader, pith_span tools_json,
                                    const char *only, bool parallel, pith_call_check check,
                                    pith_error *error) {
    json_t *tools;
    pith_status status = pith_offered_tools(tools_json, only, &tools, error);
    if (status != PITH_OK) return status;
    json_decref(reader->offer.tools);
    reader->offer = (pith_offer){tools, check};
    reader->most_calls = parallel ? MOST_CALLS : 1;
    return PITH_OK;
}

void pith_reply_reader_free(pith_reply_reader *reader) {
    if (reader == NULL) return;
    for (size_t i = 0; i < reader->n_calls; i++) {
        pith_free(reader->calls[i].name);
        pith_free(reader->calls[i].arguments);
    }
    pith_free(reader->calls);
    json_decref(reader->offer.tools);
    pith_buffer_deinit(&reader->held);
    pith_buffer_deinit(&reader->content);
    pith_buffer_deinit(&reader->reasoning);
    pith_free(reader);
}

static pith_span span_of(const pith_buffer *buffer) {
    return (pith_span){buffer->data ? buffer->data : "", buffer->size};
}

pith_span pith_reply_reader_content(const pith_reply_reader *reader) {
    return span_of(&reader->content);
}

pith_span pith_reply_reader_reasoning(const pith_reply_reader *reader) {
    return span_of(&reader->reasoning);
}

size_t pith_reply_reader_n_calls(const pith_reply_reader *reader) {
    return reader->n_calls;
}

bool pith_reply_reader_call(const pith_reply_reader *reader, size_t index, pith_tool_call *out) {
    if (index >= reader->n_calls) return false;
    *out = (pith_tool_call){reader->calls[index].name, reader->calls[index].arguments};
    return true;
}
