#include "strop/plan/call_site.h"

namespace strop {

CustomCallSite CallSiteOf(const Instruction& i) {
  const CustomCallAttrs& attrs = i.attrs<CustomCallAttrs>();
  CustomCallSite site;
  site.target = attrs.target;
  site.opaque = attrs.opaque.empty() ? i.backend_config() : attrs.opaque;
  switch (attrs.api_version) {
    case ApiVersion::StatusReturning: site.api = CustomCallApi::kStatus; break;
    case ApiVersion::StatusReturningUnified: site.api = CustomCallApi::kStatusOpaque; break;
    case ApiVersion::TypedFfi: site.api = CustomCallApi::kTypedFfi; break;
    default: site.api = CustomCallApi::kOriginal;
  }
  for (int64_t k = 0; k < i.operand_count(); ++k)
    for (const Shape& leaf : i.operand(k)->shape().Leaves()) site.operands.push_back(leaf.WithDefaultLayout());
  for (const Shape& leaf : i.shape().Leaves()) site.results.push_back(leaf.WithDefaultLayout());
  site.tuple_result = i.shape().IsTuple();
  return site;
}

}  // namespace strop
