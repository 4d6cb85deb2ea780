// SPDX-License-Identifier: GPL-2.0-only
/*
 * Loads a module while the N-th allocation that the kernel makes for it fails,
 * none where N is 0: load-module N FILE [PARAMETERS]. It tries once, where
 * busybox tries in two ways. Exit code 0: loaded; 1: refused, and the reason is
 * written; 2: it could not be tried; 3: loaded, and there were fewer than N.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int count, char **arguments)
{
	int nth, file;
	char left[16] = "";
	ssize_t length;
	long result;

	if (count < 3)
		return 2;
	file = open(arguments[2], O_RDONLY);
	nth = strcmp(arguments[1], "0") ? open("/proc/self/fail-nth", O_RDWR) : open("/dev/null", O_RDWR);
	if (file < 0 || nth < 0 || write(nth, arguments[1], strlen(arguments[1])) < 0) {
		perror("load-module");
		return 2;
	}
	result = syscall(SYS_finit_module, file, count > 3 ? arguments[3] : "", 0);
	if (result) {
		int error = errno;

		/* Whatever is left must not fail what this program does next. */
		(void)!write(nth, "0", 1);
		printf("%s\n", strerror(error));
		return 1;
	}
	/* What is left of the count: nothing, once an allocation has failed. */
	length = pread(nth, left, sizeof(left) - 1, 0);
	(void)!write(nth, "0", 1);
	return length > 0 && atoi(left) > 0 ? 3 : 0;
}
