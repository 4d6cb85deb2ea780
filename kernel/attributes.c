// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tunables in sysfs: the simulator's names, units and ranges. Counters in
 * debugfs: the simulator's too.
 */
#include <linux/blk-mq.h>
#include <linux/seq_file.h>

#include "attributes.h"
#include "glue.h"
#include "planewise-trace.h"

static ssize_t show(struct elevator_queue *elevator, char *page, u32 index)
{
	struct planewise_queue *planewise = elevator->elevator_data;
	const struct planewise_tunable *tunable = &planewise->policy->tunables[index];
	u64 value = READ_ONCE(planewise->config.values[index]);

	if (tunable->words)
		return sysfs_emit(page, "%s\n", tunable->words[value]);
	return sysfs_emit(page, "%llu\n", value);
}

static bool parse(const struct planewise_tunable *tunable, const char *text, u64 *value)
{
	if (!tunable->words)
		return !kstrtou64(text, 0, value) && *value >= tunable->least && *value <= tunable->most;
	for (*value = 0; tunable->words[*value]; (*value)++)
		if (sysfs_streq(text, tunable->words[*value]))
			return true;
	return false;
}

/* One line that names the tunable, what was found, and what is allowed. */
static void refuse_value(const struct planewise_tunable *tunable, const char *text)
{
	char allowed[64] = "";
	int length = (int)strcspn(text, "\n"), word, at = 0;

	for (word = 0; tunable->words && tunable->words[word]; word++)
		at += scnprintf(allowed + at, sizeof(allowed) - at, "%s%s", word ? ", " : "",
				tunable->words[word]);
	if (!tunable->words)
		scnprintf(allowed, sizeof(allowed), "a whole number from %llu to %llu", tunable->least,
			 tunable->most);
	complain("%s: found '%.*s'; allowed: %s", tunable->name, min(length, 32), text, allowed);
}

static ssize_t store(struct elevator_queue *elevator, const char *text, size_t length, u32 index)
{
	struct planewise_queue *planewise = elevator->elevator_data;
	const struct planewise_tunable *tunable = &planewise->policy->tunables[index];
	unsigned long flags;
	u64 value;

	if (!parse(tunable, text, &value)) {
		refuse_value(tunable, text);
		return -EINVAL;
	}
	spin_lock_irqsave(&planewise->lock, flags);
	WRITE_ONCE(planewise->config.values[index], value);
	planewise->policy->changed(planewise->state);
	trace_planewise_tunable(planewise, index);
	spin_unlock_irqrestore(&planewise->lock, flags);
	blk_mq_run_hw_queues(planewise->queue, true);
	return length;
}

/* Attributes are not told which they are. */
#define ATTRIBUTE(index) \
	static ssize_t show_##index(struct elevator_queue *elevator, char *page) \
	{ \
		return show(elevator, page, index); \
	} \
	static ssize_t store_##index(struct elevator_queue *elevator, const char *text, size_t length) \
	{ \
		return store(elevator, text, length, index); \
	}
ATTRIBUTE(0) ATTRIBUTE(1) ATTRIBUTE(2) ATTRIBUTE(3)
ATTRIBUTE(4) ATTRIBUTE(5) ATTRIBUTE(6) ATTRIBUTE(7)

static ssize_t show_drive(struct elevator_queue *elevator, char *page)
{
	struct planewise_queue *planewise = elevator->elevator_data;
	char text[PLANEWISE_DESCRIPTION_TEXT];

	planewise_write_description(&planewise->description, text);
	return sysfs_emit(page, "%s\n", text);
}

static ssize_t show_async_depth(struct elevator_queue *elevator, char *page)
{
	struct planewise_queue *planewise = elevator->elevator_data;

	return sysfs_emit(page, "%u\n", READ_ONCE(planewise->async_depth));
}

static ssize_t store_async_depth(struct elevator_queue *elevator, const char *text, size_t length)
{
	static const struct planewise_tunable tunable = { "async_depth", PLANEWISE_ASYNC_DEPTH_MOST, 1,
							  PLANEWISE_ASYNC_DEPTH_MOST, NULL, false };
	struct planewise_queue *planewise = elevator->elevator_data;
	u64 value;

	if (!parse(&tunable, text, &value)) {
		refuse_value(&tunable, text);
		return -EINVAL;
	}
	WRITE_ONCE(planewise->async_depth, value);
	return length;
}

/* Two of all policies', those of this one, and an end. */
struct elv_fs_entry planewise_attributes[2 + PLANEWISE_TUNABLES_MAX + 1] = {
	{ .attr = { .name = "drive", .mode = 0444 }, .show = show_drive },
	{ .attr = { .name = "async_depth", .mode = 0644 }, .show = show_async_depth, .store = store_async_depth },
	{ .show = show_0, .store = store_0 }, { .show = show_1, .store = store_1 },
	{ .show = show_2, .store = store_2 }, { .show = show_3, .store = store_3 },
	{ .show = show_4, .store = store_4 }, { .show = show_5, .store = store_5 },
	{ .show = show_6, .store = store_6 }, { .show = show_7, .store = store_7 },
};

#ifdef CONFIG_BLK_DEBUG_FS
static int show_counters(void *data, struct seq_file *file)
{
	struct planewise_queue *planewise = ((struct request_queue *)data)->elevator->elevator_data;
	const struct planewise_policy *policy = planewise->policy;
	u64 counters[PLANEWISE_COUNTERS_MAX], dispatched, merged, requeued, waited_outside;
	unsigned long flags;
	u32 i;

	spin_lock_irqsave(&planewise->lock, flags);
	policy->count(planewise->state, counters);
	dispatched = planewise->dispatched;
	merged = planewise->merged;
	requeued = planewise->requeued;
	waited_outside = planewise->waited_outside;
	spin_unlock_irqrestore(&planewise->lock, flags);
	for (i = 0; i < policy->counters_count; i++)
		seq_printf(file, "%s %llu\n", policy->counters[i], counters[i]);
	seq_printf(file, "dispatched %llu\nmerged %llu\nrequeued %llu\nwaited_outside %llu\n", dispatched, merged,
		   requeued, waited_outside);
	return 0;
}

const struct blk_mq_debugfs_attr planewise_debugfs_attributes[] = {
	{ "counters", 0400, show_counters },
	{ },
};
#endif

void planewise_attributes_init(const struct planewise_policy *policy)
{
	struct elv_fs_entry *own = planewise_attributes + 2;
	u32 i;

	for (i = 0; i < policy->tunables_count; i++) {
		own[i].attr.name = policy->tunables[i].name;
		own[i].attr.mode = policy->tunables[i].is_fixed ? 0444 : 0644;
	}
	/* The list ends with an attribute without a name. */
	memset(&own[i], 0, sizeof(own[i]));
}
