/* The instruction sets that primitives are compiled for. */
#ifndef KGT_ISA_H
#define KGT_ISA_H

#include <stdbool.h>

/* Kernel paths: names of those that this build and machine can run, best first; NULL past the last.
 */
const char *kgt_path_name(int index);
const char *kgt_path_active(void);
/* Force a path by name (NULL: back to the best). False when it is not available. */
bool kgt_path_force(const char *name);

#endif
