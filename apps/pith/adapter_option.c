/* SPDX-License-Identifier: Apache-2.0
 * --lora FILE:SCALE and --control-vector FILE:SCALE:FIRST-LAST, both as often as wanted.
 *
 * A path may hold colons. So numbers are read from the end, a part counts only where it reads as
 * the number that belongs there, and a name that is there as it stands is a path in any case.
 *   a.gguf       a.gguf:0.7       C:\a.gguf:-1       v.gguf:0.8:10-20       v.gguf:10-20 */
#include "base/folder.h"
#include "base/memory.h"
#include "pith/part_file.h"
#include "pith/reply_option.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_BYTES = 32 };

void pith_cli_adapter_options(pith_cli_model *values,
                              pith_cli_option out[PITH_CLI_ADAPTER_OPTIONS]) {
    const pith_cli_option options[PITH_CLI_ADAPTER_OPTIONS] = {
        {"lora", 0, PITH_CLI_LIST, &values->loras, "FILE[:SCALE]",
         "adds a LoRA: GGUF or PEFT folder; may be given again", 0, 0},
        {"control-vector", 0, PITH_CLI_LIST, &values->controls, "FILE[:SCALE[:A-B]]",
         "adds control vectors, of layers A to B; may be given again", 0, 0}};
    memcpy(out, options, sizeof options);
}

/* ---- Reading a specification ---- */

/* Where the last ':' of the first n bytes is; n: none. */
static size_t last_colon(const char *text, size_t n) {
    for (size_t i = n; i-- > 0;)
        if (text[i] == ':') return i;
    return n;
}

/* A finite number, whole, as it is usually written. */
static bool read_scale(const char *text, size_t size, float *out) {
    char copy[NUMBER_BYTES], *end = NULL;
    if (size == 0 || size >= sizeof copy || strspn(text, "+-.0123456789eE") < size) return false;
    memcpy(copy, text, size);
    copy[size] = '\0';
    double value = strtod(copy, &end);
    *out = (float)value;
    return *end == '\0' && isfinite(*out);
}

/* "10-20". *first is -1 where layer 0 is named, since 0 stands for no range. */
static bool read_layers(const char *text, size_t size, int32_t *first, int32_t *last) {
    char copy[NUMBER_BYTES], *end = NULL;
    if (size < 3 || size > NUMBER_BYTES - 1 || strspn(text, "-0123456789") < size) return false;
    memcpy(copy, text, size);
    copy[size] = '\0';
    unsigned long a = strtoul(copy, &end, 10);
    if (copy[0] == '-' || *end != '-' || end[1] == '-' || end[1] == '\0') return false;
    unsigned long b = strtoul(end + 1, &end, 10);
    *first = a == 0 ? -1 : a <= INT32_MAX ? (int32_t)a : INT32_MAX;
    *last = b <= INT32_MAX ? (int32_t)b : INT32_MAX;
    return *end == '\0';
}

pith_cli_adapter_spec pith_cli_parse_adapter(const char *text, bool with_layers) {
    pith_cli_adapter_spec spec = {.path_size = strlen(text), .scale = 1.0f};
    if (pith_cli_try_read(text) == 0) return spec;
    size_t end = spec.path_size, colon = last_colon(text, end);
    if (with_layers && colon < end &&
        read_layers(text + colon + 1, end - colon - 1, &spec.first, &spec.last)) {
        spec.path_size = end = colon;
        colon = last_colon(text, end);
    }
    if (colon < end && read_scale(text + colon + 1, end - colon - 1, &spec.scale))
        spec.path_size = colon;
    else
        spec.scale = 1.0f;
    return spec;
}

/* ---- Before the model is loaded ---- */

/* "nan", "1e99" or "half" where a scale should stand behind a file that is there. */
static bool has_wrong_scale(const char *text) {
    size_t colon = last_colon(text, strlen(text));
    char *path = text[colon] ? pith_copy_text(text, colon) : NULL;
    bool is_there = path && path[0] && pith_cli_try_read(path) == 0;
    pith_free(path);
    return is_there;
}

static int check_one(const pith_cli_command *command, const char *option, const char *text) {
    bool is_control = strcmp(option, "control-vector") == 0;
    pith_cli_adapter_spec spec = pith_cli_parse_adapter(text, is_control);
    char *path = pith_copy_text(text, spec.path_size);
    if (!path) return pith_cli_fail_text("out of memory");
    int reason = pith_cli_try_read(path), code = -1;
    if (spec.first < 0)
        code = pith_cli_usage(command, "--%s %s: control vectors begin at layer 1", option, text);
    else if (reason != 0 && has_wrong_scale(path))
        code = pith_cli_usage(command, "--%s %s: '%s' is no scale, which is a finite number%s",
                              option, text, path + last_colon(path, spec.path_size) + 1,
                              is_control ? ", or a range of layers such as 10-20" : "");
    else if (reason != 0)
        code =
            pith_cli_fail_text("--%s: %s could not be opened: %s", option, path, strerror(reason));
    pith_free(path);
    return code;
}

int pith_cli_check_adapters(const pith_cli_command *command, const pith_cli_model *values) {
    int code = -1;
    if (values->loras.n + values->controls.n > PITH_SESSION_MAX_ADAPTERS)
        return pith_cli_usage(command, "at most %d adapters can be used together",
                              PITH_SESSION_MAX_ADAPTERS);
    for (size_t i = 0; i < values->loras.n && code < 0; i++)
        code = check_one(command, "lora", values->loras.items[i]);
    for (size_t i = 0; i < values->controls.n && code < 0; i++)
        code = check_one(command, "control-vector", values->controls.items[i]);
    return code;
}

/* Of a file, or of the weights in a PEFT folder; 0: unknown. */
static uint64_t file_bytes(const char *text, bool is_control) {
    static const char peft[] = "/adapter_model.safetensors";
    pith_cli_adapter_spec spec = pith_cli_parse_adapter(text, is_control);
    pith_buffer path = {0};
    pith_buffer_append(&path, text, spec.path_size);
    if (path.data && pith_folder_exists(path.data)) pith_buffer_append_text(&path, peft);
    uint64_t bytes = path.data && !path.failed ? pith_cli_file_bytes(path.data) : UINT64_MAX;
    pith_buffer_deinit(&path);
    return bytes == UINT64_MAX ? 0 : bytes;
}

uint64_t pith_cli_adapter_bytes(const pith_cli_model *values) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < values->loras.n; i++) bytes += file_bytes(values->loras.items[i], false);
    for (size_t i = 0; i < values->controls.n; i++)
        bytes += file_bytes(values->controls.items[i], true);
    return bytes;
}

/* ---- Opening ---- */

/* What the engine counts for an adapter. */
static int32_t room_of(int32_t rank) {
    return (rank + 15) / 16 * 16;
}

static int open_one(const char *text, bool is_control, const pith_model *model, uint64_t limit,
                    pith_cli_adapters *out) {
    pith_error error = {0};
    pith_cli_adapter_spec spec = pith_cli_parse_adapter(text, is_control);
    pith_adapter_options options = {.size = sizeof options,
                                    .first_layer = spec.first,
                                    .last_layer = spec.last,
                                    .memory_limit = limit};
    char *path = pith_copy_text(text, spec.path_size);
    if (!path) return pith_cli_fail_text("out of memory");
    pith_adapter *adapter = NULL;
    pith_status status = pith_adapter_open(model, path, &options, &adapter, &error);
    pith_free(path);
    if (status != PITH_OK) return pith_cli_fail(&error);
    pith_adapter_info info = pith_adapter_describe(adapter);
    out->items[out->n] = adapter;
    out->scales[out->n++] = spec.scale;
    out->rank += room_of(info.rank);
    out->bytes += info.bytes;
    if (is_control == (info.kind == PITH_ADAPTER_CONTROL)) return -1;
    return pith_cli_fail_text("%s holds %s", text,
                              is_control ? "a LoRA, no control vectors: use --lora"
                                         : "control vectors, no LoRA: use --control-vector");
}

int pith_cli_open_adapters(const pith_cli_model *values, const pith_model *model,
                           pith_cli_adapters *out) {
    int code = -1;
    *out = (pith_cli_adapters){.n = 0};
    for (size_t i = 0; i < values->loras.n && code < 0; i++)
        code = open_one(values->loras.items[i], false, model, values->memory, out);
    for (size_t i = 0; i < values->controls.n && code < 0; i++)
        code = open_one(values->controls.items[i], true, model, values->memory, out);
    return code;
}

void pith_cli_close_adapters(pith_cli_adapters *adapters) {
    for (size_t i = 0; i < adapters->n; i++) pith_adapter_free(adapters->items[i]);
    adapters->n = 0;
}

void pith_cli_note_adapters(const pith_session *session, json_t *notes) {
    const pith_adapter *adapter;
    float scale;
    for (size_t i = 0; pith_session_adapter_at(session, i, &adapter, &scale); i++) {
        pith_adapter_info info = pith_adapter_describe(adapter);
        pith_buffer text = {0};
        pith_buffer_append_format(&text, "adapter %s: ", info.name);
        if (info.kind == PITH_ADAPTER_LORA)
            pith_buffer_append_format(&text, "LoRA of rank %d", (int)info.rank);
        else
            pith_buffer_append_format(&text, "control vectors of %d layers", (int)info.n_tensors);
        pith_buffer_append_format(&text, ", scale %g, %.1f MiB", (double)scale,
                                  (double)info.bytes / 1048576.0);
        if (!text.failed) json_array_append_new(notes, pith_cli_json_text(text.data, text.size));
        pith_buffer_deinit(&text);
    }
}
