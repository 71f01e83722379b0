// A program that was compiled ahead of time, from C++, by two threads at once.
#include <cstdio>
#include <memory>
#include <thread>

#include "softmax.h"

namespace {

struct Arrays {
  alignas(64) float x[4 * 8], w[8 * 3], p[4 * 3];
};

int Run(const StropModel* model, Arrays& arrays) {
  for (int i = 0; i < 32; ++i) arrays.x[i] = static_cast<float>(i % 5) - 2;
  for (int i = 0; i < 24; ++i) arrays.w[i] = static_cast<float>(i % 7) / 8;
  const char* error = softmax_run(model, arrays.x, arrays.w, arrays.p);
  if (error) std::fprintf(stderr, "%s\n", error);
  return error ? 1 : 0;
}

}  // namespace

int main() {
  StropModel* made = nullptr;
  if (const char* error = softmax_create(0, &made)) {
    std::fprintf(stderr, "%s\n", error);
    return 1;
  }
  const std::unique_ptr<StropModel, void (*)(StropModel*)> model(made, &softmax_destroy);
  static Arrays first, second;
  int failed = 0;
  std::thread other([&] { failed = Run(model.get(), second); });
  failed |= Run(model.get(), first);
  other.join();
  for (int i = 0; i < 12; ++i) std::printf("%a%c", static_cast<double>(first.p[i]), i % 3 == 2 ? '\n' : ' ');
  for (int i = 0; i < 12; ++i) failed |= first.p[i] != second.p[i];
  return failed;
}
