/* Selection and sorting of top-k keys, for both key widths. */
#include "topk.h"

#define KEY kgt_key_f32
#define FN(op) op##_f32
#include "topk_body.h"
#undef KEY
#undef FN

#define KEY kgt_key_f64
#define FN(op) op##_f64
#include "topk_body.h"
