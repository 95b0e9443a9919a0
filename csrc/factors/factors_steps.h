/* The steps of codes for L1: distances of codes bound distances of vectors. Internal to the factors
 * family. */
#ifndef KGT_FACTORS_STEPS_H
#define KGT_FACTORS_STEPS_H

#include "factors_bounds.h"

/* The values of one step of 8-bit and 16-bit codes under L1, shared by all vectors of a call. poor:
 * the 8-bit codes lose much of the vectors, so their distances are too small. */
typedef struct {
    float coarse, fine;
    bool poor;
} kgt_steps;

/* Chooses steps that suit a sample of the vectors. Any steps give correct results. */
kgt_status kgt_steps_choose(const kgt_factors *factors, kgt_steps *steps);

#endif
