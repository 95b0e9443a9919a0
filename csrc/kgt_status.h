/* The result of a call of any family. */
#ifndef KGT_STATUS_H
#define KGT_STATUS_H

typedef enum {
    KGT_OK = 0,
    KGT_NO_MEMORY = 1,
    KGT_BAD_DTYPE = 2,
} kgt_status;

#endif
