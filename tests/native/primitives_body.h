/* Checks every primitive of one element type against the scalar path. Macros: T, OPS, FN(op); BITS,
 * the unsigned integer of T's size; SIGNALLING, the bits of a signalling NaN. */

static T FN(edge)(void) {
    static const T values[] = {NAN, -INFINITY, INFINITY, 0, (T)-0.0, TINY, -TINY, LARGE, 1, 2};
    const size_t which = random_below(sizeof values / sizeof values[0] + 1);
    if (which > 0) return values[which - 1];
    const BITS bits = SIGNALLING;
    T value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static T FN(real)(void) { return (T)((double)random_bits() * 0x1p-63 - 1.0); }

static void FN(fill)(T *x, size_t n, mix mix) {
    for (size_t i = 0; i < n; i++) {
        if (mix == TIES || mix == ONE_NAN) x[i] = (T)random_below(5);
        if (mix == EDGES) x[i] = FN(edge)();
        if (mix == REALS) x[i] = FN(real)();
        if (mix == ALL_NAN) x[i] = NAN;
    }
    if (mix == ONE_NAN && n > 0) x[random_below(n)] = NAN;
}

/* n values at the very end of their memory; each shift gives another alignment. */
static T *FN(filled)(size_t n, size_t shift, mix mix, T **memory) {
    *memory = exact(n + shift, sizeof(T));
    FN(fill)(*memory + shift, n, mix);
    return *memory + shift;
}

static T FN(threshold)(const T *x, size_t n) {
    return n > 0 && random_below(4) > 0 ? x[random_below(n)] : FN(edge)();
}

/* The same bits, or both NaN; ISAs may give different NaN. */
static bool FN(same)(T a, T b) { return memcmp(&a, &b, sizeof a) == 0 || (a != a && b != b); }

/* The same sum of products. */
static bool FN(same_sum)(T a, T b) {
    return FN(same)(a, b) || (a == 0 && b == 0 && !fma_keeps_sign());
}

static void FN(expect_all)(bool (*agree)(T, T), const T *got, const T *due, size_t n,
                           const char *what, size_t size) {
    size_t i = 0;
    while (i < n && agree(got[i], due[i])) i++;
    expect(i == n, what, "size %zu: value %zu is %.17g, should be %.17g", size, i,
           i < n ? (double)got[i] : 0, i < n ? (double)due[i] : 0);
}

static void FN(expect_same)(const T *got, const T *due, size_t n, const char *what, size_t size) {
    FN(expect_all)(FN(same), got, due, n, what, size);
}

static void FN(expect_same_sums)(const T *got, const T *due, size_t n, const char *what,
                                 size_t size) {
    FN(expect_all)(FN(same_sum), got, due, n, what, size);
}

/* ---- rows ---- */

static int FN(descending)(const void *a, const void *b) {
    const T x = *(const T *)a, y = *(const T *)b;
    return (x < y) - (x > y);
}

/* Drops NaN and sorts the rest; returns their number. */
static size_t FN(sort_numbers)(T *x, size_t n) {
    size_t numbers = 0;
    for (size_t i = 0; i < n; i++)
        if (x[i] == x[i]) x[numbers++] = x[i];
    qsort(x, numbers, sizeof(T), FN(descending));
    return numbers;
}

/* The ISA chooses the groups, so this checks what callers rely on. The maxima, sorted here, are
 * different values of x. No group is too large, so every `group` more values give one more maximum.
 */
static void FN(check_maxima)(const T *x, size_t n, size_t group, T *maxima, size_t n_maxima,
                             const char *what) {
    T *sorted = exact(n, sizeof(T));
    if (n > 0) memcpy(sorted, x, n * sizeof(T));
    const size_t numbers = FN(sort_numbers)(sorted, n);
    const size_t n_numbers = FN(sort_numbers)(maxima, n_maxima);
    expect(n_numbers == n_maxima, what, "n %zu, group %zu: a maximum is NaN", n, group);
    size_t at = 0, strangers = 0, missing = 0;
    for (size_t i = 0; i < n_numbers && maxima[i] > -INFINITY; i++, at++) {
        while (at < numbers && sorted[at] > maxima[i]) at++;
        strangers += at == numbers || sorted[at] != maxima[i];
    }
    for (size_t i = 0; i < numbers; i++)
        missing += i / group >= n_numbers || maxima[i / group] < sorted[i];
    expect(strangers == 0, what, "n %zu, group %zu: %zu maxima are not among the values", n, group,
           strangers);
    expect(missing == 0, what, "n %zu, group %zu: maxima too low for %zu values", n, group,
           missing);
    free(sorted);
}

/* Checks counts with and without maxima, in two streams and in one. */
static void FN(check_count)(const kgt_kernel *kernel, const T *x, size_t n, size_t m) {
    T *t = exact(m, sizeof(T)), *maxima = exact(KGT_MAXIMA(n), sizeof(T));
    int64_t *count[4];
    for (size_t j = 0; j < m; j++) t[j] = FN(threshold)(x, n);
    for (int i = 0; i < 4; i++) count[i] = exact(m, sizeof(int64_t));
    for (int with = 0; with < 4; with++) {
        atomic_store(&kgt_stream_ahead, with < 2 ? 256 : 0);
        for (int i = 0; i < 4; i++) /* count adds to these */
            for (size_t j = 0; j < m; j++) count[i][j] = 100 + (int64_t)j;
        const bool nan =
            kernel->OPS.count(x, n, t, m, count[0], count[1], with % 2 ? maxima : NULL);
        if (with % 2) FN(check_maxima)(x, n, KGT_GROUP, maxima, KGT_MAXIMA(n), NAME("maxima"));
        const bool due = kgt_kernel_scalar.OPS.count(x, n, t, m, count[2], count[3], NULL);
        expect(nan == due, NAME("count"), "n %zu, m %zu: NaN seen: %d, should be %d", n, m, nan,
               due);
        for (size_t j = 0; j < m; j++)
            expect(count[0][j] == count[2][j] && count[1][j] == count[3][j], NAME("count"),
                   "n %zu, threshold %zu of %zu (%g): %lld > and %lld >=, should be %lld and %lld",
                   n, j, m, (double)t[j], (long long)count[0][j], (long long)count[1][j],
                   (long long)count[2][j], (long long)count[3][j]);
    }
    for (int i = 0; i < 4; i++) free(count[i]);
    free(maxima);
    free(t);
}

/* A hundred million comparisons, many of them ties. */
static void FN(check_many_counts)(const kgt_kernel *kernel) {
    T *memory, *x = FN(filled)(1000003, 1, TIES, &memory);
    for (int i = 0; i < 3; i++) FN(check_count)(kernel, x, 1000003, 10);
    free(memory);
}

/* The scalar path has no compress, so this applies its definition. */
static void FN(check_compress)(const kgt_kernel *kernel, const T *x, size_t n, T t) {
    if (kernel->OPS.compress == NULL) return;
    T *out = exact(n + KGT_SLACK, sizeof(T)), *due = exact(n, sizeof(T));
    size_t n_due = 0;
    bool nan = false, nan_due = false, stays = true;
    for (size_t i = 0; i < n; i++) {
        if (x[i] >= t) due[n_due++] = x[i];
        nan_due |= x[i] != x[i];
    }
    const size_t n_out = kernel->OPS.compress(x, n, t, out, &nan);
    expect(n_out == n_due && nan == nan_due, NAME("compress"),
           "n %zu, t %g: %zu kept, NaN %d, should be %zu and %d", n, (double)t, n_out, nan, n_due,
           nan_due);
    if (n_out == n_due) FN(expect_same)(out, due, n_out, NAME("compress"), n);
    kernel->OPS.compress(x, n, t, out, &stays);
    expect(stays, NAME("compress"), "n %zu: an earlier NaN was forgotten", n);
    free(out);
    free(due);
}

static void FN(check_select)(const kgt_kernel *kernel, const T *x, size_t n, T t) {
    int32_t *out = exact(n + KGT_SLACK, sizeof(int32_t));
    int32_t *due = exact(n + KGT_SLACK, sizeof(int32_t));
    T *maxima = exact(KGT_MAXIMA(n), sizeof(T));
    kgt_kernel_scalar.OPS.count(x, n, NULL, 0, NULL, NULL, maxima);
    const size_t n_due = kgt_kernel_scalar.OPS.select(x, n, maxima, t, due);
    kernel->OPS.count(x, n, NULL, 0, NULL, NULL, maxima);
    const size_t n_out = kernel->OPS.select(x, n, maxima, t, out);
    expect(n_out == n_due, NAME("select"), "n %zu, t %g: %zu found, should be %zu", n, (double)t,
           n_out, n_due);
    for (size_t i = 0; i < n_out && i < n_due; i++)
        expect(out[i] == due[i], NAME("select"), "n %zu, t %g: index %zu is %d, should be %d", n,
               (double)t, i, out[i], due[i]);
    free(maxima);
    free(out);
    free(due);
}

static void FN(check_fold)(const kgt_kernel *kernel, const T *x, size_t n, size_t group) {
    const size_t whole = group * KGT_FOLD, places = (n + whole - 1) / whole * KGT_FOLD;
    T *out = exact(places, sizeof(T));
    const size_t folded = kernel->OPS.fold(x, n, group, out);
    expect(folded <= places, NAME("fold"), "n %zu, group %zu: %zu maxima, more than %zu", n, group,
           folded, places);
    FN(check_maxima)(x, n, group, out, folded, NAME("fold"));
    free(out);
}

/* Strictly ascending levels, equal or next to values of x, and then NaN; returns their number. */
static size_t FN(some_levels)(const T *x, size_t n, size_t at_most, T *levels) {
    size_t n_levels = 0, used = 0;
    while (n_levels < at_most) {
        const T level = FN(threshold)(x, n);
        if (level == level) levels[n_levels++] = level + 0; /* not -0 */
    }
    qsort(levels, n_levels, sizeof(T), FN(descending));
    for (size_t i = 0; i < n_levels / 2; i++) {
        const T low = levels[n_levels - 1 - i];
        levels[n_levels - 1 - i] = levels[i];
        levels[i] = low;
    }
    for (size_t i = 0; i < n_levels; i++)
        if (used == 0 || levels[used - 1] < levels[i]) levels[used++] = levels[i];
    return used;
}

/* Compares each score with each level. */
static void FN(check_locate)(const kgt_kernel *kernel, const T *x, size_t n, size_t at_most) {
    T *levels = exact(4 * at_most + 1, sizeof(T));
    const size_t used = FN(some_levels)(x, n, at_most, levels);
    int steps = (int)random_below(2);
    while ((size_t)1 << steps <= used) steps++;
    T *whole = exact((size_t)1 << steps, sizeof(T));
    for (size_t i = 0; i < (size_t)1 << steps; i++) whole[i] = i < used ? levels[i] : (T)NAN;
    int32_t *out = exact(n, sizeof *out);
    uint32_t *histogram = exact(KGT_TURNS * (2 * used + 1), sizeof *histogram);
    for (int with = 0; with < 2; with++) {
        memset(histogram, 0, KGT_TURNS * (2 * used + 1) * sizeof *histogram);
        kernel->OPS.locate(x, n, whole, steps, out, with ? histogram : NULL);
        for (size_t i = 0; i < n; i++) {
            int32_t due = 0;
            for (size_t j = 0; j < used; j++) due += (levels[j] < x[i]) + (levels[j] <= x[i]);
            expect(out[i] == due, NAME("locate"), "n %zu, %zu levels: bin of %g is %d, not %d", n,
                   used, (double)x[i], out[i], due);
            if (with) histogram[KGT_TURNS * (size_t)due + i % KGT_TURNS]--;
        }
        size_t wrong = 0;
        for (size_t i = 0; i < KGT_TURNS * (2 * used + 1); i++) wrong += histogram[i] != 0;
        expect(wrong == 0, NAME("locate"), "n %zu, %zu levels: %zu bins miscounted", n, used,
               wrong);
    }
    free(levels);
    free(whole);
    free(out);
    free(histogram);
}

/* Checks each cell; every step is rounded to float. */
static void FN(check_cells)(const kgt_kernel *kernel, const T *x, size_t n) {
    int32_t *out = exact(n, sizeof *out);
    const kgt_cells grid = {(float)random_below(9) - 6.0f, (float)random_below(99) / 8.0f + 0.125f,
                            (float)(KGT_UNDER + random_below(200))};
    bool nan_due = false;
    for (size_t i = 0; i < n; i++) nan_due |= x[i] != x[i];
    const bool nan = kernel->OPS.cells(x, n, &grid, out);
    expect(nan == nan_due, NAME("cells"), "n %zu: NaN seen: %d, should be %d", n, nan, nan_due);
    for (size_t i = 0; i < n; i++) {
        const volatile float from_low = (float)x[i] - grid.low, scaled = from_low * grid.scale;
        const volatile float cell = scaled + KGT_UNDER;
        int32_t due = (int32_t)(i % KGT_UNDER);
        if (cell >= grid.last)
            due = (int32_t)grid.last;
        else if (cell > (float)due)
            due = (int32_t)cell;
        expect(out[i] == due, NAME("cells"), "n %zu: cell of %g at %zu is %d, not %d", n,
               (double)x[i], i, out[i], due);
    }
    free(out);
}

static void FN(check_tied_up_to)(const kgt_kernel *kernel, const T *x, size_t n, T t) {
    int32_t *position = exact(n, sizeof *position);
    for (size_t i = 0; i < n; i++) position[i] = (int32_t)random_below(n + 1);
    const int32_t last = (int32_t)random_below(n + 1);
    int64_t due = 0;
    for (size_t i = 0; i < n; i++) due += x[i] == t && position[i] <= last;
    const int64_t ties = kernel->OPS.tied_up_to(x, n, t, position, last);
    expect(ties == due, NAME("tied_up_to"), "n %zu, t %g: %lld ties, should be %lld", n, (double)t,
           (long long)ties, (long long)due);
    free(position);
}

/* Counts bit by bit. */
static void FN(check_count_short)(const kgt_kernel *kernel, const T *x, size_t n, T t) {
    if (n > KGT_SHORT) return;
    const size_t n_words = (n + 63) / 64, after = random_below(n + 2);
    uint64_t *outside = exact(2 * n_words, sizeof *outside);
    int64_t *out = exact(6, sizeof *out), due[6] = {0};
    for (size_t i = 0; i < 2 * n_words; i++) outside[i] = random_bits() & random_bits();
    bool nan_due = false;
    for (size_t i = 0; i < n; i++) nan_due |= x[i] != x[i];
    for (size_t i = 0; i < 2 * n; i++) {
        const size_t filter = i / n, at = i % n;
        if (outside[filter * n_words + at / 64] >> at % 64 & 1) continue;
        due[3 * filter] += x[at] > t;
        due[3 * filter + 1] += x[at] == t;
        due[3 * filter + 2] += x[at] == t && at >= after;
    }
    const bool nan = kernel->OPS.count_short(x, n, t, after, outside, out);
    expect(nan == nan_due, NAME("count_short"), "n %zu: NaN seen: %d, should be %d", n, nan,
           nan_due);
    for (int i = 0; i < 6; i++)
        expect(out[i] == due[i], NAME("count_short"),
               "n %zu, t %g, after %zu: count %d is %lld, should be %lld", n, (double)t, after, i,
               (long long)out[i], (long long)due[i]);
    free(outside);
    free(out);
}

/* Transposes columns with gaps or in reverse order to rows with gaps. */
static void FN(check_transpose)(const kgt_kernel *kernel, size_t rows, size_t n, bool reversed) {
    const size_t step = rows + 3, out_stride = n + 2, size = (rows - 1) * out_stride + n;
    T *memory, *x = FN(filled)((n - 1) * step + rows, rows % 3, EDGES, &memory);
    T *out = exact(size, sizeof(T)), *due = exact(size, sizeof(T));
    for (size_t i = 0; i < size; i++) out[i] = due[i] = 12345; /* gaps are left alone */
    const ptrdiff_t stride = reversed ? -(ptrdiff_t)step : (ptrdiff_t)step;
    const T *first = reversed ? x + (n - 1) * step : x;
    kernel->OPS.transpose(first, stride, rows, n, out, out_stride);
    kgt_kernel_scalar.OPS.transpose(first, stride, rows, n, due, out_stride);
    FN(expect_same)(out, due, size, NAME("transpose"), rows);
    for (size_t i = 0; i < rows; i++)
        FN(expect_same)(due + i * out_stride + n - 1, first + (ptrdiff_t)(n - 1) * stride + i, 1,
                        NAME("transpose"), rows);
    free(memory);
    free(out);
    free(due);
}

static void FN(check_transposes)(const kgt_kernel *kernel) {
    static const size_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 67};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (size_t j = 0; j < sizeof sizes / sizeof sizes[0]; j++)
            FN(check_transpose)(kernel, sizes[i], sizes[j], (i + j) % 2);
}

static void FN(check_row_length)(const kgt_kernel *kernel, size_t n) {
    for (int mix = 0; mix < N_MIXES; mix++) {
        T *memory, *x = FN(filled)(n, (n + (size_t)mix) % 4, mix, &memory);
        for (size_t m = 0; m < 10; m++) FN(check_count)(kernel, x, n, m);
        for (size_t i = 0; i < 4; i++) {
            static const size_t groups[4] = {1, 2, 5, 64};
            const T t = i == 0 ? -INFINITY : FN(threshold)(x, n);
            FN(check_compress)(kernel, x, n, t);
            FN(check_select)(kernel, x, n, t);
            FN(check_fold)(kernel, x, n, groups[i]);
            FN(check_tied_up_to)(kernel, x, n, t);
            FN(check_count_short)(kernel, x, n, t);
            FN(check_locate)(kernel, x, n, i + random_below(i < 2 ? 8 : 150));
            FN(check_cells)(kernel, x, n);
        }
        free(memory);
    }
}

/* ---- factors ---- */

typedef void (*FN(tile_of))(const T *, const T *, size_t, T *, size_t);
typedef T (*FN(pair_of))(const T *, const T *, size_t);

/* The tile against the scalar tile, and its last column against the path's own pair. */
static void FN(check_tile)(FN(tile_of) tile, FN(tile_of) scalar, FN(pair_of) pair, const T *queries,
                           size_t query_dim, const T *panel, size_t dim, size_t gap,
                           const char *what) {
    const size_t stride = KGT_PANEL + gap, size = (KGT_STRIP - 1) * stride + KGT_PANEL;
    T *out = exact(size, sizeof(T)), *due = exact(size, sizeof(T));
    T *column = exact(dim, sizeof(T));
    for (size_t i = 0; i < size; i++) out[i] = due[i] = 12345; /* gaps are left alone */
    tile(queries, panel, dim, out, stride);
    scalar(queries, panel, dim, due, stride);
    FN(expect_same_sums)(out, due, size, what, dim);
    for (size_t k = 0; k < dim; k++) column[k] = panel[k * KGT_PANEL + KGT_PANEL - 1];
    for (size_t i = 0; i < KGT_STRIP; i++) {
        const T alone = pair(queries + i * query_dim, column, dim);
        FN(expect_same_sums)(&alone, due + i * stride + KGT_PANEL - 1, 1, what, dim);
    }
    free(out);
    free(due);
    free(column);
}

static void FN(check_pairs)(const kgt_kernel *kernel, const T *a, const T *b, size_t dim) {
    const T pair = kernel->OPS.pair(a, b, dim), pair_l1 = kernel->OPS.pair_l1(a, b, dim);
    const T due = kgt_kernel_scalar.OPS.pair(a, b, dim);
    const T due_l1 = kgt_kernel_scalar.OPS.pair_l1(a, b, dim);
    FN(expect_same_sums)(&pair, &due, 1, NAME("pair"), dim);
    FN(expect_same_sums)(&pair_l1, &due_l1, 1, NAME("pair_l1"), dim);
    const T moduli = kernel->OPS.pair_moduli(a, b, dim);
    const T due_moduli = kgt_kernel_scalar.OPS.pair_moduli(a, b, dim);
    FN(expect_same_sums)(&moduli, &due_moduli, 1, NAME("pair_moduli"), dim);
}

/* A tile whose queries are longer than its entities, and its pair. */
static void FN(check_scaled)(FN(tile_of) tile, FN(tile_of) scalar, FN(pair_of) pair,
                             FN(pair_of) scalar_pair, kgt_metric metric, size_t dim,
                             const char *what, const char *what_pair) {
    const size_t query_dim = (size_t)kgt_query_dim(metric, (int64_t)dim);
    for (int mix = 0; mix < N_MIXES; mix++) {
        T *queries_memory, *panel_memory;
        T *queries = FN(filled)(KGT_STRIP * query_dim, dim % 4, mix, &queries_memory);
        T *panel = FN(filled)(KGT_PANEL * dim, dim % 2, mix, &panel_memory);
        for (size_t i = 0; i < KGT_STRIP; i++) {
            const T got = pair(queries + i * query_dim, panel + i * dim, dim);
            const T due = scalar_pair(queries + i * query_dim, panel + i * dim, dim);
            FN(expect_same_sums)(&got, &due, 1, what_pair, dim);
        }
        for (size_t gap = 0; gap < 8; gap += 7)
            FN(check_tile)(tile, scalar, pair, queries, query_dim, panel, dim, gap, what);
        free(queries_memory);
        free(panel_memory);
    }
}

static void FN(check_dimension)(const kgt_kernel *kernel, size_t dim) {
    for (int mix = 0; mix < N_MIXES; mix++) {
        T *queries_memory, *panel_memory, norms[KGT_PANEL], due[KGT_PANEL];
        T *queries = FN(filled)(KGT_STRIP * dim, dim % 4, mix, &queries_memory);
        T *panel = FN(filled)(KGT_PANEL * dim, dim % 2, mix, &panel_memory);
        const kgt_kernel *scalar = &kgt_kernel_scalar;
        for (size_t i = 0; i < KGT_STRIP; i++)
            FN(check_pairs)(kernel, queries + i * dim, panel + i * dim, dim);
        for (size_t gap = 0; gap < 8; gap += 7) {
            FN(check_tile)(kernel->OPS.tile, scalar->OPS.tile, kernel->OPS.pair, queries, dim,
                           panel, dim, gap, NAME("tile"));
            FN(check_tile)(kernel->OPS.tile_l1, scalar->OPS.tile_l1, kernel->OPS.pair_l1, queries,
                           dim, panel, dim, gap, NAME("tile_l1"));
            FN(check_tile)(kernel->OPS.tile_moduli, scalar->OPS.tile_moduli,
                           kernel->OPS.pair_moduli, queries, dim, panel, dim, gap,
                           NAME("tile_moduli"));
        }
        kernel->OPS.norms(panel, dim, norms);
        scalar->OPS.norms(panel, dim, due);
        FN(expect_same_sums)(norms, due, KGT_PANEL, NAME("norms"), dim);
        free(queries_memory);
        free(panel_memory);
    }
    FN(check_scaled)(kernel->OPS.tile_mode, kgt_kernel_scalar.OPS.tile_mode, kernel->OPS.pair_mode,
                     kgt_kernel_scalar.OPS.pair_mode, KGT_MODE, dim, NAME("tile_mode"),
                     NAME("pair_mode"));
    FN(check_scaled)(kernel->OPS.tile_hake, kgt_kernel_scalar.OPS.tile_hake, kernel->OPS.pair_hake,
                     kgt_kernel_scalar.OPS.pair_hake, KGT_HAKE, 3 * dim, NAME("tile_hake"),
                     NAME("pair_hake"));
}
