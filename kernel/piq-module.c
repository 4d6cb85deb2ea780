// SPDX-License-Identifier: GPL-2.0-only
/* planewise-piq.ko. */
#include <linux/module.h>
#include "glue.h"
#define PLANEWISE_TRACE_SYSTEM planewise_piq
#define CREATE_TRACE_POINTS
#include "planewise-trace.h"

const struct planewise_policy *const planewise_module_policy = &planewise_piq;

int planewise_module_values(u64 *values, struct planewise_refusal *refusal)
{
	return 0;
}

MODULE_DESCRIPTION("PIQ+: reads before writes, in batches that share no parallel unit of the drive");
MODULE_AUTHOR("The Planewise authors");
MODULE_LICENSE("GPL");
/* So that writing the name into queue/scheduler loads it. */
MODULE_ALIAS("planewise-piq-iosched");
