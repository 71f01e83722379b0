#include "strop/cpu/families/scatter_geometry.h"

#include <algorithm>
#include <vector>

namespace strop::cpu {

ScatterGeometry ScatterGeometryOf(const Instruction& scatter) {
  const ScatterAttrs& a = scatter.attrs<ScatterAttrs>();
  ScatterGeometry g;
  g.inputs = (scatter.operand_count() - 1) / 2;
  const Shape &operand = scatter.operand(0)->shape(), &updates = scatter.operand(g.inputs + 1)->shape();
  std::vector<bool> joins(static_cast<size_t>(updates.rank()));  // the dimension before
  size_t next_window = 0;
  for (int64_t d = 0, before = -1; d < operand.rank(); ++d) {
    const bool in_window = !Contains(a.inserted_window_dims, d) && !Contains(a.input_batching_dims, d);
    const int64_t u = in_window ? a.update_window_dims[next_window++] : -1;
    const bool join = in_window && before >= 0 && u == before + 1 && updates.dim(u) == operand.dim(d);
    before = u;
    if (join) {
      joins[static_cast<size_t>(u)] = true;
      g.operand_dims.back() *= operand.dim(d);
      g.window_dims.back() *= operand.dim(d);
      for (int64_t e = d; e-- > 0 && g.joined[e] == g.joined.back();) g.unit[e] *= operand.dim(d);
    } else {
      g.operand_dims.push_back(operand.dim(d));
      g.operand_window.push_back(in_window ? static_cast<int64_t>(g.window_dims.size()) : -1);
      if (in_window) g.window_dims.push_back(updates.dim(u));
    }
    g.joined.push_back(static_cast<int64_t>(g.operand_dims.size()) - 1);
    g.unit.push_back(1);
  }
  // Dimensions of a batch in the order of the indices and of the updates, in front of all others, are one number.
  const auto windows = static_cast<int64_t>(a.update_window_dims.size());
  const bool one_number =
      a.scatter_indices_batching_dims.empty() && a.index_vector_dim >= updates.rank() - windows &&
      std::ranges::all_of(a.update_window_dims, [&](int64_t d) { return d >= updates.rank() - windows; });
  int64_t window = 0;
  for (int64_t d = 0; d < updates.rank(); ++d) {
    const bool in_window = Contains(a.update_window_dims, d);
    (in_window ? g.window : g.updates) *= updates.dim(d);
    const bool counted = one_number && !in_window && d > 0;
    if (counted)
      g.batch_dims.back() *= updates.dim(d);
    else if (!in_window)
      g.batch_dims.push_back(updates.dim(d));
    if (counted || joins[static_cast<size_t>(d)]) {
      g.updates_dims.back() *= updates.dim(d);
    } else {
      g.updates_dims.push_back(updates.dim(d));
      g.updates_window.push_back(in_window ? window++ : -1);
    }
  }
  return g;
}

}  // namespace strop::cpu
