// Runs a parser target without libFuzzer: on the files of a corpus, and on copies of them with mistakes.
//
//   fuzz_hlo_text CORPUS [ROUNDS]     ROUNDS mutations of each file (default 0)
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "strop/base/mutator.h"
#include "tests/fuzz/parsers/target.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s CORPUS [ROUNDS]\n", argv[0]);
    return 2;
  }
  const long long rounds = argc > 2 ? std::atoll(argv[2]) : 0;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  long long executions = 0;
  const auto run = [&](const std::string& input) {
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
    ++executions;
  };
  strop::Mutator mutate;
  for (const std::filesystem::path& file : files) {
    std::stringstream content;
    content << std::ifstream(file, std::ios::binary).rdbuf();
    const std::string good = content.str();
    run(good);
    for (long long n = 0; n < rounds && !good.empty(); ++n) run(n % 2 ? mutate(good) : mutate.Overwrite(good));
  }
  std::printf("%lld executions on %zu files\n", executions, files.size());
  return files.empty() ? 1 : 0;
}
