// Differential: one kernel, its inputs random, compiled and evaluated; for tests.
//
//   Module m("m"); Differential d(m); Builder b(d.body()); ...; EXPECT_EQ(d.Check(), "");
#pragma once
#include <string>
#include <vector>

#include "strop/ir/module.h"

namespace strop::cpu {

class Differential {
 public:
  enum Form { kFused, kNotFused };  // the root as the root of a fusion, or as the kernel itself
  explicit Differential(Module& module, Form form = kFused);
  // Where the computation is built: parameters and a root (not fused: one instruction on parameters).
  Computation* body() { return body_; }
  // Inputs other than random ones, by parameter number.
  void SetInput(int64_t parameter, Literal value);
  // Result r takes the memory of operand k, which the plan would have copied before.
  void SetInPlace(std::vector<int> in_place) { in_place_ = std::move(in_place); }
  // Relative tolerance in units of the last place of the result type (0: equal bits, NaNs alike).
  void set_ulps(double ulps) { ulps_ = ulps; }
  void set_seed(uint64_t seed) { seed_ = seed; }
  // No infinities, NaNs, subnormals or extremes among the inputs.
  void set_tame(bool tame) { tame_ = tame; }

  // Empty if compiled code gives what the evaluator gives, with any number of tasks a call; else what differs.
  std::string Check();
  int64_t num_tasks() const { return num_tasks_; }

 private:
  Module& module_;
  Form form_;
  Computation* body_;
  std::vector<std::pair<int64_t, Literal>> inputs_;
  std::vector<int> in_place_;
  double ulps_ = 0;
  uint64_t seed_ = 1;
  bool tame_ = false;
  int64_t num_tasks_ = 0;
};

// Uniform values, unless tame with a few special ones (zeros, infinities, NaN, extremes) among them.
Literal RandomLiteral(const Shape& shape, uint64_t seed, bool tame = false);
// Largest difference in units of the last place of the type; infinite where one is NaN or infinite and the other is
// not.
double UlpDistance(const Literal& a, const Literal& b, std::string* where);

}  // namespace strop::cpu
