/* A handler of SIGBUS that maps a page of zeros where a mapped file has lost its page. */
#define _GNU_SOURCE /* MAP_ANONYMOUS, and sigaction under -std=c11 */

#include "map.h"

#ifdef _WIN32 /* a mapped file cannot be cut short there */
void kgt_map_guard_begin(void) {}
void kgt_map_guard_end(void) {}
int64_t kgt_map_faults(void) { return 0; }
#else

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

static atomic_llong faults;
static int depth;
static struct sigaction before;
static uintptr_t page_size;

/* Runs in the thread that touched the page; it makes only system calls. */
static void on_bus_error(int number, siginfo_t *info, void *context) {
    (void)context;
    const int saved = errno;
    if (info->si_code == BUS_ADRERR) {
        void *page = (void *)((uintptr_t)info->si_addr & ~(page_size - 1));
        const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
        if (mmap(page, page_size, PROT_READ | PROT_WRITE, flags, -1, 0) != MAP_FAILED) {
            atomic_fetch_add(&faults, 1);
            errno = saved;
            return; /* the instruction is tried again, and finds zeros */
        }
    }
    /* Not our file: the earlier handler gets the signal, from the same instruction or by raise. */
    sigaction(number, &before, NULL);
    if (info->si_code <= 0) raise(number);
    errno = saved;
}

void kgt_map_guard_begin(void) {
    if (depth++ > 0) return;
    page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &before);
}

void kgt_map_guard_end(void) {
    if (--depth == 0) sigaction(SIGBUS, &before, NULL);
}

int64_t kgt_map_faults(void) { return atomic_load(&faults); }
#endif
