/* SPDX-License-Identifier: Apache-2.0
 * main(): names the commands and calls one. Each command lives in a file of its name; what they
 * share is cli.h. Exit codes: 0 success, 1 failure, 2 usage. Read next: run.c. */
#include "pith/near_word.h"
#include "pith/option_value.h"

#include <string.h>

typedef struct command_row {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} command_row;

static const command_row commands[] = {
    {"run", pith_command_run, "answer one prompt"},
    {"chat", pith_command_chat, "talk with a model in the terminal"},
    {"serve", pith_command_serve,
     "a chat page, and OpenAI's, Anthropic's and Ollama's APIs over HTTP"},
    {"inspect", pith_command_inspect, "show what is in a GGUF file, and whether it runs"},
    {"tokenize", pith_command_tokenize, "text from standard input to token ids"},
    {"template", pith_command_template, "render a chat template"},
    {"logits", pith_command_logits, "raw logits for given token ids"},
    {"embed", pith_command_embed, "turn texts into vectors"},
    {"bench", pith_command_bench, "measure prefill and decode speed"},
    {"fit", pith_command_fit, "whether a model fits and how fast, before loading it"},
    {"pull", pith_command_pull, "fetch a model by name or address"},
    {"list", pith_command_list, "list the models on this machine"},
    {"show", pith_command_show, "what a model is, in ten lines"},
    {"rm", pith_command_rm, "remove a model that was pulled"},
    {"cache", pith_command_cache, "list or remove the prompts that are kept on disk"},
    {"doctor", pith_command_doctor, "show the processor, memory, kernels and libraries in use"},
};
enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

static void print_help(FILE *out) {
    fprintf(out,
            "pith %s: run language models on this device.\n\nUsage: pith COMMAND [options]\n\n",
            pith_version());
    for (size_t i = 0; i < N_COMMANDS; i++)
        fprintf(out, "  %-9s %s\n", commands[i].name, commands[i].summary);
    fprintf(out, "\n`pith COMMAND --help` tells each command's options, `pith --version` the "
                 "version. A MODEL\n"
                 "is a path or a name that `pith list` shows.\n");
}

/* `pith help --json`: a line for the program and one for each command. */
static int print_help_json(char *program) {
    int code = pith_cli_print_json(json_pack("{s:s, s:s}", "version", pith_version(), "summary",
                                             "run language models on this device"));
    for (size_t i = 0; i < N_COMMANDS && code == PITH_EXIT_OK; i++) {
        char help[] = "--help", name[32];
        char *words[] = {program, name, help, NULL};
        snprintf(name, sizeof name, "%s", commands[i].name);
        pith_cli_help_json(commands[i].summary);
        code = commands[i].run(2, words + 1);
    }
    pith_cli_help_json(NULL);
    return code;
}

static const command_row *find_command(const char *name) {
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(name, commands[i].name) == 0) return &commands[i];
    return NULL;
}

static int refuse_command(const char *name) {
    pith_cli_near near;
    pith_cli_near_init(&near, name, strlen(name));
    for (size_t i = 0; i < N_COMMANDS; i++) pith_cli_near_offer(&near, commands[i].name);
    fprintf(stderr, "pith: there is no command '%s'; ", name);
    if (near.best) fprintf(stderr, "did you mean `pith %s`? ", near.best);
    fprintf(stderr, "`pith --help` lists them\n");
    return PITH_EXIT_USAGE;
}

int main(int argc, char **argv) {
    pith_cli_host_open(&argc, &argv);
    pith_cli_json_watch();
    if (argc < 2) {
        print_help(stderr);
        return PITH_EXIT_USAGE;
    }
    const char *name = argv[1];
    pith_cli_watch_faults();
    char help[] = "--help";
    char *words[] = {argv[0], argv[1], help, NULL};
    if (strcmp(name, "help") == 0 && argc == 3 && strcmp(argv[2], "--json") == 0)
        return print_help_json(argv[0]);
    if (strcmp(name, "help") == 0 && argc > 2 && argv[2][0] != '-') { /* `pith help COMMAND` */
        name = words[1] = argv[2];
        argv = words, argc = 3;
    } else if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 ||
               strcmp(name, "help") == 0) {
        print_help(stdout);
        return pith_cli_finish();
    }
    if (strcmp(name, "--version") == 0) {
        printf("pith %s\n", pith_version());
        return pith_cli_finish();
    }
    const command_row *command = find_command(name);
    return command ? command->run(argc - 1, argv + 1) : refuse_command(name);
}
