/* SPDX-License-Identifier: GPL-2.0-only */
/* What a module's own file gives the part that all share. */
#ifndef PLANEWISE_GLUE_H
#define PLANEWISE_GLUE_H

#include "core.h"

/* Both are defined once in each module. */
extern const struct planewise_policy *const planewise_module_policy;

/* Sets what the module's own parameters say of tunables: 0, or -EINVAL with a refusal. */
int planewise_module_values(u64 *values, struct planewise_refusal *refusal);

#endif
