/* The steps of codes whose distances in L1 bound those of vectors: internal to the factors family.
 */
#ifndef KGT_FACTORS_STEPS_H
#define KGT_FACTORS_STEPS_H

#include "factors_bounds.h"

/* What codes of 8 and of 16 bits count under L1, where all vectors of a call share it. Those of 8
 * are poor if they leave much of the vectors: distances of codes are too small then. */
typedef struct {
    float coarse, fine;
    bool poor;
} kgt_steps;

/* Steps that suit a sample of the vectors; any are right. */
kgt_status kgt_steps_choose(const kgt_factors *factors, kgt_steps *steps);

#endif
