/* kgtrec's native core: tie-aware filtered ranks of score rows, in one pass over each row.
 *
 * The only header for outsiders: a header a family behind it. No Python, no numpy, no threads: a
 * caller splits the rows (or questions) over its own threads, which is legal because calls on
 * disjoint rows write disjoint memory and read shared input only. All memory belongs to the caller;
 * a call allocates scratch and frees it before it returns.
 *
 * Bounds: ids are int32, so a graph has at most 2^31 - 1 entities; counts are int64 everywhere.
 */
#ifndef KGTREC_H
#define KGTREC_H

#include "factors.h"
#include "isa.h"
#include "label.h"
#include "map.h"
#include "rank.h"
#include "stat.h"
#include "trec.h"

#endif
