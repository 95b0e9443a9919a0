/* Chooses the kernel path once, best first; tests and users may force another. */
#include <stdatomic.h>
#include <string.h>

#include "isa.h"
#include "isa_bytes.h"
#include "isa_kernel.h"

/* A path: the kernels of an instruction set and, optionally, products or distances of bytes, which
 * then give it its name. A path is chosen automatically only if its tests have run on a real
 * processor; emulators alone are not enough, because one of them has been wrong. */
typedef struct {
    const kgt_kernel *kernel;
    const kgt_bytes *bytes;
    bool automatic;
} path;

static const path all_paths[] = {
#if KGT_X86
    {&kgt_kernel_avx512, &kgt_bytes_avx512vnni, true},
    {&kgt_kernel_avx512, &kgt_bytes_avx512sad, true},
    {&kgt_kernel_avx512, NULL, true},
    {&kgt_kernel_avx2, &kgt_bytes_avxvnni, false},
    {&kgt_kernel_avx2, &kgt_bytes_avx2madd, true},
    {&kgt_kernel_avx2, NULL, true},
#endif
#if KGT_ARM64
    {&kgt_kernel_neon, &kgt_bytes_neondot, false},
    {&kgt_kernel_neon, &kgt_bytes_neonsad, false},
    {&kgt_kernel_neon, NULL, false},
#endif
    {&kgt_kernel_scalar, NULL, true},
    {&kgt_kernel_scalar, &kgt_bytes_scalar, true},
};
enum { N_PATHS = sizeof all_paths / sizeof all_paths[0] };

atomic_uint kgt_stream_ahead;

/* NULL until first use. A race only repeats the choice. */
static _Atomic(const path *) active_path;

/* The path with this index among those that run on this processor; NULL if there are fewer. */
static const path *available_path(int index) {
    for (int i = 0; i < N_PATHS; i++) {
        const path *one = all_paths + i;
        const bool runs = one->kernel->available() && (!one->bytes || one->bytes->available());
        if (runs && index-- == 0) return one;
    }
    return NULL;
}

/* The first path that runs on this processor and may be chosen automatically. */
static const path *best_path(void) {
    for (int i = 0;; i++) {
        const path *candidate = available_path(i);
        if (candidate == NULL || candidate->automatic) return candidate;
    }
}

#if KGT_X86
/* A Zen up to the fourth prefetches a stream by itself and needs only near prefetches; a Zen 5
 * leaves much of it to the program. */
static unsigned stream_ahead(void) {
    if (!kgt_cpu_is_amd()) return 0;
    return kgt_cpu_family() < 0x1a ? 256 : 8192;
}
#endif

static void activate(const path *chosen) {
#if KGT_X86
    atomic_store_explicit(&kgt_stream_ahead, stream_ahead(), memory_order_relaxed);
#endif
    atomic_store_explicit(&active_path, chosen, memory_order_release);
}

static const path *active(void) {
    const path *chosen = atomic_load_explicit(&active_path, memory_order_acquire);
    if (chosen == NULL) {
        chosen = best_path();
        activate(chosen);
    }
    return chosen;
}

static const char *name_of(const path *one) {
    return one->bytes ? one->bytes->name : one->kernel->name;
}

const kgt_kernel *kgt_kernel_active(void) { return active()->kernel; }

const kgt_bytes *kgt_bytes_active(void) { return active()->bytes; }

const char *kgt_path_name(int index) {
    const path *one = available_path(index);
    return one ? name_of(one) : NULL;
}

const char *kgt_path_best(void) { return name_of(best_path()); }

const char *kgt_path_active(void) { return name_of(active()); }

bool kgt_path_force(const char *name) {
    const path *chosen = best_path();
    if (name != NULL)
        for (int i = 0; (chosen = available_path(i)) != NULL; i++)
            if (strcmp(name_of(chosen), name) == 0) break;
    if (chosen == NULL) return false;
    activate(chosen);
    return true;
}
