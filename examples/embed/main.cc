#include <strop/strop.h>

#include <cstdio>
#include <vector>

constexpr const char* kProgram = R"(HloModule triple
ENTRY main {
  x = f32[2,3] parameter(0)
  three = f32[] constant(3)
  threes = f32[2,3] broadcast(three), dimensions={}
  ROOT y = f32[2,3] multiply(x, threes)
})";

int main() {
  strop::Result<strop::Function> triple = strop::Function::Compile(kProgram);
  if (!triple.ok()) return std::fprintf(stderr, "%s\n", triple.status().ToString().c_str()), 1;
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  strop::Literal x = strop::Literal::Vector<float>(values).WithShape(triple->parameter_shape(0));
  strop::Result<strop::Literal> y = triple->Run({{x}});
  if (!y.ok()) return std::fprintf(stderr, "%s\n", y.status().ToString().c_str()), 1;
  std::printf("%s\n", y->ToString().c_str());  // { { 3, 6, 9 }, { 12, 15, 18 } }
}
