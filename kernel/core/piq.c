// SPDX-License-Identifier: GPL-2.0-only
/*
 * PIQ+ (Gao et al., IEEE TCAD 2017, section IV-B): reads before writes, each
 * in batches whose members touch no common unit; the oldest write batch goes
 * first when it has waited longer than a threshold. As the simulator's piq+
 * (docs/schedulers/piq-plus.md), which is piq where the threshold is at its
 * most.
 *
 * A new request joins the oldest batch whose units it does not touch, else it
 * opens one at the tail. Batches leave in the order of their creation. The
 * batch being issued is open too, but its units only ever grow (formula 4), so
 * it has at most one member for each, and it ends.
 */
#include "core.h"

enum { BARRIER, WRITE_WAIT_MAX_NS };
enum { BARRIER_ISSUE, BARRIER_COMPLETE };

static const char *const barriers[] = { "issue", "complete", NULL };

static const struct planewise_tunable tunables[] = {
	[BARRIER] = { "barrier", BARRIER_ISSUE, BARRIER_ISSUE, BARRIER_COMPLETE, barriers, false },
	[WRITE_WAIT_MAX_NS] = { "write_wait_max_ns", 1000000, 0, 1000000000000ULL, NULL, false },
};

static const char *const counter_names[] = { "read_batches", "write_batches",
					     "write_batches_promoted", "joined" };

struct batch {
	/* Of the batches of its direction, or of those that are free. */
	struct planewise_link link;
	struct planewise_link waiting;
	u64 number;
	/* Since when the oldest of its waiting members waits, as a batch. */
	u64 created;
	u32 waiting_count;
	/* Members issued and not complete. */
	u32 outstanding;
	/* Whether requests may join it. */
	bool is_open;
	struct planewise_units units;
};

struct piq_request {
	struct planewise_request request;
	struct planewise_link link;
	struct batch *batch;
	/* Of that batch: once it is through, its memory may be another's. */
	u64 number;
	/* Each batch has a member that is not complete, so that there are never more than requests. */
	struct batch spare;
};

/*
 * A batch that has a unit, as all open ones before it have: no request of that
 * unit fits them, for units of a batch only grow. While it is not the lane's
 * any more, its number is below the lane's first.
 */
struct mark {
	u64 number;
	struct batch *batch;
};

/* One direction. */
struct lane {
	/* The oldest is being issued. */
	struct planewise_link batches;
	/* Number of the oldest batch (or, without any, of the next); of the next to be opened. */
	u64 first;
	u64 next;
	u32 waiting;
	u64 joined;
	/* By unit; without a batch where there is none such. */
	struct mark marks[PLANEWISE_UNITS_MAX];
};

struct piq {
	const struct planewise_config *config;
	u32 words;
	struct lane lanes[PLANEWISE_DIRECTIONS];
	struct planewise_link free;
	/* The write batch that goes before reads now. It takes no newcomers: they would keep reads waiting for ever. */
	u64 promoted;
	/* The last read batch of the turn that reads have before the next promotion. */
	u64 owed;
	u64 promotions;
};

#define NO_BATCH (~0ULL)

static struct batch *batch_of(struct planewise_link *link)
{
	return container_of(link, struct batch, link);
}

static struct piq_request *member_of(struct planewise_link *link)
{
	return container_of(link, struct piq_request, link);
}

static bool is_complete_barrier(const struct piq *piq)
{
	return piq->config->values[BARRIER] == BARRIER_COMPLETE;
}

static struct batch *oldest(struct lane *lane)
{
	return planewise_list_is_empty(&lane->batches) ? NULL : batch_of(lane->batches.behind);
}

static bool is_last(const struct lane *lane, const struct batch *batch)
{
	return batch->link.behind == &lane->batches;
}

/* The oldest with a waiting member: under the barrier "complete" the one before may be all out. */
static struct batch *oldest_waiting(struct lane *lane)
{
	struct planewise_link *link;

	planewise_for_each(link, &lane->batches)
		if (batch_of(link)->waiting_count)
			return batch_of(link);
	return NULL;
}

/*
 * Moves on from batches that are through: nothing of them waits, and what is
 * out is complete or need not be waited for. With nobody behind it, a batch
 * whose members are all out stays, for newcomers that share no unit with them.
 */
static void advance(struct piq *piq, struct lane *lane)
{
	struct batch *batch;

	while ((batch = oldest(lane))) {
		bool may_leave = !is_complete_barrier(piq) && (!is_last(lane, batch) || !batch->is_open);

		if (batch->waiting_count || (batch->outstanding && !may_leave))
			return;
		planewise_list_remove(&batch->link);
		planewise_list_push(&piq->free, &batch->link);
		lane->first = batch->number + 1;
	}
}

/* Whether it is of a batch that is still in the lane. */
static bool is_alive(const struct lane *lane, const struct mark *mark)
{
	return mark->batch && mark->number >= lane->first;
}

/* The mark furthest on of these units. */
static struct mark *furthest(struct piq *piq, struct lane *lane, const struct planewise_units *units)
{
	struct mark *found = NULL;
	u32 word;

	for (word = 0; word < piq->words; word++) {
		u64 left;

		for (left = units->words[word]; left; left &= left - 1) {
			struct mark *mark = &lane->marks[word * 64 + (u32)__builtin_ctzll(left)];

			if (!found || (is_alive(lane, mark) && (!is_alive(lane, found) || mark->number > found->number)))
				found = mark;
		}
	}
	return found;
}

/* The oldest batch that takes these units. What is before a mark of one of them need not be looked at. */
static struct batch *first_fit(struct piq *piq, struct lane *lane, const struct planewise_units *units)
{
	struct mark *mark = furthest(piq, lane, units);
	u32 unit = (u32)(mark - lane->marks);
	bool has_all_before = true;
	struct planewise_link *link;

	for (link = is_alive(lane, mark) ? mark->batch->link.behind : lane->batches.behind; link != &lane->batches;
	     link = link->behind) {
		struct batch *batch = batch_of(link);
		bool fits = batch->is_open && !planewise_units_meet(&batch->units, units, piq->words);

		/* One that fits will have them. */
		if (has_all_before &&
		    (fits || !batch->is_open || (batch->units.words[unit / 64] >> (unit % 64) & 1))) {
			mark->number = batch->number;
			mark->batch = batch;
		} else {
			has_all_before = false;
		}
		if (fits)
			return batch;
	}
	return NULL;
}

static struct batch *open_batch(struct piq *piq, struct lane *lane)
{
	struct batch *batch = batch_of(piq->free.behind);

	planewise_list_remove(&batch->link);
	planewise_list_push(&lane->batches, &batch->link);
	planewise_list_init(&batch->waiting);
	batch->number = lane->next++;
	batch->waiting_count = 0;
	batch->outstanding = 0;
	batch->is_open = true;
	memset(&batch->units, 0, piq->words * sizeof(u64));
	return batch;
}

/* Formula 4. */
static void add_units(struct piq *piq, struct batch *batch, const struct planewise_units *units)
{
	u32 word;

	for (word = 0; word < piq->words; word++)
		batch->units.words[word] |= units->words[word];
}

/* Whether issued requests of this direction that must complete before others start on their units touch these. */
static bool blocks(struct piq *piq, struct lane *lane, const struct planewise_units *units)
{
	struct batch *batch = oldest(lane);

	return is_complete_barrier(piq) && batch && batch->outstanding &&
	       planewise_units_meet(&batch->units, units, piq->words);
}

/* A member of the oldest batch: they do not conflict, so the first that the other direction lets go. */
static struct piq_request *take(struct piq *piq, struct lane *lane, struct lane *other)
{
	struct batch *batch = oldest(lane);
	struct planewise_link *link;

	if (!batch)
		return NULL;
	planewise_for_each(link, &batch->waiting) {
		struct piq_request *member = member_of(link);

		if (blocks(piq, other, &member->request.units))
			continue;
		planewise_list_remove(link);
		batch->waiting_count--;
		batch->outstanding++;
		lane->waiting--;
		advance(piq, lane);
		return member;
	}
	return NULL;
}

static struct piq_request *take_read(struct piq *piq)
{
	return take(piq, &piq->lanes[PLANEWISE_READ], &piq->lanes[PLANEWISE_WRITE]);
}

static struct piq_request *take_write(struct piq *piq)
{
	struct lane *reads = &piq->lanes[PLANEWISE_READ], *writes = &piq->lanes[PLANEWISE_WRITE];
	struct piq_request *taken = take(piq, writes, reads);
	struct batch *next;

	if (!taken || piq->promoted == NO_BATCH)
		return taken;
	next = oldest_waiting(writes);
	if (next && next->number == piq->promoted)
		return taken;
	/* The promoted batch is through: reads have their turn before the next. */
	piq->promoted = NO_BATCH;
	next = oldest_waiting(reads);
	piq->owed = next ? next->number : NO_BATCH;
	return taken;
}

/* Whether the oldest write batch goes before the waiting reads; if not, when to ask again. */
static bool is_promoted(struct piq *piq, u64 now, u64 *wake)
{
	struct batch *writes = oldest_waiting(&piq->lanes[PLANEWISE_WRITE]);
	struct batch *reads = oldest_waiting(&piq->lanes[PLANEWISE_READ]);
	u64 threshold = piq->config->values[WRITE_WAIT_MAX_NS], due;

	if (piq->promoted == writes->number)
		return true;
	if (piq->owed != NO_BATCH && reads->number <= piq->owed)
		return false;
	piq->owed = NO_BATCH;
	due = writes->created + threshold;
	if (due < threshold)
		due = PLANEWISE_NEVER;
	if (due > now) {
		*wake = due;
		return false;
	}
	piq->promoted = writes->number;
	piq->promotions++;
	writes->is_open = false;
	return true;
}

static void *piq_create(const struct planewise_config *config)
{
	struct piq *piq = planewise_zalloc(sizeof(*piq));
	int direction;

	if (!piq)
		return NULL;
	piq->config = config;
	piq->words = planewise_unit_words(&config->geometry);
	for (direction = 0; direction < PLANEWISE_DIRECTIONS; direction++)
		planewise_list_init(&piq->lanes[direction].batches);
	planewise_list_init(&piq->free);
	piq->promoted = NO_BATCH;
	piq->owed = NO_BATCH;
	return piq;
}

static void piq_destroy(void *state)
{
	planewise_free(state);
}

static void piq_provide(void *state, void *requests, u32 count)
{
	struct piq_request *request = requests;
	struct piq *piq = state;

	for (; count; count--, request++)
		planewise_list_push(&piq->free, &request->spare.link);
}

/* With "issue" in the place of "complete", batches that were waited for may be through. */
static void piq_changed(void *state)
{
	struct piq *piq = state;

	advance(piq, &piq->lanes[PLANEWISE_READ]);
	advance(piq, &piq->lanes[PLANEWISE_WRITE]);
}

static void piq_insert(void *state, u64 now, struct planewise_request *request)
{
	struct piq *piq = state;
	struct lane *lane = &piq->lanes[request->direction];
	struct piq_request *member = container_of(request, struct piq_request, request);
	struct batch *batch = oldest(lane);

	planewise_units_of(&piq->config->geometry, request->sector, request->sectors, &request->units);
	/* A batch that is all out would live on while newcomers join it: it takes none when others wait. */
	if (is_complete_barrier(piq) && batch && !is_last(lane, batch) && !batch->waiting_count)
		batch->is_open = false;
	batch = first_fit(piq, lane, &request->units);
	if (batch)
		lane->joined++;
	else
		batch = open_batch(piq, lane);
	if (!batch->waiting_count)
		batch->created = now;
	planewise_list_push(&batch->waiting, &member->link);
	batch->waiting_count++;
	member->batch = batch;
	member->number = batch->number;
	add_units(piq, batch, &request->units);
	lane->waiting++;
	advance(piq, lane);
}

static struct planewise_request *piq_dispatch(void *state, u64 now, u64 *wake)
{
	struct piq *piq = state;
	struct piq_request *taken;

	*wake = PLANEWISE_NEVER;
	if (!piq->lanes[PLANEWISE_READ].waiting)
		taken = take_write(piq);
	else if (piq->lanes[PLANEWISE_WRITE].waiting && is_promoted(piq, now, wake))
		taken = take_write(piq);
	else
		taken = take_read(piq);
	return taken ? &taken->request : NULL;
}

static void piq_completed(void *state, u64 now, struct planewise_request *request)
{
	struct piq *piq = state;
	struct lane *lane = &piq->lanes[request->direction];
	struct piq_request *member = container_of(request, struct piq_request, request);

	(void)now;
	/* Where batches need not be complete, the next may have begun: the units are the drive's business then. */
	if (member->number < lane->first)
		return;
	member->batch->outstanding--;
	advance(piq, lane);
}

static bool piq_has_waiting(void *state)
{
	struct piq *piq = state;

	return piq->lanes[PLANEWISE_READ].waiting || piq->lanes[PLANEWISE_WRITE].waiting;
}

/* A batch stays free of conflicts: a member may grow over units that no other touches. */
static bool piq_may_grow(void *state, struct planewise_request *request, u64 sector, u32 sectors)
{
	struct piq *piq = state;
	struct batch *batch = container_of(request, struct piq_request, request)->batch;
	struct planewise_units added;
	u32 word;

	if (batch->waiting_count + batch->outstanding == 1)
		return true;
	planewise_units_of(&piq->config->geometry, sector, sectors, &added);
	for (word = 0; word < piq->words; word++)
		if (added.words[word] & batch->units.words[word] & ~request->units.words[word])
			return false;
	return true;
}

static void piq_grew(void *state, struct planewise_request *request, u64 sector, u32 sectors)
{
	struct piq *piq = state;
	struct batch *batch = container_of(request, struct piq_request, request)->batch;

	request->sector = sector;
	request->sectors = sectors;
	planewise_units_of(&piq->config->geometry, sector, sectors, &request->units);
	add_units(piq, batch, &request->units);
}

static void piq_count(void *state, u64 *counters)
{
	struct piq *piq = state;
	struct lane *reads = &piq->lanes[PLANEWISE_READ], *writes = &piq->lanes[PLANEWISE_WRITE];

	counters[0] = reads->next;
	counters[1] = writes->next;
	counters[2] = piq->promotions;
	counters[3] = reads->joined + writes->joined;
}

const struct planewise_policy planewise_piq = {
	.name = "planewise-piq",
	.tunables = tunables,
	.tunables_count = sizeof(tunables) / sizeof(tunables[0]),
	.counters = counter_names,
	.counters_count = sizeof(counter_names) / sizeof(counter_names[0]),
	.request_bytes = sizeof(struct piq_request),
	.create = piq_create,
	.destroy = piq_destroy,
	.provide = piq_provide,
	.changed = piq_changed,
	.insert = piq_insert,
	.dispatch = piq_dispatch,
	.completed = piq_completed,
	.has_waiting = piq_has_waiting,
	.may_grow = piq_may_grow,
	.grew = piq_grew,
	.count = piq_count,
};
