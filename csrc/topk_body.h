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
        /* The shorter part by recursion keeps the stack logarithmic. */
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

/* Keeps the depth best and raises the bound to the worst of them. */
void FN(kgt_top_prune)(FN(kgt_top) * top) {
    if (top->used < top->depth) return;
    FN(select_largest)(top->keys, top->used, top->depth);
    top->used = top->depth;
    KEY worst = top->keys[0];
    for (int64_t i = 1; i < top->depth; i++)
        if (top->keys[i] < worst) worst = top->keys[i];
    top->bound = FN(kgt_key_score)(worst);
}

void FN(kgt_top_sort)(FN(kgt_top) * top) {
    FN(kgt_top_prune)(top);
    FN(sort)(top->keys, top->used);
}
