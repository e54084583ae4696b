// Small matrix products: C (+)= A B or A^T B, all row-major, C starting from zero, from its own
// values, or from one bias per row.
//
// A register block of kBlockRows x 2 vectors of C is held while k runs; every element of C is one
// chain of multiply-adds in order of k, so the result depends neither on the blocking nor on the
// vector width. Columns are taken in multiples of 8: callers pad B and C (see
// benchmarks/speed/gemm.py for the comparison with OpenBLAS).
#pragma once

#include "core/simd.hpp"

namespace hardwood::HARDWOOD_ISA {

enum class Start { kZero, kAccumulate, kRowBias };

inline constexpr int kBlockRows = 6;
inline constexpr int kBlockDepth =
    256;  // rows of B per pass: a 256 x 32 panel stays in the first-level cache

enum class Left { kPlain, kTransposed };

// Element (i, k) of the left factor, which is stored plain or transposed.
template <Left kLeft>
HARDWOOD_INLINE std::ptrdiff_t left_at(std::ptrdiff_t i, std::ptrdiff_t k, std::ptrdiff_t lda) {
  return kLeft == Left::kPlain ? i * lda + k : k * lda + i;
}

template <Left kLeft, int R, int V, int N>
HARDWOOD_INLINE void gemm_block(int depth, const float* A, std::ptrdiff_t lda, const float* B,
                                std::ptrdiff_t ldb, float* C, std::ptrdiff_t ldc, Start start,
                                const float* bias) {
  Vector<N> c[R][V];
  for (int i = 0; i < R; ++i)
    for (int v = 0; v < V; ++v)
      c[i][v] = start == Start::kZero      ? Vector<N>{}
                : start == Start::kRowBias ? broadcast<N>(bias[i])
                                           : load<N>(C + i * ldc + v * N);
  for (int k = 0; k < depth; ++k) {
    Vector<N> b[V];
    for (int v = 0; v < V; ++v) b[v] = load<N>(B + k * ldb + v * N);
    for (int i = 0; i < R; ++i) {
      const Vector<N> a = broadcast<N>(A[left_at<kLeft>(i, k, lda)]);
      for (int v = 0; v < V; ++v) c[i][v] += a * b[v];
    }
  }
  for (int i = 0; i < R; ++i)
    for (int v = 0; v < V; ++v) store<N>(C + i * ldc + v * N, c[i][v]);
}

template <Left kLeft, int V, int N>
inline void gemm_columns(int rows, int depth, const float* A, std::ptrdiff_t lda, const float* B,
                         std::ptrdiff_t ldb, float* C, std::ptrdiff_t ldc, Start start,
                         const float* bias) {
  int i = 0;
  for (; i + kBlockRows <= rows; i += kBlockRows)
    gemm_block<kLeft, kBlockRows, V, N>(depth, A + left_at<kLeft>(i, 0, lda), lda, B, ldb,
                                        C + i * ldc, ldc, start, bias + i);
  const auto rest = [&]<int R>() {
    if (rows - i >= R) {
      gemm_block<kLeft, R, V, N>(depth, A + left_at<kLeft>(i, 0, lda), lda, B, ldb, C + i * ldc,
                                 ldc, start, bias + i);
      i += R;
    }
  };
  rest.template operator()<4>();
  rest.template operator()<2>();
  rest.template operator()<1>();
}

template <Left kLeft>
inline void gemm_panels(Matrix<const float> A, Matrix<const float> B, Matrix<float> C, Start start,
                        const float* bias) {
  const int columns = (B.cols + 7) / 8 * 8;
  for (int k = 0; k < max_of(B.rows, 1); k += kBlockDepth) {
    const int depth = min_of(kBlockDepth, B.rows - k);
    const Start from = k == 0 ? start : Start::kAccumulate;
    const float* a = A.data + left_at<kLeft>(0, k, A.stride);
    const float* b = B.data + k * B.stride;
    int j = 0;
    for (; j + 2 * kLanes <= columns; j += 2 * kLanes)
      gemm_columns<kLeft, 2, kLanes>(C.rows, depth, a, A.stride, b + j, B.stride, C.data + j,
                                     C.stride, from, bias);
    if constexpr (kLanes > 8)
      for (; j + kLanes <= columns; j += kLanes)
        gemm_columns<kLeft, 1, kLanes>(C.rows, depth, a, A.stride, b + j, B.stride, C.data + j,
                                       C.stride, from, bias);
    for (; j < columns; j += 8)
      gemm_columns<kLeft, (kLanes >= 8 ? 1 : 2), (kLanes >= 8 ? 8 : 4)>(
          C.rows, depth, a, A.stride, b + j, B.stride, C.data + j, C.stride, from, bias);
  }
}

// C (+)= A B with B.cols columns taken up to the next multiple of 8; `bias` (one per row) is read
// only for Start::kRowBias.
inline void gemm(Matrix<const float> A, Matrix<const float> B, Matrix<float> C, Start start,
                 const float* bias = nullptr) {
  gemm_panels<Left::kPlain>(A, B, C, start, bias);
}

// C (+)= A^T B; A is (depth, rows of C).
inline void gemm_transposed(Matrix<const float> A, Matrix<const float> B, Matrix<float> C,
                            Start start) {
  gemm_panels<Left::kTransposed>(A, B, C, start, nullptr);
}

// B = A^T, in 16 x 16 blocks that stay in registers and cache.
inline void transpose(Matrix<const float> A, Matrix<float> B) {
  constexpr int kBlock = 16;
  for (int i0 = 0; i0 < A.rows; i0 += kBlock)
    for (int j0 = 0; j0 < A.cols; j0 += kBlock) {
      const int i1 = min_of(i0 + kBlock, A.rows), j1 = min_of(j0 + kBlock, A.cols);
      for (int j = j0; j < j1; ++j)
        for (int i = i0; i < i1; ++i) B.row(j)[i] = A.row(i)[j];
    }
}

}  // namespace hardwood::HARDWOOD_ISA
