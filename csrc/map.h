/* Guards reads of mapped files, which may be cut short while they are read. */
#ifndef KGT_MAP_H
#define KGT_MAP_H

#include <stdint.h>

/* A page of a mapped file can vanish: the file was cut short, or its disk fails. Between begin and
 * end, such a page is read as zeros and counted; otherwise SIGBUS would end the process. This holds
 * for all threads and all mapped files of the process. Pairs may be nested; no two of these calls
 * may run at the same time. The last end restores the handler of SIGBUS.
 *
 * kgt_map_faults is the number of such pages since the process began. A caller that sees it rise
 * has read zeros that are in no file, and must discard the results. */
void kgt_map_guard_begin(void);
void kgt_map_guard_end(void);
int64_t kgt_map_faults(void);

#endif
