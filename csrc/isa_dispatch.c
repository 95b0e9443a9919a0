/* Chooses the kernel path once, best first; tests and users may force another. */
#include <stdatomic.h>
#include <string.h>

#include "isa_kernel.h"
#include "isa.h"

static const kgt_kernel *const all_kernels[] = {
#if KGT_X86
    &kgt_kernel_avx512,
    &kgt_kernel_avx2,
#endif
#if KGT_ARM64
    &kgt_kernel_neon,
#endif
    &kgt_kernel_scalar,
};
enum { N_KERNELS = sizeof all_kernels / sizeof all_kernels[0] };

/* NULL until first use. A race only repeats the same choice. */
static _Atomic(const kgt_kernel *) active_kernel;

static const kgt_kernel *available_kernel(int index) {
    for (int i = 0; i < N_KERNELS; i++)
        if (all_kernels[i]->available() && index-- == 0) return all_kernels[i];
    return NULL;
}

const kgt_kernel *kgt_kernel_active(void) {
    const kgt_kernel *kernel = atomic_load_explicit(&active_kernel, memory_order_acquire);
    if (kernel == NULL) {
        kernel = available_kernel(0);
        atomic_store_explicit(&active_kernel, kernel, memory_order_release);
    }
    return kernel;
}

const char *kgt_path_name(int index) {
    const kgt_kernel *kernel = available_kernel(index);
    return kernel ? kernel->name : NULL;
}

const char *kgt_path_active(void) { return kgt_kernel_active()->name; }

bool kgt_path_force(const char *name) {
    const kgt_kernel *kernel = available_kernel(0);
    if (name != NULL)
        for (int i = 0; (kernel = available_kernel(i)) != NULL; i++)
            if (strcmp(kernel->name, name) == 0) break;
    if (kernel == NULL) return false;
    atomic_store_explicit(&active_kernel, kernel, memory_order_release);
    return true;
}
