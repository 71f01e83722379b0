#include "strop/types/shape.h"

#include <algorithm>
#include <numeric>

namespace strop {

int64_t SaturatingMultiply(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}
int64_t SaturatingAdd(int64_t a, int64_t b) {
  int64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

// ---- Layout ---------------------------------------------------------------------------------------------------------

Layout Layout::RowMajor(int64_t rank) {
  Layout layout;
  for (int64_t i = rank - 1; i >= 0; --i) layout.minor_to_major.push_back(i);
  return layout;
}

bool Layout::IsRowMajor() const {
  int64_t rank = static_cast<int64_t>(minor_to_major.size());
  for (int64_t i = 0; i < rank; ++i)
    if (minor_to_major[i] != rank - 1 - i) return false;
  return true;
}

const LayoutExtra& Layout::extras() const {
  static const LayoutExtra kNone;
  return extra ? *extra : kNone;
}

bool Layout::operator==(const Layout& other) const {
  return minor_to_major == other.minor_to_major && extras() == other.extras();
}

std::string Layout::ToString() const {
  std::string out = StrCat("{", Join(minor_to_major, ","));
  const LayoutExtra& e = extras();
  if (e == LayoutExtra()) return out + "}";
  out += ':';
  if (!e.dim_level_types.empty()) StrAppend(out, "D(", e.dim_level_types, ")");
  if (!e.tiles.empty()) {
    out += 'T';
    for (const Tile& tile : e.tiles) {
      out += '(';
      for (size_t i = 0; i < tile.dims.size(); ++i) {
        if (i) out += ',';
        if (tile.dims[i] == Tile::kCombineDimension)
          out += '*';
        else
          StrAppend(out, tile.dims[i]);
      }
      out += ')';
    }
  }
  if (e.tail_padding_alignment != 1) StrAppend(out, "L(", e.tail_padding_alignment, ")");
  if (e.index_primitive_type != ElementType::Invalid) StrAppend(out, "#(", Name(e.index_primitive_type), ")");
  if (e.pointer_primitive_type != ElementType::Invalid) StrAppend(out, "*(", Name(e.pointer_primitive_type), ")");
  if (e.element_size_in_bits != 0) StrAppend(out, "E(", e.element_size_in_bits, ")");
  if (e.memory_space != 0) StrAppend(out, "S(", e.memory_space, ")");
  if (!e.split_configs.empty()) {
    out += "SC";
    for (const SplitConfig& c : e.split_configs) StrAppend(out, "(", c.dimension, ":", Join(c.split_indices, ","), ")");
  }
  if (!e.physical_shape.empty()) StrAppend(out, "P(", e.physical_shape, ")");
  if (e.dynamic_shape_metadata_prefix_bytes != 0) StrAppend(out, "M(", e.dynamic_shape_metadata_prefix_bytes, ")");
  return out + "}";
}

// ---- Shape ----------------------------------------------------------------------------------------------------------

Shape Shape::Array(ElementType type, Int64Vector dims, Layout layout) {
  Shape shape(type, std::move(dims));
  shape.set_layout(std::move(layout));
  return shape;
}

Shape Shape::Tuple(std::vector<Shape> elements) {
  Shape shape(ElementType::Tuple, {});
  shape.elements_ = std::move(elements);
  return shape;
}

void Shape::set_dynamic(int64_t i, bool dynamic) {
  if (i >= 64) return;  // Validate() refuses such ranks
  if (dynamic)
    dynamic_ |= uint64_t{1} << i;
  else
    dynamic_ &= ~(uint64_t{1} << i);
}

bool Shape::IsStatic() const {
  if (dynamic_ != 0 || std::find(dims_.begin(), dims_.end(), kUnboundedSize) != dims_.end()) return false;
  return std::all_of(elements_.begin(), elements_.end(), [](const Shape& s) { return s.IsStatic(); });
}

void Shape::set_layout(Layout layout) {
  layout_ = std::move(layout);
  has_layout_ = true;
}

void Shape::clear_layout() {
  layout_ = Layout();
  has_layout_ = false;
}

Layout Shape::layout_or_default() const { return has_layout_ ? layout_ : Layout::RowMajor(rank()); }

Shape Shape::WithDefaultLayout() const {
  Shape out = *this;
  if (out.IsArray() && !out.has_layout_) out.set_layout(Layout::RowMajor(out.rank()));
  for (Shape& e : out.elements_) e = e.WithDefaultLayout();
  return out;
}

Shape Shape::WithoutLayout() const {
  Shape out = *this;
  out.clear_layout();
  for (Shape& e : out.elements_) e = e.WithoutLayout();
  return out;
}

Shape Shape::WithType(ElementType type) const {
  Shape out = *this;
  out.type_ = type;
  return out;
}

Int64Vector Shape::Strides() const {
  Int64Vector strides(dims_.size(), 0);
  int64_t stride = 1;
  for (int64_t d : layout_or_default().minor_to_major) {
    strides[d] = stride;
    stride = SaturatingMultiply(stride, std::max<int64_t>(dims_[d], 1));
  }
  return strides;
}

int64_t Shape::num_elements() const {
  int64_t n = 1;
  bool zero = false;
  for (int64_t d : dims_) {
    if (d <= 0)
      zero = true;  // unbounded counts as nothing known
    else
      n = SaturatingMultiply(n, d);
  }
  return zero ? 0 : n;
}

int64_t Shape::byte_size() const {
  if (IsArray()) return SaturatingMultiply(num_elements(), Bytes(type_));
  int64_t n = 0;
  for (const Shape& e : elements_) n = SaturatingAdd(n, e.byte_size());
  return n;
}

std::vector<Shape> Shape::Leaves() const {
  if (!IsTuple()) return {*this};
  std::vector<Shape> leaves;
  for (const Shape& e : elements_) {
    std::vector<Shape> inner = e.Leaves();
    leaves.insert(leaves.end(), inner.begin(), inner.end());
  }
  return leaves;
}

int64_t Shape::num_leaves() const {
  if (!IsTuple()) return 1;
  int64_t n = 0;
  for (const Shape& e : elements_) n += e.num_leaves();
  return n;
}

bool Shape::Compatible(const Shape& other) const { return type_ == other.type_ && CompatibleIgnoringType(other); }

bool Shape::CompatibleIgnoringType(const Shape& other) const {
  if (IsTuple() != other.IsTuple() || dims_ != other.dims_ || dynamic_ != other.dynamic_) return false;
  return std::equal(elements_.begin(), elements_.end(), other.elements_.begin(), other.elements_.end(),
                    [&](const Shape& a, const Shape& b) { return a.CompatibleIgnoringType(b) && a.type_ == b.type_; });
}

bool Shape::operator==(const Shape& other) const {
  return type_ == other.type_ && dims_ == other.dims_ && dynamic_ == other.dynamic_ &&
         has_layout_ == other.has_layout_ && is_buffer_ == other.is_buffer_ && layout_ == other.layout_ &&
         elements_ == other.elements_;
}

Status Shape::Validate() const {
  if (type_ == ElementType::Invalid) return InvalidArgument("shape has no element type");
  if (IsTuple()) {
    for (const Shape& e : elements_) STROP_TRY(e.Validate());
    return OkStatus();
  }
  if (!IsArray()) return OkStatus();
  if (rank() > 64) return InvalidArgument("shape has rank ", rank(), "; at most 64 dimensions are supported");
  int64_t bytes = Bytes(type_);
  for (int64_t i = 0; i < rank(); ++i) {
    int64_t d = dims_[i];
    if (d == kUnboundedSize) continue;
    if (d < 0) return InvalidArgument("dimension ", i, " of ", ToString(), " is negative");
    if (d > 0) bytes = SaturatingMultiply(bytes, d);
  }
  if (bytes == INT64_MAX) return InvalidArgument("size of ", ToString(), " in bytes does not fit in 64 bits");
  if (has_layout_) {
    uint64_t seen = 0;
    for (int64_t d : layout_.minor_to_major)
      if (d >= 0 && d < rank()) seen |= uint64_t{1} << d;
    const uint64_t all = rank() == 64 ? ~uint64_t{0} : (uint64_t{1} << rank()) - 1;
    if (static_cast<int64_t>(layout_.minor_to_major.size()) != rank() || seen != all)
      return InvalidArgument("layout ", layout_.ToString(), " is no permutation of the ", rank(), " dimensions of ",
                             ToString());
  }
  return OkStatus();
}

std::string Shape::ToString(bool with_layout) const {
  if (IsTuple()) {
    std::string out = "(";
    for (size_t i = 0; i < elements_.size(); ++i) {
      if (i) out += ", ";
      // XLA comments every fifth element with its index, to make long tuples readable.
      if (i != 0 && i % 5 == 0) StrAppend(out, "/*index=", i, "*/");
      out += elements_[i].ToString(with_layout);
    }
    return out + ")";
  }
  std::string out = StrCat(Name(type_), "[");
  for (int64_t i = 0; i < rank(); ++i) {
    if (i) out += ',';
    if (is_unbounded(i)) {
      out += '?';
    } else {
      if (is_dynamic(i)) out += "<=";
      StrAppend(out, dims_[i]);
    }
  }
  out += ']';
  // A scalar's empty layout {} is not printed by XLA unless it carries extras.
  if (with_layout && has_layout_ && (rank() > 0 || layout_.extra)) out += layout_.ToString();
  return is_buffer_ ? StrCat("b(", out, ")") : out;
}

}  // namespace strop
