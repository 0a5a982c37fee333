/* SPDX-License-Identifier: Apache-2.0
 *
 * Growing a program: instructions, constants, symbols, macros.
 *
 * Invariants: the arrays grow by doubling and are owned by the program; names and constant strings
 * live in its heap. A symbol is a variable's name, numbered; symbol_map borrows the names' bytes.
 *
 * It does not know the language (parser.h) nor what instructions do (machine.h).
 */
#include "chat/program.h"

#include "base/memory.h"
#include "chat/chat.h"

#include <string.h>

bool pith_program_init(pith_program *program) {
    static const char *const names[] = {[PITH_SYMBOL_LOOP] = "loop",
                                        [PITH_SYMBOL_CALLER] = "caller",
                                        [PITH_SYMBOL_VARARGS] = "varargs",
                                        [PITH_SYMBOL_KWARGS] = "kwargs"};
    *program = (pith_program){.source = NULL};
    pith_heap_init(&program->heap, PITH_TEMPLATE_MAX_MEMORY, UINT64_MAX);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (pith_program_symbol(program, pith_span_of(names[i])) < 0) return false;
    }
    return true;
}

void pith_program_deinit(pith_program *program) {
    pith_free(program->code);
    pith_free(program->constants);
    pith_free(program->symbols);
    pith_free(program->macros);
    pith_map_deinit(&program->symbol_map);
    pith_heap_deinit(&program->heap);
    *program = (pith_program){.source = NULL};
}

/* Room for one more element in an array of elements of `size` bytes; false without memory. */
static bool grow(void **array, size_t n, size_t *capacity, size_t size) {
    if (n < *capacity) return true;
    size_t wanted = *capacity == 0 ? 16 : *capacity * 2, bytes;
    if (wanted > INT32_MAX || !pith_size_mul(wanted, size, &bytes)) return false;
    void *grown = pith_realloc(*array, bytes);
    if (grown == NULL) return false;
    *array = grown;
    *capacity = wanted;
    return true;
}

int32_t pith_program_find_symbol(const pith_program *program, pith_span name) {
    int32_t number;
    return pith_map_find(&program->symbol_map, name, &number) ? number : -1;
}

int32_t pith_program_symbol(pith_program *program, pith_span name) {
    int32_t number = pith_program_find_symbol(program, name);
    if (number >= 0) return number;
    void *symbols = (void *)program->symbols;
    if (!grow(&symbols, program->n_symbols, &program->symbol_capacity, sizeof *program->symbols))
        return -1;
    program->symbols = symbols;
    const pith_string *string = pith_string_copy(&program->heap, name.data, name.size, false);
    if (string == NULL) return -1;
    if (pith_map_insert(&program->symbol_map, pith_string_span(string), (int32_t)program->n_symbols,
                        &number) < 0) {
        return -1;
    }
    program->symbols[program->n_symbols++] = string;
    return number;
}

int32_t pith_program_constant(pith_program *program, pith_value value) {
    void *constants = program->constants;
    if (!grow(&constants, program->n_constants, &program->constant_capacity,
              sizeof *program->constants))
        return -1;
    program->constants = constants;
    program->constants[program->n_constants] = value;
    return (int32_t)program->n_constants++;
}

int32_t pith_program_emit(pith_program *program, pith_instruction instruction) {
    void *code = program->code;
    if (!grow(&code, program->n_code, &program->code_capacity, sizeof *program->code)) return -1;
    program->code = code;
    program->code[program->n_code] = instruction;
    return (int32_t)program->n_code++;
}

int32_t pith_program_macro(pith_program *program, pith_macro_code macro) {
    void *macros = program->macros;
    if (!grow(&macros, program->n_macros, &program->macro_capacity, sizeof *program->macros))
        return -1;
    program->macros = macros;
    program->macros[program->n_macros] = macro;
    return (int32_t)program->n_macros++;
}
