/* SPDX-License-Identifier: Apache-2.0
 * What pith knows of the models that it pulled: a small JSON file beside the first file of each,
 * written last, so that a model without one is not whole. And when a model of any origin was last
 * used, kept in the home folder, since access times of files are not reliable and the folders of
 * others are not written to.
 * Invariant: a record holds no token and no query of an address. */
#include "base/calendar.h"
#include "base/memory.h"
#include "pith/kept.h"
#include "pith/models.h"

#include <string.h>

enum { RECORD_LIMIT = 1 << 20 };

static const char used_folder[] = "used";

char *pith_cli_pulled_path(const char *model_path) {
    pith_buffer path = {0};
    pith_buffer_append_format(&path, "%s.json", model_path);
    char *text = path.failed ? NULL : pith_copy_text(path.data, path.size);
    pith_buffer_deinit(&path);
    return text;
}

json_t *pith_cli_pulled_read(const char *model_path) {
    char *path = pith_cli_pulled_path(model_path);
    pith_buffer text = {0};
    json_t *json = NULL;
    if (path && pith_cli_try_read(path) == 0 && !pith_cli_is_device(path) &&
        pith_cli_read_file(path, RECORD_LIMIT, &text, NULL))
        json = json_loadb(text.data ? text.data : "", text.size, 0, NULL);
    if (json && !json_is_object(json)) {
        json_decref(json);
        json = NULL;
    }
    pith_buffer_deinit(&text);
    pith_free(path);
    return json;
}

bool pith_cli_pulled_write(const char *model_path, json_t *json) {
    char *path = pith_cli_pulled_path(model_path);
    char *text = json && path ? json_dumps(json, JSON_INDENT(1)) : NULL;
    bool written = text && pith_cli_replace_file(path, text, strlen(text));
    pith_free(text);
    pith_free(path);
    json_decref(json);
    return written && !pith_cli_json_failed();
}

int64_t pith_cli_last_used(const char *model_path) {
    json_t *json = pith_cli_kept_read(used_folder, model_path);
    double seconds = 0;
    bool known = json && pith_cli_kept_number(json, "used", &seconds) && seconds > 0;
    json_decref(json);
    return known ? (int64_t)seconds : 0;
}

void pith_cli_mark_used(const char *model_path) {
    pith_cli_kept_write(used_folder, model_path,
                        json_pack("{s:o, s:I}", "model", pith_cli_json_string(model_path), "used",
                                  (json_int_t)pith_calendar_now()));
}
