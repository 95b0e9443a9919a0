/* Ranking of one row, for both computing types: float (for 16 and 32 bit scores) and double. */
#include "rank_row.h"

#include <math.h>
#include <stdlib.h>

#define T float
#define OWN_DTYPE KGT_F32
#define OPS f32
#define FN(op) op##_f32
#include "rank_row_body.h"
#undef T
#undef OWN_DTYPE
#undef OPS
#undef FN

#define T double
#define OWN_DTYPE KGT_F64
#define OPS f64
#define FN(op) op##_f64
#include "rank_row_body.h"
