#include "strop/passes/minimum_cut.h"

#include <algorithm>

namespace strop {

int MinimumCut::AddNode() {
  first_.push_back(-1);
  return static_cast<int>(first_.size()) - 1;
}

void MinimumCut::AddCost(int zero, int one, int64_t cost) {
  if (zero == one || cost <= 0) return;
  if (cost != kNever) cost = std::min(cost, kMostCost);
  const auto add = [this](int from, int to, int64_t left) {
    edges_.push_back({to, first_[static_cast<size_t>(from)], left});
    first_[static_cast<size_t>(from)] = static_cast<int>(edges_.size()) - 1;
  };
  add(zero, one, cost);
  add(one, zero, 0);
}

// A shortest path on which something is left, by the edge into each node.
bool MinimumCut::FindPath() {
  through_.assign(first_.size(), -1);
  std::vector<int> left = {kZero};
  for (size_t n = 0; n < left.size(); ++n)
    for (int e = first_[static_cast<size_t>(left[n])]; e >= 0; e = edges_[static_cast<size_t>(e)].next) {
      const Edge& edge = edges_[static_cast<size_t>(e)];
      if (edge.left <= 0 || edge.to == kZero || through_[static_cast<size_t>(edge.to)] >= 0) continue;
      through_[static_cast<size_t>(edge.to)] = e;
      if (edge.to == kOne) return true;
      left.push_back(edge.to);
    }
  return false;
}

int64_t MinimumCut::Solve() {
  int64_t total = 0;
  const auto into = [this](int node) { return static_cast<size_t>(through_[static_cast<size_t>(node)]); };
  while (total < kNever && FindPath()) {
    int64_t least = kNever;
    for (int node = kOne; node != kZero; node = edges_[into(node) ^ 1].to)
      least = std::min(least, edges_[into(node)].left);
    for (int node = kOne; node != kZero; node = edges_[into(node) ^ 1].to) {
      edges_[into(node)].left -= least;
      edges_[into(node) ^ 1].left += least;
    }
    total += least;
  }
  // Ones are the nodes from which kOne can still be reached.
  is_one_.assign(first_.size(), false);
  is_one_[kOne] = true;
  std::vector<int> left = {kOne};
  for (size_t n = 0; n < left.size(); ++n)
    for (int e = first_[static_cast<size_t>(left[n])]; e >= 0; e = edges_[static_cast<size_t>(e)].next) {
      const size_t from = static_cast<size_t>(edges_[static_cast<size_t>(e)].to);
      if (is_one_[from] || edges_[static_cast<size_t>(e) ^ 1].left <= 0) continue;
      is_one_[from] = true;
      left.push_back(static_cast<int>(from));
    }
  return total;
}

}  // namespace strop
