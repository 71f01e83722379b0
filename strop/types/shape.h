// Shape: element type, dimensions and (optionally) the physical layout of an array, or a tuple of shapes.
//
// HLO text:  f32[2,<=3]{1,0}   dimensions in [], physical layout in {} (minor to major)
//            (f32[], token[])  tuple
//            b(f32[4])         array that is handed over in place: a buffer with an identity (custom calls "Pin",
//            "Unpin")
// A Shape is an immutable-by-habit value; it compares by value. Element counts and byte sizes saturate instead of
// overflowing, and Validate() refuses shapes whose size does not fit.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "strop/base/small_vector.h"
#include "strop/base/status.h"
#include "strop/types/element_type.h"

namespace strop {

class Cursor;

// Dimension size `?` (unbounded dynamic).
inline constexpr int64_t kUnboundedSize = INT64_MIN;

// One tile of a tiled layout, T(8,128); kCombineDimension prints as `*`.
struct Tile {
  static constexpr int64_t kCombineDimension = INT64_MIN;
  std::vector<int64_t> dims;
  bool operator==(const Tile&) const = default;
};

struct SplitConfig {  // SC(dim:index,...)
  int64_t dimension = 0;
  std::vector<int64_t> split_indices;
  bool operator==(const SplitConfig&) const = default;
};

// What accelerators add to a layout; CPU layouts carry none of it.
struct LayoutExtra {
  std::string dim_level_types;  // text inside D(...), kept verbatim
  std::vector<Tile> tiles;
  int64_t element_size_in_bits = 0;                           // E(4)
  int64_t tail_padding_alignment = 1;                         // L(n)
  ElementType index_primitive_type = ElementType::Invalid;    // #(u32)
  ElementType pointer_primitive_type = ElementType::Invalid;  // *(u32)
  int64_t memory_space = 0;                                   // S(5)
  std::vector<SplitConfig> split_configs;                     // SC(...)
  int64_t dynamic_shape_metadata_prefix_bytes = 0;            // M(n)
  std::string physical_shape;                                 // text inside P(...), kept verbatim
  bool operator==(const LayoutExtra&) const = default;
};

// A permutation of the dimensions, fastest-varying first.
struct Layout {
  Int64Vector minor_to_major;
  std::shared_ptr<const LayoutExtra> extra;  // null for all-default

  static Layout RowMajor(int64_t rank);
  bool IsRowMajor() const;
  const LayoutExtra& extras() const;
  bool operator==(const Layout& other) const;
  std::string ToString() const;  // "{1,0:T(8,128)}"
};

class Shape {
 public:
  Shape() = default;  // invalid
  static Shape Array(ElementType type, Int64Vector dims) { return Shape(type, std::move(dims)); }
  static Shape Array(ElementType type, Int64Vector dims, Layout layout);
  static Shape Scalar(ElementType type) { return Shape(type, {}); }
  static Shape Tuple(std::vector<Shape> elements);
  static Shape Token() { return Shape(ElementType::Token, {}); }
  static Shape Opaque() { return Shape(ElementType::Opaque, {}); }

  ElementType type() const { return type_; }
  bool IsArray() const { return IsArrayType(type_); }
  bool IsTuple() const { return type_ == ElementType::Tuple; }
  bool IsToken() const { return type_ == ElementType::Token; }
  bool IsOpaque() const { return type_ == ElementType::Opaque; }
  bool IsScalar() const { return IsArray() && dims_.empty(); }
  bool IsBuffer() const { return is_buffer_; }  // an array all the same
  void set_buffer(bool is_buffer) { is_buffer_ = is_buffer; }

  // ---- arrays
  int64_t rank() const { return static_cast<int64_t>(dims_.size()); }
  const Int64Vector& dims() const { return dims_; }
  int64_t dim(int64_t i) const { return dims_[i]; }
  void set_dim(int64_t i, int64_t size) { dims_[i] = size; }
  void set_type(ElementType type) { type_ = type; }
  // Size of a bounded dynamic dimension (<=n) is its bound.
  bool is_dynamic(int64_t i) const { return i < 64 && (dynamic_ >> i) & 1; }
  void set_dynamic(int64_t i, bool dynamic);
  bool is_unbounded(int64_t i) const { return dims_[i] == kUnboundedSize; }
  bool IsStatic() const;  // recursively, through tuples

  bool has_layout() const { return has_layout_; }
  const Layout& layout() const { return layout_; }  // meaningful if has_layout()
  void set_layout(Layout layout);
  void clear_layout();
  // The layout, or row-major where none is given.
  Layout layout_or_default() const;
  // Sets row-major layouts wherever an array has none.
  Shape WithDefaultLayout() const;
  Shape WithoutLayout() const;
  Shape WithType(ElementType type) const;
  Shape WithDims(Int64Vector dims) const { return Array(type_, std::move(dims)); }
  // Distance in elements between neighbours along each dimension, for a dense buffer in this shape's layout.
  Int64Vector Strides() const;

  // Number of elements (bounds for dynamic dimensions); saturates at INT64_MAX. Arrays only.
  int64_t num_elements() const;
  // Bytes of a dense buffer, one byte at least per element (sub-byte types unpacked); sum over tuples; saturates.
  int64_t byte_size() const;

  // ---- tuples
  const std::vector<Shape>& elements() const { return elements_; }
  std::vector<Shape>& mutable_elements() { return elements_; }
  const Shape& element(int64_t i) const { return elements_[i]; }
  int64_t tuple_size() const { return static_cast<int64_t>(elements_.size()); }
  // The arrays and tokens of a tuple tree, depth first; an array is its own only leaf.
  std::vector<Shape> Leaves() const;
  int64_t num_leaves() const;

  // Same type, dimensions and dynamic marks, whatever the layouts.
  bool Compatible(const Shape& other) const;
  // Same dimensions, whatever the element types and layouts.
  bool SameDims(const Shape& other) const { return dims_ == other.dims_; }
  bool CompatibleIgnoringType(const Shape& other) const;
  bool operator==(const Shape& other) const;  // layouts included (none == none)

  // InvalidArgument if a size is negative, the layout is no permutation, or the byte size overflows int64.
  Status Validate() const;
  std::string ToString(bool with_layout = false) const;
  // XLA's form with layouts: "f32[2,3]{1,0}"; arrays without a layout print without braces.
  std::string ToStringWithLayout() const { return ToString(true); }

 private:
  Shape(ElementType type, Int64Vector dims) : type_(type), dims_(std::move(dims)) {}

  ElementType type_ = ElementType::Invalid;
  bool has_layout_ = false;
  bool is_buffer_ = false;
  uint64_t dynamic_ = 0;  // one bit per dimension; the rank is limited to 64 by Validate()
  Int64Vector dims_;
  Layout layout_;
  std::vector<Shape> elements_;
};

// a * b, or INT64_MAX when it overflows; a, b >= 0.
int64_t SaturatingMultiply(int64_t a, int64_t b);
int64_t SaturatingAdd(int64_t a, int64_t b);

// Parses "f32[2,<=3]{1,0}", "(f32[], token[])", "f32[?]", "b(f32[4])". Errors give line and column.
Result<Shape> ParseShape(std::string_view text);
// Parses one shape at the cursor (base/cursor.h).
Result<Shape> ParseShape(Cursor& at);
// "{1,0:T(8,128)S(5)}" at the cursor.
Result<Layout> ParseLayout(Cursor& at);
// Parses one shape at the front of `text` and removes it (for the HLO parser).
Result<Shape> ConsumeShape(std::string_view& text);

}  // namespace strop
