#include "strop/runtime/lapack/site.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace strop::lapack {
namespace {

constexpr int64_t kMaxInt = std::numeric_limits<Int>::max();

}  // namespace

Status Site::Error(std::string_view what) const { return InvalidArgument(site_.target, ": ", what); }

Status Site::Arity(size_t operands, size_t results) const {
  if (site_.operands.size() == operands && site_.results.size() == results) return OkStatus();
  return Error(StrCat("takes ", operands, " operands and gives ", results, " results, not ", site_.operands.size(),
                      " and ", site_.results.size()));
}

Status Site::Tail(size_t k, ElementType type, int64_t count, Int* sizes) const {
  const Shape& shape = site_.operands[k];
  if (!shape.IsArray() || shape.type() != type || shape.rank() < count)
    return Error(
        StrCat("operand ", k, " is ", shape, ", not an array of ", Name(type), " with ", count, " dimensions or more"));
  for (int64_t d = 0; d < count; ++d) {
    const int64_t size = shape.dim(shape.rank() - count + d);
    if (size < 0 || size > kMaxInt)
      return Unimplemented(site_.target, ": operand ", k, " is ", shape, ", more than LAPACK's 32-bit integers count");
    sizes[d] = static_cast<Int>(size);
  }
  return OkStatus();
}

Status Site::Matrices(size_t k, ElementType type, Int* rows, Int* columns) {
  Int sizes[2];
  STROP_TRY(Tail(k, type, 2, sizes));
  *rows = sizes[0];
  *columns = sizes[1];
  const Shape& shape = site_.operands[k];
  batch_dims_.clear();
  batch_ = 1;
  for (int64_t d = 0; d + 2 < shape.rank(); ++d) {
    batch_dims_.push_back(shape.dim(d));
    batch_ *= shape.dim(d);
  }
  return OkStatus();
}

Status Site::SquareMatrices(size_t k, ElementType type, Int* n) {
  Int columns;
  STROP_TRY(Matrices(k, type, n, &columns));
  if (*n == columns) return OkStatus();
  return Error(StrCat("operand ", k, " is ", site_.operands[k], ", which is not square"));
}

Status Site::Check(const Shape& shape, std::string_view which, size_t k, ElementType type,
                   std::initializer_list<int64_t> dims) const {
  Int64Vector expected = batch_dims_;
  for (int64_t dim : dims) expected.push_back(dim);
  if (shape.IsArray() && shape.type() == type && shape.dims() == expected) return OkStatus();
  return Error(StrCat(which, " ", k, " is ", shape, ", not ", Shape::Array(type, expected)));
}

Status Site::Operand(size_t k, ElementType type, std::initializer_list<int64_t> dims) const {
  return Check(site_.operands[k], "operand", k, type, dims);
}
Status Site::Output(size_t k, ElementType type, std::initializer_list<int64_t> dims) const {
  return Check(site_.results[k], "result", k, type, dims);
}

Status Site::Vector(size_t k, ElementType type, Int* length) const {
  STROP_TRY(Tail(k, type, 1, length));
  return Operand(k, type, {*length});
}

Status Site::Matrix(size_t k, ElementType type, Int* rows, Int* columns) const {
  Int sizes[2];
  STROP_TRY(Tail(k, type, 2, sizes));
  *rows = sizes[0];
  *columns = sizes[1];
  return Operand(k, type, {sizes[0], sizes[1]});
}

// Frameworks write letters as ui8, numbers as i32 and flags as booleans; any integer is taken for any of them.
Status Site::Integer(std::string_view name, int64_t* value) const {
  for (int64_t i = 0; i < attributes_.size; ++i) {
    if (std::string_view(attributes_.names[i]->ptr, attributes_.names[i]->len) != name) continue;
    if (attributes_.types[i] != XLA_FFI_AttrType_SCALAR) return Error(StrCat("attribute ", name, " is no number"));
    const auto* scalar = static_cast<const XLA_FFI_Scalar*>(attributes_.attrs[i]);
    auto read = [&](auto typed) {
      std::memcpy(&typed, scalar->value, sizeof typed);
      *value = static_cast<int64_t>(typed);
      return OkStatus();
    };
    switch (static_cast<ElementType>(scalar->dtype)) {
      case ElementType::Pred:
      case ElementType::U8: return read(uint8_t{});
      case ElementType::S8: return read(int8_t{});
      case ElementType::S16: return read(int16_t{});
      case ElementType::U16: return read(uint16_t{});
      case ElementType::S32: return read(int32_t{});
      case ElementType::U32: return read(uint32_t{});
      case ElementType::S64: return read(int64_t{});
      default: return Error(StrCat("attribute ", name, " is no integer"));
    }
  }
  return Error(StrCat("attribute ", name, " is missing"));
}

Status Site::Letter(std::string_view name, std::string_view allowed, char* letter) const {
  int64_t code = 0;
  STROP_TRY(Integer(name, &code));
  for (char c : allowed)
    if (code == c) {
      *letter = c;
      return OkStatus();
    }
  return Error(StrCat("attribute ", name, " is ", code, ", not one of the letters ", allowed));
}

Status Site::Number(std::string_view name, int64_t low, int64_t high, Int* number) const {
  int64_t value = 0;
  STROP_TRY(Integer(name, &value));
  if (value < low || value > high)
    return Error(StrCat("attribute ", name, " is ", value, ", not in [", low, ", ", high, "]"));
  *number = static_cast<Int>(value);
  return OkStatus();
}

Status Site::Flag(std::string_view name, bool* flag) const {
  Int number = 0;
  STROP_TRY(Number(name, 0, 1, &number));
  *flag = number != 0;
  return OkStatus();
}

Status Site::Fits(double elements) const {
  if (elements <= static_cast<double>(kMaxInt)) return OkStatus();
  return Unimplemented(site_.target, ": ", site_.operands[0],
                       " needs a workspace beyond what LAPACK's 32-bit integers count");
}

Status Site::CheckWorkSize(double answer, bool rounded, Int info, Int* size) const {
  if (info != 0 || !(answer >= 0))
    return Internal(site_.target, ": the workspace query of ", library_->path(), " answers info ", info, ", size ",
                    answer);
  // A float holds the number to 24 bits, and older libraries round it down.
  if (rounded && answer > 1 << 24) answer *= 1 + 1.0 / (1 << 23);
  STROP_TRY(Fits(answer));
  *size = std::max<Int>(1, static_cast<Int>(std::ceil(answer)));
  return OkStatus();
}

}  // namespace strop::lapack
