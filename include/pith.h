/* SPDX-License-Identifier: Apache-2.0
 *
 * pith: run language models on the user's own device.
 *
 * This header is the whole public interface. Read it from top to bottom: errors, files, models,
 * text, engines and sessions, sampling, grammars, generation, measuring. The program `pith` is
 * written with it alone.
 *
 * Rules that hold everywhere
 * - Functions that can fail return pith_status (0 = PITH_OK, negative = error) and describe the
 *   failure in the optional caller-owned `pith_error`. On failure outputs are NULL / 0 and nothing
 *   needs to be released.
 * - Option structs carry their own size: set `.size = sizeof(struct)`; absent (shorter) tails mean
 *   defaults, and zero in any field means its default. Passing NULL for options means all defaults.
 * - Text is UTF-8. Sizes are in bytes unless a name says otherwise. Pointers returned by a `const`
 *   getter belong to the object and live as long as it does.
 * - What a function puts into `out` is released by the caller with the ..._free or ..._close of its
 *   type. All of these allow NULL.
 * - Objects may be used by one thread at a time, except where a function says otherwise. Different
 *   objects may be used by different threads; a pith_model is immutable and may be shared.
 * - An engine has threads, which a child process made by fork() does not get: there it may be
 *   neither used nor freed. Models and all else may be used on. */
#ifndef PITH_H
#define PITH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define PITH_API
#else
#define PITH_API __attribute__((visibility("default")))
#endif

#define PITH_VERSION_MAJOR 0
#define PITH_VERSION_MINOR 1
#define PITH_VERSION_PATCH 0

/* "0.1.0". Never NULL. */
PITH_API const char *pith_version(void);

/* ---- Errors --------------------------------------------------------------------------------- */

typedef enum pith_status {
    PITH_OK = 0,
    PITH_ERROR_ARGUMENT = -1, /* a parameter, option or option value is not allowed */
    PITH_ERROR_MEMORY = -2,   /* memory could not be had, or the ceiling does not allow it */
    PITH_ERROR_IO = -3,       /* the operating system refused to open, read, map or write */
    /* a file or text is not what it should be: broken, truncated, contradictory */
    PITH_ERROR_FORMAT = -4,
    PITH_ERROR_UNSUPPORTED = -5, /* well-formed, but pith cannot run it */
    PITH_ERROR_LIMIT = -6,       /* a published limit or the context length would be exceeded */
    PITH_ERROR_CANCELLED = -7,   /* stopped by the caller */
    PITH_ERROR_NOT_FOUND = -8,   /* a name, key or file does not exist */
    PITH_ERROR_TEMPLATE = -9,    /* a chat template failed or raised; the text holds its message */
    PITH_ERROR_INTERNAL = -10    /* a fault of pith itself */
} pith_status;

typedef struct pith_error {
    pith_status status;
    /* one sentence: what, where, the numbers that disagree, what to do; NUL-terminated */
    char text[240];
} pith_error;

/* "out of memory", "limit exceeded", ... Never NULL. */
PITH_API const char *pith_status_text(pith_status status);

/* ---- Reading files without loading them ----------------------------------------------------- */

/* An open GGUF file: its metadata and tensor list. Nothing of the weights is read. */
typedef struct pith_file pith_file;

/* A source given by functions. read_at copies `size` bytes at `offset` into `buffer` and returns
 * 0, or non-zero when it cannot deliver all of them. It may be called from several threads at
 * once. */
typedef struct pith_reader {
    size_t size; /* sizeof(pith_reader) */
    void *user;
    int (*read_at)(void *user, uint64_t offset, void *buffer, size_t size);
    uint64_t total_bytes; /* of the source: reads stay below it */
} pith_reader;

typedef struct pith_file_summary {
    uint32_t version;         /* 2 or 3 */
    uint32_t alignment;       /* bytes */
    uint32_t n_shards;        /* 1, or the number of split files */
    uint64_t n_metadata;      /* keys */
    uint64_t n_tensors;       /* over all shards */
    uint64_t total_bytes;     /* over all shards */
    uint64_t tensor_bytes;    /* weights only */
    uint64_t n_parameters;    /* elements of all tensors */
    const char *architecture; /* "" when the key is absent */
} pith_file_summary;

typedef struct pith_file_tensor {
    const char *name;
    const char *type; /* "Q4_K" */
    uint32_t n_dims;
    uint64_t shape[4]; /* ne[0] (contiguous) first; missing dimensions are 1 */
    uint64_t offset;   /* bytes from the start of its shard */
    uint64_t bytes;
    uint32_t shard; /* 0 .. n_shards - 1 */
} pith_file_tensor;

/* path: a file, or the first of a split model (NAME-00001-of-00003.gguf), which opens them all. */
PITH_API pith_status pith_file_open(const char *path, pith_file **out, pith_error *error);
PITH_API void pith_file_close(pith_file *file);
PITH_API pith_file_summary pith_file_summarize(const pith_file *file);
PITH_API const char *pith_file_key(const pith_file *file, uint64_t index); /* NULL past the end */
/* "u32", "str", "arr[str]". */
PITH_API const char *pith_file_value_type(const pith_file *file, uint64_t index);
/* Writes the value as text (strings verbatim, arrays as their first max_items elements in
 * brackets, then ", ... (N)") into buffer, NUL-terminated and cut at capacity. Returns the length
 * the whole text has. */
PITH_API size_t pith_file_value_text(const pith_file *file, uint64_t index, size_t max_items,
                                     char *buffer, size_t capacity);
/* false when index is past the end. */
PITH_API bool pith_file_tensor_at(const pith_file *file, uint64_t index, pith_file_tensor *out);
/* As pith_file_open, for a file that may hold its header alone (the first bytes of a GGUF, up to
 * somewhere in the weights): everything can be asked, nothing can be run. */
PITH_API pith_status pith_file_open_header(const char *path, pith_file **out, pith_error *error);
/* PITH_OK when this build runs the file's architecture and types, else why not. */
PITH_API pith_status pith_file_check(const pith_file *file, pith_error *error);

/* ---- Models --------------------------------------------------------------------------------- */

/* Weights and vocabulary; immutable, shareable between threads and engines. */
typedef struct pith_model pith_model;

typedef enum pith_load {
    PITH_LOAD_AUTO = 0, /* pack where memory is ample, else mmap */
    PITH_LOAD_PACK = 1, /* read into memory and arrange in panels: fastest */
    /* use the mapped file in place: starts at once, pages are shared and evictable. A file that is
     * cut short while mapped raises SIGBUS in the process. */
    PITH_LOAD_MMAP = 2
} pith_load;

/* Called during long work. fraction is 0..1. Return non-zero to cancel (PITH_ERROR_CANCELLED). */
typedef int (*pith_progress)(void *user, double fraction);

typedef struct pith_model_options {
    size_t size;
    pith_load load;
    uint64_t memory_limit; /* bytes for weights; 0: what the system can give */
    int32_t n_threads;     /* for packing; 0: as many as the machine has for us */
    /* go on with an unknown pre-tokenizer: the default one is used and pith_model_info.notes
     * says so */
    bool force;
    bool vocab_only;    /* tokenizer and template only, no weights */
    bool check_tensors; /* read every block and refuse inf and NaN scales */
    pith_progress progress;
    void *progress_user;
} pith_model_options;

typedef struct pith_model_info {
    const char *architecture; /* "llama" */
    const char *name;         /* general.name or "" */
    /* most frequent weight type, "Q4_K - Medium" style when general.file_type is known */
    const char *type;
    int32_t n_layer, n_embd, n_head, n_head_kv, n_vocab;
    int32_t n_ctx_train;   /* tokens of context that the model was trained for */
    uint64_t n_parameters; /* elements of all tensors */
    uint64_t file_bytes;   /* over all shards */
    uint64_t weight_bytes; /* resident in pack mode, mapped in mmap mode */
    pith_load load;        /* PACK or MMAP, as chosen */
    const char *notes;     /* what was assumed while loading ("" when nothing), one line each */
    uint64_t content_key;  /* hash of the header and of sampled bytes of every tensor */
} pith_model_info;

/* path: as for pith_file_open. */
PITH_API pith_status pith_model_open(const char *path, const pith_model_options *options,
                                     pith_model **out, pith_error *error);
/* The file lies in `descriptor` from `offset` on (an app's asset). The descriptor is duplicated. */
PITH_API pith_status pith_model_open_descriptor(int descriptor, uint64_t offset, uint64_t size,
                                                const pith_model_options *options, pith_model **out,
                                                pith_error *error);
/* The file's bytes lie at `data`, which must stay valid and unchanged until the model is closed. */
PITH_API pith_status pith_model_open_memory(const void *data, uint64_t size,
                                            const pith_model_options *options, pith_model **out,
                                            pith_error *error);
/* The file's bytes come from functions: `reader` is copied, what it leads to must stay until the
 * model is closed. */
PITH_API pith_status pith_model_open_reader(const pith_reader *reader,
                                            const pith_model_options *options, pith_model **out,
                                            pith_error *error);
/* Engines, adapters, detokenizers and messages of it must be freed first. */
PITH_API void pith_model_close(pith_model *model);
PITH_API pith_model_info pith_model_describe(const pith_model *model);

/* ---- Text and tokens ------------------------------------------------------------------------ */

/* flags of pith_tokenize */
enum {
    PITH_TOKENIZE_ADD_SPECIAL = 1, /* BOS/EOS as the vocabulary asks */
    /* control tokens written in the text become control tokens: never for a user's text */
    PITH_TOKENIZE_PARSE_SPECIAL = 2
};

/* Token ids of text. Writes at most capacity ids and the full count to *n_ids; when the count
 * exceeds capacity the status is PITH_ERROR_LIMIT and *n_ids says what is needed. ids may be NULL
 * with capacity 0. A result never has more ids than size + 2. Ill-formed UTF-8 is tokenized byte
 * by byte, never refused. */
PITH_API pith_status pith_tokenize(const pith_model *model, const char *text, size_t size,
                                   unsigned flags, int32_t *ids, size_t capacity, size_t *n_ids,
                                   pith_error *error);
/* The bytes a token stands for in running text (may be half a character). NULL and 0 for ids
 * outside the vocabulary. */
PITH_API const char *pith_token_text(const pith_model *model, int32_t id, size_t *size);
/* The token as written in the vocabulary ("Ġthe", "<|im_end|>"); NULL outside the vocabulary. */
PITH_API const char *pith_token_piece(const pith_model *model, int32_t id);
/* True for every token that ends a reply: metadata, chat template and well-known names together. */
PITH_API bool pith_token_is_end(const pith_model *model, int32_t id);
PITH_API bool pith_token_is_control(const pith_model *model, int32_t id);

typedef enum pith_special {
    PITH_SPECIAL_BOS,
    PITH_SPECIAL_EOS,
    PITH_SPECIAL_EOT,
    PITH_SPECIAL_UNKNOWN,
    PITH_SPECIAL_PAD
} pith_special;
PITH_API int32_t pith_special_token(const pith_model *model, pith_special which); /* -1: none */

/* Turns ids into text piece by piece and never emits half a character: bytes that may still
 * become one are held back. */
typedef struct pith_detokenizer pith_detokenizer;
PITH_API pith_status pith_detokenizer_new(const pith_model *model, bool show_control,
                                          pith_detokenizer **out, pith_error *error);
PITH_API void pith_detokenizer_free(pith_detokenizer *detokenizer);
/* Text that became complete with this id; valid until the next call. id -1 flushes what is
 * held back (as U+FFFD). */
PITH_API const char *pith_detokenizer_push(pith_detokenizer *detokenizer, int32_t id, size_t *size);

/* ---- Chat templates ------------------------------------------------------------------------- */

/* A rendered prompt: text made of spans that come from the template and spans that come from
 * the user's strings. */
typedef struct pith_prompt pith_prompt;

/* Renders a chat template (Jinja). context_json: an object with "messages" and whatever else the
 * template reads ("tools", "add_generation_prompt", ...). With a model, "bos_token"/"eos_token"
 * are filled in when absent. template_text NULL: the model's own. model may be NULL when
 * template_text is given. */
PITH_API pith_status pith_prompt_render(const pith_model *model, const char *template_text,
                                        const char *context_json, pith_prompt **out,
                                        pith_error *error);
PITH_API void pith_prompt_free(pith_prompt *prompt);
PITH_API const char *pith_prompt_text(const pith_prompt *prompt, size_t *size);
/* Ids of the prompt: control tokens are parsed in the template's spans only. BOS is added when
 * the vocabulary asks for it and the text does not already start with it. Same capacity rule as
 * pith_tokenize. */
PITH_API pith_status pith_prompt_tokenize(const pith_model *model, const pith_prompt *prompt,
                                          int32_t *ids, size_t capacity, size_t *n_ids,
                                          pith_error *error);
/* The same for the text from byte `from` on, which continues what a session already holds: BOS
 * is never added when from > 0. */
PITH_API pith_status pith_prompt_tokenize_from(const pith_model *model, const pith_prompt *prompt,
                                               size_t from, int32_t *ids, size_t capacity,
                                               size_t *n_ids, pith_error *error);
/* NULL when the file has none. */
PITH_API const char *pith_model_chat_template(const pith_model *model);

/* ---- Engines and sessions ------------------------------------------------------------------- */

/* Threads, KV store and workspace for one model. Everything it will ever need is allocated
 * when it is made. */
typedef struct pith_engine pith_engine;
/* One timeline of tokens in an engine. */
typedef struct pith_session pith_session;

typedef enum pith_kv_type {
    PITH_KV_AUTO = 0,
    PITH_KV_F32 = 1,
    PITH_KV_F16 = 2,
    PITH_KV_INT8 = 3
} pith_kv_type;
typedef enum pith_precision {
    PITH_PRECISION_NORMAL = 0, /* int8 activations for quantized weights */
    /* dequantized weights times float activations, KV in f32: slow, for checking */
    PITH_PRECISION_FULL = 1
} pith_precision;

typedef struct pith_engine_options {
    size_t size;
    int32_t n_ctx;        /* tokens a session can hold; 0: min(the model's, 4096) */
    int32_t n_sessions;   /* sessions that can exist at once; 0: 1 */
    int32_t n_threads;    /* 0: one for each core that is not a small one */
    int32_t step_limit;   /* prompt rows a step; 0: 256 */
    pith_kv_type kv_type; /* AUTO: f16 (f32 with full precision) */
    pith_precision precision;
    /* the same bits for any batching, threads, tier and load mode; else long prompts are read
     * faster and a little less exactly, which depends on the tier and on how ids are fed */
    bool exact;
    uint64_t memory_limit; /* bytes for KV and workspace; 0: what the system can give */
    /* of the threads, for steps of one or two rows (decoding), which memory bounds; 0: all */
    int32_t decode_threads;
    /* sum of the ranks of a session's adapters, each rounded up to 16, that there is workspace for;
     * 0: 64, negative: none */
    int32_t adapter_rank_limit;
    /* A folder in which prompts that were read are kept, so that another start reads on from there
     * ("Stored prompts" below); made where it is missing. NULL: none is kept. */
    const char *cache_folder;
    uint64_t cache_quota; /* bytes that the folder may take; 0: 1 GiB */
    /* for pith_session_embed alone: rows are final states [n_embd], not logits, and there are no
     * replies */
    bool embeddings;
} pith_engine_options;

/* Bytes that pith_engine_new would allocate: KV, workspace and what a cache folder needs (which is
 * done without where memory_limit has no room for it), without weights. */
PITH_API pith_status pith_engine_bytes(const pith_model *model, const pith_engine_options *options,
                                       uint64_t *bytes, pith_error *error);
PITH_API pith_status pith_engine_new(const pith_model *model, const pith_engine_options *options,
                                     pith_engine **out, pith_error *error);
/* Its sessions must be freed first. */
PITH_API void pith_engine_free(pith_engine *engine);

typedef struct pith_engine_info {
    int32_t n_ctx, n_sessions, n_threads, step_limit; /* as in the options, defaults filled in */
    const char *kv_type;                              /* "f16" */
    const char *backend;                              /* "cpu avx512" */
    uint64_t kv_bytes, workspace_bytes;
    int32_t decode_threads; /* of n_threads */
    int32_t adapter_rank_limit;
    /* why nothing is kept in the cache folder, or less than there was; "" when all is well */
    const char *cache_note;
    uint64_t cache_bytes; /* memory for it, beside KV and workspace */
} pith_engine_info;
PITH_API pith_engine_info pith_engine_describe(const pith_engine *engine);

/* An empty one. PITH_ERROR_LIMIT when there are n_sessions of the engine. */
PITH_API pith_status pith_session_new(pith_engine *engine, pith_session **out, pith_error *error);
/* A reply that it makes is done then, with PITH_ERROR_CANCELLED, and is still to be freed. */
PITH_API void pith_session_free(pith_session *session);
/* Appends ids and computes them. Afterwards pith_session_logits holds the row of the last one. On
 * PITH_ERROR_LIMIT (context full) nothing is appended; on PITH_ERROR_CANCELLED the session keeps
 * the steps that were finished. */
PITH_API pith_status pith_session_append(pith_session *session, const int32_t *ids, size_t n_ids,
                                         pith_progress progress, void *user, pith_error *error);
/* The same, with the logits of every id handed to `rows` in blocks (row-major, n_vocab wide).
 * rows returns non-zero to cancel. */
typedef int (*pith_rows)(void *user, size_t first, size_t n, const float *logits);
PITH_API pith_status pith_session_append_rows(pith_session *session, const int32_t *ids,
                                              size_t n_ids, pith_rows rows, void *user,
                                              pith_error *error);
/* Forgets everything from position n_keep on. The next append continues there. The logits are
 * gone. */
PITH_API pith_status pith_session_truncate(pith_session *session, size_t n_keep, pith_error *error);
/* A new session of the same engine with the first n_keep tokens (at most its length) and the
 * adapters of this one. Memory of the KV cache is shared until one of them writes. PITH_ERROR_LIMIT
 * as for pith_session_new. */
PITH_API pith_status pith_session_fork(const pith_session *session, size_t n_keep,
                                       pith_session **out, pith_error *error);
PITH_API size_t pith_session_length(const pith_session *session);      /* tokens held */
PITH_API const int32_t *pith_session_ids(const pith_session *session); /* [length] */
/* [n_vocab] or NULL when there is no last row. */
PITH_API const float *pith_session_logits(const pith_session *session);
/* How the final states of a text's tokens (after the last norm) become one vector. */
typedef enum pith_pooling {
    PITH_POOLING_AUTO = 0, /* what the model's file names, else MEAN */
    PITH_POOLING_MEAN = 1,
    PITH_POOLING_FIRST = 2,
    PITH_POOLING_LAST = 3
} pith_pooling;
/* The embedding of ids [n_ids >= 1], into out [n_embd]: pooled, not normalised. The session is one
 * of an engine made with `embeddings`; what it held is forgotten. PITH_ERROR_LIMIT when ids are
 * more than its context, PITH_ERROR_UNSUPPORTED when the model is a reranker. On failure out is
 * undefined. */
PITH_API pith_status pith_session_embed(pith_session *session, const int32_t *ids, size_t n_ids,
                                        pith_pooling pooling, float *out, pith_error *error);
/* Stops the running (or next) call of this session within one step: append returns
 * PITH_ERROR_CANCELLED, generate keeps what it made and returns PITH_OK with PITH_STOP_CANCELLED.
 * May be called from any thread and from a signal handler. The request is consumed by the call it
 * stops. */
PITH_API void pith_session_cancel(pith_session *session);

/* ---- Adapters ------------------------------------------------------------------------------- */

/* What is added to a model's results: a LoRA, or control vectors. Immutable; it refers to its
 * model, whose weights are neither copied nor changed, and may be shared by its sessions. */
typedef struct pith_adapter pith_adapter;

enum {
    PITH_ADAPTER_MAX_RANK = 1024,
    PITH_SESSION_MAX_ADAPTERS = 32 /* of one session */
};

typedef enum pith_adapter_kind {
    PITH_ADAPTER_LORA = 0,
    PITH_ADAPTER_CONTROL = 1 /* vectors added to the residual stream at the end of layers */
} pith_adapter_kind;

typedef struct pith_adapter_options {
    size_t size;
    /* control vectors: the layers, from 0, whose vectors are used; 0 and 0: all */
    int32_t first_layer, last_layer;
    uint64_t memory_limit; /* bytes that it may take; 0: what the system can give */
} pith_adapter_options;

typedef struct pith_adapter_info {
    pith_adapter_kind kind;
    const char *name;          /* general.name, else that of the file or folder */
    const char *task;          /* adapter.lora.task_name or "" */
    const char *prompt_prefix; /* adapter.lora.prompt_prefix or "" */
    int32_t rank;              /* LoRA: the largest; 0: control vectors */
    int32_t n_tensors;         /* matrices or layers that it adds to */
    uint64_t bytes;            /* in memory */
    uint64_t content_key;      /* hash of all that it adds */
    /* activated LoRA: ids that switch it on, NULL and 0: always on (pith_session_set_adapters) */
    const int32_t *invocation;
    size_t n_invocation;
} pith_adapter_info;

/* path: a GGUF file (LoRA or control vectors), or a PEFT folder with adapter_config.json and
 * adapter_model.safetensors. What does not belong to the model, or could not be applied whole, is
 * refused by name (PITH_ERROR_FORMAT, PITH_ERROR_UNSUPPORTED). options may be NULL. */
PITH_API pith_status pith_adapter_open(const pith_model *model, const char *path,
                                       const pith_adapter_options *options, pith_adapter **out,
                                       pith_error *error);
/* Sessions that use it keep it until they take others or are freed; the model must be closed after
 * that. */
PITH_API void pith_adapter_free(pith_adapter *adapter);
PITH_API pith_adapter_info pith_adapter_describe(const pith_adapter *adapter);
/* What the session is computed with from now on: for each adapter its scale times what it adds, in
 * this order. scales: [n], NULL: all 1; those of scale 0 are left out. n 0: none. Between calls
 * only. Where this changes anything, the session forgets its tokens, which were computed otherwise.
 * PITH_ERROR_LIMIT when the ranks are over the engine's adapter_rank_limit.
 * An activated LoRA is used alone, and acts from one token before the last place on where its
 * invocation stands in the session's ids: not at all where it stands nowhere. */
PITH_API pith_status pith_session_set_adapters(pith_session *session, pith_adapter *const *adapters,
                                               const float *scales, size_t n, pith_error *error);

/* The index-th of them; false past the end. */
PITH_API bool pith_session_adapter_at(const pith_session *session, size_t index,
                                      const pith_adapter **adapter, float *scale);

/* ---- Sampling ------------------------------------------------------------------------------- */

typedef struct pith_sampler pith_sampler;

/* Added to a token's logit; -INFINITY bans the token. Biases of the same id add up. */
typedef struct pith_logit_bias {
    int32_t id;
    float bias;
} pith_logit_bias;

/* How a token is drawn. The logits first get the biases; then come the stages, in this order unless
 * `order` says another, each on what the one before left; l is a logit, p the softmax over what is
 * left at that stage:
 *
 *   penalties    of ids among the last penalty_window tokens, c times:
 *                l <- l <= 0 ? l * repeat_penalty : l / repeat_penalty;
 *                l <- l - (c * frequency_penalty + presence_penalty)
 *   dry          of an id that would go on with a verbatim repetition of L >= dry_allowed_length
 *                tokens: l <- l - dry_multiplier * dry_base^(L - dry_allowed_length). Looked for
 *                in the last dry_window tokens; never longer than the tokens after the last
 *                sequence breaker, a string in their text. A token with a breaker in it is exempt
 *   top_n_sigma  keeps l >= max - top_n_sigma * (standard deviation of all l)
 *   top_k        keeps the top_k largest
 *   typical      keeps the tokens whose surprise, -ln p, is nearest to the mean surprise, until
 *                their sum of p exceeds typical_p
 *   top_p        keeps the likeliest until their sum of p reaches top_p
 *   min_p        keeps p >= min_p * (largest p)
 *   xtc          with probability xtc_probability: of the tokens with p >= xtc_threshold removes
 *                all but the least likely
 *   temperature  l <- l / T, T = temperature; with dynamic_range from T - dynamic_range (at least
 *                0) to T + dynamic_range: low + (high - low) * (entropy / ln(tokens left)) ^
 *                dynamic_exponent. T = 0 keeps the largest
 *
 * Of equal logits the one with the lower id comes first. Then mirostat, if it is on, keeps the
 * likeliest tokens so that the surprise of what is drawn stays near mirostat_tau: by a Zipf law
 * fitted to the 100 likeliest (1), or p >= 2^-mu (2); mu, twice tau at first, moves by mirostat_eta
 * times the error of each token. Then one token is drawn. NaN logits count as -inf, +inf as the
 * largest float.
 *
 * Zero is the default in every field and everything is off by default; strings and arrays are read
 * by pith_sampler_new only. */
typedef struct pith_sampler_options {
    size_t size;
    float temperature; /* 0: greedy (the default) */
    int32_t top_k;     /* 0: off */
    float top_p;       /* 0 or 1: off */
    float min_p;       /* 0: off */
    /* 0 or 1: off; divides positive and multiplies negative logits of recent tokens */
    float repeat_penalty;
    float frequency_penalty;    /* 0: off */
    float presence_penalty;     /* 0: off */
    int32_t penalty_window;     /* last tokens considered; 0: 64; negative: off; at most 2^24 */
    uint64_t seed;              /* the same seed gives the same draws */
    float typical_p;            /* 0 or 1: off */
    float top_n_sigma;          /* 0: off */
    float dynamic_range;        /* 0: off */
    float dynamic_exponent;     /* 0: 1 */
    float xtc_probability;      /* 0 to 1; 0: off */
    float xtc_threshold;        /* 0: 0.1; above 0.5 nothing is ever removed */
    int32_t mirostat;           /* 0: off; 1 or 2 */
    float mirostat_tau;         /* bits; 0: 5 */
    float mirostat_eta;         /* 0 to 1; 0: 0.1 */
    float dry_multiplier;       /* 0: off */
    float dry_base;             /* >= 1; 0: 1.75 */
    int32_t dry_allowed_length; /* tokens; 0: 2 */
    int32_t dry_window;         /* tokens; 0: 4096; negative: off; at most 2^24 */
    /* at most 64 of 1 to 64 bytes. NULL: a line break, ':', '"' and '*'; not NULL with n 0: none */
    const char *const *dry_breakers;
    size_t n_dry_breakers;
    const pith_logit_bias *biases; /* at most 2^20 */
    size_t n_biases;
    /* names of stages in the order wanted, each at most once, with ; or , between, such as
     * "temperature;top_k;top_p". A stage that is on must be named; temperature is on unless it is
     * 1. NULL: the order above */
    const char *order;
} pith_sampler_options;

/* The model is read here only. PITH_ERROR_ARGUMENT names the option that is not allowed. */
PITH_API pith_status pith_sampler_new(const pith_model *model, const pith_sampler_options *options,
                                      pith_sampler **out, pith_error *error);
/* The same options and the same memory of tokens, with random numbers from `seed`: one for each of
 * several replies to a prompt. */
PITH_API pith_status pith_sampler_clone(const pith_sampler *sampler, uint64_t seed,
                                        pith_sampler **out, pith_error *error);
PITH_API void pith_sampler_free(pith_sampler *sampler);
/* Draws the next token from logits [n_vocab] and remembers it. Cannot fail, allocates nothing; id 0
 * when no logit is left above -inf. */
PITH_API int32_t pith_sampler_next(pith_sampler *sampler, const float *logits);
/* Tells the sampler about tokens it did not draw (a prompt), for penalties and DRY. */
PITH_API void pith_sampler_accept(pith_sampler *sampler, const int32_t *ids, size_t n_ids);
enum { PITH_SAMPLER_MAX_REWIND = 1024 };
/* Forgets the last n tokens, drawn or accepted: the next draw is as if they had not been, but for
 * its random number, which is a new one. Tokens can be taken back as far as there are, at most
 * PITH_SAMPLER_MAX_REWIND in a row; otherwise false, and nothing is changed. */
PITH_API bool pith_sampler_rewind(pith_sampler *sampler, size_t n);
/* The distribution that the next token would be drawn from, after all stages: ids in order with
 * their probabilities, all above 0. Writes at most capacity of them and returns how many there are
 * (at most n_vocab; 0 when no logit is above -inf). Nothing is drawn, but XTC's coin for the token
 * that comes is thrown and kept: this is the distribution given the coin. A token that the caller
 * draws from it and then accepts moves mirostat as if it had been drawn here. So drafts can be
 * accepted or rejected by the exact distribution. */
PITH_API size_t pith_sampler_distribution(pith_sampler *sampler, const float *logits, int32_t *ids,
                                          double *probabilities, size_t capacity);

/* ---- Log-probabilities: of the model itself ---- */

typedef struct pith_logprob {
    int32_t id;
    double logprob; /* natural logarithm, <= 0 */
} pith_logprob;
enum { PITH_LOGPROBS_MAX = 20 };
/* ln of the probability of id in softmax(logits [n_vocab]), and the n_top (0 to PITH_LOGPROBS_MAX)
 * likeliest tokens, likeliest first, of equal ones the lower id first: the distribution of the
 * model at temperature 1, before biases, penalties, grammars and any other stage, as in OpenAI's
 * API. What the stages make of it is pith_sampler_distribution. Returns the number of top tokens,
 * fewer only where fewer logits are above -inf. *logprob: -INFINITY for an id whose logit is not,
 * and for one outside the vocabulary. logprob and top may be NULL. */
PITH_API size_t pith_logprobs(const float *logits, int32_t n_vocab, int32_t id, double *logprob,
                              pith_logprob *top, int32_t n_top);

/* ---- Constrained output --------------------------------------------------------------------- */

/* Which texts a reply may be. Every token keeps the text one that can still be completed, and the
 * reply can end where it is complete. What cannot be enforced is refused when the grammar is made.
 * Immutable: threads may share it. It may be freed while it is used. */
typedef struct pith_grammar pith_grammar;

typedef enum pith_grammar_kind {
    /* the notation of llama.cpp's grammar files: root ::= "yes" | "no" | [0-9]{1,3} */
    PITH_GRAMMAR_GBNF = 0,
    PITH_GRAMMAR_JSON_SCHEMA = 1, /* draft 2020-12, as JSON text; errors name the path */
    PITH_GRAMMAR_REGEX = 2,       /* as in ECMAScript; it matches the whole reply */
    PITH_GRAMMAR_CHOICES = 3      /* one of the lines of the text */
} pith_grammar_kind;

/* model: whose tokens a GBNF grammar names (<think>, <[1234]>), which then fits that model alone;
 * may be NULL, and such a grammar is PITH_ERROR_NOT_FOUND then. text: at most 1 MiB.
 * PITH_ERROR_FORMAT says where the text is wrong, PITH_ERROR_UNSUPPORTED what of it cannot be
 * enforced, PITH_ERROR_LIMIT what grew too large. */
PITH_API pith_status pith_grammar_new(const pith_model *model, pith_grammar_kind kind,
                                      const char *text, size_t size, pith_grammar **out,
                                      pith_error *error);
PITH_API void pith_grammar_free(pith_grammar *grammar);

/* ---- Tools ---------------------------------------------------------------------------------- */

/* How a model writes calls of tools:  [thought] text begin open CALL close between open CALL close
 * end, where CALL is {"name": "f", KEY: {...}}, or without a key  f middle {...}. Strings that are
 * NULL are empty; those that hold control tokens of a vocabulary stand for these tokens. */
typedef struct pith_tool_format {
    size_t size;
    const char *name;   /* "hermes" */
    const char *marker; /* begins calls, and never occurs in text; "": calls begin with { */
    const char *begin, *open, *close, *between, *end;
    const char *arguments; /* KEY; NULL: the name stands before the arguments */
    const char *middle;
    bool single; /* never more than one call in a reply */
    const char *thought_begin,
        *thought_end; /* "<think>", "</think>"; NULL: there are no thoughts */
} pith_tool_format;
/* The formats that pith knows; false past the last one. */
PITH_API bool pith_tool_format_at(size_t index, pith_tool_format *out);
/* The model's own, by what its chat template says. PITH_ERROR_NOT_FOUND: none is known; out then
 * has the thoughts alone, so that replies can still be taken apart. */
PITH_API pith_status pith_model_tool_format(const pith_model *model, pith_tool_format *out,
                                            pith_error *error);

typedef enum pith_tool_choice {
    PITH_TOOLS_AUTO = 0, /* text, then calls or none: once a call begins it is held to its form */
    PITH_TOOLS_REQUIRED = 1, /* at least one call, and no text */
    PITH_TOOLS_NONE = 2      /* text in which no call begins */
} pith_tool_choice;

enum { PITH_TOOL_MAX_CALLS = 32 /* of a reply */ };

typedef struct pith_tool_options {
    size_t size;
    const pith_tool_format *format; /* NULL: the model's own */
    pith_tool_choice choice;
    const char *only; /* the one tool that may be called; NULL: every one */
    bool parallel;    /* several calls in a reply */
    bool in_thought;  /* the prompt ends with thought_begin: the reply goes on there */
    /* A JSON schema that a reply without calls obeys; NULL: any text. With AUTO and NONE; refused
     * (PITH_ERROR_UNSUPPORTED) for a format without marker, whose calls are JSON as well. */
    const char *content_schema;
    size_t content_schema_size;
    /* Of pith_message_new: the list that pith_grammar_new_tools was given; NULL: none. A call of
     * one of its tools then counts without the marks of the format, too, as some models write it:
     * {"name": "f", "arguments": {...}} that begins a line, alone, in a list, in a fence (```json)
     * or in tags (<tools>), where "arguments" (or "parameters") has every required key and no
     * unknown one, and is valid by the tool's schema. Of a schema by which values cannot be checked
     * the keys decide, but tools with "strict": true are then not called so. Not with NONE, nor
     * with a content_schema. */
    const char *tools_json;
    size_t tools_json_size;
} pith_tool_options;

/* The grammar of replies that may call the tools of a JSON list
 * [{"type": "function", "function": {"name", "parameters"}}], with arguments that are valid by the
 * schema in "parameters" ({} where there is none). Errors name the tool and the path in its schema.
 * The same list belongs into the context of the chat template, as "tools". */
PITH_API pith_status pith_grammar_new_tools(const pith_model *model, const char *tools_json,
                                            size_t size, const pith_tool_options *options,
                                            pith_grammar **out, pith_error *error);

/* A reply taken apart while it is made: what it says, what it thought, which tools it calls. A call
 * in no form that counts, or one that was cut, is content: nothing is lost. */
typedef struct pith_message pith_message;

typedef struct pith_tool_call {
    const char *name;
    const char *arguments; /* JSON, as the model wrote it */
} pith_tool_call;

/* What a push added. */
typedef struct pith_message_part {
    const char *content, *reasoning; /* valid until the next push; all of them are the whole */
    size_t content_size, reasoning_size;
    size_t n_calls; /* so far, each of them whole */
} pith_message_part;

/* options: format and in_thought count, and where there are tools_json choice, only, parallel and
 * content_schema. The model must live as long. PITH_ERROR_FORMAT: tools_json is no list. */
PITH_API pith_status pith_message_new(const pith_model *model, const pith_tool_options *options,
                                      pith_message **out, pith_error *error);
PITH_API void pith_message_free(pith_message *message);
/* What on_text was given, with show_control on; part may be NULL. */
PITH_API pith_status pith_message_push(pith_message *message, int32_t id, const char *text,
                                       size_t size, pith_message_part *part, pith_error *error);
/* The reply has ended: what was held back is told. */
PITH_API pith_status pith_message_finish(pith_message *message, pith_message_part *part,
                                         pith_error *error);
/* All so far, NUL-terminated; valid until the next push. */
PITH_API const char *pith_message_content(const pith_message *message, size_t *size);
PITH_API const char *pith_message_reasoning(const pith_message *message, size_t *size);
/* false past the last one. Valid as long as the message. */
PITH_API bool pith_message_call_at(const pith_message *message, size_t index, pith_tool_call *out);

/* ---- Generation ----------------------------------------------------------------------------- */

typedef enum pith_stop {
    PITH_STOP_END,       /* an end token */
    PITH_STOP_LENGTH,    /* max_tokens */
    PITH_STOP_CONTEXT,   /* the context is full */
    PITH_STOP_TEXT,      /* one of the stop strings */
    PITH_STOP_CALLBACK,  /* on_text returned non-zero */
    PITH_STOP_CANCELLED, /* pith_session_cancel */
    PITH_STOP_DEADLINE   /* deadline_ms passed */
} pith_stop;

/* Where guesses at the next tokens come from, several of which one step then checks. Guesses never
 * change a reply, whatever the sampler: a token is drawn as without them and only then compared,
 * and the sampler is left as without them. They are made while they gain: what they lose is held
 * below a hundredth of the time, but for what a draft session reads of the prompt. While several
 * replies are made at once, only what a grammar forces is guessed. */
typedef enum pith_draft {
    PITH_DRAFT_AUTO = 0, /* NGRAM */
    PITH_DRAFT_OFF = 1,  /* no guesses at all: each token is a step */
    /* what followed an earlier occurrence of the last tokens; where the grammar of the reply allows
     * one text only, such as the keys of a schema's objects, that text */
    PITH_DRAFT_NGRAM = 2
} pith_draft;

/* What happens when prompt and reply are more than the context holds. Whatever is dropped is gone
 * from the session too, what stays is read again: the reply goes on as one to the shorter text. */
typedef enum pith_overflow {
    PITH_OVERFLOW_ERROR = 0, /* a longer prompt is refused, a reply ends (PITH_STOP_CONTEXT) */
    /* the first n_keep tokens stay, then the older half of the rest is dropped, also while the
     * reply is made: it has no end but its own */
    PITH_OVERFLOW_SHIFT = 1,
    /* of a longer prompt the first n_keep and the last tokens stay, and room for max_tokens (a
     * quarter of the context when that is 0, half of it at most); a reply ends as with ERROR */
    PITH_OVERFLOW_TRUNCATE_MIDDLE = 2
} pith_overflow;

typedef struct pith_generate_options {
    size_t size;
    int32_t max_tokens;       /* 0: as many as the context holds */
    const char *const *stops; /* stop strings; the reply is cut before them */
    size_t n_stops;
    bool ignore_end;   /* keep going at end tokens */
    bool show_control; /* control tokens appear in the text */
    /* Complete characters as they are made; size may be 0 for a token that completes none. At the
     * end text that was held back comes with id -1. All texts together are the reply. Non-zero
     * return stops. */
    int (*on_text)(void *user, int32_t id, const char *text, size_t size);
    void *user;
    pith_progress on_prompt; /* progress of reading the prompt */
    void *prompt_user;
    pith_draft draft;
    int32_t max_draft;  /* guesses a step, of all kinds; 0: 15, which is the most */
    double deadline_ms; /* from the call on; 0: none */
    /* With AUTO: a session, in another engine, of a smaller model with the same vocabulary, which
     * guesses where the text has no guess. NULL: none. It is the reply's while that is made. */
    pith_session *draft_session;
    pith_overflow overflow;
    int32_t n_keep; /* at most half the context; 0: 4 with SHIFT, else an eighth of the context */
    /* Called right before on_text for each token that is made, with pith_logprobs of the logits it
     * was drawn from; top: the n_logprobs (0 to PITH_LOGPROBS_MAX) likeliest tokens, valid during
     * the call. Costs a pass over the vocabulary for each token. */
    void (*on_logprobs)(void *user, int32_t id, double logprob, const pith_logprob *top,
                        size_t n_top);
    void *logprobs_user;
    int32_t n_logprobs;
    /* What the reply may be, from its first token on; NULL: anything. It ends (PITH_STOP_END) only
     * where the text is complete. Where no token of the vocabulary can go on, or a limit is met,
     * the reply fails: it is never made without the grammar. */
    const pith_grammar *grammar;
    /* Lengths at which other prompts will share the beginning of this one, such as the end of the
     * system part (at most 16). Not needed: any beginning that is common is found. For models with
     * windows it saves disk, because less is kept of the other places. */
    const size_t *cache_at;
    size_t n_cache_at;
    /* Strings that the reply's text never contains, whatever tokens it is made of (compared byte by
     * byte; at most PITH_BANNED_MAX of 1 to PITH_BANNED_MAX_BYTES bytes of UTF-8). When one has
     * been made, the reply goes back to the token that it begins in; that token is not allowed
     * there again, and another is drawn, with new random numbers. Text that may become one is held
     * back until that is decided, and with it on_text and on_logprobs of its tokens: they come for
     * tokens that stay. What is told is the same with and without guesses. Where nothing else may
     * come, or PITH_BANNED_MAX_REWINDS such returns have not led to a token that stays, the reply
     * fails (PITH_ERROR_UNSUPPORTED, PITH_ERROR_LIMIT). The prompt does not count: a string that
     * begins there is not seen. Each return costs a step or more. */
    const char *const *banned;
    size_t n_banned;
} pith_generate_options;
enum { PITH_BANNED_MAX = 64, PITH_BANNED_MAX_BYTES = 256, PITH_BANNED_MAX_REWINDS = 256 };

/* Where the tokens of a prompt came from that were not read. */
typedef enum pith_cache_source {
    PITH_CACHE_NONE = 0,
    PITH_CACHE_SESSION = 1, /* it held them */
    PITH_CACHE_SHARED = 2,  /* another session held them */
    PITH_CACHE_DISK = 3     /* the cache folder */
} pith_cache_source;

/* Why the cache folder gave nothing. */
typedef enum pith_cache_miss {
    PITH_CACHE_MISS_NONE = 0,    /* it gave something, or at most 64 tokens were to be read */
    PITH_CACHE_MISS_OFF = 1,     /* there is no cache folder, or it cannot be used: cache_note */
    PITH_CACHE_MISS_NEW = 2,     /* no prompt is stored that begins like this one */
    PITH_CACHE_MISS_OTHER = 3,   /* one is, of another model or other settings */
    PITH_CACHE_MISS_DAMAGED = 4, /* one was, but its file is damaged or gone: it is forgotten */
    PITH_CACHE_MISS_WINDOW = 5   /* one is, but not what the model's windows see at this place */
} pith_cache_miss;

typedef struct pith_generation {
    pith_stop stop;
    size_t n_prompt; /* ids given */
    size_t n_cached; /* of these, not read: cache_source says where from */
    /* ids made, the end token included; they are the last ids of the session */
    size_t n_predicted;
    double prompt_ms;               /* reading the prompt */
    double ttft_ms;                 /* from the call to the first token */
    double predicted_ms;            /* from the first token to the last */
    size_t n_drafted;               /* guesses that were checked, but for what a grammar forces */
    size_t n_draft_accepted;        /* of them, those that were right */
    size_t n_dropped;               /* tokens of prompt and reply that overflow dropped */
    pith_cache_source cache_source; /* of n_cached, or of most of them */
    pith_cache_miss cache_miss;
    /* tokens that took no step of their own, because the grammar allowed one text only */
    size_t n_forced;
    size_t n_rewinds; /* times that the reply went back before a banned string */
} pith_generation;

/* Brings the session to exactly `prompt` (keeping the longest common prefix it already holds),
 * then generates. The tokens made are in pith_session_ids (with SHIFT those that were not dropped);
 * the end token is part of them but is not computed. out may be NULL. */
PITH_API pith_status pith_generate(pith_session *session, pith_sampler *sampler,
                                   const int32_t *prompt, size_t n_prompt,
                                   const pith_generate_options *options, pith_generation *out,
                                   pith_error *error);

/* Many replies at once: each is one session's, pith_engine_step computes the next rows of all of
 * them together, and they join and leave between steps. Replies that are being made come before
 * prompts that are being read, which take turns. With `exact` each is what pith_generate gives
 * alone. pith_generate may be called meanwhile: it makes steps for all.
 *
 * Functions of the options are called by pith_engine_step; they may cancel sessions, nothing else
 * of this engine. The sampler, and what the options point to, must live until it is freed. */
typedef struct pith_reply pith_reply;
/* Computes nothing yet. The session can do nothing else until the reply is made or freed. */
PITH_API pith_status pith_reply_new(pith_session *session, pith_sampler *sampler,
                                    const int32_t *prompt, size_t n_prompt,
                                    const pith_generate_options *options, pith_reply **out,
                                    pith_error *error);
/* Also before it is made: the session keeps what there is. */
PITH_API void pith_reply_free(pith_reply *reply);
PITH_API bool pith_reply_is_done(const pith_reply *reply);
/* What there is so far; its status once it is done. */
PITH_API pith_status pith_reply_result(const pith_reply *reply, pith_generation *out,
                                       pith_error *error);
/* One step for all replies of the engine; *n_running (may be NULL): those that are not done. A
 * reply's failure is its result, not this function's. */
PITH_API pith_status pith_engine_step(pith_engine *engine, size_t *n_running, pith_error *error);

/* ---- Conversations that outgrow the context --------------------------------------------------
 * pith_overflow drops tokens of one prompt. Where the messages are known, what is older can give
 * way as a whole instead: exchanges, by a summary that the model writes of them. */

/* Messages that fit. */
typedef struct pith_conversation pith_conversation;

typedef struct pith_conversation_options {
    size_t size;
    const char *template_text; /* chat template; NULL: the model's own */
    /* tokens left for the reply: as many, at most half of the context; 0: a quarter of it */
    int32_t max_tokens;
    int32_t n_keep;   /* exchanges that lie whole within the first so many tokens stay; 0: none */
    bool drop;        /* no summary: what is older is left out */
    pith_draft draft; /* guesses for the summary */
    pith_session *draft_session; /* as in pith_generate_options */
    pith_progress on_prompt;     /* progress of reading for one summary */
    void *user;
} pith_conversation_options;

typedef struct pith_conversation_info {
    size_t n_prompt;   /* tokens of the prompt that the messages make now */
    size_t n_messages; /* that were replaced by a summary, or left out */
    size_t n_dropped;  /* tokens of the prompt that are gone */
    size_t n_summary;  /* tokens of the summaries that stand for them; 0: there is none */
    double ms;         /* that it took */
} pith_conversation_info;

/* Shortens the messages of a chat template's context (as pith_prompt_render takes it) until the
 * prompt and the reply's room fit into the session's context. Messages that fit are left alone.
 * Else the newer exchanges stay, half of a context, and all system messages; between them comes an
 * exchange of a question and its answer, the summary: at most an eighth of the context, 512 tokens,
 * by the model in this session, greedily, with enable_thinking: false. An exchange goes from a
 * user's message to the next. When the last alone is too long, the beginning of its last message
 * becomes a summary. A long conversation is read in parts.
 *
 * What the session held is forgotten but for what it shares with the new prompt; context_json is
 * not changed. PITH_ERROR_LIMIT: system messages, summary and last exchange do not fit, or the
 * model wrote nothing; PITH_ERROR_CANCELLED: pith_session_cancel; PITH_ERROR_NOT_FOUND: there is no
 * template; PITH_ERROR_TEMPLATE as for pith_prompt_render. options may be NULL. */
PITH_API pith_status pith_conversation_fit(pith_session *session, const char *context_json,
                                           const pith_conversation_options *options,
                                           pith_conversation **out, pith_error *error);
PITH_API void pith_conversation_free(pith_conversation *conversation);
/* The context with the messages that it has now, for pith_prompt_render; NUL-terminated, valid as
 * long as the conversation. size may be NULL. */
PITH_API const char *pith_conversation_json(const pith_conversation *conversation, size_t *size);
PITH_API pith_conversation_info pith_conversation_describe(const pith_conversation *conversation);

/* ---- Stored prompts --------------------------------------------------------------------------
 * With a cache folder, KV of prompts is kept on disk in parts of some hundred tokens and taken from
 * there when a prompt of the same model, settings and adapters begins alike, token by token: in
 * this process, in a later one, or in several at once. With `exact` the bits are those of computing
 * them. Prompts with at least 128 tokens that are not stored yet are stored, in the background; a
 * process that is killed loses what was not finished. What was not used for longest goes when the
 * quota is reached. Nothing that is wrong with the folder makes a call fail.
 *
 * The folder holds what users wrote, as token ids: it is made for the user alone. */

typedef struct pith_cache_entry {
    const char *model;    /* its name */
    const char *settings; /* "f16, exact" */
    uint64_t key;         /* the same for entries of one model, settings and adapters */
    size_t first, n;      /* it holds KV of the positions [first, n) of a prompt */
    uint64_t bytes;
    int64_t used; /* when it was last, in seconds since 1970 */
} pith_cache_entry;
/* Returns non-zero to stop. The texts live until it returns. */
typedef int (*pith_cache_visit)(void *user, const pith_cache_entry *entry);
/* Last used first. A folder that is not there has no entries. */
PITH_API pith_status pith_cache_list(const char *folder, pith_cache_visit visit, void *user,
                                     pith_error *error);
/* Removes all entries, also while other processes use them; *n_removed may be NULL. */
PITH_API pith_status pith_cache_clear(const char *folder, size_t *n_removed, pith_error *error);
/* "no prompt is stored that begins like this one"; "" for NONE. Never NULL. */
PITH_API const char *pith_cache_miss_text(pith_cache_miss miss);
/* "disk". Never NULL. */
PITH_API const char *pith_cache_source_text(pith_cache_source source);

/* ---- Before loading: does it fit, and how fast ----------------------------------------------- */

/* A device as its maker or a measurement describes it. Unknown figures are 0; rates are 1 to 1e24,
 * shares 1e-6 to 1. */
typedef struct pith_device {
    size_t size;
    const char *name;       /* "pixel-8"; may be NULL in options */
    const char *title;      /* "Google Pixel 8, Tensor G3"; may be NULL in options */
    double bandwidth;       /* bytes a second of the memory that holds the weights */
    double int8_ops;        /* int8 multiplies and adds a second; an ADD counts as one */
    uint64_t memory_bytes;  /* that holds weights and KV */
    double app_share;       /* of it, for one application; 0: 0.7 */
    double bandwidth_share; /* of it, that decoding reaches; 0: 0.7 */
    double ops_share;       /* of them, that prefill reaches; 0: 0.4 */
    const char *source;     /* where the figures come from; may be NULL in options */
} pith_device;
/* The built-in table, sorted by kind. false past the end. */
PITH_API bool pith_device_at(size_t index, pith_device *out);

/* How long steps take; what is measured or estimated once holds for any length and depth. */
typedef struct pith_speed_model {
    double token_ns;            /* a decode step with an empty context */
    double token_kv_ns;         /* more for each token of context that a layer sees on average */
    int32_t short_rows;         /* rows of a short prompt step; 0: no steps are known */
    double short_ns;            /* its time, without the context before it */
    int32_t step_rows;          /* rows of a full step */
    double step_ns;             /* its time */
    double row_kv_ns;           /* more for each row and token of context that it sees */
    int32_t window;             /* tokens that window layers see; 0: none has a window */
    double window_layers_share; /* of the layers */
} pith_speed_model;
/* Time of the decode step at a depth; 0 when unknown. */
PITH_API double pith_speed_token_ms(const pith_speed_model *model, int32_t depth);
/* Time of reading n_prompt tokens at a depth; 0 when unknown or when the model has no steps. */
PITH_API double pith_speed_prompt_ms(const pith_speed_model *model, int32_t n_prompt,
                                     int32_t depth);

typedef struct pith_fit_options {
    size_t size;
    /* as in pith_model_options and pith_engine_options */
    int32_t n_ctx, n_threads, step_limit;
    pith_load load;
    pith_kv_type kv_type;
    uint64_t memory_limit; /* bytes for weights, KV and workspace; 0: what the device can give */
    /* NULL: this machine, whose speed is probed for up to two seconds */
    const pith_device *device;
    bool no_probe; /* this machine's sizes alone */
    pith_precision precision;
    int32_t decode_threads; /* as in pith_engine_options */
} pith_fit_options;

typedef struct pith_fit_context {
    int32_t n_ctx;
    uint64_t kv_bytes;
    bool fits; /* with weights and workspace */
} pith_fit_context;
enum { PITH_FIT_CONTEXTS = 8 };

/* Sizes in bytes, rates a second. 0: unknown. Strings live as long as the file. */
typedef struct pith_fit {
    const char *architecture; /* "" when the file does not say */
    bool runs;                /* this build runs it: sizes are those of its own plan */
    bool measured;            /* speeds come from timing that plan on this machine */
    bool whole;               /* all bytes of the file are there */
    char notes[512];          /* what was assumed, one line each */
    pith_load load;           /* PACK or MMAP, as a load here would choose */
    int32_t n_ctx, n_threads, n_ctx_train;
    const char *kv_type; /* "f16" */
    uint64_t n_parameters, file_bytes;
    /* Memory: weights (in mmap mode mapped, not owned), KV of n_ctx, workspace, and vocabulary
     * with program */
    uint64_t weight_bytes, kv_bytes, workspace_bytes, other_bytes, total_bytes; /* < 2^63 */
    uint64_t limit_bytes; /* that weights, KV and workspace may take */
    bool fits;
    /* What would make it fit (or how far it could go); contexts are at most n_ctx_train. */
    int32_t longest_ctx;      /* with these settings; 0: none */
    int32_t longest_ctx_int8; /* with KV in int8 */
    int32_t longest_ctx_mmap; /* with the file mapped */
    double bits_allowed;      /* bits a weight at this context; weights have bits_per_weight */
    double bits_per_weight;
    size_t n_contexts;
    pith_fit_context contexts[PITH_FIT_CONTEXTS];
    /* Work of a token: bytes of weights that are read, bytes of KV for each token of context,
     * multiply-adds (a prompt's rows leave the output layer out) */
    double token_bytes, context_token_bytes, token_macs, output_macs;
    /* bytes a second at about the size of the weights: the middle of short slices before and after
     * the rehearsal, and of those the slowest and the fastest */
    double bandwidth, bandwidth_low, bandwidth_high;
    double int8_macs;      /* multiply-adds a second */
    double decode_ceiling; /* tokens a second: bandwidth / token_bytes */
    pith_speed_model speed;
    double load_ms; /* weights from a file in the page cache, or as far as it is there */
    double probe_ms;
} pith_fit;

/* What running the file would take. Only its header is read. An architecture that this build does
 * not run is estimated from its tensors and keys, and notes say so. */
PITH_API pith_status pith_file_fit(const pith_file *file, const pith_fit_options *options,
                                   pith_fit *out, pith_error *error);
/* Time of the decode step at a depth when memory gives another bandwidth than while fit was
 * measured; 0 when unknown. A bandwidth of 0, or a fit that is not measured: as it is. */
PITH_API double pith_fit_token_ms(const pith_fit *fit, int32_t depth, double bandwidth);
/* Hash of the header and of sampled bytes of every tensor, as in pith_model_info; 0 when bytes are
 * missing. */
PITH_API uint64_t pith_file_content_key(const pith_file *file);

/* What the machine can do at most, with n_threads (0: the default), measured in some 300 ms. */
typedef struct pith_machine_rates {
    int32_t n_threads;
    double bandwidth; /* bytes a second, read from memory of about the working set's size */
    double int8_macs; /* multiply-adds a second of the fastest integer product, in the caches */
    double bandwidth_low, bandwidth_high; /* of the slices whose middle is `bandwidth` */
} pith_machine_rates;
/* working_set: bytes that a step goes over, such as the weights; 0: more than any cache. */
PITH_API pith_status pith_system_measure(int32_t n_threads, uint64_t working_set,
                                         pith_machine_rates *out, pith_error *error);

/* The most that a number of threads gives. */
typedef struct pith_thread_rates {
    int32_t n_threads;
    double bandwidth, int8_macs; /* as in pith_machine_rates */
} pith_thread_rates;
enum { PITH_THREAD_RATES = 12 };
typedef struct pith_thread_probe {
    size_t n;
    pith_thread_rates rates[PITH_THREAD_RATES]; /* [n] 1, 2, 4, ... threads */
    /* the smallest numbers within 3 % of the best: for reading, and for multiplying (at least as
     * many); both 0 when other work disturbed every round */
    int32_t decode_threads, n_threads;
    int32_t n_rounds; /* that were not disturbed */
    double probe_ms;
} pith_thread_probe;
/* Measures which numbers of threads are worth having on this machine, in 0.5 to 2 s. An engine does
 * not ask this: keep the answer and give it as decode_threads and n_threads, as the program does.
 * Memory's speed changes from second to second on some machines: join the best rates of a few
 * probes before fewer threads than the default are believed to be enough. */
PITH_API pith_status pith_system_probe_threads(pith_thread_probe *out, pith_error *error);
/* The choice alone, from rates[0 .. n-1] with increasing n_threads: fills decode_threads and
 * n_threads. */
PITH_API void pith_thread_probe_choose(pith_thread_probe *probe);

/* ---- Preferences -----------------------------------------------------------------------------
 * One goal, and the settings that serve it together. */

typedef enum pith_prefer {
    PITH_PREFER_NONE = 0,
    PITH_PREFER_TTFT = 1, /* an early first token, loading included */
    PITH_PREFER_TPS = 2,  /* many tokens a second */
    PITH_PREFER_MEMORY = 3,
    PITH_PREFER_BATTERY = 4 /* little work for each token */
} pith_prefer;

/* What to put into the options of that name where the user asked for nothing else. 0 (AUTO): the
 * default serves the goal. */
typedef struct pith_preference {
    pith_load load; /* pith_model_options */
    /* pith_engine_options; not every model allows INT8: leave it out where pith_engine_bytes fails
     * with it */
    pith_kv_type kv_type;
    int32_t decode_threads; /* the same */
    pith_draft draft;       /* pith_generate_options */
    char why[160];          /* what is gained, and what it costs */
} pith_preference;

/* probe: what pith_system_probe_threads found, kept from an earlier time; NULL: threads are left
 * alone. */
PITH_API pith_status pith_prefer_choose(pith_prefer prefer, const pith_thread_probe *probe,
                                        pith_preference *out, pith_error *error);

/* ---- Looking inside ------------------------------------------------------------------------- */

/* Time by kind of operation since the last reset. */
typedef struct pith_profile_row {
    const char *operation; /* "linear attn_q"; lives as long as the engine */
    uint64_t n_calls;
    double ms; /* of all calls together, wall clock */
} pith_profile_row;
PITH_API void pith_engine_profile(pith_engine *engine, bool enable); /* also resets */
/* Writes at most capacity rows and returns how many there are. */
PITH_API size_t pith_engine_profile_rows(const pith_engine *engine, pith_profile_row *rows,
                                         size_t capacity);

/* Called with every named buffer of every step: values [n_rows, width], float32. For checking,
 * slow. NULL switches off. */
typedef void (*pith_trace)(void *user, const char *name, size_t n_rows, size_t width,
                           const float *values);
PITH_API void pith_engine_trace(pith_engine *engine, pith_trace trace, void *user);

typedef struct pith_system_info {
    char cpu[96];      /* model name */
    char features[64]; /* tiers of this machine after PITH_CPU, e.g. "avx2 avx512" */
    int32_t n_cores;   /* processors this process may use */
    int32_t n_threads; /* threads an engine has by default: one a core, small cores left out */
    uint64_t memory_bytes, memory_available_bytes;
} pith_system_info;
/* Fails with PITH_ERROR_ARGUMENT when PITH_CPU names an unknown tier. */
PITH_API pith_status pith_system_describe(pith_system_info *out, pith_error *error);
/* Processor and tiers, "AMD EPYC 9B14: ref avx2 avx512", cut at capacity (> 0): tells machines
 * apart and costs some microseconds. */
PITH_API void pith_system_name(char *text, size_t capacity);
/* Kernel chosen for slot index: its slot and the function's name. false past the end. */
PITH_API bool pith_system_kernel(size_t index, const char **slot, const char **kernel);
/* Library built in: name and version. false past the end. */
PITH_API bool pith_system_library(size_t index, const char **name, const char **version);
/* Architectures this build runs. NULL past the end. */
PITH_API const char *pith_system_architecture(size_t index);

#ifdef __cplusplus
}
#endif
#endif
