#include <strop/strop.h>

#include <cstdio>

constexpr const char* kProgram = R"(HloModule triple
ENTRY main {
  x = f32[2,3] parameter(0)
  three = f32[] constant(3)
  threes = f32[2,3] broadcast(three), dimensions={}
  ROOT y = f32[2,3] multiply(x, threes)
})";

int main() {
  strop::Result<strop::Program> program = strop::Program::Compile(kProgram);
  if (!program.ok()) return std::fprintf(stderr, "%s\n", program.status().ToString().c_str()), 1;
  strop::Literal x = strop::Literal::Vector<float>({{1, 2, 3, 4, 5, 6}}).WithShape(program->parameter_shape(0));
  strop::Result<strop::Literal> y = program->Run({{x}});
  if (!y.ok()) return std::fprintf(stderr, "%s\n", y.status().ToString().c_str()), 1;
  std::printf("%s\n", y->ToString().c_str());
}
