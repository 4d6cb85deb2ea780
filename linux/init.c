/*
 * The first program of a kernel in simulated time: makes a root that programs may write on above a tree of the host's, prepares the drive, runs the
 * program that is measured, and powers off. It is alone in the initial file system, so that the tree needs nothing of ours.
 *
 * What to do stands in /job: root (the host's directory, absolute), out and share (directories of the host's to write and to read, or empty), module (of a
 * scheduler, or absent) and module-parameters, prepare, finish (shell scripts, or absent), command (its words, each ended by a zero byte), directory
 * (where it runs), environment (words ended by zero bytes).
 *
 * The controller hears by broadcasts what goes on: kind + 256 * status + 65536 * the time since boot, in ns. A kernel that runs does not say what time it
 * is otherwise.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum { BEGINS = 1, ENDED = 2, NOT_PREPARED = 3 };
/* Of shells: what was to run was not found, or died of a signal. */
enum { NOT_FOUND = 127, SIGNALLED = 128 };

static void power_off(void)
{
    sync();
    reboot(RB_POWER_OFF);
    for (;;)
        pause();
}

/* Says what went wrong where the controller keeps the kernel's log, and ends the run. */
static void give_up(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    dprintf(2, "planewise: ");
    vdprintf(2, format, arguments);
    dprintf(2, ": %s\n", strerror(errno));
    va_end(arguments);
    power_off();
}

/* A file of /job; its length goes to `length` where that is asked for. */
static char *job(const char *name, size_t *length)
{
    char path[64];
    struct stat status;
    snprintf(path, sizeof path, "/job/%s", name);
    int file = open(path, O_RDONLY);
    if (file < 0 || fstat(file, &status) < 0)
        give_up("%s", path);
    char *text = calloc(1, status.st_size + 1);
    if (!text || read(file, text, status.st_size) != status.st_size)
        give_up("%s", path);
    close(file);
    if (length)
        *length = status.st_size;
    return text;
}

/* Words ended by zero bytes, as a list that ends with none. */
static char **words(const char *name)
{
    size_t length, count = 0;
    char *text = job(name, &length);
    for (size_t at = 0; at < length; at++)
        count += text[at] == 0;
    char **list = calloc(count + 1, sizeof *list);
    for (size_t word = 0; word < count; word++, text += strlen(text) + 1)
        list[word] = text;
    return list;
}

static void attach(const char *what, const char *where, const char *kind, unsigned long flags, const char *options)
{
    mkdir(where, 0755);
    if (mount(what, where, kind, flags, options) < 0)
        give_up("mounting %s (%s)", where, kind);
}

static void tell(unsigned long message)
{
    char text[32];
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    message |= (now.tv_sec * 1000000000ul + now.tv_nsec) << 16;
    int length = snprintf(text, sizeof text, "%lu\n", message);
    int file = open("/sys/kernel/um-ext-time/bc-message", O_WRONLY);
    if (file < 0 || write(file, text, length) != length)
        give_up("telling the controller %lu", message);
    close(file);
}

static int status_of(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : SIGNALLED + WTERMSIG(status);
}

/* A console whose bytes the host gets as they are. */
static int console(const char *name)
{
    struct termios settings;
    int file = open(name, O_WRONLY | O_NOCTTY | O_CLOEXEC);
    if (file < 0)
        give_up("%s", name);
    if (tcgetattr(file, &settings) == 0) {
        cfmakeraw(&settings);
        tcsetattr(file, TCSANOW, &settings);
    }
    return file;
}

static void copy(int from, int to)
{
    static char buffer[65536];
    ssize_t length = read(from, buffer, sizeof buffer);
    for (ssize_t at = 0, count; at < length; at += count) {
        count = write(to, buffer + at, length - at);
        if (count < 0)
            give_up("writing to a console");
    }
}

/* Readable when a child has ended. */
static int ended;

/* Runs words with their output on the consoles; programs see pipes, as behind a `|`. Returns a shell's status. */
static int run(char **command, char **environment, const char *directory, const int consoles[2])
{
    int pipes[2][2], status = 0, any_status;
    for (int stream = 0; stream < 2; stream++)
        if (pipe2(pipes[stream], O_CLOEXEC) < 0)
            give_up("pipes");
    pid_t child = fork();
    if (child < 0)
        give_up("fork");
    if (child == 0) {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        dup2(pipes[0][1], 1);
        dup2(pipes[1][1], 2);
        if (chdir(directory) < 0)
            dprintf(2, "planewise: %s: %s\n", directory, strerror(errno));
        else {
            execvpe(command[0], command, environment);
            dprintf(2, "planewise: %s: %s\n", command[0], strerror(errno));
        }
        _exit(NOT_FOUND);
    }
    for (int stream = 0; stream < 2; stream++)
        close(pipes[stream][1]);
    /* A process that it left behind, such as a server, may hold the pipes open: its own end counts, and what is in them then. */
    struct pollfd ends[3] = { { pipes[0][0], POLLIN, 0 }, { pipes[1][0], POLLIN, 0 }, { ended, POLLIN, 0 } };
    int is_over = 0, is_empty = 0;
    while (!is_over || !is_empty) {
        is_empty = poll(ends, 2 + !is_over, is_over ? 0 : -1) == 0;
        for (int stream = 0; stream < 2; stream++)
            if (ends[stream].revents & POLLIN)
                copy(pipes[stream][0], consoles[stream]);
            else if (ends[stream].revents)
                ends[stream].fd = -1;
        struct signalfd_siginfo information;
        if (!is_over && ends[2].revents & POLLIN && read(ended, &information, sizeof information) > 0)
            for (pid_t any; (any = waitpid(-1, &any_status, WNOHANG)) > 0;)
                if (any == child) {
                    is_over = 1;
                    status = any_status;
                }
    }
    for (int stream = 0; stream < 2; stream++)
        close(pipes[stream][0]);
    return status_of(status);
}

static int run_script(char *script, char **environment, const int consoles[2])
{
    char *command[] = { "/bin/sh", "-e", "-c", script, NULL };
    return *script ? run(command, environment, "/", consoles) : 0;
}

int main(void)
{
    /* Nothing of the program's is there yet but a console. */
    mkdir("/dev", 0755);
    mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
    int log = open("/dev/console", O_RDWR);
    if (log >= 0)
        for (int stream = 0; stream < 3; stream++)
            dup2(log, stream);

    char *root = job("root", NULL), *out = job("out", NULL), *share = job("share", NULL), *directory = job("directory", NULL);
    char **command = words("command"), **environment = words("environment");
    char *prepare = job("prepare", NULL), *finish = job("finish", NULL);

    /* A scheduler that the kernel does not have itself. */
    int module = open("/job/module", O_RDONLY | O_CLOEXEC);
    if (module >= 0 && syscall(SYS_finit_module, module, job("module-parameters", NULL), 0) < 0)
        give_up("loading the scheduler's module");

    /* execvpe looks for programs by its own PATH. */
    for (char **word = environment; *word; word++)
        if (!strncmp(*word, "PATH=", 5))
            putenv(*word);

    attach("host", "/host", "hostfs", MS_RDONLY, root);
    attach("changes", "/changes", "tmpfs", 0, "size=75%");
    mkdir("/changes/upper", 0755);
    mkdir("/changes/work", 0755);
    attach("root", "/tree", "overlay", 0, "lowerdir=/host,upperdir=/changes/upper,workdir=/changes/work");
    const char *folders[] = { "/tree/proc", "/tree/sys", "/tree/dev", "/tree/run", "/tree/tmp", "/tree/drive" };
    for (size_t folder = 0; folder < sizeof folders / sizeof *folders; folder++)
        mkdir(folders[folder], 0755);
    attach("proc", "/tree/proc", "proc", 0, NULL);
    attach("sys", "/tree/sys", "sysfs", 0, NULL);
    attach("debug", "/tree/sys/kernel/debug", "debugfs", 0, NULL);
    attach("dev", "/tree/dev", "devtmpfs", 0, NULL);
    attach("pts", "/tree/dev/pts", "devpts", 0, NULL);
    attach("shm", "/tree/dev/shm", "tmpfs", 0, NULL);
    attach("run", "/tree/run", "tmpfs", 0, "mode=755");
    attach("tmp", "/tree/tmp", "tmpfs", 0, "mode=1777");
    if (*out)
        attach("out", "/tree/run/out", "hostfs", 0, out);
    if (*share)
        attach("share", "/tree/run/share", "hostfs", MS_RDONLY, share);
    if (chdir("/tree") < 0 || mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0 || chdir("/") < 0)
        give_up("changing the root to %s", root);

    sethostname("planewise", 9);
    int net = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq loopback = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
    if (net >= 0)
        ioctl(net, SIOCSIFFLAGS, &loopback);
    /* As every distribution's start does: names that programs expect. */
    symlink("/proc/self/fd", "/dev/fd");
    symlink("/proc/self/fd/0", "/dev/stdin");
    symlink("/proc/self/fd/1", "/dev/stdout");
    symlink("/proc/self/fd/2", "/dev/stderr");
    int null = open("/dev/null", O_RDONLY);
    if (null >= 0)
        dup2(null, 0);

    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    ended = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    if (ended < 0)
        give_up("signalfd");
    int consoles[2] = { console("/dev/tty1"), console("/dev/tty2") };
    int logs[2] = { 2, 2 };
    int status = run_script(prepare, environment, logs);
    if (status == 0) {
        tell(BEGINS);
        status = run(command, environment, directory, consoles);
        tell(ENDED | status << 8);
        run_script(finish, environment, logs);
    } else {
        tell(NOT_PREPARED | status << 8);
    }
    /* What the program left on the drive is written before the power goes; a busy file system is written all the same. */
    sync();
    kill(-1, SIGKILL);
    while (wait(NULL) > 0)
        ;
    if (umount("/drive") < 0 && errno != EINVAL && errno != ENOENT)
        dprintf(2, "planewise: unmounting /drive: %s\n", strerror(errno));
    power_off();
}
