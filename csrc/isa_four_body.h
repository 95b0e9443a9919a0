/* Bounds of four rows of 16-bit codes at once, in registers of 128 bits, for isa_refine_body.h on
 * x86. The including file defines FN(op). */
#define FOUR_BOUNDS

KGT_INLINE unsigned FN(four_bounds)(const int16_t *const figures[4], const int32_t *products,
                                    float norm, float relative, float factor, float above,
                                    float below, unsigned *reaching) {
    __m128 scale = _mm_loadu_ps((const void *)figures[0]);
    __m128 base = _mm_loadu_ps((const void *)figures[1]);
    __m128 code_norm = _mm_loadu_ps((const void *)figures[2]);
    __m128 offset = _mm_loadu_ps((const void *)figures[3]);
    _MM_TRANSPOSE4_PS(scale, base, code_norm, offset); /* as kgt_figures has them */
    const __m128 product = _mm_cvtepi32_ps(_mm_loadu_si128((const void *)products));
    const __m128 value = _mm_fmadd_ps(offset, _mm_set1_ps(factor), _mm_mul_ps(product, scale));
    const __m128 error = _mm_fmadd_ps(_mm_set1_ps(relative), code_norm, base);
    const __m128 lower = _mm_fnmadd_ps(_mm_set1_ps(norm), error, value);
    const __m128 upper = _mm_fmadd_ps(_mm_set1_ps(norm), error, value);
    *reaching = (unsigned)_mm_movemask_ps(_mm_cmpge_ps(upper, _mm_set1_ps(below)));
    return (unsigned)_mm_movemask_ps(_mm_cmpgt_ps(lower, _mm_set1_ps(above)));
}
