/* Quickselect and quicksort, descending, on distinct keys of type KEY. */

static void FN(insertion_sort)(KEY *keys, int64_t n) {
    for (int64_t i = 1; i < n; i++) {
        const KEY key = keys[i];
        int64_t j = i;
        for (; j > 0 && keys[j - 1] < key; j--) keys[j] = keys[j - 1];
        keys[j] = key;
    }
}

static KEY FN(middle)(KEY a, KEY b, KEY c) {
    if (a < b) return b < c ? b : (a < c ? c : a);
    return a < c ? a : (b < c ? c : b);
}

/* Larger keys first; returns where the second part begins (1 .. n - 1). */
static int64_t FN(partition)(KEY *keys, int64_t n) {
    const KEY pivot = FN(middle)(keys[0], keys[n / 2], keys[n - 1]);
    int64_t left = -1, right = n;
    for (;;) {
        do left++;
        while (keys[left] > pivot);
        do right--;
        while (keys[right] < pivot);
        if (left >= right) return right + 1 < n ? right + 1 : right;
        const KEY swapped = keys[left];
        keys[left] = keys[right];
        keys[right] = swapped;
    }
}

static void FN(sort)(KEY *keys, int64_t n) {
    while (n > 24) {
        const int64_t cut = FN(partition)(keys, n);
        /* Recursion into the shorter part keeps the stack logarithmic. */
        if (cut < n - cut) {
            FN(sort)(keys, cut);
            keys += cut;
            n -= cut;
        } else {
            FN(sort)(keys + cut, n - cut);
            n = cut;
        }
    }
    FN(insertion_sort)(keys, n);
}

/* Keys of tied scores arrive in the order of names, or in reverse. True if the keys already
 * descend, or ascended and have been reversed. A few keys suffice to reject others. */
static bool FN(in_order)(KEY *keys, int64_t n) {
    int64_t falling = 1, rising = 1;
    while (falling < n && keys[falling] < keys[falling - 1]) falling++;
    while (rising < n && keys[rising] > keys[rising - 1]) rising++;
    if (falling < n && rising < n) return false;
    for (int64_t i = 0; falling < n && i < n / 2; i++) {
        const KEY key = keys[i];
        keys[i] = keys[n - 1 - i];
        keys[n - 1 - i] = key;
    }
    return true;
}

/* Brings the k largest of n keys to the front, in any order. */
static void FN(select_largest)(KEY *keys, int64_t n, int64_t k) {
    while (n > 24) {
        const int64_t cut = FN(partition)(keys, n);
        if (k == cut) return;
        if (k < cut) {
            n = cut;
        } else {
            keys += cut;
            n -= cut;
            k -= cut;
        }
    }
    FN(insertion_sort)(keys, n);
}

/* Keeps the depth best, in order of arrival, and raises the bound to the worst of them. */
void FN(kgt_top_prune)(FN(kgt_top) * top) {
    if (top->used < top->depth) return;
    KEY *spare = top->spare;
    memcpy(spare, top->keys, (size_t)top->used * sizeof(KEY));
    FN(select_largest)(spare, top->used, top->depth);
    KEY worst = spare[0];
    for (int64_t i = 1; i < top->depth; i++) worst = spare[i] < worst ? spare[i] : worst;
    int64_t used = 0;
    for (int64_t i = 0; i < top->used; i++) {
        const KEY key = top->keys[i];
        top->keys[used] = key;
        used += key >= worst;
    }
    top->used = used;
    top->worst = worst;
    top->bound = FN(kgt_key_score)(worst);
}
