/* A library target needs one source of its own. */
typedef int pith_empty_translation_unit;
