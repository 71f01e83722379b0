#include "strop/ir/hash.h"

#include <bit>
#include <string_view>

namespace strop {
namespace {

// One overload per attribute type. What is left out (text of rarely used fields) only makes hashes collide.
uint64_t H(int64_t v) { return static_cast<uint64_t>(v); }
uint64_t H(bool v) { return v; }
uint64_t H(float v) { return std::bit_cast<uint32_t>(v); }
uint64_t H(const std::string& v) { return std::hash<std::string_view>{}(v); }
template <class E>
  requires std::is_enum_v<E>
uint64_t H(E v) {
  return static_cast<uint64_t>(v);
}
uint64_t H(const std::pair<int64_t, int64_t>& v) { return HashCombine(H(v.first), H(v.second)); }
uint64_t H(const WindowDim& d) {
  uint64_t h = HashCombine(H(d.size), H(d.stride));
  for (int64_t v : {d.pad_low, d.pad_high, d.base_dilation, d.window_dilation}) h = HashCombine(h, H(v));
  return HashCombine(h, d.reversal);
}
uint64_t H(const PaddingDim& d) { return HashCombine(HashCombine(H(d.low), H(d.high)), H(d.interior)); }
uint64_t H(const SliceDim& d) { return HashCombine(HashCombine(H(d.start), H(d.limit)), H(d.stride)); }
uint64_t H(const Shape& v) { return HashShape(v); }
uint64_t H(const Literal& v) { return v.Hash(); }
uint64_t H(const Verbatim& v) { return H(v.text); }
uint64_t H(const OutputOperandAlias& v) { return HashCombine(H(v.operand), v.output_index.size()); }
uint64_t H(const ReplicaGroups& v) { return HashCombine(v.lists.size(), H(v.num_groups)); }
uint64_t H(const ResultAccuracy& v) { return HashCombine(H(v.mode), H(v.ulps)); }
template <class T>
uint64_t H(const std::vector<T>& values);
uint64_t H(const std::vector<bool>& values) {
  uint64_t h = values.size();
  for (bool v : values) h = HashCombine(h, v);
  return h;
}
uint64_t H(const Window& v) { return H(v.dims); }
uint64_t H(const ConvDimLabels& v) {
  uint64_t h = HashCombine(H(v.input_batch), H(v.kernel_input_feature));
  return HashCombine(HashCombine(h, H(v.input_spatial)), H(v.kernel_spatial));
}
template <class T>
uint64_t H(const std::vector<T>& values) {
  uint64_t h = values.size();
  for (const T& v : values) h = HashCombine(h, H(v));
  return h;
}

}  // namespace

uint64_t HashAttrs(const Attrs& attrs) {
  return attrs.Visit([&]<class A>(const A& a) {
    uint64_t h = static_cast<uint64_t>(attrs.kind());
    if constexpr (std::is_same_v<A, ConstantAttrs>) h = HashCombine(h, H(a.literal));
    if constexpr (std::is_same_v<A, ParameterAttrs>) h = HashCombine(h, H(a.number));
    std::apply([&](const auto&... field) { ((h = HashCombine(h, H(a.*(field.member)))), ...); }, A::fields());
    return h;
  });
}

uint64_t HashShape(const Shape& shape) {
  uint64_t h = 0;
  std::vector<const Shape*> pending = {&shape};
  while (!pending.empty()) {
    const Shape* at = pending.back();
    pending.pop_back();
    h = HashCombine(h, static_cast<uint64_t>(at->type()));
    if (at->IsArray())
      for (int64_t i = 0; i < at->rank(); ++i)
        h = HashCombine(h, static_cast<uint64_t>(at->dim(i)) * 2 + at->is_dynamic(i));
    h = HashCombine(h, at->elements().size());
    for (const Shape& e : at->elements()) pending.push_back(&e);
  }
  return h;
}

}  // namespace strop
