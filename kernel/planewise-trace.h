/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints, under events/planewise_piq, planewise_pass and planewise_weave:
 * all that a policy is told and all that it answers, with the times that it
 * was told, so that the simulator's policy can be told the same
 * (crates/kernel-core).
 */
#if !defined(PLANEWISE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define PLANEWISE_TRACE_H

#undef TRACE_SYSTEM
/* Only the file that makes the tracepoints of a module says what they are called. */
#ifdef PLANEWISE_TRACE_SYSTEM
#define TRACE_SYSTEM PLANEWISE_TRACE_SYSTEM
#else
#define TRACE_SYSTEM planewise
#endif

#include <linux/blkdev.h>
#include <linux/tracepoint.h>

#include "glue.h"

/* A drive got this scheduler. */
TRACE_EVENT(planewise_create,
	TP_PROTO(const struct planewise_queue *planewise),
	TP_ARGS(planewise),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__array(char, policy, 32)
		__field(u32, queue_length)
		__field(u64, capacity_sectors)
		__array(char, drive, PLANEWISE_DESCRIPTION_TEXT)
	),
	TP_fast_assign(
		__entry->dev = disk_devt(planewise->queue->disk);
		strscpy(__entry->policy, planewise->policy->name, sizeof(__entry->policy));
		__entry->queue_length = planewise->config.queue_length;
		__entry->capacity_sectors = planewise->config.capacity_sectors;
		planewise_write_description(&planewise->description, __entry->drive);
	),
	TP_printk("%d,%d policy=%s queue_length=%u capacity_sectors=%llu %s", MAJOR(__entry->dev), MINOR(__entry->dev),
		  __entry->policy,
		  __entry->queue_length, __entry->capacity_sectors, __entry->drive)
);

/* A tunable's value, when the scheduler is set and when it changes. */
TRACE_EVENT(planewise_tunable,
	TP_PROTO(const struct planewise_queue *planewise, u32 index),
	TP_ARGS(planewise, index),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__array(char, name, 32)
		__field(u64, value)
	),
	TP_fast_assign(
		__entry->dev = disk_devt(planewise->queue->disk);
		strscpy(__entry->name, planewise->policy->tunables[index].name, sizeof(__entry->name));
		__entry->value = planewise->config.values[index];
	),
	TP_printk("%d,%d name=%s value=%llu", MAJOR(__entry->dev), MINOR(__entry->dev), __entry->name,
		  __entry->value)
);

/* nr_requests changed: so many requests the policy may have from now on. */
TRACE_EVENT(planewise_length,
	TP_PROTO(const struct planewise_queue *planewise),
	TP_ARGS(planewise),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u32, queue_length)
	),
	TP_fast_assign(
		__entry->dev = disk_devt(planewise->queue->disk);
		__entry->queue_length = planewise->config.queue_length;
	),
	TP_printk("%d,%d queue_length=%u", MAJOR(__entry->dev), MINOR(__entry->dev), __entry->queue_length)
);

DECLARE_EVENT_CLASS(planewise_event,
	TP_PROTO(const struct planewise_queue *planewise, u64 now, const struct planewise_request *slot),
	TP_ARGS(planewise, now, slot),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, now)
		__field(u64, sector)
		__field(u32, sectors)
		__field(u32, slot)
		__field(bool, is_read)
		__dynamic_array(u64, units, planewise_unit_words(&planewise->config.geometry))
	),
	TP_fast_assign(
		struct planewise_units units;

		__entry->dev = disk_devt(planewise->queue->disk);
		__entry->now = now;
		__entry->sector = slot->sector;
		__entry->sectors = slot->sectors;
		__entry->slot = slot->number;
		__entry->is_read = slot->direction == PLANEWISE_READ;
		planewise_units_of(&planewise->config.geometry, slot->sector, slot->sectors, &units);
		memcpy(__get_dynamic_array(units), units.words, __get_dynamic_array_len(units));
	),
	TP_printk("%d,%d now=%llu slot=%u %s sector=%llu sectors=%u units=%s", MAJOR(__entry->dev),
		  MINOR(__entry->dev), __entry->now, __entry->slot, __entry->is_read ? "read" : "write",
		  __entry->sector, __entry->sectors,
		  __print_array(__get_dynamic_array(units), __get_dynamic_array_len(units) / 8, 8))
);

/* The policy got a request. */
DEFINE_EVENT(planewise_event, planewise_insert,
	TP_PROTO(const struct planewise_queue *planewise, u64 now, const struct planewise_request *slot),
	TP_ARGS(planewise, now, slot)
);

/* Another was merged into a waiting one, which is so long now. */
DEFINE_EVENT(planewise_event, planewise_grow,
	TP_PROTO(const struct planewise_queue *planewise, u64 now, const struct planewise_request *slot),
	TP_ARGS(planewise, now, slot)
);

/* The policy said that this one goes next. */
DEFINE_EVENT(planewise_event, planewise_dispatch,
	TP_PROTO(const struct planewise_queue *planewise, u64 now, const struct planewise_request *slot),
	TP_ARGS(planewise, now, slot)
);

/* The drive has it no more. */
DEFINE_EVENT(planewise_event, planewise_complete,
	TP_PROTO(const struct planewise_queue *planewise, u64 now, const struct planewise_request *slot),
	TP_ARGS(planewise, now, slot)
);

/* The drive gave it back. */
DEFINE_EVENT(planewise_event, planewise_requeue,
	TP_PROTO(const struct planewise_queue *planewise, u64 now, const struct planewise_request *slot),
	TP_ARGS(planewise, now, slot)
);

/* The policy was asked, has requests, and said that none goes before `wake`, or before something happens. */
TRACE_EVENT(planewise_hold,
	TP_PROTO(const struct planewise_queue *planewise, u64 now, u64 wake),
	TP_ARGS(planewise, now, wake),
	TP_STRUCT__entry(
		__field(dev_t, dev)
		__field(u64, now)
		__field(u64, wake)
	),
	TP_fast_assign(
		__entry->dev = disk_devt(planewise->queue->disk);
		__entry->now = now;
		__entry->wake = wake;
	),
	TP_printk("%d,%d now=%llu wake=%llu", MAJOR(__entry->dev), MINOR(__entry->dev), __entry->now,
		  __entry->wake)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE planewise-trace
#include <trace/define_trace.h>
