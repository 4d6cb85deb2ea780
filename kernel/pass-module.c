// SPDX-License-Identifier: GPL-2.0-only
/* planewise-pass.ko. */
#include <linux/ctype.h>
#include <linux/module.h>
#include <linux/overflow.h>
#include "glue.h"
#define PLANEWISE_TRACE_SYSTEM planewise_pass
#define CREATE_TRACE_POINTS
#include "planewise-trace.h"

static char *region_size = "4g";
module_param(region_size, charp, 0444);
MODULE_PARM_DESC(region_size, "bytes of a region, a multiple of 4096, with a suffix k, m, g or t or without (4g)");

const struct planewise_policy *const planewise_module_policy = &planewise_pass;

/* As memparse(), which takes what does not fit modulo 2^64. */
static bool parse_size(const char *text, u64 *size)
{
	static const char suffixes[] = "kmgt";
	const char *suffix;

	if (!isdigit(*text))
		return false;
	for (*size = 0; isdigit(*text); text++)
		if (check_mul_overflow(*size, 10ULL, size) || check_add_overflow(*size, (u64)(*text - '0'), size))
			return false;
	if (!*text)
		return true;
	suffix = strchr(suffixes, tolower(*text));
	return suffix && !text[1] && !check_mul_overflow(*size, 1024ULL << 10 * (suffix - suffixes), size);
}

/* Of the size of a drive it is known only when the scheduler is set. */
int planewise_module_values(u64 *values, struct planewise_refusal *refusal)
{
	if (parse_size(region_size, &values[0]) && values[0] && values[0] % 4096 == 0)
		return 0;
	refusal->name = "region_size";
	refusal->allowed = "a multiple of 4096 above 0, such as 4294967296, 512m or 4g";
	return -EINVAL;
}

MODULE_DESCRIPTION("PASS: regions in turn, each a batch of one direction by address, every request with a deadline");
MODULE_AUTHOR("The Planewise authors");
MODULE_LICENSE("GPL");
/* So that writing the name into queue/scheduler loads it. */
MODULE_ALIAS("planewise-pass-iosched");
