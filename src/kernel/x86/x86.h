/* SPDX-License-Identifier: Apache-2.0
 * Prototypes of the x86 kernels, a block per tier. Contracts: kernel.h; each gives the bits of its reference. */
#ifndef PITH_KERNEL_X86_X86_H
#define PITH_KERNEL_X86_X86_H

#include "kernel/kernel.h"

#endif
