// Conformance: every .hlo file of this folder is run by the evaluator and by every backend, on the same inputs, and the
// results are compared. A test is called <backend>.<file>/<number of the module in the file>; a backend that is added
// to the registry is tested without further ado.
//
// A file holds modules, separated by lines `// -----`. Comments at the top of a module (or of the file, for all its
// modules) say what is special:
//
//   // inputs: 0.5 8             floating-point inputs are drawn from this interval (default -3 3; integers -9 9, or 0
//   9 if unsigned)
//   // specials                  the first floating-point inputs are 0, -0, infinities, NaN, 1, -1 and the smallest and
//   largest numbers
//   // tolerance: 1e-4           |result - wanted| <= tolerance * max(1, |wanted|); the default follows from the
//   element type
//   // interpreted on cpu: why   this backend has no code for it yet; everywhere else cpu must compile all of it
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "strop/cpu/tiered_code.h"
#include "strop/driver/compile.h"
#include "strop/driver/load.h"
#include "strop/interp/interpreter.h"
#include "strop/ir/verifier.h"
#include "strop/tools/execute.h"
#include "tests/conformance/emulated_gpu.h"

namespace strop {
namespace {

struct Case {
  std::string name;  // "cosine/0"
  std::string text;
  double low = -3, high = 3;
  bool specials = false;
  double tolerance = -1;                           // < 0: by element type
  std::map<std::string, std::string> interpreted;  // backend to reason
};

void ReadDirective(std::string_view line, Case& c) {
  line.remove_prefix(std::min<size_t>(3, line.size()));
  size_t colon = std::min(line.find(':'), line.size());
  std::string_view key = line.substr(0, colon);
  std::istringstream value(std::string(line.substr(std::min(colon + 1, line.size()))));
  if (key == "inputs") value >> c.low >> c.high;
  if (key == "tolerance") value >> c.tolerance;
  if (key == "specials") c.specials = true;
  constexpr std::string_view kInterpreted = "interpreted on ";
  if (key.substr(0, kInterpreted.size()) == kInterpreted)
    c.interpreted[std::string(key.substr(kInterpreted.size()))] = value.str();
}

// Reads the comments that open `text`; returns whether an empty line follows them.
bool ReadDirectives(std::string_view text, Case& c) {
  bool any = false;
  for (std::string_view line : Split(text, '\n')) {
    if (line.substr(0, 2) == "//") {
      ReadDirective(line, c);
      any = true;
    } else if (any || !Trim(line).empty()) {
      return any && Trim(line).empty();
    }
  }
  return false;
}

std::vector<Case> ReadCases(const std::filesystem::path& file) {
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  const std::string whole = text.str();
  std::vector<Case> cases;
  constexpr std::string_view kSeparator = "// -----";
  for (size_t begin = 0; begin < whole.size();) {
    size_t end = std::min(whole.find(kSeparator, begin), whole.size());
    Case c;
    c.name = StrCat(file.stem().string(), "/", cases.size());
    c.text = whole.substr(begin, end - begin);
    Case file_wide;
    if (ReadDirectives(whole, file_wide)) {
      file_wide.name = c.name;
      file_wide.text = c.text;
      c = std::move(file_wide);
    }
    std::string_view own = c.text;
    if (begin == 0 && own.find("\n\n") < own.find("HloModule")) own.remove_prefix(own.find("\n\n"));
    ReadDirectives(own, c);
    cases.push_back(std::move(c));
    begin = std::min(whole.size(), end + kSeparator.size());
  }
  return cases;
}

// Numbers that depend on the seed and the index alone: the same on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Bits() {  // splitmix64
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  double Unit() { return static_cast<double>(Bits() >> 11) * 0x1p-53; }  // [0, 1)
  double Between(double low, double high) { return low + (high - low) * Unit(); }

 private:
  uint64_t state_;
};

const double kSpecials[] = {0., -0., INFINITY, -INFINITY, NAN, 1, -1, 0x1p-149, 0x1.fffffep127, -0x1p-126};

Literal MakeInput(const Shape& shape, const Case& c, Random& random) {
  if (shape.IsTuple()) {
    std::vector<Literal> elements;
    for (const Shape& element : shape.elements()) elements.push_back(MakeInput(element, c, random));
    return Literal::Tuple(std::move(elements));
  }
  if (shape.IsToken()) return Literal::Token();
  Literal literal = *Literal::Zeros(shape.WithoutLayout());
  for (int64_t i = 0; i < literal.num_elements(); ++i) {
    switch (Kind(shape.type())) {
      case ElementKind::Pred: literal.SetInt(i, static_cast<int64_t>(random.Bits() & 1)); break;
      case ElementKind::Signed: literal.SetInt(i, static_cast<int64_t>(random.Bits() % 19) - 9); break;
      case ElementKind::Unsigned: literal.SetInt(i, static_cast<int64_t>(random.Bits() % 10)); break;
      case ElementKind::Complex: {
        double real = random.Between(c.low, c.high);
        literal.SetComplex(i, {real, random.Between(c.low, c.high)});
        break;
      }
      default:
        literal.SetDouble(i, c.specials && i < static_cast<int64_t>(std::size(kSpecials))
                                 ? kSpecials[i]
                                 : random.Between(c.low, c.high));
    }
  }
  return literal;
}

// A few units in the last place: elementwise formulas are computed in the element type by a backend, once rounded by
// the evaluator.
double Tolerance(ElementType type, const Case& c) {
  if (c.tolerance >= 0) return c.tolerance;
  switch (type) {
    case ElementType::F64:
    case ElementType::C128: return 1e-13;
    case ElementType::F32:
    case ElementType::C64: return 2e-6;
    case ElementType::F16: return 4e-3;
    case ElementType::BF16: return 3e-2;
    default: return Kind(type) == ElementKind::Float ? 0.26 : 0;
  }
}

bool Close(double got, double wanted, double tolerance) {
  if (std::isnan(wanted)) return std::isnan(got);
  if (got == wanted) return true;
  return std::isfinite(got) && std::isfinite(wanted) &&
         std::fabs(got - wanted) <= tolerance * std::max(1.0, std::fabs(wanted));
}

void ExpectClose(const Literal& got, const Literal& wanted, const Case& c, const std::string& where) {
  ASSERT_TRUE(got.shape().Compatible(wanted.shape()))
      << where << got.shape().ToString() << " is not " << wanted.shape().ToString();
  if (wanted.shape().IsTuple()) {
    for (size_t i = 0; i < wanted.elements().size(); ++i)
      ExpectClose(got.element(i), wanted.element(i), c, StrCat(where, "element ", i, ": "));
    return;
  }
  if (!wanted.shape().IsArray()) return;
  const ElementKind kind = Kind(wanted.type());
  const double tolerance = Tolerance(wanted.type(), c);
  for (int64_t i = 0; i < wanted.num_elements(); ++i) {
    bool close = kind == ElementKind::Float || kind == ElementKind::Complex
                     ? Close(got.GetDouble(i), wanted.GetDouble(i), tolerance) &&
                           Close(got.GetImag(i), wanted.GetImag(i), tolerance)
                     : got.GetInt(i) == wanted.GetInt(i);
    ASSERT_TRUE(close) << where << wanted.shape().ToString() << " at " << i << ": " << ElementToString(got, i)
                       << " instead of the evaluator's " << ElementToString(wanted, i);
  }
}

void Check(const Case& c, const Backend& backend) {
  Result<std::unique_ptr<Module>> module = LoadProgram(c.text, c.name);
  ASSERT_TRUE(module.ok()) << module.status().ToString();
  ASSERT_TRUE(VerifyModule(**module).ok()) << VerifyModule(**module).ToString();
  Random random(1);
  std::vector<Literal> arguments;
  for (const Shape& shape : (*module)->EffectiveEntryLayout().parameters)
    arguments.push_back(MakeInput(shape, c, random));

  Interpreter interpreter;
  Result<Literal> wanted = interpreter.Evaluate(**module, arguments);
  ASSERT_TRUE(wanted.ok()) << wanted.status().ToString();
  Result<Options> options = OptionsFromEnvironment();
  ASSERT_TRUE(options.ok()) << options.status().ToString();
  // As frameworks have it: by code that was quick to compile, then by the code that takes its place.
  const Result<CompileSettings> settings = SettingsFrom(*options, Tier::kAuto);
  ASSERT_TRUE(settings.ok()) << settings.status().ToString();
  const Result<tools::Program> program = tools::Program::Compile(*std::move(module), backend, *settings);
  ASSERT_TRUE(program.ok()) << program.status().ToString();
  const int64_t interpreted = program->compiled().executable->num_interpreted();
  auto reason = c.interpreted.find(std::string(backend.name()));
  if (backend.name() == "cpu" && reason == c.interpreted.end()) {
    EXPECT_EQ(interpreted, 0) << "strop explain says why";
  }
  if (reason != c.interpreted.end()) {
    EXPECT_GT(interpreted, 0) << "is compiled now: take the line 'interpreted on' out";
  }
  for (int round = 0; round < 2; ++round) {
    Result<Literal> got = program->Run(arguments);
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    ExpectClose(*got, *wanted, c, "");
    cpu::TieredCode::WaitForAll();
  }
}

class ConformanceTest : public testing::Test {
 public:
  ConformanceTest(Case c, const Backend* backend) : case_(std::move(c)), backend_(backend) {}
  void TestBody() override { Check(case_, *backend_); }

 private:
  Case case_;
  const Backend* backend_;
};

void RegisterAll() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(STROP_SOURCE_DIR "/tests/conformance"))
    if (entry.path().extension() == ".hlo") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  static const auto* const kGpu = new EmulatedGpu;
  for (const Backend* registered : Backends()) {
    const Backend* backend = registered->name() == kGpu->name() ? kGpu : registered;
    for (const auto& file : files) {
      for (const Case& c : ReadCases(file)) {
        testing::RegisterTest(std::string(backend->name()).c_str(), c.name.c_str(), nullptr, nullptr, file.c_str(), 1,
                              [c, backend]() -> ConformanceTest* { return new ConformanceTest(c, backend); });
      }
    }
  }
}

}  // namespace
}  // namespace strop

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  strop::RegisterAll();
  return RUN_ALL_TESTS();
}
