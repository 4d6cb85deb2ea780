// SPDX-License-Identifier: GPL-2.0-only
/*
 * Weave, Planewise's own scheduler, as the simulator's weave
 * (docs/schedulers/weave.md). It is work conserving, and believes of the drive
 * what the drive shows:
 *
 * - Of all waiting requests it issues one whose units have the least to do; of
 *   those a short read first, where reads are the shorter ones; of those the
 *   oldest.
 * - Where the drive serves directions in turns, it issues one direction for a
 *   while, then the other, each in the order of arrival.
 * - No request is passed by more than a number of later ones.
 */
#include "core.h"

enum { PASSES_PER_SLOT, READS_FIRST_PER_SLOT, READS_FIRST_LONGEST, TURN_REQUESTS, TURN_BYTES, LOOK_AHEAD };

static const struct planewise_tunable tunables[] = {
	[PASSES_PER_SLOT] = { "passes_per_slot", 8, 0, 65536, NULL, false },
	[READS_FIRST_PER_SLOT] = { "reads_first_per_slot", 64 << 10, 0, 1ULL << 40, NULL, false },
	[READS_FIRST_LONGEST] = { "reads_first_longest", 16 << 10, 0, 1ULL << 40, NULL, false },
	[TURN_REQUESTS] = { "turn_requests", 64, 1, 65536, NULL, false },
	[TURN_BYTES] = { "turn_bytes", 512 << 10, 0, 1ULL << 40, NULL, false },
	[LOOK_AHEAD] = { "look_ahead", 1024, 1, 4096, NULL, false },
};

static const char *const counter_names[] = { "issued_by_load", "issued_in_turns", "issued_late",
					     "issued_reads_first" };

/* Slots that count for what may go before a request. */
#define FULL_QUEUE 64
/* Loads told apart: 0 to 7 outstanding requests; 8 stands for more. */
#define LOADS 8
/* Requests of no more units are behind others as soon as one unit is busy: it is a quarter of them. */
#define NARROW 4
/* Answers before a mean counts. */
#define ENOUGH 32
/* Powers of two of requests outstanding that are told apart. */
#define LEVELS 8
/* So many chances without one taken: the drive serves directions in turns. */
#define CHANCES 128

/* A decaying mean: of all samples at first, then each new one counts one part in 32. */
struct mean {
	u32 samples;
	u64 value;
};

/* What the drive shows by when requests complete. */
struct evidence {
	/* Time in the drive by direction, ns. */
	struct mean time[PLANEWISE_DIRECTIONS];
	/* The same by how much was outstanding at the issue, of those alone on their units then and of those behind others. */
	struct mean by_load[PLANEWISE_DIRECTIONS][LEVELS][2];
	/* Chances since a request last completed before an earlier one of the other direction, up to CHANCES. */
	u32 chances_missed;
	bool has_overtaken;
	bool units_matter[PLANEWISE_DIRECTIONS];
};

struct weave_request {
	struct planewise_request request;
	/* Of all that wait, or of those outstanding of its direction. */
	struct planewise_link link;
	/* Waiting: of its direction, and of the short reads if it is one. */
	struct planewise_link same_direction;
	struct planewise_link short_read;
	/* Waiting: how many will have left when all before it have. Outstanding: how many had at its issue. */
	u64 number;
	/* Waiting: the same of sectors. */
	u64 sectors_before;
	u64 issued;
	bool is_short_read;
	bool is_narrow;
	/* One of its units was busy when it was issued. */
	bool was_behind;
	/* A request of the other direction was outstanding when it was issued. */
	bool had_a_chance;
	/* Requests in the drive when it was issued. */
	u32 outstanding;
};

struct weave {
	const struct planewise_config *config;
	u32 words;
	/* Requests outstanding by unit; by load, the units with more. */
	u32 busy[PLANEWISE_UNITS_MAX];
	struct planewise_units above[LOADS];
	struct evidence evidence;
	/* In the order of arrival, and of issue. */
	struct planewise_link waiting;
	struct planewise_link waiting_of[PLANEWISE_DIRECTIONS];
	struct planewise_link short_reads;
	u32 waiting_count;
	struct planewise_link outstanding[PLANEWISE_DIRECTIONS];
	u32 outstanding_count;
	/* Requests that left the waiting list, and sectors. */
	u64 left;
	u64 left_sectors;
	u64 waiting_sectors;
	/* The direction issued last, and how much of it in a row. */
	u32 turn;
	u64 turn_requests;
	u64 turn_sectors;
	u64 by_load;
	u64 in_turns;
	u64 late;
	u64 reads_first;
};

/* Which requests go first among those of equal loads. */
enum preferred { NOBODY, SHORT_READS, READS, WRITES };

static struct weave_request *member_of(struct planewise_link *link)
{
	return container_of(link, struct weave_request, link);
}

static u32 other(u32 direction)
{
	return direction == PLANEWISE_READ ? PLANEWISE_WRITE : PLANEWISE_READ;
}

static void add_sample(struct mean *mean, u64 sample)
{
	if (mean->samples < ENOUGH)
		mean->samples++;
	mean->value = planewise_divide(mean->value * (mean->samples - 1) + sample, mean->samples);
}

static bool is_known(const struct mean *mean)
{
	return mean->samples >= ENOUGH;
}

/* Whether requests behind others take half as long again as those alone, when as much is outstanding. */
static bool units_matter(struct mean levels[LEVELS][2])
{
	u64 alone = 0, behind = 0;
	u32 level;

	for (level = 0; level < LEVELS; level++) {
		if (is_known(&levels[level][0]) && is_known(&levels[level][1])) {
			alone += levels[level][0].value;
			behind += levels[level][1].value;
		}
	}
	return 2 * behind > 3 * alone;
}

static void learn(struct evidence *evidence, const struct weave_request *done, u64 time, bool overtook)
{
	u32 direction = done->request.direction;
	u32 level = 31 - (u32)__builtin_clz(done->outstanding ? done->outstanding : 1);

	add_sample(&evidence->time[direction], time);
	level = level < LEVELS ? level : LEVELS - 1;
	add_sample(&evidence->by_load[direction][level][done->was_behind], time);
	evidence->units_matter[direction] = units_matter(evidence->by_load[direction]);
	if (!done->had_a_chance)
		return;
	if (overtook) {
		evidence->chances_missed = 0;
		evidence->has_overtaken = true;
	} else if (evidence->chances_missed < CHANCES) {
		evidence->chances_missed++;
	}
}

/* Whether reads take the drive clearly less time than writes. Behind a write buffer they do not. */
static bool reads_are_shorter(const struct evidence *evidence)
{
	const struct mean *reads = &evidence->time[PLANEWISE_READ], *writes = &evidence->time[PLANEWISE_WRITE];

	return is_known(reads) && is_known(writes) && 2 * writes->value > 3 * reads->value;
}

static u32 count_bits(u64 word)
{
	u32 count;

	for (count = 0; word; count++)
		word &= word - 1;
	return count;
}

/* Whether a quarter of the units of a request have more than so many requests outstanding. */
static bool exceeds(const struct weave *weave, const struct weave_request *request, u32 load)
{
	const struct planewise_units *touched = &request->request.units, *above = &weave->above[load];
	u32 word, busy = 0, idle = 0;

	if (!planewise_units_meet(touched, above, weave->words))
		return false;
	if (request->is_narrow)
		return true;
	for (word = 0; word < weave->words; word++) {
		busy += count_bits(touched->words[word] & above->words[word]);
		idle += count_bits(touched->words[word] & ~above->words[word]);
	}
	return 3 * busy >= idle;
}

static u32 load_of(const struct weave *weave, const struct weave_request *request)
{
	u32 load;

	for (load = 0; load < LOADS; load++)
		if (!exceeds(weave, request, load))
			break;
	return load;
}

/* A request was issued, or completed. */
static void count_on_units(struct weave *weave, const struct weave_request *request, bool more)
{
	u32 word;

	for (word = 0; word < weave->words; word++) {
		u64 left = request->request.units.words[word];

		while (left) {
			u64 bit = left & -left;
			u32 unit = word * 64 + (u32)__builtin_ctzll(bit);
			/* The set that it enters or leaves is that of the smaller of both counts. */
			u32 load = more ? weave->busy[unit]++ : --weave->busy[unit];

			left ^= bit;
			if (load < LOADS)
				weave->above[load].words[word] ^= bit;
		}
	}
}

static bool is_short(const struct weave *weave, const struct weave_request *request)
{
	return request->request.direction == PLANEWISE_READ &&
	       request->request.sectors <= weave->config->values[READS_FIRST_LONGEST] / 512;
}

static void touch(struct weave *weave, struct weave_request *request)
{
	struct planewise_request *inner = &request->request;
	u32 word, units = 0;

	planewise_units_of(&weave->config->geometry, inner->sector, inner->sectors, &inner->units);
	for (word = 0; word < weave->words; word++)
		units += count_bits(inner->units.words[word]);
	request->is_narrow = units <= NARROW;
}

static bool is_preferred(const struct weave_request *request, enum preferred preferred)
{
	switch (preferred) {
	case SHORT_READS:
		return request->is_short_read;
	case READS:
		return request->request.direction == PLANEWISE_READ;
	case WRITES:
		return request->request.direction == PLANEWISE_WRITE;
	default:
		return true;
	}
}

/* Where all are looked at, and loads do not count: the oldest of those preferred, else the oldest. */
static struct weave_request *first_of(struct weave *weave, enum preferred preferred)
{
	struct planewise_link *reads = &weave->waiting_of[PLANEWISE_READ];
	struct planewise_link *writes = &weave->waiting_of[PLANEWISE_WRITE];

	if (preferred == SHORT_READS && !planewise_list_is_empty(&weave->short_reads))
		return container_of(weave->short_reads.behind, struct weave_request, short_read);
	if (preferred == READS && !planewise_list_is_empty(reads))
		return container_of(reads->behind, struct weave_request, same_direction);
	if (preferred == WRITES && !planewise_list_is_empty(writes))
		return container_of(writes->behind, struct weave_request, same_direction);
	return member_of(weave->waiting.behind);
}

/* The first by load, if it is to go by load; of equal loads, the preferred ones first; of those the oldest. */
static struct weave_request *find(struct weave *weave, bool by_load, enum preferred preferred)
{
	u64 look_ahead = weave->config->values[LOOK_AHEAD];
	struct weave_request *best = NULL;
	struct planewise_link *link;
	u32 best_load = 0;
	bool best_is_preferred = false;

	if (!by_load && weave->waiting_count <= look_ahead)
		return first_of(weave, preferred);
	planewise_for_each(link, &weave->waiting) {
		struct weave_request *request = member_of(link);
		bool prefer;
		u32 load;

		if (!look_ahead--)
			break;
		prefer = is_preferred(request, preferred);
		/* Better is what has less to do, or as much and is preferred; most are not, and one look at the sets tells. */
		load = 0;
		if (by_load && best && best_load < LOADS && exceeds(weave, request, best_load))
			continue;
		if (by_load)
			load = load_of(weave, request);
		if (best && (load > best_load || (load == best_load && (best_is_preferred || !prefer))))
			continue;
		best = request;
		best_load = load;
		best_is_preferred = prefer;
		if (best_load == 0 && prefer)
			break;
	}
	return best;
}

static struct weave_request *issue(struct weave *weave, u64 now, struct weave_request *request)
{
	u64 sectors = request->request.sectors, turn_sectors = weave->config->values[TURN_BYTES] / 512;
	u32 direction = request->request.direction;

	planewise_list_remove(&request->link);
	planewise_list_remove(&request->same_direction);
	if (request->is_short_read)
		planewise_list_remove(&request->short_read);
	weave->waiting_count--;
	weave->left++;
	weave->left_sectors += sectors;
	weave->waiting_sectors -= sectors;
	/* What takes long anyway is worth a turn of its own. */
	if (sectors >= turn_sectors / 8)
		sectors = turn_sectors;
	if (direction != weave->turn) {
		weave->turn = direction;
		weave->turn_requests = 0;
		weave->turn_sectors = 0;
	}
	weave->turn_requests++;
	weave->turn_sectors += sectors;
	request->number = weave->left;
	request->issued = now;
	request->was_behind = exceeds(weave, request, 0);
	request->outstanding = weave->outstanding_count;
	request->had_a_chance = !planewise_list_is_empty(&weave->outstanding[other(direction)]);
	planewise_list_push(&weave->outstanding[direction], &request->link);
	weave->outstanding_count++;
	count_on_units(weave, request, true);
	return request;
}

static void *weave_create(const struct planewise_config *config)
{
	struct weave *weave = planewise_zalloc(sizeof(*weave));

	if (!weave)
		return NULL;
	weave->config = config;
	weave->words = planewise_unit_words(&config->geometry);
	planewise_list_init(&weave->waiting);
	planewise_list_init(&weave->waiting_of[PLANEWISE_READ]);
	planewise_list_init(&weave->waiting_of[PLANEWISE_WRITE]);
	planewise_list_init(&weave->short_reads);
	planewise_list_init(&weave->outstanding[PLANEWISE_READ]);
	planewise_list_init(&weave->outstanding[PLANEWISE_WRITE]);
	weave->turn = PLANEWISE_READ;
	return weave;
}

static void weave_destroy(void *state)
{
	planewise_free(state);
}

/* Nothing is kept in requests that wait for use. */
static void weave_provide(void *state, void *requests, u32 count)
{
	(void)state;
	(void)requests;
	(void)count;
}

/* All tunables are looked at where they decide; a read is short as it was when it entered, until it grows too long. */
static void weave_changed(void *state)
{
	(void)state;
}

static void weave_insert(void *state, u64 now, struct planewise_request *request)
{
	struct weave_request *entering = container_of(request, struct weave_request, request);
	struct weave *weave = state;

	(void)now;
	entering->number = weave->left + weave->waiting_count;
	touch(weave, entering);
	entering->is_short_read = is_short(weave, entering);
	if (entering->is_short_read)
		planewise_list_push(&weave->short_reads, &entering->short_read);
	entering->sectors_before = weave->left_sectors + weave->waiting_sectors;
	weave->waiting_sectors += request->sectors;
	weave->waiting_count++;
	planewise_list_push(&weave->waiting, &entering->link);
	planewise_list_push(&weave->waiting_of[request->direction], &entering->same_direction);
}

static struct planewise_request *weave_dispatch(void *state, u64 now, u64 *wake)
{
	struct weave *weave = state;
	const struct evidence *evidence = &weave->evidence;
	const u64 *values = weave->config->values;
	u64 slots = weave->config->queue_length < FULL_QUEUE ? weave->config->queue_length : FULL_QUEUE;
	struct weave_request *oldest;
	enum preferred preferred = NOBODY;
	bool in_turns = false, by_load = false;

	*wake = PLANEWISE_NEVER;
	if (!weave->waiting_count)
		return NULL;
	oldest = member_of(weave->waiting.behind);
	/* A short queue does few at a time: each pass costs the one that is passed more. */
	if (weave->left - oldest->number >= values[PASSES_PER_SLOT] * slots * slots / FULL_QUEUE / 2) {
		weave->late++;
		return &issue(weave, now, oldest)->request;
	}
	if (evidence->chances_missed >= CHANCES) {
		bool goes_on = weave->turn_requests < values[TURN_REQUESTS] &&
			       weave->turn_sectors < values[TURN_BYTES] / 512;
		/* Nor is a turn ended where arrival order would not end it. */
		u32 first = goes_on ? weave->turn : oldest->request.direction;

		in_turns = true;
		preferred = first == PLANEWISE_READ ? READS : WRITES;
	} else if (evidence->has_overtaken || !evidence->chances_missed) {
		u64 passed = weave->left_sectors > oldest->sectors_before ?
				     weave->left_sectors - oldest->sectors_before : 0;

		if (reads_are_shorter(evidence) && passed < slots * values[READS_FIRST_PER_SLOT] / 512)
			preferred = SHORT_READS;
		/* Where the drive moves writes, what a unit has to do is not what its addresses say. */
		by_load = weave->config->writes_stay && (evidence->units_matter[0] || evidence->units_matter[1]);
	}
	weave->by_load += by_load;
	weave->in_turns += in_turns;
	weave->reads_first += preferred == SHORT_READS;
	return &issue(weave, now, find(weave, by_load, preferred))->request;
}

static void weave_completed(void *state, u64 now, struct planewise_request *request)
{
	struct weave_request *done = container_of(request, struct weave_request, request);
	struct weave *weave = state;
	struct planewise_link *others = &weave->outstanding[other(request->direction)];
	bool overtook;

	planewise_list_remove(&done->link);
	weave->outstanding_count--;
	count_on_units(weave, done, false);
	overtook = !planewise_list_is_empty(others) && member_of(others->behind)->number < done->number;
	learn(&weave->evidence, done, now - done->issued, overtook);
}

static bool weave_has_waiting(void *state)
{
	const struct weave *weave = state;

	return weave->waiting_count > 0;
}

static bool weave_may_grow(void *state, struct planewise_request *request, u64 sector, u32 sectors)
{
	(void)state;
	(void)request;
	(void)sector;
	(void)sectors;
	return true;
}

static void weave_grew(void *state, struct planewise_request *request, u64 sector, u32 sectors)
{
	struct weave_request *grown = container_of(request, struct weave_request, request);
	struct weave *weave = state;

	weave->waiting_sectors += sectors - request->sectors;
	request->sector = sector;
	request->sectors = sectors;
	touch(weave, grown);
	/* One that was long when it entered, before the limit was raised, stays long: the others keep their order. */
	if (grown->is_short_read && !is_short(weave, grown)) {
		grown->is_short_read = false;
		planewise_list_remove(&grown->short_read);
	}
}

static void weave_count(void *state, u64 *counters)
{
	const struct weave *weave = state;

	counters[0] = weave->by_load;
	counters[1] = weave->in_turns;
	counters[2] = weave->late;
	counters[3] = weave->reads_first;
}

const struct planewise_policy planewise_weave = {
	.name = "planewise-weave",
	.tunables = tunables,
	.tunables_count = sizeof(tunables) / sizeof(tunables[0]),
	.counters = counter_names,
	.counters_count = sizeof(counter_names) / sizeof(counter_names[0]),
	.request_bytes = sizeof(struct weave_request),
	.create = weave_create,
	.destroy = weave_destroy,
	.provide = weave_provide,
	.changed = weave_changed,
	.insert = weave_insert,
	.dispatch = weave_dispatch,
	.completed = weave_completed,
	.has_waiting = weave_has_waiting,
	.may_grow = weave_may_grow,
	.grew = weave_grew,
	.count = weave_count,
};
