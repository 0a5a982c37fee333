/* SPDX-License-Identifier: Apache-2.0
 * What a template is compiled to: a flat list of instructions for a stack machine, constants,
 * symbols and macros.
 *
 *   {% for x in xs %}<{{ x }}>{% endfor %}
 *
 *       LOAD       xs
 *       LOOP_BEGIN
 *    n: LOOP_NEXT  -> e          a fresh scope, the next item pushed; to e when there is none
 *       STORE      x
 *       TEXT       "<"
 *       LOAD       x
 *       PRINT
 *       TEXT       ">"
 *       JUMP       -> n
 *    e: LOOP_END   -> else's end
 *
 * Jumps are relative to the next instruction, so that the parser may move a finished piece of code.
 * A program does not change after it was made; any number of renderings may use it at once. */
#ifndef PITH_CHAT_PROGRAM_H
#define PITH_CHAT_PROGRAM_H

#include "base/map.h"
#include "chat/value.h"

/* clang-format off */
/* Stack before -> after; a, b, extra, flags: fields of the instruction. */
typedef enum pith_opcode {
    PITH_OPCODE_HALT,
    PITH_OPCODE_TEXT,          /* -> ; writes constant a */
    PITH_OPCODE_PRINT,         /* value -> ; writes it */
    PITH_OPCODE_CONST,         /* -> constant a */
    PITH_OPCODE_LOAD,          /* -> variable a (undefined when there is none) */
    PITH_OPCODE_STORE,         /* value -> ; into variable a of the current scope */
    PITH_OPCODE_STORE_FIELD,   /* value -> ; into field constant b of the namespace in variable a */
    PITH_OPCODE_UNPACK,        /* value -> its a items, the first on top */
    PITH_OPCODE_ATTRIBUTE,     /* value -> value.name, name = constant a */
    PITH_OPCODE_ITEM,          /* value key -> value[key] */
    PITH_OPCODE_SLICE,         /* value start stop step -> value[start:stop:step]; ABSENT: none */
    PITH_OPCODE_LIST,          /* a values -> list */
    PITH_OPCODE_TUPLE,         /* a values -> tuple */
    PITH_OPCODE_DICT,          /* a pairs key value -> dict */
    PITH_OPCODE_BINARY,        /* x y -> x op y; a: enum pith_binary */
    PITH_OPCODE_UNARY,         /* x -> op x; a: enum pith_unary */
    PITH_OPCODE_COMPARE,       /* x y -> bool; a: enum pith_comparison */
    PITH_OPCODE_CHAIN,         /* x y -> y, or false and a jump by a; b: enum pith_comparison */
    PITH_OPCODE_JUMP,          /* by a */
    PITH_OPCODE_JUMP_IF_FALSE, /* value -> ; by a */
    PITH_OPCODE_AND,           /* value -> value and a jump by a when it is false, else -> */
    PITH_OPCODE_OR,            /* value -> value and a jump by a when it is true, else -> */
    PITH_OPCODE_UNDEFINED,     /* -> undefined whose sentence is constant a */
    PITH_OPCODE_CALL,          /* callee, a values, b pairs name value, extras by flags -> result */
    PITH_OPCODE_FILTER,        /* subject, then as CALL -> result; extra: number of the filter */
    PITH_OPCODE_TEST,          /* subject, then as CALL -> bool; extra: number of the test */
    PITH_OPCODE_NO_FILTER,     /* fails: there is no filter named constant a */
    PITH_OPCODE_NO_TEST,       /* fails: there is no test named constant a */
    PITH_OPCODE_MACRO,         /* -> macro number a, whose code follows; jumps over it by b */
    PITH_OPCODE_IF_BOUND,      /* jumps by b when the current scope has variable a */
    PITH_OPCODE_RETURN,        /* ends a macro or recursive loop: -> what it wrote, if captured */
    PITH_OPCODE_SCOPE_PUSH,
    PITH_OPCODE_SCOPE_POP,
    PITH_OPCODE_CAPTURE,       /* a new scope, and what is written is kept */
    PITH_OPCODE_CAPTURE_END,   /* -> what was written; both end */
    PITH_OPCODE_LOOP_ENTER,    /* runs the loop that follows as a call, then goes on behind a */
    PITH_OPCODE_LOOP_BEGIN,    /* items -> ; flags 1: recursive */
    PITH_OPCODE_LOOP_NEXT,     /* -> item; by a when there is none; flags 1: no LOOP_CHECK comes */
    PITH_OPCODE_LOOP_KEEP,     /* value -> ; keeps the item for the second pass when it is true */
    PITH_OPCODE_LOOP_REWIND,   /* starts the second pass, over the items that were kept */
    PITH_OPCODE_LOOP_CHECK,    /* value -> ; by a when it is false: the loop's `if` in one pass */
    PITH_OPCODE_LOOP_END,      /* by a when the body ran at all */
    PITH_OPCODE_COUNT
} pith_opcode;
/* clang-format on */

typedef enum pith_binary {
    PITH_BINARY_ADD,
    PITH_BINARY_SUBTRACT,
    PITH_BINARY_MULTIPLY,
    PITH_BINARY_DIVIDE,
    PITH_BINARY_FLOOR_DIVIDE,
    PITH_BINARY_MODULO,
    PITH_BINARY_POWER,
    PITH_BINARY_CONCAT /* ~ */
} pith_binary;

typedef enum pith_unary { PITH_UNARY_NOT, PITH_UNARY_MINUS, PITH_UNARY_PLUS } pith_unary;

typedef enum pith_comparison {
    PITH_COMPARISON_EQUAL,
    PITH_COMPARISON_UNEQUAL,
    PITH_COMPARISON_LESS,
    PITH_COMPARISON_LESS_EQUAL,
    PITH_COMPARISON_GREATER,
    PITH_COMPARISON_GREATER_EQUAL,
    PITH_COMPARISON_IN,
    PITH_COMPARISON_NOT_IN
} pith_comparison;

/* What lies on the stack behind the pairs of a call, in this order. */
enum pith_call_flag {
    PITH_CALL_STAR = 1,        /* *args */
    PITH_CALL_DOUBLE_STAR = 2, /* **kwargs */
    PITH_CALL_CALLER = 4       /* the body of a call block */
};

typedef struct pith_instruction {
    uint8_t op;     /* pith_opcode, which says what the other fields mean */
    uint8_t flags;  /* of calls: enum pith_call_flag; of loops: 1, as said there */
    uint16_t extra; /* number of a filter or test */
    int32_t a, b;
    uint32_t line; /* of the template, for messages; from 1 */
} pith_instruction;

typedef struct pith_parameter {
    int32_t symbol;   /* its name, by number */
    bool has_default; /* set at the start of the macro's code when the call did not give it */
} pith_parameter;

typedef struct pith_macro_code {
    const pith_string *name;
    pith_parameter *parameters; /* [n_parameters] */
    size_t n_parameters;
    bool uses_caller, uses_varargs, uses_kwargs;
} pith_macro_code;

/* Symbols with a meaning, the first ones of each program. */
enum { PITH_SYMBOL_LOOP, PITH_SYMBOL_CALLER, PITH_SYMBOL_VARARGS, PITH_SYMBOL_KWARGS };

typedef struct pith_program {
    pith_heap heap; /* constants, names */
    char *source;   /* newlines normalized; the heap's text */
    size_t source_size;
    pith_instruction *code; /* [n_code] */
    size_t n_code, code_capacity;
    pith_value *constants; /* [n_constants] */
    size_t n_constants, constant_capacity;
    const pith_string **symbols; /* [n_symbols] names */
    size_t n_symbols, symbol_capacity;
    pith_map symbol_map;
    pith_macro_code *macros; /* [n_macros] */
    size_t n_macros, macro_capacity;
} pith_program;

/* All return -1 or false without memory. */
bool pith_program_init(pith_program *program);
void pith_program_deinit(pith_program *program);
int32_t pith_program_symbol(pith_program *program, pith_span name); /* finds or adds */
int32_t pith_program_find_symbol(const pith_program *program,
                                 pith_span name); /* -1: the template does not use it */
int32_t pith_program_constant(pith_program *program, pith_value value);
/* Appends an instruction and returns its number. */
int32_t pith_program_emit(pith_program *program, pith_instruction instruction);
int32_t pith_program_macro(pith_program *program, pith_macro_code macro);

#endif
