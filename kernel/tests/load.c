// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program that does nothing but requests, so that the kernel's part of their
 * cost is most of it: load FILE REQUESTS DEPTH random|sequential. Of 4 KiB
 * each, direct, reads and writes half and half; requests that completed are
 * replaced together. It prints the processor's time for the whole machine, ns
 * for each request: what passed less what the machine was idle.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <linux/fs.h>
#include <time.h>
#include <unistd.h>

#define BLOCK 4096
#define DEPTH_MAX 1024

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double idle_seconds(void)
{
	double up, idle;
	FILE *file = fopen("/proc/uptime", "r");

	if (!file || fscanf(file, "%lf %lf", &up, &idle) != 2)
		exit(2);
	fclose(file);
	return idle;
}

static uint64_t random_number(void)
{
	static uint64_t state = 88172645463325252ULL;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

int main(int count, char **arguments)
{
	static struct iocb blocks[DEPTH_MAX], *pointers[DEPTH_MAX];
	static struct io_event events[DEPTH_MAX];
	uint64_t requests, depth, bytes, at = 0, submitted = 0, completed = 0;
	aio_context_t context = 0;
	double began, idle;
	int file, is_random;
	char *memory;
	long ready, i;

	if (count != 5) {
		fprintf(stderr, "load FILE REQUESTS DEPTH random|sequential\n");
		return 2;
	}
	file = open(arguments[1], O_RDWR | O_DIRECT);
	requests = strtoull(arguments[2], NULL, 10);
	depth = strtoull(arguments[3], NULL, 10);
	is_random = !strcmp(arguments[4], "random");
	if (file < 0 || !depth || depth > DEPTH_MAX || ioctl(file, BLKGETSIZE64, &bytes) ||
	    posix_memalign((void **)&memory, BLOCK, BLOCK) || syscall(SYS_io_setup, depth, &context)) {
		perror("load");
		return 2;
	}
	memset(memory, 0, BLOCK);
	began = seconds();
	idle = idle_seconds();
	for (ready = 0; ready < (long)depth; ready++)
		pointers[ready] = &blocks[ready];
	while (completed < requests) {
		if ((uint64_t)ready > requests - submitted)
			ready = (long)(requests - submitted);
		for (i = 0; i < ready; i++) {
			uint64_t number = random_number();

			memset(pointers[i], 0, sizeof(struct iocb));
			pointers[i]->aio_fildes = (uint32_t)file;
			pointers[i]->aio_lio_opcode = number & 1 ? IOCB_CMD_PREAD : IOCB_CMD_PWRITE;
			pointers[i]->aio_buf = (uintptr_t)memory;
			pointers[i]->aio_nbytes = BLOCK;
			pointers[i]->aio_offset =
				(int64_t)((is_random ? number >> 8 : at++) % (bytes / BLOCK) * BLOCK);
		}
		for (i = 0; i < ready;) {
			long done = syscall(SYS_io_submit, context, ready - i, pointers + i);

			if (done <= 0) {
				perror("load: io_submit");
				return 1;
			}
			i += done;
		}
		submitted += (uint64_t)ready;
		ready = syscall(SYS_io_getevents, context, 1, depth, events, NULL);
		if (ready < 1) {
			perror("load: io_getevents");
			return 1;
		}
		for (i = 0; i < ready; i++) {
			if (events[i].res != BLOCK) {
				fprintf(stderr, "load: a request failed: %lld\n", (long long)events[i].res);
				return 1;
			}
			pointers[i] = (struct iocb *)(uintptr_t)events[i].obj;
		}
		completed += (uint64_t)ready;
	}
	printf("%.0f\n", 1e9 * (seconds() - began - (idle_seconds() - idle)) / (double)requests);
	return 0;
}
