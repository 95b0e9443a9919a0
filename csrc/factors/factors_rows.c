/* The parts of a call by bounds that depend on the type of the scores. */
#include "factors_settle.h"

/* So many beyond the depth are kept before sorting. */
#define WAITING 6

#define T float
#define OPS f32
#define FN(op) op##_f32
#include "factors_rows_body.h"
#undef T
#undef OPS
#undef FN

#define T double
#define OPS f64
#define FN(op) op##_f64
#include "factors_rows_body.h"
