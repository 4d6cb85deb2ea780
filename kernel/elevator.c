// SPDX-License-Identifier: GPL-2.0-only
/*
 * A policy of core/ as an I/O scheduler of blk-mq. What the block layer wants
 * of a scheduler is here and nowhere else: slots for requests, merging by the
 * block layer's own helpers, requests that are nobody's business, the limit on
 * depth. One lock for all hardware queues: every policy orders all requests of
 * a drive.
 */
#include <linux/blkdev.h>
#include <linux/blk-mq.h>
#include <linux/hrtimer.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/spinlock.h>
#include <trace/events/block.h>

#include "attributes.h"
#include "blk-mq-sched.h"
#include "glue.h"
#include "planewise-config.h"
#include "planewise-trace.h"

/* Requests that one piece of memory has room for at most. */
#define SLOTS_MAX 65536

struct planewise_slots {
	struct planewise_slots *next;
	char requests[];
};

/* Made when the module is loaded, the same for all drives. */
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
	struct planewise_slots *slots;
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
	spin_lock_irqsave(&planewise->lock, flags);
	planewise->policy->provide(planewise->state, slots->requests, count);
	for (i = 0; i < count; i++) {
		struct planewise_request *slot = (void *)(slots->requests + i * bytes);

		slot->number = planewise->slots_count + i;
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
		struct planewise_slots *slots = planewise->slots;

		planewise->slots = slots->next;
		planewise_free(slots);
	}
	if (planewise->state)
		planewise->policy->destroy(planewise->state);
	planewise_free((void *)planewise->config.geometry.stripe);
	kfree(planewise);
}

static struct planewise_queue *planewise_make(struct request_queue *queue)
{
	const struct planewise_policy *policy = planewise_module_policy;
	struct planewise_queue *planewise;
	struct planewise_refusal refusal;
	unsigned int noio;
	int error = -ENOMEM;
	u32 i;

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
	planewise->async_depth = PLANEWISE_ASYNC_DEPTH_MOST;
	planewise_describe(queue->disk->disk_name, &planewise->description);
	planewise->config.writes_stay = planewise->description.writes_stay;
	planewise->config.capacity_sectors = get_capacity(queue->disk);
	memcpy(planewise->config.values, first_values, sizeof(first_values));
#ifdef PLANEWISE_HAS_HRTIMER_SETUP
	hrtimer_setup(&planewise->timer, ask_again, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
#else
	hrtimer_init(&planewise->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	planewise->timer.function = ask_again;
#endif
	error = planewise_geometry_init(&planewise->config.geometry, &planewise->description.drive, &refusal);
	if (!error && policy->check)
		error = policy->check(&planewise->config, &refusal);
	if (error == -EINVAL)
		complain("%s: allowed: %s", refusal.name, refusal.allowed);
	if (error)
		goto out;
	planewise->state = policy->create(&planewise->config);
	if (!planewise->state || provide(planewise, requests_of(queue, queue->nr_requests)))
		error = -ENOMEM;
out:
	memalloc_noio_restore(noio);
	if (!error) {
		trace_planewise_create(planewise);
		for (i = 0; i < policy->tunables_count; i++)
			trace_planewise_tunable(planewise, i);
		return planewise;
	}
	if (planewise)
		planewise_release(planewise);
	return ERR_PTR(error);
}

static bool is_refused(struct request_queue *queue)
{
	if (queue->disk && !blk_queue_is_zoned(queue))
		return false;
	if (!queue->disk)
		return true;
	complain("a zoned drive keeps the order of writes itself; allowed: drives without zones");
	return true;
}

/*
 * Each new set of tags is told that few may be given, or whoever waits for one
 * would not be woken: of the least that there can be, and before there is a
 * limit, as neither a request nor this can wait for the other.
 */
static void expect_limit(struct request_queue *queue)
{
	struct blk_mq_hw_ctx *hctx;
	unsigned long i;

	queue_for_each_hw_ctx(queue, hctx, i)
		if (hctx->sched_tags)
			sbitmap_queue_min_shallow_depth(&hctx->sched_tags->bitmap_tags, 1);
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
	expect_limit(queue);
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
	expect_limit(queue);
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

/* nr_requests changed: there may be new tags. */
static void depth_changed(struct planewise_queue *planewise, u32 depth)
{
	/* Where there is no memory, what finds no slot waits outside. */
	provide(planewise, requests_of(planewise->queue, depth));
	expect_limit(planewise->queue);
	trace_planewise_length(planewise);
}

#ifdef PLANEWISE_DEPTH_UPDATED_TAKES_QUEUE
static void planewise_depth_updated(struct request_queue *queue)
{
	depth_changed(planewise_of(queue), queue->nr_requests);
}
#else
static void planewise_depth_updated(struct blk_mq_hw_ctx *hctx)
{
	/* nr_requests itself changes after this call. */
	depth_changed(planewise_of(hctx->queue),
		      max_t(u32, hctx->queue->nr_requests, hctx->sched_tags->bitmap_tags.sb.depth));
}
#endif

/*
 * Whether the block layer counts a limit in each word of a bitmap, or in all:
 * that changed with kernels and backports, and no declaration tells.
 */
static bool depth_is_of_words;

static bool is_depth_of_words(void)
{
	struct sbitmap_queue bits;
	int got = 0;

	/* Four words of eight bits each. */
	if (sbitmap_queue_init_node(&bits, 32, 3, false, GFP_KERNEL, NUMA_NO_NODE))
		return false;
	sbitmap_queue_min_shallow_depth(&bits, 4);
	while (got < 32 && sbitmap_queue_get_shallow(&bits, 4) >= 0)
		got++;
	sbitmap_queue_free(&bits);
	return got > 4;
}

/* What is asked of one bitmap so that a share of nr_requests is what it gives. */
static unsigned int limit_of(const struct planewise_queue *planewise, struct sbitmap_queue *tags)
{
	u64 depth = READ_ONCE(planewise->async_depth);

	if (depth_is_of_words)
		depth = div64_u64((depth << tags->sb.shift) + tags->sb.depth - 1, tags->sb.depth);
	return max_t(u64, depth, 1);
}

/* As mq-deadline: reads that somebody waits for are not held back. */
static void planewise_limit_depth(blk_opf_t operation, struct blk_mq_alloc_data *data)
{
	struct planewise_queue *planewise = planewise_of(data->q);
	struct sbitmap_queue *tags = &data->hctx->sched_tags->bitmap_tags;

	if (READ_ONCE(planewise->async_depth) >= tags->sb.depth ||
	    (op_is_sync(operation) && !op_is_write(operation)))
		return;
	data->shallow_depth = limit_of(planewise, tags);
}

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
	u64 now;

	planewise_list_remove(&slot->idle);
	slot->owner = rq;
	slot->sector = blk_rq_pos(rq);
	slot->sectors = blk_rq_sectors(rq);
	slot->direction = rq_data_dir(rq) == READ ? PLANEWISE_READ : PLANEWISE_WRITE;
	rq->elv.priv[0] = slot;
	now = ktime_get_ns();
	trace_planewise_insert(planewise, now, slot);
	planewise->policy->insert(planewise->state, now, slot);
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
	u64 now, wake;

	spin_lock_irqsave(&planewise->lock, flags);
	if (!list_empty(&planewise->front)) {
		rq = list_first_entry(&planewise->front, struct request, queuelist);
		list_del_init(&rq->queuelist);
	} else if (planewise->waiting || !list_empty(&planewise->outside)) {
		enter_from_outside(planewise);
		now = ktime_get_ns();
		slot = planewise->policy->dispatch(planewise->state, now, &wake);
		if (slot) {
			trace_planewise_dispatch(planewise, now, slot);
			rq = slot->owner;
			forget(planewise, rq);
			WRITE_ONCE(planewise->waiting, planewise->waiting - 1);
			planewise->dispatched++;
		} else {
			trace_planewise_hold(planewise, now, wake);
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
	u64 now;

	/* Flushes and what was inserted at the head never had a slot. */
	if (!slot)
		return;
	planewise = planewise_of(rq->q);
	rq->elv.priv[0] = NULL;
	spin_lock_irqsave(&planewise->lock, flags);
	now = ktime_get_ns();
	if (comes_back)
		trace_planewise_requeue(planewise, now, slot);
	else
		trace_planewise_complete(planewise, now, slot);
	planewise->policy->completed(planewise->state, now, slot);
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
	trace_planewise_grow(planewise, ktime_get_ns(), slot);
}

static struct elevator_type planewise_type = {
	.ops = {
		.init_sched = planewise_init_sched,
		.exit_sched = planewise_exit_sched,
		.depth_updated = planewise_depth_updated,
		.limit_depth = planewise_limit_depth,
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
	.elevator_attrs = planewise_attributes,
#ifdef CONFIG_BLK_DEBUG_FS
	.queue_debugfs_attrs = planewise_debugfs_attributes,
#endif
	.elevator_owner = THIS_MODULE,
};

static int __init planewise_init(void)
{
	const struct planewise_policy *policy = planewise_module_policy;
	struct planewise_refusal refusal;
	int error;
	u32 i;

	for (i = 0; i < policy->tunables_count; i++)
		first_values[i] = policy->tunables[i].standard;
	planewise_attributes_init(policy);
	planewise_type.elevator_name = policy->name;
	error = planewise_module_values(first_values, &refusal);
	if (error == -EINVAL)
		complain("%s: allowed: %s", refusal.name, refusal.allowed);
	if (error)
		return error;
	depth_is_of_words = is_depth_of_words();
	error = planewise_drives_init();
	if (error)
		return error;
	error = elv_register(&planewise_type);
	if (error)
		planewise_drives_exit();
	return error;
}
module_init(planewise_init);

static void __exit planewise_exit(void)
{
	elv_unregister(&planewise_type);
	planewise_drives_exit();
}
module_exit(planewise_exit);
