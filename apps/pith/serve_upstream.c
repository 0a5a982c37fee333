/* SPDX-License-Identifier: Apache-2.0
 * --upstream and what belongs to it. Invariant: a key comes from the environment alone and no
 * message holds it, also where somebody wrote it in the place of its variable's name.
 * What is done with them: apps/server/routing.c. */
#include "pith/serve_upstream.h"

#include "base/memory.h"

#include <string.h>

enum { WORDS_LIMIT = 1 << 20, KEY_LIMIT = 4096 };

void pith_serve_upstream_table(pith_serve_upstream *o,
                               pith_cli_option out[PITH_SERVE_UPSTREAM_OPTIONS]) {
    const pith_cli_option own[PITH_SERVE_UPSTREAM_OPTIONS] = {
        {"upstream", 0, PITH_CLI_TEXT, &o->url, "URL",
         "a bigger engine with OpenAI's API, e.g. https://host/v1", 0, 0},
        {"upstream-model", 0, PITH_CLI_TEXT, &o->model, "NAME", "the model to ask for there", 0, 0},
        {"upstream-key-env", 0, PITH_CLI_TEXT, &o->key_env, "VARIABLE",
         "variable that holds the key for it", 0, 0},
        {"upstream-timeout", 0, PITH_CLI_INT, &o->timeout, "SECONDS",
         "without a byte from it (default: 120)", 1, 86400},
        {"route", 0, PITH_CLI_CHOICE, &o->policy, "local-only|local-first|rules",
         "what may go there (default: local-only, nothing)", 0, 0},
        {"route-tokens", 0, PITH_CLI_INT, &o->over_tokens, "N",
         "rule: prompts of more than N tokens go upstream", 0, 1 << 30},
        {"route-tools", 0, PITH_CLI_FLAG, &o->tools, "", "rule: requests with tools go upstream", 0,
         0},
        {"route-model", 0, PITH_CLI_LIST, &o->models, "NAME",
         "rule: requests for this model go upstream; repeatable", 0, 0},
        {"private-words", 0, PITH_CLI_TEXT, &o->words_file, "FILE",
         "words that keep a request here, one a line; re: EXPRESSION", 0, 0},
    };
    memcpy(out, own, sizeof own);
}

static bool is_variable_name(const char *text) {
    for (const char *at = text; *at; at++) {
        bool letter = (*at >= 'A' && *at <= 'Z') || (*at >= 'a' && *at <= 'z') || *at == '_';
        if (!letter && (at == text || *at < '0' || *at > '9')) return false;
    }
    return text[0] != 0;
}

static int check(const pith_cli_command *command, const pith_serve_upstream *o) {
    bool has_rule = o->over_tokens > 0 || o->tools || o->models.n > 0;
    if (!o->url && (o->model || o->key_env || o->policy != PITH_ROUTE_LOCAL_ONLY || has_rule))
        return pith_cli_usage(command, "--upstream-model, --upstream-key-env and --route need "
                                       "--upstream URL");
    if (o->url && !o->model)
        return pith_cli_usage(command, "--upstream needs --upstream-model NAME");
    if (has_rule && o->policy != PITH_ROUTE_BY_RULES)
        return pith_cli_usage(command, "--route-tokens, --route-tools and --route-model need "
                                       "--route rules");
    if (o->policy == PITH_ROUTE_BY_RULES && !has_rule)
        return pith_cli_usage(command, "--route rules needs a rule: --route-tokens, --route-tools "
                                       "or --route-model");
    if (o->key_env && !is_variable_name(o->key_env))
        return pith_cli_usage(command, "--upstream-key-env needs the name of a variable, not a "
                                       "key");
    return -1;
}

static int read_key(const pith_serve_upstream *o, pith_serve_upstream_parts *parts) {
    if (!o->key_env) return -1;
    parts->key = pith_cli_variable(o->key_env);
    if (!parts->key)
        return pith_cli_fail_text("the variable that --upstream-key-env names is not set");
    size_t size = strlen(parts->key);
    while (size > 0 && strchr(" \t\r\n", parts->key[size - 1])) parts->key[--size] = 0;
    bool ok = size > 0 && size < KEY_LIMIT;
    for (const char *at = parts->key; *at; at++) ok = ok && *at > ' ' && *at < 0x7F;
    return ok ? -1
              : pith_cli_fail_text("the variable that --upstream-key-env names holds no key: it "
                                   "is empty, or has spaces or characters that are not ASCII");
}

/* A list with NUL bytes would end early, and keep less here than it says. */
static int read_words(const pith_serve_upstream *o, pith_serve_upstream_parts *parts) {
    pith_buffer text = {0};
    pith_error error = {0};
    if (!o->words_file) return -1;
    bool ok = pith_cli_read_file(o->words_file, WORDS_LIMIT, &text, &error);
    if (ok && text.size > 0 && memchr(text.data, 0, text.size)) {
        ok = false;
        pith_fail(&error, PITH_ERROR_FORMAT, "%s is no text", o->words_file);
    }
    if (ok) parts->words = pith_copy_text(text.data ? text.data : "", text.size);
    pith_buffer_deinit(&text);
    if (!ok) return pith_cli_fail(&error);
    return parts->words ? -1 : pith_cli_fail_text("out of memory");
}

static int find_log(pith_serve_upstream_parts *parts) {
    char *home = pith_cli_home_folder();
    pith_buffer path = {0};
    pith_buffer_append_format(&path, "%s/upstream.jsonl", home ? home : "");
    if (home && !path.failed) parts->log_path = pith_copy_text(path.data, path.size);
    pith_buffer_deinit(&path);
    int code = home ? pith_cli_make_folders(home) : 0;
    if (code != 0)
        code = pith_cli_fail_text("%s cannot be made: %s (what leaves is listed there)", home,
                                  strerror(code));
    else
        code = parts->log_path ? -1 : pith_cli_fail_text("out of memory");
    pith_free(home);
    return code;
}

int pith_serve_upstream_open(const pith_cli_command *command, const pith_serve_upstream *o,
                             pith_serve_upstream_parts *parts) {
    int code = check(command, o);
    if (code < 0) code = read_key(o, parts);
    if (code < 0) code = read_words(o, parts);
    if (code < 0 && o->url) code = find_log(parts);
    parts->authorities = pith_cli_variable("SSL_CERT_FILE");
    return code;
}

void pith_serve_upstream_release(pith_serve_upstream_parts *parts) {
    if (parts->key) memset(parts->key, 0, strlen(parts->key));
    pith_free(parts->key);
    pith_free(parts->words);
    pith_free(parts->log_path);
    pith_free(parts->authorities);
}

pith_server_upstream pith_serve_upstream_server(const pith_serve_upstream *o,
                                                const pith_serve_upstream_parts *parts) {
    return (pith_server_upstream){.url = o->url,
                                  .model = o->model,
                                  .key = parts->key,
                                  .key_name = o->key_env,
                                  .authorities = parts->authorities,
                                  .policy = (pith_server_policy)o->policy,
                                  .over_tokens = o->over_tokens,
                                  .tools = o->tools,
                                  .models = o->models.items,
                                  .n_models = o->models.n,
                                  .marks = parts->words,
                                  .marks_name = o->words_file,
                                  .log_path = parts->log_path,
                                  .timeout_seconds = o->timeout};
}
