/* Files that are mapped into memory, and may be cut short while they are read. */
#ifndef KGT_MAP_H
#define KGT_MAP_H

#include <stdint.h>

/* Between begin and end, a page of a mapped file that is not there any more (the file was cut
 * short, or its disk fails) is read as zeros and counted, where the process would end by SIGBUS
 * otherwise. That holds for all threads and all mapped files of the process. Pairs may be nested;
 * no two of these calls may run at the same time. After the last end, SIGBUS does what it did
 * before.
 *
 * kgt_map_faults is how many pages were counted since the process began: whoever sees it rise has
 * read zeros that are in no file, and has to throw away what came of them. */
void kgt_map_guard_begin(void);
void kgt_map_guard_end(void);
int64_t kgt_map_faults(void);

#endif
