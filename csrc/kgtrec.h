/* kgtrec's native core: tie-aware filtered ranks of score rows, in one pass over each row.
 *
 * The only header for users of the core; it includes one header per family. The core needs no
 * Python and no numpy, and starts no threads. A caller may split the rows (or questions) over its
 * own threads: calls on disjoint rows write disjoint memory and only read shared input. All memory
 * belongs to the caller. A call frees its scratch before it returns.
 *
 * Bounds: ids are int32, so a graph has at most 2^31 - 1 entities; counts are int64 everywhere. */
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
