// Which of two choices each of many things takes, if some pairs cost something when they choose differently: a minimum
// cut. By augmenting paths (Edmonds and Karp, 1972); for graphs of some hundred things.
#pragma once
#include <cstdint>
#include <vector>

namespace strop {

class MinimumCut {
 public:
  static constexpr int kZero = 0, kOne = 1;  // two nodes that have chosen
  static constexpr int64_t kNever = int64_t{1} << 58;
  static constexpr int64_t kMostCost = int64_t{1} << 44;  // of one pair; what is above counts as this

  MinimumCut() : first_(2, -1) {}
  int AddNode();
  // Is paid if `zero` chooses 0 and `one` chooses 1.
  void AddCost(int zero, int one, int64_t cost);
  // The least cost, with as many zeros as that allows.
  int64_t Solve();
  bool IsOne(int node) const { return is_one_[static_cast<size_t>(node)]; }  // after Solve()

 private:
  struct Edge {
    int to, next;
    int64_t left;
  };
  bool FindPath();

  std::vector<int> first_;   // per node, into edges_
  std::vector<Edge> edges_;  // an edge and, next to it, its reverse
  std::vector<int> through_;
  std::vector<bool> is_one_;
};

}  // namespace strop
