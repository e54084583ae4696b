// TEL as a layer of a network: outputs, gradients for a given derivative of the loss, and the
// number of leaves reached. In float32 and float64.
#pragma once

#include <cstdint>

#include "tree/soft_tree.hpp"

namespace hardwood {

// An ensemble in the caller's layout: rows without padding.
template <class Real>
struct TelLayer {
  SoftShape shape;
  Activation activation = Activation::kSmoothStep;
  Real gamma = 1;
  const Real* W = nullptr;  // (trees, nodes, d)
  const Real* b = nullptr;  // (trees, nodes)
  const Real* O = nullptr;  // (trees, leaves, k)
};

template <class Real>
struct TelLayerGradient {
  Real* X = nullptr;  // (n, d), or null if not needed
  Real* W = nullptr;
  Real* b = nullptr;
  Real* O = nullptr;
};

// out (n, k), and where not null leaves_reached (n, trees), of the rows X (n, d).
template <class Real>
void tel_layer_forward(const TelLayer<Real>& layer, std::int64_t n, const Real* X, int n_threads,
                       Real* out, std::int32_t* leaves_reached);

// Gradients of a loss whose derivative by the outputs is slope (n, k). They do not depend on the
// number of threads.
template <class Real>
void tel_layer_backward(const TelLayer<Real>& layer, std::int64_t n, const Real* X,
                        const Real* slope, int n_threads, const TelLayerGradient<Real>& gradient);

extern template void tel_layer_forward(const TelLayer<float>&, std::int64_t, const float*, int,
                                       float*, std::int32_t*);
extern template void tel_layer_forward(const TelLayer<double>&, std::int64_t, const double*, int,
                                       double*, std::int32_t*);
extern template void tel_layer_backward(const TelLayer<float>&, std::int64_t, const float*,
                                        const float*, int, const TelLayerGradient<float>&);
extern template void tel_layer_backward(const TelLayer<double>&, std::int64_t, const double*,
                                        const double*, int, const TelLayerGradient<double>&);

}  // namespace hardwood
