/* The instruction sets that primitives are compiled for. */
#ifndef KGT_ISA_H
#define KGT_ISA_H

#include <stdbool.h>

/* Names of the kernel paths that this build and machine can run, best first; NULL past the last. */
const char *kgt_path_name(int index);
/* The first of them that no emulator alone has tested: used unless another is forced. */
const char *kgt_path_best(void);
const char *kgt_path_active(void);
/* Forces a path by name (NULL: kgt_path_best). False if it is not available. */
bool kgt_path_force(const char *name);

#endif
