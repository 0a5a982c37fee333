/* SPDX-License-Identifier: Apache-2.0
 * One request over HTTP with libcurl: the set-up that all requests share, what their headers say,
 * sentences for what fails, waiting before another try.
 * Redirects are followed, at most REDIRECT_LIMIT, never from https to http. libcurl gives the
 * Authorization header to the first host alone; what a header says of a file's digest is believed
 * of that host alone too. Proxies come from the environment (http_proxy, https_proxy, all_proxy,
 * no_proxy, in small or capital letters), certificates from the system or $SSL_CERT_FILE.
 * Invariant: no message holds a token or the query of an address (it may be a signature).
 * Read next: download.c. */
#if !defined(_WIN32)
#define _DEFAULT_SOURCE /* setenv under -std=c11 */
#endif

#include "pith/pull.h"

#if PITH_WITH_CURL

#include "base/clock.h"
#include "base/memory.h"
#include "pith/fetch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEADER_LIMIT = 256 << 10, /* bytes of all headers of one request, redirects included */
    REDIRECT_LIMIT = 10,
    CONNECT_SECONDS = 15,
    FIRST_WAIT_MS = 100,
    WAIT_LIMIT_MS = 30000,
    ASKED_LIMIT = 600 /* seconds that a server may ask us to wait */
};

/* Capital HTTP_PROXY is not read by libcurl, since in a CGI program a client could set it; pith is
 * none. */
bool pith_cli_network_open(pith_error *error) {
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        pith_fail(error, PITH_ERROR_IO, "libcurl could not be set up");
        return false;
    }
#if !defined(_WIN32)
    char *proxy = pith_cli_variable("HTTP_PROXY");
    if (proxy) (void)setenv("http_proxy", proxy, 0);
    pith_free(proxy);
#endif
    return true;
}

void pith_cli_network_close(void) {
    curl_global_cleanup();
}

const char *pith_cli_network_version(void) {
    return curl_version_info(CURLVERSION_NOW)->version;
}

/* ---- Headers ---- */

/* The value of header `name` in a line of `size` bytes, without spaces around it. */
static bool header_value(const char *line, size_t size, const char *name, pith_span *value) {
    size_t n = strlen(name);
    if (size <= n || line[n] != ':' || !pith_cli_same_text(line, n, name)) return false;
    size_t from = n + 1, to = size;
    while (from < to && (line[from] == ' ' || line[from] == '\t')) from++;
    while (to > from && strchr("\r\n \t", line[to - 1])) to--;
    *value = (pith_span){line + from, to - from};
    return true;
}

static void copy_span(char *out, size_t capacity, pith_span value) {
    size_t n = value.size < capacity ? value.size : 0; /* cut short it would mean something else */
    if (n) memcpy(out, value.data, n);
    out[n] = 0;
}

static bool read_digits(pith_span *text, uint64_t *out) {
    size_t n = 0;
    *out = 0;
    for (; n < text->size && text->data[n] >= '0' && text->data[n] <= '9'; n++) {
        if (*out > UINT64_MAX / 16) return false;
        *out = *out * 10 + (uint64_t)(text->data[n] - '0');
    }
    text->data += n;
    text->size -= n;
    return n > 0;
}

/* "bytes 0-3/1000" or "bytes 0-3/" and a star. */
static void read_range(pith_cli_answer *answer, pith_span value) {
    uint64_t last;
    if (value.size < 6 || memcmp(value.data, "bytes ", 6) != 0) return;
    value.data += 6;
    value.size -= 6;
    if (!read_digits(&value, &answer->first) || !value.size || *value.data != '-') return;
    value.data++;
    value.size--;
    if (!read_digits(&value, &last) || !value.size || *value.data != '/') return;
    value.data++;
    value.size--;
    answer->has_range = true;
    answer->has_total = read_digits(&value, &answer->total);
}

/* "\"<64 hexadecimal digits>\"". */
static void read_digest(pith_cli_answer *answer, pith_span value) {
    if (value.size >= 2 && value.data[0] == '"') {
        value.data++;
        value.size -= 2;
    }
    copy_span(answer->digest, sizeof answer->digest, value);
    if (!pith_cli_is_digest(answer->digest)) answer->digest[0] = 0;
}

/* <address>; rel="next" */
static void read_link(pith_cli_answer *answer, pith_span value) {
    const char *end = value.size && *value.data == '<' ? memchr(value.data, '>', value.size) : NULL;
    if (!end) return;
    pith_buffer rest = {0};
    pith_buffer_append(&rest, end, value.size - (size_t)(end - value.data));
    if (rest.data && strstr(rest.data, "rel=\"next\""))
        copy_span(answer->next, sizeof answer->next,
                  (pith_span){value.data + 1, (size_t)(end - value.data) - 1});
    pith_buffer_deinit(&rest);
}

/* A new response of the chain: what was said of an earlier one goes, what the first host said of
 * the file stays. */
static void begin_response(pith_cli_answer *answer) {
    answer->etag[0] = answer->modified[0] = answer->type[0] = answer->next[0] = 0;
    answer->first = answer->total = 0;
    answer->has_range = answer->has_total = false;
}

static void read_location(pith_cli_answer *answer, pith_span value) {
    size_t n = strlen(answer->origin);
    bool relative = value.size && *value.data == '/' && (value.size < 2 || value.data[1] != '/');
    bool same = value.size >= n && pith_cli_same_text(value.data, n, answer->origin) &&
                (value.size == n || value.data[n] == '/');
    if (!relative && !same) answer->is_elsewhere = true;
}

static void read_header(pith_cli_answer *answer, const char *line, size_t size) {
    pith_span value;
    uint64_t number;
    if (size > 5 && memcmp(line, "HTTP/", 5) == 0) begin_response(answer);
    if (header_value(line, size, "etag", &value))
        copy_span(answer->etag, sizeof answer->etag, value);
    if (header_value(line, size, "last-modified", &value))
        copy_span(answer->modified, sizeof answer->modified, value);
    if (header_value(line, size, "content-type", &value))
        copy_span(answer->type, sizeof answer->type, value);
    if (header_value(line, size, "content-range", &value)) read_range(answer, value);
    if (header_value(line, size, "content-length", &value) && !answer->has_range)
        answer->has_total = read_digits(&value, &answer->total);
    if (header_value(line, size, "link", &value)) read_link(answer, value);
    if (header_value(line, size, "x-linked-etag", &value) && !answer->is_elsewhere)
        read_digest(answer, value);
    if (header_value(line, size, "x-linked-size", &value) && !answer->is_elsewhere &&
        read_digits(&value, &number))
        answer->linked = number;
    if (header_value(line, size, "location", &value)) read_location(answer, value);
}

static size_t on_header(char *line, size_t one, size_t size, void *user) {
    pith_cli_answer *answer = user;
    answer->header_bytes += one * size;
    answer->too_large = answer->header_bytes > HEADER_LIMIT;
    if (answer->too_large) return 0;
    read_header(answer, line, one * size);
    return one * size;
}

/* ---- Requests ---- */

static bool add_header(struct curl_slist **headers, const char *name, const char *value) {
    pith_buffer line = {0};
    pith_buffer_append_format(&line, "%s: %s", name, value);
    struct curl_slist *longer = line.failed ? NULL : curl_slist_append(*headers, line.data);
    if (line.data) memset(line.data, 0, line.size);
    pith_buffer_deinit(&line);
    if (longer) *headers = longer;
    return longer != NULL;
}

static void set_up(CURL *handle, const pith_cli_request *request, pith_cli_answer *answer) {
    bool secure = pith_cli_same_text(request->url, 8, "https://");
    curl_easy_setopt(handle, CURLOPT_URL, request->url);
    curl_easy_setopt(handle, CURLOPT_USERAGENT, "pith");
    curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(handle, CURLOPT_MAXREDIRS, (long)REDIRECT_LIMIT);
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(handle, CURLOPT_REDIR_PROTOCOLS_STR, secure ? "https" : "http,https");
#else
    curl_easy_setopt(handle, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    curl_easy_setopt(handle, CURLOPT_REDIR_PROTOCOLS,
                     (long)(secure ? CURLPROTO_HTTPS : CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
    curl_easy_setopt(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(handle, CURLOPT_LOW_SPEED_TIME, (long)request->timeout);
    curl_easy_setopt(handle, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(handle, CURLOPT_HEADERDATA, answer);
    if (request->range[0]) curl_easy_setopt(handle, CURLOPT_RANGE, request->range);
    char *certificates = pith_cli_variable("SSL_CERT_FILE");
    if (certificates) curl_easy_setopt(handle, CURLOPT_CAINFO, certificates);
    pith_free(certificates);
}

CURL *pith_cli_fetch_begin(const pith_cli_request *request, pith_cli_answer *answer,
                           struct curl_slist **headers) {
    CURL *handle = curl_easy_init();
    pith_buffer bearer = {0};
    bool whole = handle != NULL;
    *answer = (pith_cli_answer){0};
    *headers = NULL;
    pith_cli_url_origin(request->url, answer->origin, sizeof answer->origin);
    if (request->token) {
        pith_buffer_append_format(&bearer, "Bearer %s", request->token);
        whole = whole && !bearer.failed && add_header(headers, "Authorization", bearer.data);
        if (bearer.data) memset(bearer.data, 0, bearer.size);
        pith_buffer_deinit(&bearer);
    }
    if (request->validator && request->validator[0])
        whole = whole && add_header(headers, "If-Range", request->validator);
    if (!whole) {
        pith_cli_fetch_end(handle, *headers);
        *headers = NULL;
        return NULL;
    }
    set_up(handle, request, answer);
    if (*headers) curl_easy_setopt(handle, CURLOPT_HTTPHEADER, *headers);
    return handle;
}

void pith_cli_fetch_end(CURL *handle, struct curl_slist *headers) {
    if (handle) curl_easy_cleanup(handle);
    curl_slist_free_all(headers);
}

/* ---- Failures ---- */

bool pith_cli_fetch_may_repeat(CURLcode code, long status) {
    switch (code) {
    case CURLE_OK:
    case CURLE_WRITE_ERROR: return status == 408 || status == 425 || status == 429 || status >= 500;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM: return true;
    default: return false;
    }
}

static pith_status explain_status(const char *shown, const pith_cli_request *request,
                                  const pith_cli_answer *answer, pith_error *error) {
    switch (answer->status) {
    case 401:
        if (request->token)
            return pith_fail(error, PITH_ERROR_IO,
                             "%s: the server does not accept the token in HF_TOKEN (401), or there "
                             "is no such model",
                             shown);
        return pith_fail(error, PITH_ERROR_IO,
                         "%s: the server wants a token (401): the name is wrong, or the model is "
                         "private or gated; set HF_TOKEN to a token that may read it",
                         shown);
    case 403:
        return pith_fail(error, PITH_ERROR_IO, "%s: access is denied (403); %s", shown,
                         request->token
                             ? "open the model's page and accept its terms with the "
                               "account of HF_TOKEN"
                             : "a gated model needs its terms accepted and HF_TOKEN set");
    case 404:
    case 410:
        return pith_fail(error, PITH_ERROR_NOT_FOUND,
                         "%s: the server has no such file or model (%ld); check the name", shown,
                         answer->status);
    case 429:
        return pith_fail(error, PITH_ERROR_IO,
                         "%s: the server says that there are too many requests (429); try again in "
                         "%ld s, with what came so far%s",
                         shown, answer->retry_after ? answer->retry_after : 60L,
                         request->token ? "" : ", or set HF_TOKEN for a larger allowance");
    default: break;
    }
    return pith_fail(error, PITH_ERROR_IO, "%s: the server answers with status %ld%s", shown,
                     answer->status, answer->status >= 500 ? "; it may recover, try again" : "");
}

pith_status pith_cli_fetch_explain(const pith_cli_request *request, const pith_cli_answer *answer,
                                   CURLcode code, pith_error *error) {
    char shown[160];
    pith_cli_url_shown(request->url, shown, sizeof shown);
    if (answer->too_large)
        return pith_fail(error, PITH_ERROR_LIMIT,
                         "%s: the server sends more than %d bytes of headers", shown, HEADER_LIMIT);
    switch (code) {
    case CURLE_OK:
    case CURLE_WRITE_ERROR: return explain_status(shown, request, answer, error);
    case CURLE_TOO_MANY_REDIRECTS:
        return pith_fail(error, PITH_ERROR_IO, "%s: more than %d redirects, they go in a circle",
                         shown, REDIRECT_LIMIT);
    case CURLE_UNSUPPORTED_PROTOCOL:
        return pith_fail(error, PITH_ERROR_IO,
                         "%s: the server redirects to something that is not followed (from https "
                         "to http, or to no web address)",
                         shown);
    case CURLE_OPERATION_TIMEDOUT:
        return pith_fail(error, PITH_ERROR_IO, "%s: no byte came for %d seconds (--timeout)", shown,
                         (int)request->timeout);
    case CURLE_OUT_OF_MEMORY: return pith_fail_memory(error, "a request", 0);
    case CURLE_COULDNT_RESOLVE_HOST:
        return pith_fail(error, PITH_ERROR_IO, "%s: its host was not found; is the network there?",
                         shown);
    default: break;
    }
    return pith_fail(error, PITH_ERROR_IO, "%s: %s", shown, curl_easy_strerror(code));
}

bool pith_cli_patience_take(pith_cli_patience *patience, long wanted) {
    uint64_t now = pith_clock_ns();
    if (now < patience->until_ns && !wanted) return true;
    if (++patience->failed > patience->limit || wanted > ASKED_LIMIT) return false;
    int doublings = patience->failed < 10 ? patience->failed - 1 : 9;
    uint64_t wait = (uint64_t)FIRST_WAIT_MS << doublings;
    wait += now % (wait / 4 + 1); /* not all that were cut off at once at once again */
    if (wait > WAIT_LIMIT_MS) wait = WAIT_LIMIT_MS;
    if (wanted > 0) wait = (uint64_t)wanted * 1000;
    if (now + wait * 1000000u > patience->until_ns) patience->until_ns = now + wait * 1000000u;
    return true;
}

int pith_cli_patience_left(const pith_cli_patience *patience) {
    uint64_t now = pith_clock_ns();
    return now >= patience->until_ns ? 0 : (int)((patience->until_ns - now) / 1000000u) + 1;
}

/* ---- Whole answers ---- */

typedef struct fetch_sink {
    pith_buffer *out;
    size_t limit;
    bool stop; /* at the limit: done, rather than too much */
    bool full;
} fetch_sink;

static size_t on_data(char *data, size_t one, size_t size, void *user) {
    fetch_sink *sink = user;
    size_t n = one * size, room = sink->limit - sink->out->size;
    sink->full = n > room || (sink->stop && n == room);
    pith_buffer_append(sink->out, data, n < room ? n : room);
    return sink->full || sink->out->failed ? 0 : n;
}

/* One try. */
static CURLcode perform(const pith_cli_request *request, fetch_sink *sink,
                        pith_cli_answer *answer) {
    struct curl_slist *headers;
    CURL *handle = pith_cli_fetch_begin(request, answer, &headers);
    if (!handle) return CURLE_OUT_OF_MEMORY;
    curl_off_t wait = 0;
    pith_buffer_reset(sink->out);
    sink->full = false;
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(handle, CURLOPT_WRITEDATA, sink);
    CURLcode code = curl_easy_perform(handle);
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &answer->status);
    curl_easy_getinfo(handle, CURLINFO_RETRY_AFTER, &wait);
    answer->retry_after = wait > 0 && wait < 1 << 30 ? (long)wait : 0;
    pith_cli_fetch_end(handle, headers);
    return sink->out->failed ? CURLE_OUT_OF_MEMORY : code;
}

/* Until it goes well, cannot go well, or patience ends. Before anything ever came, there is less of
 * it: a network that is not there is told soon. */
static CURLcode perform_patiently(const pith_cli_request *request, fetch_sink *sink,
                                  pith_cli_answer *answer) {
    pith_cli_patience patience = {.limit = 3};
    for (;;) {
        CURLcode code = perform(request, sink, answer);
        bool came = code == CURLE_OK || (sink->full && sink->stop);
        if (came && answer->status >= 200 && answer->status < 300) return CURLE_OK;
        if (answer->too_large || !pith_cli_fetch_may_repeat(code, answer->status) ||
            !pith_cli_patience_take(&patience, answer->retry_after))
            return code;
        if (answer->retry_after > 1)
            fprintf(stderr, "note: %s asks to wait for %ld s\n", answer->origin,
                    answer->retry_after);
        pith_cli_sleep(pith_cli_patience_left(&patience));
    }
}

pith_status pith_cli_fetch_text(const pith_cli_request *request, size_t limit, pith_buffer *out,
                                pith_cli_answer *answer, pith_error *error) {
    fetch_sink sink = {.out = out, .limit = limit};
    CURLcode code = perform_patiently(request, &sink, answer);
    if (code == CURLE_OK && answer->status >= 200 && answer->status < 300) return PITH_OK;
    if (!sink.full || answer->status >= 300)
        return pith_cli_fetch_explain(request, answer, code, error);
    char shown[160];
    pith_cli_url_shown(request->url, shown, sizeof shown);
    return pith_fail(error, PITH_ERROR_LIMIT, "%s: the answer is larger than %zu bytes", shown,
                     limit);
}

pith_status pith_cli_fetch_peek(const pith_cli_request *request, char bytes[PITH_CLI_PEEK],
                                size_t *size, pith_cli_answer *answer, pith_error *error) {
    pith_buffer text = {0};
    fetch_sink sink = {.out = &text, .limit = PITH_CLI_PEEK, .stop = true};
    CURLcode code = perform_patiently(request, &sink, answer);
    pith_status status = PITH_OK;
    if (code != CURLE_OK || answer->status < 200 || answer->status >= 300)
        status = pith_cli_fetch_explain(request, answer, code, error);
    *size = text.size;
    if (text.size) memcpy(bytes, text.data, text.size);
    pith_buffer_deinit(&text);
    return status;
}

#else
typedef int pith_fetch_is_elsewhere;
#endif
