/* SPDX-License-Identifier: Apache-2.0
 * Promise: test_byte_block.c's, for processors whose vectors base/byte_block.h does not know. */
#define PITH_PLAIN_BYTE_BLOCK
#include "test_byte_block.c"
