#include "strop/ir/attrs.h"

#include <variant>

namespace strop {

template <AttrsStruct S>
Attrs::Attrs(S value)
    : kind_(AttrsKindOf<S>::kind),
      value_(std::is_same_v<S, NoAttrs> ? None() : std::make_shared<S>(std::move(value))) {}

#define STROP_INSTANTIATE(S) template Attrs::Attrs(S);
STROP_ATTRS_STRUCTS(STROP_INSTANTIATE)
#undef STROP_INSTANTIATE

void Attrs::WrongKind() { throw std::bad_variant_access(); }

const std::shared_ptr<void>& Attrs::None() {
  static const auto* const kNone = new std::shared_ptr<void>(std::make_shared<NoAttrs>());
  return *kNone;
}

void Attrs::Unshare() {
  if (value_.use_count() == 1 || is<NoAttrs>()) return;
  value_ =
      std::as_const(*this).Visit([]<class S>(const S& s) -> std::shared_ptr<void> { return std::make_shared<S>(s); });
}

bool Attrs::operator==(const Attrs& other) const {
  if (kind_ != other.kind_) return false;
  if (value_ == other.value_) return true;
  return Visit([&]<class S>(const S& s) { return s == other.get<S>(); });
}

}  // namespace strop
