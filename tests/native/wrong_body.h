/* Slightly wrong primitives, which --wrong puts into the table under test. */

static kgt_kernel FN(honest);

static bool FN(wrong_count)(const T *x, size_t n, const T *t, size_t m, int64_t *greater,
                            int64_t *at_least, T *maxima) {
    const size_t length = n - (spoils("count_end") && n > 9 && maxima == NULL);
    if (spoils("overread")) (void)((const volatile T *)x)[n]; /* only memory checkers find it */
    const bool nan = FN(honest).OPS.count(x, length, t, m, greater, at_least, maxima);
    if (spoils("count_ties") && m > 0) at_least[m - 1] = greater[m - 1];
    if (spoils("maxima") && maxima != NULL && n > 0) maxima[0] = -INFINITY;
    return spoils("count_nan") ? false : nan;
}

static size_t FN(wrong_compress)(const T *x, size_t n, T t, T *out, bool *nan) {
    size_t n_out = 0;
    for (size_t i = 0; i < n; i++) {
        *nan |= x[i] != x[i];
        if (x[i] > t) out[n_out++] = x[i];
    }
    return n_out;
}

static size_t FN(wrong_select)(const T *x, size_t n, const T *maxima, T t, int32_t *out) {
    const size_t n_out = FN(honest).OPS.select(x, n, maxima, t, out);
    if (n_out > 1) out[n_out - 1] = out[n_out - 2];
    return n_out;
}

static size_t FN(wrong_fold)(const T *x, size_t n, size_t group, T *out) {
    const size_t folded = FN(honest).OPS.fold(x, n, group, out);
    if (folded > 0 && spoils("fold_low")) out[folded / 2] = -INFINITY;
    if (folded > 1 && spoils("fold_twice")) out[0] = out[1];
    if (folded > 0 && spoils("fold_nan") && x[n - 1] != x[n - 1]) out[folded - 1] = x[n - 1];
    return folded;
}

/* Treats an equal level as one below. */
static void FN(wrong_locate)(const T *x, size_t n, const T *levels, int steps, int32_t *out,
                             uint32_t *histogram) {
    FN(honest).OPS.locate(x, n, levels, steps, out, histogram);
    for (size_t i = 0; i < n; i++) out[i] += out[i] % 2;
}

/* Forgets the last of each pair. */
static void FN(wrong_histogram)(const T *x, size_t n, const T *levels, int steps, int32_t *out,
                                uint32_t *histogram) {
    FN(honest).OPS.locate(x, n, levels, steps, out, histogram);
    if (histogram != NULL && n > 0 && n % 2 == 0)
        histogram[KGT_TURNS * (size_t)out[n - 1] + (n - 1) % KGT_TURNS]--;
}

/* Puts the last but one where its neighbour is, or misses NaN. */
static bool FN(wrong_cells)(const T *x, size_t n, const kgt_cells *grid, int32_t *out) {
    const bool nan = FN(honest).OPS.cells(x, n, grid, out);
    if (spoils("cells") && n > 2) out[n - 2] = out[n - 1];
    return nan && !spoils("cells_nan");
}

static int64_t FN(wrong_tied)(const T *x, size_t n, T t, const int32_t *position, int32_t last) {
    return FN(honest).OPS.tied_up_to(x, n, t, position, last - 1);
}

/* One score too few before the ties behind the answer. */
static bool FN(wrong_short)(const T *x, size_t n, T t, size_t after, const uint64_t *outside,
                            int64_t *out) {
    return FN(honest).OPS.count_short(x, n, t, after + (after < n), outside, out);
}

static void FN(wrong_transpose)(const T *x, ptrdiff_t stride, size_t rows, size_t n, T *out,
                                size_t out_stride) {
    FN(honest).OPS.transpose(x, stride, rows, n, out, out_stride);
    if (rows > 1 && n > 1) out[1] = out[out_stride]; /* two values not exchanged */
}

/* Not fused, so there is one more rounding. */
static void FN(wrong_tile)(const T *queries, const T *panel, size_t dim, T *out, size_t stride) {
    for (size_t i = 0; i < KGT_STRIP; i++)
        for (size_t j = 0; j < KGT_PANEL; j++) {
            T sum = 0;
            for (size_t k = 0; k < dim; k++) sum += queries[i * dim + k] * panel[k * KGT_PANEL + j];
            out[i * stride + j] = sum;
        }
}

/* Summed from the other end. */
static T FN(wrong_pair)(const T *a, const T *b, size_t dim) {
    T sum = 0;
    for (size_t k = dim; k-- > 0;) sum = (T)fma((double)a[k], (double)b[k], (double)sum);
    return sum;
}

static T FN(wrong_pair_l1)(const T *a, const T *b, size_t dim) {
    T sum = 0;
    for (size_t k = dim; k-- > 0;) sum += (T)fabs((double)(a[k] - b[k]));
    return sum;
}

static void FN(wrong_tile_l1)(const T *queries, const T *panel, size_t dim, T *out, size_t stride) {
    FN(honest).OPS.tile_l1(queries, panel, dim, out, stride);
    out[stride - 1] = 0; /* in a gap, or the last of a row */
}

static T FN(wrong_pair_moduli)(const T *a, const T *b, size_t dim) {
    T sum = 0;
    for (size_t k = dim / 2; k-- > 0;) {
        const T re = a[k] - b[k], im = a[dim / 2 + k] - b[dim / 2 + k];
        sum += (T)sqrt((double)(re * re + im * im));
    }
    return sum;
}

static void FN(wrong_tile_moduli)(const T *queries, const T *panel, size_t dim, T *out,
                                  size_t stride) {
    FN(honest).OPS.tile_moduli(queries, panel, dim, out, stride);
    out[stride - 1] = 0;
}

static T FN(wrong_pair_mode)(const T *a, const T *b, size_t dim) {
    T sum = 0;
    for (size_t k = dim; k-- > 0;) sum += (T)fabs((double)(a[k] - a[dim + k] * b[k]));
    return sum;
}

static void FN(wrong_tile_mode)(const T *queries, const T *panel, size_t dim, T *out,
                                size_t stride) {
    FN(honest).OPS.tile_mode(queries, panel, dim, out, stride);
    out[stride - 1] = 0;
}

/* Without the weight of moduli. */
static T FN(wrong_pair_hake)(const T *a, const T *b, size_t dim) {
    const size_t n = dim / 3;
    T query[4 * 1024 + 2];
    memcpy(query, a, (4 * n + 2) * sizeof(T));
    query[4 * n + 1] = 1;
    return FN(honest).OPS.pair_hake(query, b, dim);
}

static void FN(wrong_tile_hake)(const T *queries, const T *panel, size_t dim, T *out,
                                size_t stride) {
    FN(honest).OPS.tile_hake(queries, panel, dim, out, stride);
    out[stride - 1] = 0;
}

static void FN(wrong_norms)(const T *panel, size_t dim, T *out) {
    FN(honest).OPS.norms(panel, dim - (dim > 0), out);
}

static void FN(spoil)(kgt_kernel *kernel) {
    FN(honest) = *kernel;
    if (spoils("count_end") || spoils("count_ties") || spoils("count_nan") || spoils("maxima") ||
        spoils("overread"))
        kernel->OPS.count = FN(wrong_count);
    if (spoils("compress")) kernel->OPS.compress = FN(wrong_compress);
    if (spoils("select")) kernel->OPS.select = FN(wrong_select);
    if (spoils("fold_low") || spoils("fold_twice") || spoils("fold_nan"))
        kernel->OPS.fold = FN(wrong_fold);
    if (spoils("locate")) kernel->OPS.locate = FN(wrong_locate);
    if (spoils("histogram")) kernel->OPS.locate = FN(wrong_histogram);
    if (spoils("cells") || spoils("cells_nan")) kernel->OPS.cells = FN(wrong_cells);
    if (spoils("tied_up_to")) kernel->OPS.tied_up_to = FN(wrong_tied);
    if (spoils("count_short")) kernel->OPS.count_short = FN(wrong_short);
    if (spoils("transpose")) kernel->OPS.transpose = FN(wrong_transpose);
    if (spoils("tile")) kernel->OPS.tile = FN(wrong_tile);
    if (spoils("tile_l1")) kernel->OPS.tile_l1 = FN(wrong_tile_l1);
    if (spoils("tile_moduli")) kernel->OPS.tile_moduli = FN(wrong_tile_moduli);
    if (spoils("tile_mode")) kernel->OPS.tile_mode = FN(wrong_tile_mode);
    if (spoils("tile_hake")) kernel->OPS.tile_hake = FN(wrong_tile_hake);
    if (spoils("pair_mode")) kernel->OPS.pair_mode = FN(wrong_pair_mode);
    if (spoils("pair_hake")) kernel->OPS.pair_hake = FN(wrong_pair_hake);
    if (spoils("norms")) kernel->OPS.norms = FN(wrong_norms);
    if (spoils("pair")) kernel->OPS.pair = FN(wrong_pair);
    if (spoils("pair_l1")) kernel->OPS.pair_l1 = FN(wrong_pair_l1);
    if (spoils("pair_moduli")) kernel->OPS.pair_moduli = FN(wrong_pair_moduli);
}
