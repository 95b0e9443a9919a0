/* Chooses the kernel path once, best first; tests and users may force another. */
#include <stdatomic.h>
#include <string.h>

#include "isa.h"
#include "isa_bytes.h"
#include "isa_kernel.h"

/* A path: the kernels of an instruction set and, optionally, products or distances of bytes, which
 * then give it its name. */
typedef struct {
    const kgt_kernel *kernel;
    const kgt_bytes *bytes;
} path;

static const path all_paths[] = {
#if KGT_X86
#if KGT_HAS_AMX
    {&kgt_kernel_avx512, &kgt_bytes_amx},
#endif
    {&kgt_kernel_avx512, &kgt_bytes_avx512vnni},
    {&kgt_kernel_avx512, &kgt_bytes_avx512sad},
    {&kgt_kernel_avx512, NULL},
    {&kgt_kernel_avx2, &kgt_bytes_avxvnni},
    {&kgt_kernel_avx2, &kgt_bytes_avx2madd},
    {&kgt_kernel_avx2, NULL},
#endif
#if KGT_ARM64
    {&kgt_kernel_neon, &kgt_bytes_neondot},
    {&kgt_kernel_neon, &kgt_bytes_neonsad},
    {&kgt_kernel_neon, NULL},
#endif
    {&kgt_kernel_scalar, NULL},
    {&kgt_kernel_scalar, &kgt_bytes_scalar},
};
enum { N_PATHS = sizeof all_paths / sizeof all_paths[0] };

atomic_uint kgt_stream_ahead;

/* NULL until first use. A race only repeats the choice. */
static _Atomic(const path *) active_path;

static const path *available_path(int index) {
    for (int i = 0; i < N_PATHS; i++) {
        const path *one = all_paths + i;
        const bool runs = one->kernel->available() && (!one->bytes || one->bytes->available());
        if (runs && index-- == 0) return one;
    }
    return NULL;
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
        chosen = available_path(0);
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

const char *kgt_path_active(void) { return name_of(active()); }

bool kgt_path_force(const char *name) {
    const path *chosen = available_path(0);
    if (name != NULL)
        for (int i = 0; (chosen = available_path(i)) != NULL; i++)
            if (strcmp(name_of(chosen), name) == 0) break;
    if (chosen == NULL) return false;
    activate(chosen);
    return true;
}
