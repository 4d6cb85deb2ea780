// SPDX-License-Identifier: GPL-2.0-only
/*
 * A policy of core/ as an I/O scheduler of blk-mq. What the block layer wants
 * of a scheduler is here and nowhere else: slots for requests, merging by the
 * block layer's own helpers, requests that are nobody's business, sysfs and
 * debugfs. One lock for all hardware queues: every policy orders all requests
 * of a drive.
 */
#include <linux/blkdev.h>
#include <linux/blk-mq.h>
#include <linux/hrtimer.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/seq_file.h>
#include <linux/spinlock.h>
#include <trace/events/block.h>

#include "blk.h"
#include "elevator.h"
#include "blk-mq.h"
#include "blk-mq-debugfs.h"
#include "blk-mq-sched.h"

#include "glue.h"
#include "planewise-config.h"

/* This file is compiled once for all modules, so the policy says whose line of the log it is. */
#define complain(text, ...) printk(KERN_ERR "%s: " text "\n", planewise_module_policy->name, ##__VA_ARGS__)

/* Requests that one piece of memory has room for at most. */
#define SLOTS_MAX 65536

struct slots {
	struct slots *next;
	u32 count;
	char requests[];
};

struct planewise_queue {
	spinlock_t lock;
	struct request_queue *queue;
	const struct planewise_policy *policy;
	void *state;
	struct planewise_config config;
	/* What goes before all others: requeued requests, and those that move no data of the drive. */
	struct list_head front;
	/* Requests for which there is no slot: they enter as others leave, as they wait outside the queue in the simulator. */
	struct list_head outside;
	/* Requests that the policy has and has not dispatched. */
	u32 waiting;
	/* The policy had requests and dispatched none: a completion has to ask again. */
	bool is_held;
	struct hrtimer timer;
	/* Waiting requests by their first sector, for front merges. */
	struct rb_root by_sector[PLANEWISE_DIRECTIONS];
	struct planewise_link idle;
	struct slots *slots;
	u32 slots_count;
	u64 dispatched;
	u64 merged;
	u64 requeued;
	/* Requests that had to wait outside. */
	u64 waited_outside;
};

static uint channels = 1;
module_param(channels, uint, 0444);
MODULE_PARM_DESC(channels, "channels of the drive, 1 to 65536 (1)");
static uint chips_per_channel = 1;
module_param(chips_per_channel, uint, 0444);
MODULE_PARM_DESC(chips_per_channel, "chips of a channel, 1 to 65536 (1)");
static uint dies_per_chip = 1;
module_param(dies_per_chip, uint, 0444);
MODULE_PARM_DESC(dies_per_chip, "dies of a chip, 1 to 65536 (1)");
static uint planes_per_die = 1;
module_param(planes_per_die, uint, 0444);
MODULE_PARM_DESC(planes_per_die, "planes of a die, 1 to 65536 (1)");
static uint chunk_bytes = 4096;
module_param(chunk_bytes, uint, 0444);
MODULE_PARM_DESC(chunk_bytes, "bytes of consecutive data on one unit, a multiple of 512 (4096)");
static char *level = "chip";
module_param(level, charp, 0444);
MODULE_PARM_DESC(level, "what a parallel unit is: chip or plane (chip)");
static char *order = "cwdp";
module_param(order, charp, 0444);
MODULE_PARM_DESC(order, "order in which consecutive chunks go to channels (c), chips (w), dies (d) and planes (p), the first letter changing first (cwdp)");
static bool writes_stay = true;
module_param(writes_stay, bool, 0444);
MODULE_PARM_DESC(writes_stay, "whether a write goes to the units that its addresses say: no where the drive allocates dynamically (Y)");

/* Made when the module is loaded, the same for all drives. */
static struct planewise_geometry geometry;
static u64 first_values[PLANEWISE_TUNABLES_MAX];

static struct planewise_queue *planewise_of(struct request_queue *queue)
{
	return queue->elevator->elevator_data;
}

static struct planewise_request *slot_of(struct request *rq)
{
	return rq->elv.priv[0];
}

/* Room for so many requests in all, where there is memory. May sleep; never from the path of a request. */
static int provide(struct planewise_queue *planewise, u32 wanted)
{
	size_t bytes = planewise->policy->request_bytes;
	unsigned int noio;
	unsigned long flags;
	struct slots *slots;
	u32 count, i;

	wanted = min_t(u32, wanted, SLOTS_MAX);
	if (wanted <= planewise->slots_count)
		return 0;
	count = wanted - planewise->slots_count;
	/* The queue may be frozen: memory must not be had by writing to it. */
	noio = memalloc_noio_save();
	slots = planewise_zalloc(struct_size(slots, requests, count * bytes));
	memalloc_noio_restore(noio);
	if (!slots)
		return -ENOMEM;
	slots->count = count;
	spin_lock_irqsave(&planewise->lock, flags);
	planewise->policy->provide(planewise->state, slots->requests, count);
	for (i = 0; i < count; i++) {
		struct planewise_request *slot = (void *)(slots->requests + i * bytes);

		planewise_list_push(&planewise->idle, &slot->idle);
	}
	slots->next = planewise->slots;
	planewise->slots = slots;
	planewise->slots_count = wanted;
	planewise->config.queue_length = wanted;
	spin_unlock_irqrestore(&planewise->lock, flags);
	return 0;
}

static u32 requests_of(struct request_queue *queue, u32 depth)
{
	u64 most = (u64)depth *
		   (blk_mq_is_shared_tags(queue->tag_set->flags) ? 1 : queue->nr_hw_queues);

	return min_t(u64, most, SLOTS_MAX);
}

static enum hrtimer_restart ask_again(struct hrtimer *timer)
{
	struct planewise_queue *planewise = container_of(timer, struct planewise_queue, timer);

	blk_mq_run_hw_queues(planewise->queue, true);
	return HRTIMER_NORESTART;
}

static void planewise_release(struct planewise_queue *planewise)
{
	while (planewise->slots) {
		struct slots *slots = planewise->slots;

		planewise->slots = slots->next;
		planewise_free(slots);
	}
	if (planewise->state)
		planewise->policy->destroy(planewise->state);
	kfree(planewise);
}

static struct planewise_queue *planewise_make(struct request_queue *queue)
{
	const struct planewise_policy *policy = planewise_module_policy;
	struct planewise_queue *planewise;
	struct planewise_refusal refusal;
	unsigned int noio;
	int error = -ENOMEM;

	noio = memalloc_noio_save();
	planewise = kzalloc_node(sizeof(*planewise), GFP_KERNEL, queue->node);
	if (!planewise)
		goto out;
	spin_lock_init(&planewise->lock);
	planewise->queue = queue;
	planewise->policy = policy;
	INIT_LIST_HEAD(&planewise->front);
	INIT_LIST_HEAD(&planewise->outside);
	planewise->by_sector[PLANEWISE_READ] = RB_ROOT;
	planewise->by_sector[PLANEWISE_WRITE] = RB_ROOT;
	planewise_list_init(&planewise->idle);
	planewise->config.geometry = geometry;
	planewise->config.writes_stay = writes_stay;
	planewise->config.capacity_sectors = queue->disk ? get_capacity(queue->disk) : 0;
	memcpy(planewise->config.values, first_values, sizeof(first_values));
#ifdef PLANEWISE_HAS_HRTIMER_SETUP
	hrtimer_setup(&planewise->timer, ask_again, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
#else
	hrtimer_init(&planewise->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	planewise->timer.function = ask_again;
#endif
	error = policy->check ? policy->check(&planewise->config, &refusal) : 0;
	if (error) {
		complain("%s: allowed: %s", refusal.name, refusal.allowed);
		goto out;
	}
	planewise->state = policy->create(&planewise->config);
	if (!planewise->state || provide(planewise, requests_of(queue, queue->nr_requests)))
		error = -ENOMEM;
out:
	memalloc_noio_restore(noio);
	if (!error)
		return planewise;
	if (planewise)
		planewise_release(planewise);
	return ERR_PTR(error);
}

static bool is_refused(struct request_queue *queue)
{
	if (!blk_queue_is_zoned(queue))
		return false;
	complain("a zoned drive keeps the order of writes itself; allowed: drives without zones");
	return true;
}

#ifdef PLANEWISE_INIT_SCHED_TAKES_QUEUE
static int planewise_init_sched(struct request_queue *queue, struct elevator_queue *elevator)
{
	struct planewise_queue *planewise;

	if (is_refused(queue))
		return -EINVAL;
	planewise = planewise_make(queue);
	if (IS_ERR(planewise))
		return PTR_ERR(planewise);
	elevator->elevator_data = planewise;
	blk_queue_flag_set(QUEUE_FLAG_SQ_SCHED, queue);
	queue->elevator = elevator;
	return 0;
}
#else
static int planewise_init_sched(struct request_queue *queue, struct elevator_type *type)
{
	struct elevator_queue *elevator;
	struct planewise_queue *planewise;

	if (is_refused(queue))
		return -EINVAL;
	elevator = elevator_alloc(queue, type);
	if (!elevator)
		return -ENOMEM;
	planewise = planewise_make(queue);
	if (IS_ERR(planewise)) {
		kobject_put(&elevator->kobj);
		return PTR_ERR(planewise);
	}
	elevator->elevator_data = planewise;
	blk_queue_flag_set(QUEUE_FLAG_SQ_SCHED, queue);
	queue->elevator = elevator;
	return 0;
}
#endif

static void planewise_exit_sched(struct elevator_queue *elevator)
{
	struct planewise_queue *planewise = elevator->elevator_data;

	hrtimer_cancel(&planewise->timer);
	WARN_ON_ONCE(planewise->waiting || !list_empty(&planewise->front) || !list_empty(&planewise->outside));
	planewise_release(planewise);
}

/* nr_requests changed. Where there is no memory, what finds no slot waits outside. */
#ifdef PLANEWISE_DEPTH_UPDATED_TAKES_QUEUE
static void planewise_depth_updated(struct request_queue *queue)
{
	provide(planewise_of(queue), requests_of(queue, queue->nr_requests));
}
#else
static void planewise_depth_updated(struct blk_mq_hw_ctx *hctx)
{
	/* nr_requests itself changes after this call. */
	u32 depth = max_t(u32, hctx->queue->nr_requests, hctx->sched_tags->bitmap_tags.sb.depth);

	provide(planewise_of(hctx->queue), requests_of(hctx->queue, depth));
}
#endif

static void planewise_prepare_request(struct request *rq)
{
	rq->elv.priv[0] = NULL;
}

/* Under the lock: the policy has it no more. */
static void forget(struct planewise_queue *planewise, struct request *rq)
{
	struct request_queue *queue = planewise->queue;

	elv_rqhash_del(queue, rq);
	if (!RB_EMPTY_NODE(&rq->rb_node))
		elv_rb_del(&planewise->by_sector[rq_data_dir(rq)], rq);
	if (queue->last_merge == rq)
		queue->last_merge = NULL;
}

/* Gives a request to the policy, in a slot that is idle. */
static void enter(struct planewise_queue *planewise, struct request *rq)
{
	struct request_queue *queue = planewise->queue;
	struct planewise_request *slot = container_of(planewise->idle.behind, struct planewise_request, idle);

	planewise_list_remove(&slot->idle);
	slot->owner = rq;
	slot->sector = blk_rq_pos(rq);
	slot->sectors = blk_rq_sectors(rq);
	slot->direction = rq_data_dir(rq) == READ ? PLANEWISE_READ : PLANEWISE_WRITE;
	rq->elv.priv[0] = slot;
	planewise->policy->insert(planewise->state, ktime_get_ns(), slot);
	WRITE_ONCE(planewise->waiting, planewise->waiting + 1);
	/* Discards are merged by rules of their own, which know no policy. */
	if (rq_mergeable(rq) && (req_op(rq) == REQ_OP_READ || req_op(rq) == REQ_OP_WRITE)) {
		elv_rb_add(&planewise->by_sector[rq_data_dir(rq)], rq);
		elv_rqhash_add(queue, rq);
		if (!queue->last_merge)
			queue->last_merge = rq;
	}
}

static void enter_from_outside(struct planewise_queue *planewise)
{
	while (!list_empty(&planewise->outside) && !planewise_list_is_empty(&planewise->idle)) {
		struct request *rq = list_first_entry(&planewise->outside, struct request, queuelist);

		list_del_init(&rq->queuelist);
		enter(planewise, rq);
	}
}

static void insert_one(struct planewise_queue *planewise, struct request *rq, bool at_head)
{
	trace_block_rq_insert(rq);
	if (at_head) {
		list_add(&rq->queuelist, &planewise->front);
	} else if (blk_rq_is_passthrough(rq) || !blk_rq_sectors(rq)) {
		list_add_tail(&rq->queuelist, &planewise->front);
	} else if (planewise_list_is_empty(&planewise->idle)) {
		planewise->waited_outside++;
		list_add_tail(&rq->queuelist, &planewise->outside);
	} else {
		enter(planewise, rq);
	}
}

static void insert_all(struct request_queue *queue, struct list_head *list, bool at_head)
{
	struct planewise_queue *planewise = planewise_of(queue);
	unsigned long flags;

	spin_lock_irqsave(&planewise->lock, flags);
	while (!list_empty(list)) {
		struct request *rq = list_first_entry(list, struct request, queuelist);

		list_del_init(&rq->queuelist);
		insert_one(planewise, rq, at_head);
	}
	spin_unlock_irqrestore(&planewise->lock, flags);
}

#ifdef PLANEWISE_INSERT_TAKES_FLAGS
static void planewise_insert_requests(struct blk_mq_hw_ctx *hctx, struct list_head *list, blk_insert_t flags)
{
	insert_all(hctx->queue, list, flags & BLK_MQ_INSERT_AT_HEAD);
}
#else
static void planewise_insert_requests(struct blk_mq_hw_ctx *hctx, struct list_head *list, bool at_head)
{
	insert_all(hctx->queue, list, at_head);
}
#endif

static struct request *planewise_dispatch_request(struct blk_mq_hw_ctx *hctx)
{
	struct planewise_queue *planewise = planewise_of(hctx->queue);
	struct planewise_request *slot;
	struct request *rq = NULL;
	unsigned long flags;
	u64 wake;

	spin_lock_irqsave(&planewise->lock, flags);
	if (!list_empty(&planewise->front)) {
		rq = list_first_entry(&planewise->front, struct request, queuelist);
		list_del_init(&rq->queuelist);
	} else if (planewise->waiting || !list_empty(&planewise->outside)) {
		enter_from_outside(planewise);
		slot = planewise->policy->dispatch(planewise->state, ktime_get_ns(), &wake);
		if (slot) {
			rq = slot->owner;
			forget(planewise, rq);
			WRITE_ONCE(planewise->waiting, planewise->waiting - 1);
			planewise->dispatched++;
		} else {
			planewise->is_held = true;
			if (wake != PLANEWISE_NEVER)
				hrtimer_start(&planewise->timer, ns_to_ktime(min_t(u64, wake, KTIME_MAX)),
					      HRTIMER_MODE_ABS);
		}
	}
	spin_unlock_irqrestore(&planewise->lock, flags);
	return rq;
}

static bool planewise_has_work(struct blk_mq_hw_ctx *hctx)
{
	struct planewise_queue *planewise = planewise_of(hctx->queue);

	return READ_ONCE(planewise->waiting) || !list_empty_careful(&planewise->front) ||
	       !list_empty_careful(&planewise->outside);
}

/* The drive has it no more: it completed, or it comes back. */
static void leave(struct request *rq, bool comes_back)
{
	struct planewise_request *slot = slot_of(rq);
	struct planewise_queue *planewise;
	unsigned long flags;
	bool was_held;

	/* Flushes and what was inserted at the head never had a slot. */
	if (!slot)
		return;
	planewise = planewise_of(rq->q);
	rq->elv.priv[0] = NULL;
	spin_lock_irqsave(&planewise->lock, flags);
	planewise->policy->completed(planewise->state, ktime_get_ns(), slot);
	slot->owner = NULL;
	planewise_list_push(&planewise->idle, &slot->idle);
	enter_from_outside(planewise);
	planewise->requeued += comes_back;
	was_held = planewise->is_held;
	planewise->is_held = false;
	spin_unlock_irqrestore(&planewise->lock, flags);
	if (was_held)
		blk_mq_run_hw_queues(rq->q, true);
}

static void planewise_finish_request(struct request *rq)
{
	leave(rq, false);
}

static void planewise_requeue_request(struct request *rq)
{
	leave(rq, true);
}

static bool planewise_bio_merge(struct request_queue *queue, struct bio *bio, unsigned int segments)
{
	struct planewise_queue *planewise = planewise_of(queue);
	struct request *spare = NULL;
	unsigned long flags;
	bool merged;

	spin_lock_irqsave(&planewise->lock, flags);
	merged = blk_mq_sched_try_merge(queue, bio, segments, &spare);
	spin_unlock_irqrestore(&planewise->lock, flags);
	/* No neighbours are named to the block layer, so it joins no two requests. */
	WARN_ON_ONCE(spare);
	return merged;
}

/* A front merge: back merges are the block layer's hash's. */
static int planewise_request_merge(struct request_queue *queue, struct request **found, struct bio *bio)
{
	struct planewise_queue *planewise = planewise_of(queue);
	struct request *rq = elv_rb_find(&planewise->by_sector[bio_data_dir(bio)], bio_end_sector(bio));

	if (!rq || !elv_bio_merge_ok(rq, bio))
		return ELEVATOR_NO_MERGE;
	*found = rq;
	return ELEVATOR_FRONT_MERGE;
}

static bool planewise_allow_merge(struct request_queue *queue, struct request *rq, struct bio *bio)
{
	struct planewise_queue *planewise = planewise_of(queue);
	struct planewise_request *slot = slot_of(rq);

	return slot && planewise->policy->may_grow(planewise->state, slot, bio->bi_iter.bi_sector,
						   bio_sectors(bio));
}

static void planewise_request_merged(struct request_queue *queue, struct request *rq, enum elv_merge side)
{
	struct planewise_queue *planewise = planewise_of(queue);
	struct planewise_request *slot = slot_of(rq);

	if (side == ELEVATOR_FRONT_MERGE) {
		elv_rb_del(&planewise->by_sector[rq_data_dir(rq)], rq);
		elv_rb_add(&planewise->by_sector[rq_data_dir(rq)], rq);
	}
	planewise->merged++;
	planewise->policy->grew(planewise->state, slot, blk_rq_pos(rq), blk_rq_sectors(rq));
}

/* Tunables in sysfs: the simulator's names, units and ranges. */
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

static struct elv_fs_entry attributes[PLANEWISE_TUNABLES_MAX + 1] = {
	{ .show = show_0, .store = store_0 }, { .show = show_1, .store = store_1 },
	{ .show = show_2, .store = store_2 }, { .show = show_3, .store = store_3 },
	{ .show = show_4, .store = store_4 }, { .show = show_5, .store = store_5 },
	{ .show = show_6, .store = store_6 }, { .show = show_7, .store = store_7 },
};

#ifdef CONFIG_BLK_DEBUG_FS
static int show_counters(void *data, struct seq_file *file)
{
	struct planewise_queue *planewise = planewise_of(data);
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

static const struct blk_mq_debugfs_attr debugfs_attributes[] = {
	{ "counters", 0400, show_counters },
	{ },
};
#endif

static struct elevator_type planewise_type = {
	.ops = {
		.init_sched = planewise_init_sched,
		.exit_sched = planewise_exit_sched,
		.depth_updated = planewise_depth_updated,
		.prepare_request = planewise_prepare_request,
		.insert_requests = planewise_insert_requests,
		.dispatch_request = planewise_dispatch_request,
		.has_work = planewise_has_work,
		.finish_request = planewise_finish_request,
		.requeue_request = planewise_requeue_request,
		.bio_merge = planewise_bio_merge,
		.request_merge = planewise_request_merge,
		.allow_merge = planewise_allow_merge,
		.request_merged = planewise_request_merged,
	},
	.elevator_attrs = attributes,
#ifdef CONFIG_BLK_DEBUG_FS
	.queue_debugfs_attrs = debugfs_attributes,
#endif
	.elevator_owner = THIS_MODULE,
};

static int __init planewise_init(void)
{
	const struct planewise_policy *policy = planewise_module_policy;
	const struct planewise_drive drive = {
		.channels = channels,
		.chips_per_channel = chips_per_channel,
		.dies_per_chip = dies_per_chip,
		.planes_per_die = planes_per_die,
		.chunk_bytes = chunk_bytes,
		.level = level,
		.order = order,
	};
	struct planewise_refusal refusal;
	int error;
	u32 i;

	for (i = 0; i < policy->tunables_count; i++) {
		first_values[i] = policy->tunables[i].standard;
		attributes[i].attr.name = policy->tunables[i].name;
		attributes[i].attr.mode = policy->tunables[i].is_fixed ? 0444 : 0644;
	}
	/* The list ends with an attribute without a name. */
	memset(&attributes[i], 0, sizeof(attributes[i]));
	planewise_type.elevator_name = policy->name;
	error = planewise_module_values(first_values, &refusal);
	if (!error)
		error = planewise_geometry_init(&geometry, &drive, &refusal);
	if (error == -EINVAL)
		complain("%s: allowed: %s", refusal.name, refusal.allowed);
	if (error)
		return error;
	error = elv_register(&planewise_type);
	if (error) {
		planewise_free((void *)geometry.stripe);
		return error;
	}
	printk(KERN_INFO "%s: %u units, chunks of %u bytes, order %s\n", policy->name, geometry.units, chunk_bytes, order);
	return 0;
}
module_init(planewise_init);

static void __exit planewise_exit(void)
{
	elv_unregister(&planewise_type);
	planewise_free((void *)geometry.stripe);
}
module_exit(planewise_exit);
