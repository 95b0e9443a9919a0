/* Distances of 8-bit vectors by NEON, on processors without its dot product. */
#include "isa_bytes.h"

#if KGT_ARM64
#include <arm_neon.h>
#include <math.h>

#define FN(op) op##_bytes_neonsad
#include "isa_bytes_neon_body.h"

static bool available(void) { return true; }

const kgt_bytes kgt_bytes_neonsad = {
    .name = "neonsad",
    .available = available,
    .dot = {NULL, NULL, KGT_BYTES_DOT},
    KGT_BYTES_SHARED,
};
#endif
