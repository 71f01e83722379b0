#include "strop/spmd/rule.h"

#include <algorithm>
#include <numeric>

#include "strop/analysis/combiner.h"

namespace strop::spmd {
namespace {

constexpr int64_t kNoDim = -1;

class RuleBuilder {
 public:
  explicit RuleBuilder(const Instruction& i) {
    for (int64_t k = 0; k < i.operand_count(); ++k) rule_.operands.push_back(Dims(i.operand(k)->shape()));
    for (const Shape& leaf : i.shape().Leaves()) rule_.results.push_back(Dims(leaf));
  }
  // A factor that is one dimension, or a part of one, of each operand and result; kNoDim where it is in none.
  RuleBuilder& Add(const std::vector<int64_t>& operand_dims, const std::vector<int64_t>& result_dims, int64_t size,
                   FactorKind kind = FactorKind::PassThrough, bool blocked = false) {
    const auto factor = static_cast<int16_t>(rule_.factors.size());
    rule_.factors.push_back({size, kind, blocked});
    auto place = [&](std::vector<TensorFactors>& tensors, const std::vector<int64_t>& dims) {
      for (size_t k = 0; k < tensors.size() && k < dims.size(); ++k)
        if (dims[k] >= 0 && dims[k] < static_cast<int64_t>(tensors[k].size())) tensors[k][dims[k]].push_back(factor);
    };
    place(rule_.operands, operand_dims);
    place(rule_.results, result_dims);
    return *this;
  }
  // The same dimension of all operands of that rank and of all results.
  RuleBuilder& AddEverywhere(int64_t dim, int64_t rank, int64_t size, FactorKind kind = FactorKind::PassThrough,
                             bool blocked = false) {
    std::vector<int64_t> operand_dims(rule_.operands.size(), kNoDim), result_dims(rule_.results.size(), dim);
    for (size_t k = 0; k < operand_dims.size(); ++k)
      if (static_cast<int64_t>(rule_.operands[k].size()) == rank) operand_dims[k] = dim;
    return Add(operand_dims, result_dims, size, kind, blocked);
  }
  Rule Take() { return std::move(rule_); }

 private:
  static TensorFactors Dims(const Shape& shape) { return TensorFactors(shape.IsArray() ? shape.rank() : 0); }
  Rule rule_;
};

bool Has(const Dims& dims, int64_t d) { return std::find(dims.begin(), dims.end(), d) != dims.end(); }

Rule NoRule(const Instruction&) { return {}; }

// In regions that are manual along other axes: each operand is a result, but for the dimension that is exchanged.
Rule CollectiveRule(const Instruction& i) {
  const std::vector<Shape> results = i.shape().Leaves();
  if (static_cast<int64_t>(results.size()) != i.operand_count()) return {};
  RuleBuilder b(i);
  const bool exchanges = i.op() != Op::CollectivePermute && !i.attrs<CollectiveAttrs>().dimensions.empty();
  for (size_t k = 0; k < results.size(); ++k) {
    const Shape& operand = i.operand(static_cast<int64_t>(k))->shape();
    if (operand.rank() != results[k].rank()) return {};
    for (int64_t d = 0; d < operand.rank(); ++d) {
      if (exchanges && d == i.attrs<CollectiveAttrs>().dimensions[0]) continue;
      std::vector<int64_t> dims(results.size(), kNoDim);
      dims[k] = d;
      b.Add(dims, dims, operand.dim(d));
    }
  }
  return b.Take();
}

Rule Pointwise(const Instruction& i) {
  if (!i.shape().IsArray()) return {};
  RuleBuilder b(i);
  const int64_t rank = i.shape().rank();
  for (int64_t d = 0; d < rank; ++d) b.AddEverywhere(d, rank, i.shape().dim(d));
  return b.Take();
}

Rule BroadcastRule(const Instruction& i) {
  RuleBuilder b(i);
  const Shape& in = i.operand(0)->shape();
  for (int64_t d = 0; d < i.shape().rank(); ++d) {
    const auto found = std::find(i.dimensions().begin(), i.dimensions().end(), d);
    const int64_t from = found == i.dimensions().end() ? kNoDim : found - i.dimensions().begin();
    const bool same = from != kNoDim && in.dim(from) == i.shape().dim(d);
    b.Add({same ? from : kNoDim}, {d}, i.shape().dim(d));
  }
  return b.Take();
}

Rule TransposeRule(const Instruction& i) {
  RuleBuilder b(i);
  for (int64_t d = 0; d < i.shape().rank(); ++d) b.Add({i.dimensions()[d]}, {d}, i.shape().dim(d));
  return b.Take();
}

// Common factors where the sizes of both sides agree so far; others where they diverge, until they meet again.
Rule ReshapeRule(const Instruction& i) {
  const Shape &in = i.operand(0)->shape(), &out = i.shape();
  if (in.num_elements() == 0) return {};
  RuleBuilder b(i);
  int64_t d = 0, e = 0, size_in = 1, size_out = 1, done_in = 1, done_out = 1;
  while (d < in.rank() || e < out.rank()) {
    if (d < in.rank() && in.dim(d) == 1) {
      b.Add({d++}, {kNoDim}, 1);
      continue;
    }
    if (e < out.rank() && out.dim(e) == 1) {
      b.Add({kNoDim}, {e++}, 1);
      continue;
    }
    if (d < in.rank() && size_in == done_in) size_in *= in.dim(d);
    if (e < out.rank() && size_out == done_out) size_out *= out.dim(e);
    const int64_t next_in = size_in / done_in, next_out = size_out / done_out, common = std::gcd(next_in, next_out);
    // A factor of the side that lies behind: one that brings both together, else what keeps the common part for later.
    auto alone = [common](int64_t next, int64_t behind, int64_t ahead) {
      if (ahead % behind == 0 && next % (ahead / behind) == 0) return ahead / behind;
      return next > common ? next / common : next;
    };
    if (done_in == done_out && common > 1) {
      b.Add({d}, {e}, common);
      done_in *= common;
      done_out *= common;
    } else if (done_in == done_out) {
      b.Add({d}, {kNoDim}, next_in);
      b.Add({kNoDim}, {e}, next_out);
      done_in *= next_in;
      done_out *= next_out;
    } else if (done_in < done_out) {
      const int64_t size = alone(next_in, done_in, done_out);
      b.Add({d}, {kNoDim}, size);
      done_in *= size;
    } else {
      const int64_t size = alone(next_out, done_out, done_in);
      b.Add({kNoDim}, {e}, size);
      done_out *= size;
    }
    if (d < in.rank() && size_in == done_in) ++d;
    if (e < out.rank() && size_out == done_out) ++e;
  }
  return b.Take();
}

Rule DotRule(const Instruction& i) {
  if (i.operand_count() != 2) return {};  // sparse operands
  const auto& a = i.attrs<DotAttrs>();
  const Shape &lhs = i.operand(0)->shape(), &rhs = i.operand(1)->shape();
  RuleBuilder b(i);
  int64_t out = 0;
  for (size_t k = 0; k < a.lhs_batch.size(); ++k)
    b.Add({a.lhs_batch[k], a.rhs_batch[k]}, {out++}, lhs.dim(a.lhs_batch[k]));
  for (int64_t d = 0; d < lhs.rank(); ++d)
    if (!Has(a.lhs_batch, d) && !Has(a.lhs_contracting, d)) b.Add({d, kNoDim}, {out++}, lhs.dim(d));
  for (int64_t d = 0; d < rhs.rank(); ++d)
    if (!Has(a.rhs_batch, d) && !Has(a.rhs_contracting, d)) b.Add({kNoDim, d}, {out++}, rhs.dim(d));
  for (size_t k = 0; k < a.lhs_contracting.size(); ++k)
    b.Add({a.lhs_contracting[k], a.rhs_contracting[k]}, {kNoDim}, lhs.dim(a.lhs_contracting[k]), FactorKind::Reduction);
  return b.Take();
}

bool IsTrivial(const WindowDim& w) {
  return w.size == 1 && w.stride == 1 && w.pad_low == 0 && w.pad_high == 0 && w.base_dilation == 1;
}

Rule ConvolutionRule(const Instruction& i) {
  if (i.operand_count() != 2) return {};
  const auto& a = i.attrs<ConvolutionAttrs>();
  const ConvDimLabels& l = a.dim_labels;
  const Shape &kernel = i.operand(1)->shape(), &out = i.shape();
  RuleBuilder b(i);
  if (a.batch_group_count > 1) b.Add({l.input_batch, l.kernel_output_feature}, {l.output_feature}, a.batch_group_count);
  if (a.feature_group_count > 1)
    b.Add({l.input_feature, l.kernel_output_feature}, {l.output_feature}, a.feature_group_count);
  b.Add({l.input_batch, kNoDim}, {l.output_batch}, out.dim(l.output_batch));
  b.Add({l.input_feature, l.kernel_input_feature}, {kNoDim}, kernel.dim(l.kernel_input_feature),
        a.feature_group_count > 1 ? FactorKind::NeedReplication : FactorKind::Reduction);
  for (size_t k = 0; k < l.input_spatial.size(); ++k) {
    const WindowDim& w = a.window.dims[k];
    const int64_t outputs = out.dim(l.output_spatial[k]);
    if (IsTrivial(w)) {
      b.Add({l.input_spatial[k], kNoDim}, {l.output_spatial[k]}, outputs);
    } else if (w.size > outputs) {  // the gradient of a kernel
      b.Add({l.input_spatial[k], l.kernel_spatial[k]}, {kNoDim}, w.size, FactorKind::Reduction);
    } else {
      b.Add({l.input_spatial[k], kNoDim}, {l.output_spatial[k]}, outputs, FactorKind::Permutation);
    }
  }
  const int64_t groups = a.feature_group_count * a.batch_group_count;
  if (const int64_t features = out.dim(l.output_feature) / groups; features > 1)
    b.Add({kNoDim, l.kernel_output_feature}, {l.output_feature}, features,
          groups > 1 ? FactorKind::NeedReplication : FactorKind::PassThrough);
  return b.Take();
}

// Dimensions of equal size go together, others are of the given kind.
Rule AlongEqualDims(const Instruction& i, const Shape& in, const Shape& out, FactorKind others, bool blocked,
                    bool (*untouched)(const Instruction&, int64_t)) {
  RuleBuilder b(i);
  for (int64_t d = 0; d < out.rank(); ++d) {
    if (in.dim(d) == out.dim(d) && untouched(i, d)) {
      b.AddEverywhere(d, out.rank(), out.dim(d));
    } else {
      b.AddEverywhere(d, out.rank(), std::min(in.dim(d), out.dim(d)), others, blocked);
    }
  }
  return b.Take();
}

Rule SliceRule(const Instruction& i) {
  return AlongEqualDims(i, i.operand(0)->shape(), i.shape(), FactorKind::Permutation, false,
                        [](const Instruction&, int64_t) { return true; });
}

Rule PadRule(const Instruction& i) {
  return AlongEqualDims(
      i, i.operand(0)->shape(), i.shape(), FactorKind::Permutation, false,
      [](const Instruction& pad, int64_t d) { return pad.attrs<PadAttrs>().padding[d] == PaddingDim{}; });
}

Rule DynamicSliceRule(const Instruction& i) {
  if (i.operand_count() != 1 + i.shape().rank()) return {};  // indices as one vector
  const Shape &in = i.operand(0)->shape(), &out = i.shape();
  RuleBuilder b(i);
  for (int64_t d = 0; d < out.rank(); ++d) {
    if (in.dim(d) == out.dim(d)) {
      b.Add({d}, {d}, out.dim(d));
    } else {  // each device gives what it has of the slice
      b.Add({d}, {kNoDim}, in.dim(d), FactorKind::Reduction, true);
    }
  }
  return b.Take();
}

Rule DynamicUpdateSliceRule(const Instruction& i) {
  const Shape &out = i.shape(), &update = i.operand(1)->shape();
  if (i.operand_count() != 2 + out.rank()) return {};
  RuleBuilder b(i);
  for (int64_t d = 0; d < out.rank(); ++d) {
    if (update.dim(d) == out.dim(d)) {
      b.Add({d, d}, {d}, out.dim(d));
    } else {
      b.Add({d, kNoDim}, {d}, out.dim(d), FactorKind::NeedReplication);
    }
  }
  return b.Take();
}

Rule ConcatenateRule(const Instruction& i) {
  RuleBuilder b(i);
  for (int64_t d = 0; d < i.shape().rank(); ++d)
    b.AddEverywhere(d, i.shape().rank(), i.shape().dim(d),
                    d == i.dimensions()[0] ? FactorKind::NeedReplication : FactorKind::PassThrough);
  return b.Take();
}

Rule ReverseRule(const Instruction& i) {
  RuleBuilder b(i);
  for (int64_t d = 0; d < i.shape().rank(); ++d)
    b.AddEverywhere(d, i.shape().rank(), i.shape().dim(d),
                    Has(i.dimensions(), d) ? FactorKind::Permutation : FactorKind::PassThrough);
  return b.Take();
}

Rule ReduceRule(const Instruction& i) {
  const int64_t inputs = i.operand_count() / 2;
  const Shape& in = i.operand(0)->shape();
  const FactorKind reduced = CombinerOf(i) == Op::kEnd ? FactorKind::NeedReplication : FactorKind::Reduction;
  RuleBuilder b(i);
  int64_t out = 0;
  for (int64_t d = 0; d < in.rank(); ++d) {
    const std::vector<int64_t> from(inputs, d);
    if (Has(i.dimensions(), d)) {
      b.Add(from, {}, in.dim(d), reduced);
    } else {
      b.Add(from, std::vector<int64_t>(inputs, out++), in.dim(d));
    }
  }
  return b.Take();
}

Rule WindowRule(const Instruction& i) {
  const std::vector<WindowDim>& window = i.attrs<WindowAttrs>().window.dims;
  const Shape leaf = i.shape().Leaves()[0];
  RuleBuilder b(i);
  for (int64_t d = 0; d < leaf.rank(); ++d)
    b.AddEverywhere(d, leaf.rank(), leaf.dim(d),
                    d < static_cast<int64_t>(window.size()) && !IsTrivial(window[d]) ? FactorKind::Permutation
                                                                                     : FactorKind::PassThrough);
  return b.Take();
}

Rule SortRule(const Instruction& i) {
  const Shape leaf = i.shape().Leaves()[0];
  const int64_t along = i.attrs<SortAttrs>().dimensions[0];
  RuleBuilder b(i);
  bool alone = true;
  for (int64_t d = 0; d < leaf.rank(); ++d) alone = alone && (d == along || leaf.dim(d) == 1);
  for (int64_t d = 0; d < leaf.rank(); ++d)
    b.AddEverywhere(d, leaf.rank(), leaf.dim(d), d == along ? FactorKind::NeedReplication : FactorKind::PassThrough,
                    d == along && alone);
  return b.Take();
}

// All dimensions but the last `inner` are a batch.
Rule BatchRule(const Instruction& i, int64_t inner) {
  const Shape leaf = i.shape().Leaves()[0];
  RuleBuilder b(i);
  for (int64_t d = 0; d + inner < leaf.rank(); ++d) b.AddEverywhere(d, leaf.rank(), leaf.dim(d));
  return b.Take();
}

Rule CholeskyRule(const Instruction& i) { return BatchRule(i, 2); }
Rule TriangularSolveRule(const Instruction& i) { return BatchRule(i, 2); }
Rule FftRule(const Instruction& i) { return BatchRule(i, static_cast<int64_t>(i.attrs<FftAttrs>().length.size())); }
Rule TopKRule(const Instruction& i) { return BatchRule(i, 1); }

Rule BitcastConvertRule(const Instruction& i) {
  const int64_t rank = std::min(i.shape().rank(), i.operand(0)->shape().rank());
  RuleBuilder b(i);
  for (int64_t d = 0; d < rank; ++d) b.Add({d}, {d}, i.shape().dim(d));
  return b.Take();
}

// What gather and scatter have in common: the big array, the indices, and the slices of it.
struct IndexedDims {
  const Shape &array, &indices, &slices;
  const Dims &offset_dims, &collapsed, &batching, &indices_batching;
  int64_t index_vector_dim;
};

template <class AddFactor>  // (dimension of the array, of the indices, of the slices, size, kind, blocked)
void IndexedFactors(const IndexedDims& d, bool scatter, FactorKind scattered, AddFactor add) {
  int64_t in = 0, batch = 0;
  for (int64_t s = 0; s < d.slices.rank(); ++s) {
    if (Has(d.offset_dims, s)) {
      while (Has(d.collapsed, in) || Has(d.batching, in)) ++in;
      if (in >= d.array.rank()) return;
      if (d.array.dim(in) == d.slices.dim(s)) add(in, kNoDim, s, d.slices.dim(s), FactorKind::PassThrough, false);
      ++in;
      continue;
    }
    const int64_t at = batch < d.index_vector_dim ? batch : batch + 1;
    const auto found = std::find(d.indices_batching.begin(), d.indices_batching.end(), at);
    const bool is_explicit = found != d.indices_batching.end();
    add(is_explicit ? d.batching[found - d.indices_batching.begin()] : kNoDim, at, s, d.slices.dim(s),
        scatter && !is_explicit ? scattered : FactorKind::PassThrough, false);
    ++batch;
  }
  for (int64_t collapsed : d.collapsed) {
    const int64_t size = d.array.dim(collapsed);
    const FactorKind gathered = size == 1 ? FactorKind::NeedReplication : FactorKind::Reduction;
    add(collapsed, kNoDim, kNoDim, size, scatter ? FactorKind::PassThrough : gathered, false);
  }
}

Rule GatherRule(const Instruction& i) {
  const auto& a = i.attrs<GatherAttrs>();
  RuleBuilder b(i);
  IndexedFactors({i.operand(0)->shape(), i.operand(1)->shape(), i.shape(), a.offset_dims, a.collapsed_slice_dims,
                  a.operand_batching_dims, a.start_indices_batching_dims, a.index_vector_dim},
                 false, FactorKind::PassThrough,
                 [&](int64_t array, int64_t indices, int64_t slices, int64_t size, FactorKind kind, bool blocked) {
                   b.Add({array, indices}, {slices}, size, kind, blocked);
                 });
  return b.Take();
}

Rule ScatterRule(const Instruction& i) {
  const auto& a = i.attrs<ScatterAttrs>();
  const int64_t arrays = (i.operand_count() - 1) / 2;
  const FactorKind scattered =
      arrays == 1 && CombinerOf(i) != Op::kEnd ? FactorKind::Reduction : FactorKind::NeedReplication;
  RuleBuilder b(i);
  IndexedFactors(
      {i.operand(0)->shape(), i.operand(arrays)->shape(), i.operand(arrays + 1)->shape(), a.update_window_dims,
       a.inserted_window_dims, a.input_batching_dims, a.scatter_indices_batching_dims, a.index_vector_dim},
      true, scattered,
      [&](int64_t array, int64_t indices, int64_t slices, int64_t size, FactorKind kind, bool blocked) {
        std::vector<int64_t> dims(arrays, array);
        dims.push_back(indices);
        dims.insert(dims.end(), arrays, slices);
        b.Add(dims, std::vector<int64_t>(arrays, array), size, kind, blocked);
      });
  return b.Take();
}

Rule MapRule(const Instruction& i) { return Pointwise(i); }

// The state is needed whole, and the bits are those of one device.
Rule RngBitGeneratorRule(const Instruction& i) {
  const std::vector<Shape> leaves = i.shape().Leaves();
  RuleBuilder b(i);
  const Shape& bits = leaves.back();
  for (int64_t d = 0; d < bits.rank(); ++d) {
    std::vector<int64_t> results(leaves.size(), kNoDim);
    results.back() = d;
    b.Add({}, results, bits.dim(d), FactorKind::NeedReplication);
  }
  return b.Take();
}

using RuleFn = Rule (*)(const Instruction&);

constexpr OpColumn<RuleFn> kRules(&Pointwise, {
                                                  {Op::Constant, &NoRule},
                                                  {Op::Iota, &NoRule},
                                                  {Op::Parameter, &NoRule},
                                                  {Op::PartitionId, &NoRule},
                                                  {Op::ReplicaId, &NoRule},
                                                  {Op::Bitcast, &NoRule},
                                                  {Op::BitcastConvert, &BitcastConvertRule},
                                                  {Op::Broadcast, &BroadcastRule},
                                                  {Op::Concatenate, &ConcatenateRule},
                                                  {Op::Copy, &Pointwise},
                                                  {Op::CopyDone, &NoRule},
                                                  {Op::CopyStart, &NoRule},
                                                  {Op::DynamicReshape, &NoRule},
                                                  {Op::DynamicSlice, &DynamicSliceRule},
                                                  {Op::DynamicUpdateSlice, &DynamicUpdateSliceRule},
                                                  {Op::Gather, &GatherRule},
                                                  {Op::Pad, &PadRule},
                                                  {Op::Reshape, &ReshapeRule},
                                                  {Op::Reverse, &ReverseRule},
                                                  {Op::Scatter, &ScatterRule},
                                                  {Op::Shuffle, &NoRule},
                                                  {Op::Slice, &SliceRule},
                                                  {Op::Transpose, &TransposeRule},
                                                  {Op::GetDimensionSize, &NoRule},
                                                  {Op::SetDimensionSize, &NoRule},
                                                  {Op::Convolution, &ConvolutionRule},
                                                  {Op::Dot, &DotRule},
                                                  {Op::RaggedDot, &NoRule},
                                                  {Op::ScaledDot, &NoRule},
                                                  {Op::Reduce, &ReduceRule},
                                                  {Op::ReduceWindow, &WindowRule},
                                                  {Op::Scan, &NoRule},
                                                  {Op::SelectAndScatter, &WindowRule},
                                                  {Op::Map, &MapRule},
                                                  {Op::Sort, &SortRule},
                                                  {Op::TopK, &TopKRule},
                                                  {Op::BatchNormGrad, &NoRule},
                                                  {Op::BatchNormInference, &NoRule},
                                                  {Op::BatchNormTraining, &NoRule},
                                                  {Op::Cholesky, &CholeskyRule},
                                                  {Op::Fft, &FftRule},
                                                  {Op::TriangularSolve, &TriangularSolveRule},
                                                  {Op::Rng, &NoRule},
                                                  {Op::RngBitGenerator, &RngBitGeneratorRule},
                                                  {Op::RngGetAndUpdateState, &NoRule},
                                                  {Op::AddDependency, &NoRule},
                                                  {Op::AfterAll, &NoRule},
                                                  {Op::Domain, &NoRule},
                                                  {Op::GetTupleElement, &NoRule},
                                                  {Op::OptimizationBarrier, &NoRule},
                                                  {Op::Tuple, &NoRule},
                                                  {Op::AsyncDone, &NoRule},
                                                  {Op::AsyncStart, &NoRule},
                                                  {Op::AsyncUpdate, &NoRule},
                                                  {Op::Call, &NoRule},
                                                  {Op::Conditional, &NoRule},
                                                  {Op::CustomCall, &NoRule},
                                                  {Op::Fusion, &NoRule},
                                                  {Op::While, &NoRule},
                                                  {Op::AllGather, &CollectiveRule},
                                                  {Op::AllGatherDone, &NoRule},
                                                  {Op::AllGatherStart, &NoRule},
                                                  {Op::AllReduce, &CollectiveRule},
                                                  {Op::AllReduceDone, &NoRule},
                                                  {Op::AllReduceStart, &NoRule},
                                                  {Op::AllToAll, &CollectiveRule},
                                                  {Op::CollectiveBroadcast, &CollectiveRule},
                                                  {Op::CollectivePermute, &CollectiveRule},
                                                  {Op::CollectivePermuteDone, &NoRule},
                                                  {Op::CollectivePermuteStart, &NoRule},
                                                  {Op::CollectiveReduce, &NoRule},
                                                  {Op::RaggedAllToAll, &NoRule},
                                                  {Op::ReduceScatter, &CollectiveRule},
                                                  {Op::Infeed, &NoRule},
                                                  {Op::Outfeed, &NoRule},
                                                  {Op::Recv, &NoRule},
                                                  {Op::RecvDone, &NoRule},
                                                  {Op::Send, &NoRule},
                                                  {Op::SendDone, &NoRule},
                                              });
STROP_COMPLETE(kRules);

bool IsStatic(const Shape& shape) {
  if (shape.IsTuple()) return std::all_of(shape.elements().begin(), shape.elements().end(), IsStatic);
  return !shape.IsArray() || shape.IsStatic();
}

}  // namespace

Rule RuleOf(const Instruction& i) {
  if (!IsStatic(i.shape())) return {};
  for (int64_t k = 0; k < i.operand_count(); ++k)
    if (!IsStatic(i.operand(k)->shape()) || i.operand(k)->shape().IsTuple()) return {};
  return kRules[i.op()](i);
}

Rule IdentityRule(const Shape& shape, int64_t operands) {
  Rule rule;
  TensorFactors dims(shape.rank());
  for (int64_t d = 0; d < shape.rank(); ++d) {
    rule.factors.push_back({shape.dim(d)});
    dims[d].push_back(static_cast<int16_t>(d));
  }
  rule.operands.assign(operands, dims);
  rule.results = {std::move(dims)};
  return rule;
}

Op CombinerOf(const Instruction& reduction) {
  if (!reduction.shape().IsArray()) return Op::kEnd;
  const LaneCombiner combiner = RecognizeCombiner(*reduction.to_apply());
  switch (combiner.op) {
    case Op::Add:
    case Op::Multiply:
    case Op::Minimum:
    case Op::Maximum:
    case Op::And:
    case Op::Or: return combiner.op;
    default: return Op::kEnd;
  }
}

}  // namespace strop::spmd
