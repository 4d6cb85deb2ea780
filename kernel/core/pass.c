// SPDX-License-Identifier: GPL-2.0-only
/*
 * PASS (Li et al., J. Zhejiang Univ. Sci. C 2014, section 3), as the
 * simulator's pass (docs/schedulers/pass.md): the address space in regions
 * that are served round robin, a batch of one direction at a time, by address.
 * Requests past their deadlines go first; a turn is never broken off.
 *
 * Interference avoidance (section 3.3): a turn may have to wait until what is
 * outstanding of the other direction is complete, in its region or everywhere.
 * The ring goes past regions whose turn has to wait; a turn that pass_over
 * others went before is the next one, and until it can begin nothing is
 * dispatched.
 */
#include "core.h"
#include "tree.h"

#define REGIONS_MAX 65536
#define NS_PER_MS 1000000ULL

enum { REGION_SIZE, BATCH, BARRIER, PASS_OVER, READ_EXPIRE, WRITE_EXPIRE };
enum { BARRIER_NONE, BARRIER_REGION, BARRIER_DEVICE };

static const char *const barriers[] = { "none", "region", "device", NULL };

static const struct planewise_tunable tunables[] = {
	[REGION_SIZE] = { "region_size", 4ULL << 30, 4096, 1ULL << 60, NULL, true },
	[BATCH] = { "batch", 16, 1, 1000000, NULL, false },
	[BARRIER] = { "barrier", BARRIER_NONE, BARRIER_NONE, BARRIER_DEVICE, barriers, false },
	[PASS_OVER] = { "pass_over", 8, 0, 1000000, NULL, false },
	[READ_EXPIRE] = { "read_expire", 500, 0, 86400000, NULL, false },
	[WRITE_EXPIRE] = { "write_expire", 5000, 0, 86400000, NULL, false },
};

static const char *const counter_names[] = { "turns", "expired", "barrier_waits", "passed_over" };

struct region {
	/* Waiting requests, by direction. */
	struct planewise_tree by_address[PLANEWISE_DIRECTIONS];
	struct planewise_link by_arrival[PLANEWISE_DIRECTIONS];
	/* Where its last batch of each direction ended, in sectors. */
	u64 position[PLANEWISE_DIRECTIONS];
	u32 outstanding[PLANEWISE_DIRECTIONS];
	/* Of its next turn. */
	u32 direction;
	/* Turns of the ring it had had when that was noted: each one since, also an empty one, took the other direction. */
	u64 noted_at;
	/* While the barrier holds a turn of it that the ring went past: since how many turns. */
	bool is_owed;
	u64 owed_since;
	struct planewise_link owed;
};

struct pass_request {
	struct planewise_request request;
	/* In its region. */
	struct planewise_node node;
	struct planewise_link link;
	/* In all of its direction. */
	struct planewise_link arrival;
	u64 deadline;
};

struct pass {
	const struct planewise_config *config;
	u64 region_sectors;
	u32 count;
	/* Regions with waiting requests, a bit each. */
	u64 *occupied;
	/* All waiting requests in the order of their arrival. */
	struct planewise_link arrivals[PLANEWISE_DIRECTIONS];
	/* The region whose turn it is after the present one, and how often the ring went round. */
	u32 ring;
	u64 laps;
	u32 waiting;
	/* Insertions into trees. */
	u64 order;
	/* The turn under way. */
	bool has_turn;
	u32 turn_region;
	u32 turn_direction;
	u64 turn_dispatched;
	u32 outstanding[PLANEWISE_DIRECTIONS];
	/* Regions with a turn that is owed, the longest first. */
	struct planewise_link owed;
	/* The barrier holds everything that waits. */
	bool is_held;
	u64 expired;
	u64 turns;
	u64 barrier_waits;
	u64 passed_over;
	struct region regions[];
};

static struct pass_request *by_node(struct planewise_node *node)
{
	return node ? container_of(node, struct pass_request, node) : NULL;
}

static u32 region_of(const struct pass *pass, u64 sector)
{
	u64 region = planewise_divide(sector, pass->region_sectors);

	/* A drive that grew after it was set up: the last region is longer. */
	return region < pass->count ? (u32)region : pass->count - 1;
}

static u32 other(u32 direction)
{
	return direction == PLANEWISE_READ ? PLANEWISE_WRITE : PLANEWISE_READ;
}

static bool is_empty(const struct region *region, u32 direction)
{
	return planewise_list_is_empty(&region->by_arrival[direction]);
}

/* Whether a turn has to wait for what is outstanding of the other direction. */
static bool is_blocked(const struct pass *pass, u32 region, u32 direction)
{
	switch (pass->config->values[BARRIER]) {
	case BARRIER_REGION:
		return pass->regions[region].outstanding[other(direction)] > 0;
	case BARRIER_DEVICE:
		return pass->outstanding[other(direction)] > 0;
	default:
		return false;
	}
}

/* The request that a turn goes on with: ahead of where the last batch ended, else the oldest. */
static struct pass_request *next_request(struct pass *pass, u32 index, u32 direction)
{
	struct region *region = &pass->regions[index];
	struct planewise_node *ahead =
		planewise_tree_at_or_after(&region->by_address[direction], region->position[direction]);

	if (ahead)
		return by_node(ahead);
	return container_of(region->by_arrival[direction].behind, struct pass_request, link);
}

/* The oldest request that is past its deadline; of two, the one whose deadline came first, of equals the read. */
static struct pass_request *expired(struct pass *pass, u64 now)
{
	struct pass_request *found = NULL;
	u32 direction;

	for (direction = 0; direction < PLANEWISE_DIRECTIONS; direction++) {
		struct pass_request *first;

		if (planewise_list_is_empty(&pass->arrivals[direction]))
			continue;
		first = container_of(pass->arrivals[direction].behind, struct pass_request, arrival);
		if (first->deadline <= now && (!found || first->deadline < found->deadline))
			found = first;
	}
	return found;
}

/* A turn that the barrier holds is owed from now on, whatever the ring does meanwhile. */
static void owe(struct pass *pass, u32 index, u32 direction)
{
	struct region *region = &pass->regions[index];

	region->direction = direction;
	if (region->is_owed)
		return;
	region->is_owed = true;
	region->owed_since = pass->turns;
	planewise_list_push(&pass->owed, &region->owed);
}

static void settle(struct region *region)
{
	if (region->is_owed)
		planewise_list_remove(&region->owed);
	region->is_owed = false;
}

/* Turns of the ring that a region has had, regions without requests too. */
static u64 ring_turns(const struct pass *pass, u32 region)
{
	return pass->laps + (region < pass->ring);
}

static u32 next_direction(const struct pass *pass, u32 index)
{
	const struct region *region = &pass->regions[index];
	bool is_even = (ring_turns(pass, index) - region->noted_at) % 2 == 0;

	return is_even || region->is_owed ? region->direction : other(region->direction);
}

/* The ring stands behind a region that has its turn in this round. */
static void stand_behind(struct pass *pass, u32 index, u64 lap)
{
	pass->ring = index + 1;
	pass->laps = lap;
	if (pass->ring == pass->count) {
		pass->ring = 0;
		pass->laps = lap + 1;
	}
}

/* The first region with waiting requests from one region on and before another; that other where there is none. */
static u32 next_occupied(const struct pass *pass, u32 from, u32 to)
{
	u64 ahead = ~0ULL << (from % 64);
	u32 word;

	for (word = from / 64; word < (to + 63) / 64; word++) {
		u64 found = pass->occupied[word] & ahead;

		if (found) {
			u32 index = word * 64 + (u32)__builtin_ctzll(found);

			return index < to ? index : to;
		}
		ahead = ~0ULL;
	}
	return to;
}

/*
 * The next turn as the ring goes, and the ring behind it. False when the
 * barrier holds all: the ring stands where it stood. Two rounds: where a
 * region's turn is of a direction that it has none of, the other is next when
 * the others have had theirs.
 */
static bool next_of_ring(struct pass *pass, u32 *region, u32 *direction)
{
	const u32 ring = pass->ring, from[2] = { ring, 0 }, to[2] = { pass->count, ring };
	const u64 laps = pass->laps;
	u64 passed_over = 0;
	u32 round, part, index;

	for (round = 0; round < 2; round++) {
		for (part = 0; part < 2; part++) {
			for (index = next_occupied(pass, from[part], to[part]); index < to[part];
			     index = next_occupied(pass, index + 1, to[part])) {
				u32 next = next_direction(pass, index);

				if (round == 1 && !pass->regions[index].is_owed)
					next = other(next);
				if (is_empty(&pass->regions[index], next))
					continue;
				if (!is_blocked(pass, index, next)) {
					stand_behind(pass, index, laps + part + round);
					pass->passed_over += passed_over;
					*region = index;
					*direction = next;
					return true;
				}
				if (pass->config->values[PASS_OVER] == 0)
					return false;
				owe(pass, index, next);
				passed_over++;
			}
		}
	}
	return false;
}

/* The request that the next turn begins with; NULL while the barrier holds it. */
static struct pass_request *next_turn(struct pass *pass, u64 now)
{
	struct pass_request *late = expired(pass, now);
	u32 region, direction;

	if (late) {
		region = region_of(pass, late->request.sector);
		direction = late->request.direction;
		if (is_blocked(pass, region, direction))
			return NULL;
		pass->expired++;
	} else {
		struct region *owed = NULL;

		if (!planewise_list_is_empty(&pass->owed))
			owed = container_of(pass->owed.behind, struct region, owed);
		if (owed && pass->turns - owed->owed_since >= pass->config->values[PASS_OVER]) {
			region = (u32)(owed - pass->regions);
			direction = owed->direction;
			if (is_blocked(pass, region, direction))
				return NULL;
		} else if (!next_of_ring(pass, &region, &direction)) {
			return NULL;
		}
		late = next_request(pass, region, direction);
	}
	pass->turn_region = region;
	pass->turn_direction = direction;
	pass->turn_dispatched = 0;
	return late;
}

static void note_occupied(struct pass *pass, u32 index)
{
	struct region *region = &pass->regions[index];
	u64 bit = 1ULL << (index % 64);

	if (is_empty(region, PLANEWISE_READ) && is_empty(region, PLANEWISE_WRITE))
		pass->occupied[index / 64] &= ~bit;
	else
		pass->occupied[index / 64] |= bit;
}

static void take(struct pass *pass, struct pass_request *taken)
{
	u32 index = pass->turn_region, direction = pass->turn_direction;
	struct region *region = &pass->regions[index];

	/* A turn of an overdue request does not settle one that is owed to the other direction. */
	if (!region->is_owed || region->direction == direction) {
		settle(region);
		region->direction = other(direction);
		region->noted_at = ring_turns(pass, index);
	}
	pass->turn_dispatched++;
	region->position[direction] = taken->request.sector + taken->request.sectors;
	planewise_tree_remove(&region->by_address[direction], &taken->node);
	planewise_list_remove(&taken->link);
	planewise_list_remove(&taken->arrival);
	pass->waiting--;
	pass->has_turn = pass->turn_dispatched < pass->config->values[BATCH] && !is_empty(region, direction);
	note_occupied(pass, index);
	region->outstanding[direction]++;
	pass->outstanding[direction]++;
}

static int pass_check(const struct planewise_config *config, struct planewise_refusal *refusal)
{
	u64 bytes = config->values[REGION_SIZE], sectors = bytes / 512;

	refusal->name = "region_size";
	if (bytes == 0 || bytes % 4096) {
		refusal->allowed = "a multiple of 4096 above 0";
		return -EINVAL;
	}
	if (sectors > config->capacity_sectors) {
		refusal->allowed = "the size of the drive at most";
		return -EINVAL;
	}
	if (planewise_divide(config->capacity_sectors + sectors - 1, sectors) > REGIONS_MAX) {
		refusal->allowed = "so much that the drive has at most 65536 regions";
		return -EINVAL;
	}
	return 0;
}

static void *pass_create(const struct planewise_config *config)
{
	u64 sectors = config->values[REGION_SIZE] / 512;
	u64 count = planewise_divide(config->capacity_sectors + sectors - 1, sectors);
	u64 words;
	struct pass *pass;
	u32 direction, index;

	count = count < 1 ? 1 : count > REGIONS_MAX ? REGIONS_MAX : count;
	words = (count + 63) / 64;
	pass = planewise_zalloc(sizeof(*pass) + count * sizeof(struct region) + words * sizeof(u64));
	if (!pass)
		return NULL;
	pass->config = config;
	pass->region_sectors = sectors;
	pass->count = (u32)count;
	pass->occupied = (u64 *)&pass->regions[count];
	planewise_list_init(&pass->owed);
	for (direction = 0; direction < PLANEWISE_DIRECTIONS; direction++) {
		planewise_list_init(&pass->arrivals[direction]);
		for (index = 0; index < count; index++)
			planewise_list_init(&pass->regions[index].by_arrival[direction]);
	}
	return pass;
}

static void pass_destroy(void *state)
{
	planewise_free(state);
}

/* Nothing is kept in requests that wait for use. */
static void pass_provide(void *state, void *requests, u32 count)
{
	(void)state;
	(void)requests;
	(void)count;
}

/* All tunables are looked at where they decide. */
static void pass_changed(void *state)
{
	(void)state;
}

static void pass_insert(void *state, u64 now, struct planewise_request *request)
{
	struct pass *pass = state;
	struct pass_request *entering = container_of(request, struct pass_request, request);
	u32 index = region_of(pass, request->sector), direction = request->direction;
	struct region *region = &pass->regions[index];

	entering->deadline = now + NS_PER_MS * pass->config->values[direction == PLANEWISE_READ ? READ_EXPIRE :
												WRITE_EXPIRE];
	planewise_tree_insert(&region->by_address[direction], &entering->node, request->sector, pass->order++);
	planewise_list_push(&region->by_arrival[direction], &entering->link);
	planewise_list_push(&pass->arrivals[direction], &entering->arrival);
	note_occupied(pass, index);
	pass->waiting++;
}

static struct planewise_request *pass_dispatch(void *state, u64 now, u64 *wake)
{
	struct pass *pass = state;
	struct pass_request *next;

	*wake = PLANEWISE_NEVER;
	if (!pass->waiting)
		return NULL;
	if (pass->has_turn) {
		next = next_request(pass, pass->turn_region, pass->turn_direction);
	} else {
		next = next_turn(pass, now);
		if (!next) {
			pass->barrier_waits += !pass->is_held;
			pass->is_held = true;
			return NULL;
		}
		pass->is_held = false;
		pass->turns++;
	}
	take(pass, next);
	return &next->request;
}

static void pass_completed(void *state, u64 now, struct planewise_request *request)
{
	struct pass *pass = state;

	(void)now;
	pass->regions[region_of(pass, request->sector)].outstanding[request->direction]--;
	pass->outstanding[request->direction]--;
}

static bool pass_has_waiting(void *state)
{
	const struct pass *pass = state;

	return pass->waiting > 0;
}

/* "With an existing request in the same sub-queue" (section 3.3). */
static bool pass_may_grow(void *state, struct planewise_request *request, u64 sector, u32 sectors)
{
	(void)sectors;
	return region_of(state, request->sector) == region_of(state, sector);
}

static void pass_grew(void *state, struct planewise_request *request, u64 sector, u32 sectors)
{
	struct pass *pass = state;
	struct pass_request *grown = container_of(request, struct pass_request, request);

	if (request->sector != sector) {
		struct planewise_tree *tree =
			&pass->regions[region_of(pass, sector)].by_address[request->direction];

		planewise_tree_remove(tree, &grown->node);
		planewise_tree_insert(tree, &grown->node, sector, pass->order++);
	}
	request->sector = sector;
	request->sectors = sectors;
}

static void pass_count(void *state, u64 *counters)
{
	const struct pass *pass = state;

	counters[0] = pass->turns;
	counters[1] = pass->expired;
	counters[2] = pass->barrier_waits;
	counters[3] = pass->passed_over;
}

const struct planewise_policy planewise_pass = {
	.name = "planewise-pass",
	.tunables = tunables,
	.tunables_count = sizeof(tunables) / sizeof(tunables[0]),
	.counters = counter_names,
	.counters_count = sizeof(counter_names) / sizeof(counter_names[0]),
	.request_bytes = sizeof(struct pass_request),
	.check = pass_check,
	.create = pass_create,
	.destroy = pass_destroy,
	.provide = pass_provide,
	.changed = pass_changed,
	.insert = pass_insert,
	.dispatch = pass_dispatch,
	.completed = pass_completed,
	.has_waiting = pass_has_waiting,
	.may_grow = pass_may_grow,
	.grew = pass_grew,
	.count = pass_count,
};
