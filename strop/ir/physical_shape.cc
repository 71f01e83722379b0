#include "strop/ir/physical_shape.h"

namespace strop {
namespace {
constexpr const char* kMark = "strop.physical_entry";
}

Dims MajorToMinor(const Shape& shape) {
  const Layout layout = shape.layout_or_default();
  return Dims(std::make_reverse_iterator(layout.minor_to_major.end()),
              std::make_reverse_iterator(layout.minor_to_major.begin()));
}

Shape PhysicalShape(const Shape& shape) {
  if (shape.IsTuple()) {
    std::vector<Shape> elements;
    for (const Shape& e : shape.elements()) elements.push_back(PhysicalShape(e));
    return Shape::Tuple(std::move(elements));
  }
  if (!shape.IsArray()) return shape;
  const Dims order = MajorToMinor(shape);
  Int64Vector dims;
  for (int64_t d : order) dims.push_back(shape.dim(d));
  Shape physical = Shape::Array(shape.type(), std::move(dims));
  for (size_t k = 0; k < order.size(); ++k) physical.set_dynamic(static_cast<int64_t>(k), shape.is_dynamic(order[k]));
  return physical;
}

Dims InversePermutation(const Dims& permutation) {
  Dims inverse(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i) inverse[permutation[i]] = static_cast<int64_t>(i);
  return inverse;
}

bool IsIdentityPermutation(const Dims& permutation) {
  for (size_t i = 0; i < permutation.size(); ++i)
    if (permutation[i] != static_cast<int64_t>(i)) return false;
  return true;
}

bool HasPhysicalEntry(const Module& module) { return module.config().frontend_attributes.count(kMark) > 0; }
void MarkPhysicalEntry(Module& module) { module.config().frontend_attributes[kMark] = "true"; }

}  // namespace strop
