#include "strop/cpu/testing/differential.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "strop/cpu/kernel_compiler.h"
#include "strop/cpu/tiered_code.h"
#include "strop/interp/interpreter.h"

namespace strop::cpu {
namespace {

struct AlignedBytes {
  explicit AlignedBytes(size_t size) : storage(size + 128, 0xa5) {}
  uint8_t* data() { return storage.data() + (64 - reinterpret_cast<uintptr_t>(storage.data()) % 64) % 64; }
  std::vector<uint8_t> storage;
};

double RandomFloat(std::mt19937_64& random, bool tame) {
  static constexpr double kSpecial[] = {0.0, -0.0, 1.0, -1.0, INFINITY, -INFINITY, NAN, 1e-40, -1e-40, 3e38, 0.5, 2.5};
  const uint64_t dice = random() % 16;
  if (dice == 0 && !tame) return kSpecial[random() % std::size(kSpecial)];
  const double u = static_cast<double>(random() >> 11) * 0x1p-53;
  return dice < 4 && !tame ? (u - 0.5) * 200 : (u - 0.5) * 4;
}

// Distance from |value| to the next value of the type, never below that of its smallest normal number.
double UnitOfLastPlace(ElementType type, double value) {
  const FloatFormat& f = FormatOf(type);
  if (!std::isfinite(value)) return 1;
  int exponent;
  std::frexp(value, &exponent);
  return std::ldexp(1.0, std::max(exponent - 1, 1 - f.bias) - f.mantissa_bits);
}

double PartDistance(ElementType type, double a, double b, double scale = 0) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b) ? 0 : INFINITY;
  if (a == b) return std::signbit(a) == std::signbit(b) || a != 0 ? 0 : 0.25;
  if (std::isinf(a) || std::isinf(b)) return INFINITY;
  return std::fabs(a - b) / UnitOfLastPlace(type, std::max({std::fabs(a), std::fabs(b), scale}));
}

}  // namespace

Literal RandomLiteral(const Shape& shape, uint64_t seed, bool tame) {
  std::mt19937_64 random(seed * 0x9e3779b97f4a7c15u + 12345);
  Literal literal = *Literal::Zeros(shape);
  const ElementType type = shape.type();
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    if (IsComplex(type))
      literal.SetComplex(i, {RandomFloat(random, tame), RandomFloat(random, tame)});
    else if (IsFloat(type))
      literal.SetDouble(i, RandomFloat(random, tame));
    else if (IsPred(type))
      literal.SetInt(i, static_cast<int64_t>(random() & 1));
    else {
      const int64_t wild = static_cast<int64_t>(random());
      const int64_t small = static_cast<int64_t>(random() % 15) - 5;
      literal.SetInt(i, random() % 4 == 0 && !tame ? wild : small);
    }
  }
  return literal;
}

double UlpDistance(const Literal& a, const Literal& b, std::string* where) {
  double worst = 0;
  const ElementType type = a.type();
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    double d;
    if (IsComplex(type)) {
      const ElementType part = ComplexPart(type);
      const std::complex<double> x = a.GetComplex(i), y = b.GetComplex(i);
      const double scale = std::isfinite(std::abs(x)) ? std::abs(x) : 0;
      d = std::max(PartDistance(part, x.real(), y.real(), scale), PartDistance(part, x.imag(), y.imag(), scale));
    } else if (IsFloat(type)) {
      d = PartDistance(type, a.GetDouble(i), b.GetDouble(i));
    } else {
      d = a.GetInt(i) == b.GetInt(i) ? 0 : INFINITY;
    }
    if (d > worst) {
      worst = d;
      if (where) *where = StrCat("[", i, "]: ", ElementToString(a, i), " against ", ElementToString(b, i));
    }
  }
  return worst;
}

Differential::Differential(Module& module, Form form)
    : module_(module), form_(form), body_(module.AddComputation("body")) {}

void Differential::SetInput(int64_t parameter, Literal value) { inputs_.emplace_back(parameter, std::move(value)); }

std::string Differential::Check() {
  Instruction* kernel = body_->root();
  std::vector<Literal> arguments;
  for (Instruction* p : body_->parameters())
    arguments.push_back(RandomLiteral(p->shape(), seed_ * 100 + static_cast<uint64_t>(p->parameter_number()), tame_));
  for (auto& [k, literal] : inputs_) arguments[static_cast<size_t>(k)] = literal;
  if (form_ == kFused) {  // ENTRY { parameters; ROOT fusion }
    Computation* entry = module_.AddComputation("main");
    std::vector<Instruction*> operands;
    for (Instruction* p : body_->parameters())
      operands.push_back(entry->AddParameter(p->parameter_number(), p->shape()));
    kernel = entry->Add(Op::Fusion, body_->root()->shape(), operands, FusionAttrs{});
    kernel->set_called({body_});
    entry->set_root(kernel);
    module_.set_entry(entry);
  } else {
    module_.set_entry(body_);
  }

  Interpreter interpreter;
  Result<Literal> expected = interpreter.Evaluate(module_, arguments);
  if (!expected.ok()) return "evaluator: " + expected.status().ToString();

  KernelSpec spec{kernel, in_place_};
  const std::vector<Shape> results = kernel->shape().Leaves();
  spec.in_place.resize(results.size(), -1);
  const Decision supported = KernelCompiler::Supports(*kernel);
  if (!supported) return "not supported: " + supported.why_not();
  KernelCompiler compiler;
  const char* const dump = std::getenv("STROP_TEST_DUMP");
  std::vector<Literal> before(results.size());

  // All tasks at once, by code that was quick to compile; then one by one from the last to the first, by what took its
  // place.
  for (int round = 0; round < 2; ++round) {
    KernelCompileOptions options{.tier = round == 0 ? Tier::kBaseline : Tier::kAuto};
    if (dump) options.dump_dir = dump;
    Result<GeneratedKernels> compiled = compiler.Compile({&spec, 1}, options);
    if (!compiled.ok()) return "compiler: " + compiled.status().ToString();
    TieredCode::WaitForAll();
    const auto* step = std::get_if<KernelStep>(&compiled->kernels[0].body);
    const auto* host = std::get_if<HostStep>(&compiled->kernels[0].body);
    if (host && host->interpreted) return "the kernel is interpreted";
    num_tasks_ = step ? step->num_tasks : 1;
    std::vector<AlignedBytes> buffers;
    std::vector<void*> args;
    for (const Literal& a : arguments) {
      buffers.emplace_back(a.bytes().size());
      if (!a.bytes().empty()) std::memcpy(buffers.back().data(), a.bytes().data(), a.bytes().size());
      args.push_back(buffers.back().data());
    }
    for (size_t r = 0; r < results.size(); ++r) {
      buffers.emplace_back(static_cast<size_t>(results[r].byte_size()));
      args.push_back(spec.in_place[r] >= 0 ? args[static_cast<size_t>(spec.in_place[r])] : buffers.back().data());
    }
    AlignedBytes scratch(step ? static_cast<size_t>(step->scratch_bytes) : 0);
    if (host) {
      const Status status = host->fn(HostCall{args, RunArgs{}, StepInfo{}});
      if (!status.ok()) return "step: " + status.ToString();
    } else if (round == 0) {
      step->fn(args.data(), 0, step->num_tasks, scratch.data());
    } else {
      for (int64_t t = step->num_tasks; t-- > 0;) step->fn(args.data(), t, t + 1, scratch.data());
    }
    for (size_t r = 0; r < results.size(); ++r) {
      const uint8_t* data = static_cast<const uint8_t*>(args[arguments.size() + r]);
      const Literal got = *Literal::FromBytes(results[r], {data, static_cast<size_t>(results[r].byte_size())});
      const Literal& want = expected->shape().IsTuple() ? expected->element(static_cast<int64_t>(r)) : *expected;
      std::string where;
      const double distance = UlpDistance(got, want, &where);
      if (distance > ulps_)
        return StrCat("result ", r, " differs by ", distance, " ulp at ", where, " (compiled against evaluated)");
      if (round > 0 && UlpDistance(got, before[r], &where) > 0)  // of NaNs, bits are left to the machine
        return StrCat("result ", r, " has other bits than the code gives that was quick to compile, at ", where);
      before[r] = got;
    }
  }
  return "";
}

}  // namespace strop::cpu
