#include "strop/codegen/vector_builder.h"

#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>

namespace strop {
namespace {

using V = llvm::Value*;

llvm::SmallVector<int, 64> Mask(int count, int first, int step) {
  llvm::SmallVector<int, 64> mask;
  for (int i = 0; i < count; ++i) mask.push_back(first + i * step);
  return mask;
}

}  // namespace

VectorBuilder::VectorBuilder(llvm::Module& module, const VectorTarget& target)
    : module_(module), target_(target), ir_(module.getContext()) {}

bool VectorBuilder::IsSplatOf(V a, int64_t value) {
  const auto* constant = llvm::dyn_cast<llvm::Constant>(a);
  const auto* splat = constant ? llvm::dyn_cast_or_null<llvm::ConstantInt>(constant->getSplatValue()) : nullptr;
  return splat && splat->getSExtValue() == value;
}

V VectorBuilder::TwiceBytes(V a) {
  V pairs = ir_.CreateBitCast(a, WithLanes(Int(16), Lanes(a->getType()) / 2));
  V twice = ir_.CreateAnd(ir_.CreateShl(pairs, I(1, pairs)), I(0xfefe, pairs));  // without the lower byte's last bit
  return ir_.CreateBitCast(twice, a->getType());
}

int VectorBuilder::Lanes(const llvm::Type* type) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  return vector ? static_cast<int>(vector->getNumElements()) : 1;
}

llvm::Type* VectorBuilder::WithLanes(llvm::Type* scalar, int lanes) {
  scalar = scalar->getScalarType();
  return lanes == 1 ? scalar : llvm::FixedVectorType::get(scalar, lanes);
}

V VectorBuilder::Bits(uint64_t bits, V like) {
  return llvm::ConstantExpr::getBitCast(llvm::ConstantInt::get(llvm::cast<llvm::Type>(IntLike(like)), bits),
                                        like->getType());
}

V VectorBuilder::LaneNumbers(int lanes, int bits) {
  llvm::SmallVector<llvm::Constant*, 64> numbers;
  for (int i = 0; i < lanes; ++i) numbers.push_back(llvm::ConstantInt::get(Int(bits), i));
  return lanes == 1 ? numbers[0] : llvm::ConstantVector::get(numbers);
}

V VectorBuilder::Splat(V v, int lanes) { return Lanes(v) == lanes ? v : ir_.CreateVectorSplat(lanes, v); }

void VectorBuilder::Match(V& a, V& b) {
  const int la = Lanes(a), lb = Lanes(b);
  if (la < lb) a = Splat(a, lb);
  if (lb < la) b = Splat(b, la);
}

V VectorBuilder::Lane(V v, int lane) {
  return Lanes(v) == 1 ? v : ir_.CreateExtractElement(v, static_cast<uint64_t>(lane));
}

V VectorBuilder::Slice(V v, int first, int count) {
  if (count == Lanes(v)) return v;
  if (count == 1) return Lane(v, first);
  return ir_.CreateShuffleVector(v, Mask(count, first, 1));
}

V VectorBuilder::Concat(V low, V high) {
  if (Lanes(low) == 1) {
    V pair = llvm::PoisonValue::get(WithLanes(low->getType(), 2));
    pair = ir_.CreateInsertElement(pair, low, uint64_t{0});
    return ir_.CreateInsertElement(pair, high, uint64_t{1});
  }
  return ir_.CreateShuffleVector(low, high, Mask(2 * Lanes(low), 0, 1));
}

V VectorBuilder::TakeLanes(V into, V part, std::span<const int> from) {
  const int lanes = static_cast<int>(from.size()), length = Lanes(part);
  if (!into) return ir_.CreateShuffleVector(part, llvm::ArrayRef<int>(from.data(), from.size()));
  llvm::SmallVector<int, 64> widened, taken;
  for (int l = 0; l < lanes; ++l) {
    widened.push_back(l < length ? l : -1);
    taken.push_back(from[static_cast<size_t>(l)] < 0 ? l : lanes + from[static_cast<size_t>(l)]);
  }
  return ir_.CreateShuffleVector(into, length == lanes ? part : ir_.CreateShuffleVector(part, widened), taken);
}

V VectorBuilder::Reverse(V v) {
  const int n = Lanes(v);
  return n == 1 ? v : ir_.CreateShuffleVector(v, Mask(n, n - 1, -1));
}

V VectorBuilder::Interleave(V even, V odd) {
  const int n = Lanes(even);
  if (n == 1) return Concat(even, odd);
  llvm::SmallVector<int, 64> mask;
  for (int i = 0; i < n; ++i) {
    mask.push_back(i);
    mask.push_back(n + i);
  }
  return ir_.CreateShuffleVector(even, odd, mask);
}

V VectorBuilder::Zip(V even, V odd, bool high) {
  const int n = Lanes(even);
  llvm::SmallVector<int, 64> mask;
  for (int i = 0; i < n; ++i) {
    const int at = (high ? n : 0) + i;
    mask.push_back((at % 2) * n + at / 2);
  }
  return ir_.CreateShuffleVector(even, odd, mask);
}

V VectorBuilder::Even(V v) { return Lanes(v) == 2 ? Lane(v, 0) : ir_.CreateShuffleVector(v, Mask(Lanes(v) / 2, 0, 2)); }

V VectorBuilder::Odd(V v) { return Lanes(v) == 2 ? Lane(v, 1) : ir_.CreateShuffleVector(v, Mask(Lanes(v) / 2, 1, 2)); }

V VectorBuilder::CopySign(V magnitude, V sign) {
  Match(magnitude, sign);
  return ir_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude, sign);
}

V VectorBuilder::Fma(V a, V b, V c) {
  Match(a, b);
  Match(b, c);
  Match(a, b);
  if (!target_.fma) return ir_.CreateFAdd(ir_.CreateFMul(a, b), c);
  return ir_.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
}

namespace {
constexpr int kMajorityTable = 0xe8;  // the result for each of the eight settings of three bits
}

bool VectorBuilder::IsMajority(const llvm::IntrinsicInst& call) {
  const auto* table = call.arg_size() == 4 ? llvm::dyn_cast<llvm::ConstantInt>(call.getArgOperand(3)) : nullptr;
  return table && table->getZExtValue() == kMajorityTable &&
         call.getCalledFunction()->getName().starts_with("llvm.x86.avx512.pternlog");
}

V VectorBuilder::Majority(V a, V b, V c) {
  Match(a, b);
  Match(a, c);
  constexpr int kRegister = 512, kLeastRegister = 128;
  const int lanes = Lanes(a), bits = lanes * ScalarBits(a);
  const bool wide = ScalarBits(a) == 64;
  llvm::Intrinsic::ID id = llvm::Intrinsic::not_intrinsic;
  if (target_.ternary_logic && (wide || ScalarBits(a) == 32)) {
    if (lanes == 1) {  // floats stay in registers for vectors
      const auto in_vector = [&](V v) {
        llvm::Type* type = WithLanes(v->getType(), kLeastRegister / bits);
        return ir_.CreateInsertElement(llvm::PoisonValue::get(type), v, uint64_t{0});
      };
      return ir_.CreateExtractElement(Majority(in_vector(a), in_vector(b), in_vector(c)), uint64_t{0});
    }
    if (bits % (2 * kRegister) == 0) {  // LLVM cuts its own operations so, not those of one processor
      const auto half = [&](int first) {
        return Majority(Slice(a, first, lanes / 2), Slice(b, first, lanes / 2), Slice(c, first, lanes / 2));
      };
      return Concat(half(0), half(lanes / 2));
    }
    if (bits == 512)
      id = wide ? llvm::Intrinsic::x86_avx512_pternlog_q_512 : llvm::Intrinsic::x86_avx512_pternlog_d_512;
    if (bits == 256)
      id = wide ? llvm::Intrinsic::x86_avx512_pternlog_q_256 : llvm::Intrinsic::x86_avx512_pternlog_d_256;
    if (bits == 128)
      id = wide ? llvm::Intrinsic::x86_avx512_pternlog_q_128 : llvm::Intrinsic::x86_avx512_pternlog_d_128;
  }
  if (id != llvm::Intrinsic::not_intrinsic) return ir_.CreateIntrinsic(id, {}, {a, b, c, ir_.getInt32(kMajorityTable)});
  return Or(And(a, b), And(Or(a, b), c));
}

// LLVM takes long to find the best instructions for a shuffle; what is to be quick takes that which does any.
V VectorBuilder::Choose(V first, V second, std::span<const int> numbers) {
  const int lanes = Lanes(first), bits = ScalarBits(first);
  const llvm::Intrinsic::ID ids[][3] = {
      {llvm::Intrinsic::x86_avx512_vpermi2var_qi_128, llvm::Intrinsic::x86_avx512_vpermi2var_qi_256,
       llvm::Intrinsic::x86_avx512_vpermi2var_qi_512},
      {llvm::Intrinsic::x86_avx512_vpermi2var_hi_128, llvm::Intrinsic::x86_avx512_vpermi2var_hi_256,
       llvm::Intrinsic::x86_avx512_vpermi2var_hi_512},
      {llvm::Intrinsic::x86_avx512_vpermi2var_d_128, llvm::Intrinsic::x86_avx512_vpermi2var_d_256,
       llvm::Intrinsic::x86_avx512_vpermi2var_d_512},
      {llvm::Intrinsic::x86_avx512_vpermi2var_q_128, llvm::Intrinsic::x86_avx512_vpermi2var_q_256,
       llvm::Intrinsic::x86_avx512_vpermi2var_q_512}};
  const int width = lanes * bits, size = width == 128 ? 0 : width == 256 ? 1 : width == 512 ? 2 : -1;
  const int element = bits == 8 ? 0 : bits == 16 ? 1 : bits == 32 ? 2 : bits == 64 ? 3 : -1;
  if (!quick_ || size < 0 || element < 0 || target_.shuffled_bits == 0 || bits < target_.shuffled_bits ||
      static_cast<int>(numbers.size()) != lanes)
    return ir_.CreateShuffleVector(first, second, llvm::ArrayRef<int>(numbers.data(), numbers.size()));
  llvm::Type* const type = WithLanes(Int(bits), lanes);
  llvm::SmallVector<llvm::Constant*, 64> at;
  for (int n : numbers) at.push_back(llvm::ConstantInt::get(Int(bits), static_cast<uint64_t>(n)));
  V chosen = ir_.CreateIntrinsic(
      ids[element][size], {},
      {ir_.CreateBitCast(first, type), llvm::ConstantVector::get(at), ir_.CreateBitCast(second, type)});
  return ir_.CreateBitCast(chosen, first->getType());
}

bool VectorBuilder::LooksUp(int lanes, int bits) const {
  return target_.masked_memory && target_.shuffled_bits > 0 && bits == 32 && (lanes == 4 || lanes == 8 || lanes == 16);
}

V VectorBuilder::LookUp(V first, V second, V numbers) {
  const int lanes = Lanes(first);
  llvm::Type* const type = WithLanes(Int(32), lanes);
  const llvm::Intrinsic::ID id = lanes == 16  ? llvm::Intrinsic::x86_avx512_vpermi2var_d_512
                                 : lanes == 8 ? llvm::Intrinsic::x86_avx512_vpermi2var_d_256
                                              : llvm::Intrinsic::x86_avx512_vpermi2var_d_128;
  V found = ir_.CreateIntrinsic(id, {}, {ir_.CreateBitCast(first, type), numbers, ir_.CreateBitCast(second, type)});
  return ir_.CreateBitCast(found, first->getType());
}

V VectorBuilder::Scale(V a, V n) {
  if (target_.scale) return ir_.CreateIntrinsic(llvm::Intrinsic::ldexp, {a->getType(), n->getType()}, {a, n});
  // In two factors that are normal numbers: only the second can round.
  const bool wide = ScalarBits(a) == 64;
  const auto power = [&](V k) { return AsFloat(Shl(Add(k, I(wide ? 1023 : 127, k)), wide ? 52 : 23)); };
  V half = AShr(n, 1);
  return FMul(FMul(a, power(half)), power(Sub(n, half)));
}

bool VectorBuilder::HasFloatParts(V a) const {
  const int lanes = Lanes(a);
  return target_.scale && target_.ternary_logic && (lanes & (lanes - 1)) == 0;
}

// Of vectors of any width, by instructions that take one register's.
V VectorBuilder::ByRegisters(llvm::ArrayRef<V> operands,
                             llvm::function_ref<V(llvm::ArrayRef<V> operands, int width)> emit) {
  const int lanes = Lanes(operands[0]), bits = ScalarBits(operands[0]), width = lanes * bits;
  llvm::SmallVector<V, 2> parts;
  if (width > 512) {
    for (V v : operands) parts.push_back(Slice(v, 0, lanes / 2));
    V low = ByRegisters(parts, emit);
    parts.clear();
    for (V v : operands) parts.push_back(Slice(v, lanes / 2, lanes / 2));
    return Concat(low, ByRegisters(parts, emit));
  }
  if (width >= 128) return emit(operands, width);
  llvm::SmallVector<int, 4> widen(static_cast<size_t>(128 / bits), -1);
  for (int lane = 0; lane < lanes; ++lane) widen[static_cast<size_t>(lane)] = lane;
  for (V v : operands)
    parts.push_back(lanes > 1 ? ir_.CreateShuffleVector(v, widen)
                              : ir_.CreateInsertElement(llvm::PoisonValue::get(WithLanes(v->getType(), 128 / bits)), v,
                                                        uint64_t{0}));
  return Slice(emit(parts, 128), 0, lanes);
}

namespace {
// Of f32 and of f64, by the width of their vectors.
struct ByWidth {
  llvm::Intrinsic::ID f32[3], f64[3];
  llvm::Intrinsic::ID Of(V v, int width) const {
    return (VectorBuilder::ScalarBits(v) == 64 ? f64 : f32)[width == 512 ? 2 : width == 256];
  }
};

// The mask of all lanes that an intrinsic of so many takes.
V AllLanes(IrBuilder& ir, V v) {
  const int lanes = std::max(VectorBuilder::Lanes(v), 8);
  return ir.getIntN(static_cast<unsigned>(lanes), ~uint64_t{0} >> (64 - lanes));
}
}  // namespace

// `operands`, then the mask of all lanes and, of whole registers, the rounding as ever.
V VectorBuilder::Masked(llvm::Intrinsic::ID id, llvm::SmallVector<V, 6> operands, int width) {
  operands.push_back(AllLanes(ir_, operands[0]));
  if (width == 512) operands.push_back(ir_.getInt32(4));
  return ir_.CreateIntrinsic(id, {}, operands);
}

// x86's vscalef takes floats, and a ldexp would convert them to integers and back.
V VectorBuilder::ScaleByWhole(V a, V n) {
  using namespace llvm::Intrinsic;
  static constexpr ByWidth kIds = {
      {x86_avx512_mask_scalef_ps_128, x86_avx512_mask_scalef_ps_256, x86_avx512_mask_scalef_ps_512},
      {x86_avx512_mask_scalef_pd_128, x86_avx512_mask_scalef_pd_256, x86_avx512_mask_scalef_pd_512}};
  if (!HasFloatParts(a)) return Scale(a, ir_.CreateFPToSI(n, IntLike(a)));
  return ByRegisters(
      {a, n}, [&](llvm::ArrayRef<V> v, int width) { return Masked(kIds.Of(v[0], width), {v[0], v[1], v[0]}, width); });
}

V VectorBuilder::RoundToInt(V a) {
  return ir_.CreateIntrinsic(llvm::Intrinsic::lrint, {IntLike(a), a->getType()}, {a});
}

V VectorBuilder::ExponentOf(V a) {
  using namespace llvm::Intrinsic;
  static constexpr ByWidth kIds = {
      {x86_avx512_mask_getexp_ps_128, x86_avx512_mask_getexp_ps_256, x86_avx512_mask_getexp_ps_512},
      {x86_avx512_mask_getexp_pd_128, x86_avx512_mask_getexp_pd_256, x86_avx512_mask_getexp_pd_512}};
  return ByRegisters({a},
                     [&](llvm::ArrayRef<V> v, int width) { return Masked(kIds.Of(v[0], width), {v[0], v[0]}, width); });
}

V VectorBuilder::MantissaOf(V a) {
  using namespace llvm::Intrinsic;
  static constexpr ByWidth kIds = {
      {x86_avx512_mask_getmant_ps_128, x86_avx512_mask_getmant_ps_256, x86_avx512_mask_getmant_ps_512},
      {x86_avx512_mask_getmant_pd_128, x86_avx512_mask_getmant_pd_256, x86_avx512_mask_getmant_pd_512}};
  constexpr int kOneToTwo = 0;
  return ByRegisters({a}, [&](llvm::ArrayRef<V> v, int width) {
    return Masked(kIds.Of(v[0], width), {v[0], ir_.getInt32(kOneToTwo), v[0]}, width);
  });
}

V VectorBuilder::NearReciprocal(V a) {
  using namespace llvm::Intrinsic;
  return ByRegisters({a}, [&](llvm::ArrayRef<V> v, int width) -> V {
    const ID id = width == 512   ? x86_avx512_rcp14_ps_512
                  : width == 256 ? x86_avx512_rcp14_ps_256
                                 : x86_avx512_rcp14_ps_128;
    return ir_.CreateIntrinsic(id, {}, {v[0], v[0], AllLanes(ir_, v[0])});
  });
}

V VectorBuilder::FixUp(V result, V argument, uint32_t answers) {
  using namespace llvm::Intrinsic;
  static constexpr ByWidth kIds = {
      {x86_avx512_mask_fixupimm_ps_128, x86_avx512_mask_fixupimm_ps_256, x86_avx512_mask_fixupimm_ps_512},
      {x86_avx512_mask_fixupimm_pd_128, x86_avx512_mask_fixupimm_pd_256, x86_avx512_mask_fixupimm_pd_512}};
  return ByRegisters({result, argument}, [&](llvm::ArrayRef<V> v, int width) {
    return Masked(kIds.Of(v[0], width), {v[0], v[1], I(answers, AsInt(v[0])), ir_.getInt32(0)}, width);
  });
}

V VectorBuilder::Polynomial(V x, std::initializer_list<double> coefficients) {
  constexpr size_t kLeastInPairs = 5;
  if (short_chains_ && coefficients.size() >= kLeastInPairs)
    return Fma(PolynomialByPairs(x, llvm::ArrayRef<double>(coefficients).drop_front()), x, F(*coefficients.begin(), x));
  V sum = nullptr;
  for (auto c = coefficients.end(); c != coefficients.begin();) {
    --c;
    sum = sum ? Fma(sum, x, F(*c, x)) : F(*c, x);
  }
  return sum;
}

V VectorBuilder::PolynomialByPairs(V x, llvm::ArrayRef<double> c) {
  const V square = FMul(x, x);
  V sum = nullptr;
  for (size_t k = (c.size() - 1) / 2 * 2 + 2; k > 0; k -= 2) {
    const bool whole = k <= c.size();
    const V pair = whole ? Fma(F(c[k - 1], x), x, F(c[k - 2], x)) : F(c[k - 2], x);
    sum = sum ? Fma(sum, square, pair) : pair;
  }
  return sum;
}

V VectorBuilder::PolynomialByHalves(V x, std::initializer_list<double> coefficients) {
  llvm::SmallVector<V, 16> terms;
  for (double c : coefficients) terms.push_back(F(c, x));
  for (V power = x; terms.size() > 1; power = FMul(power, power)) {
    llvm::SmallVector<V, 16> next;
    for (size_t k = 0; k < terms.size(); k += 2)
      next.push_back(k + 1 < terms.size() ? Fma(terms[k + 1], power, terms[k]) : terms[k]);
    terms = std::move(next);
  }
  return terms[0];
}

V VectorBuilder::AsFloat(V i) { return ir_.CreateBitCast(i, Like(ScalarBits(i) == 64 ? F64() : F32(), i)); }

namespace {

// A condition as a disjunction: comparisons of floats, those of equal operands as one, and others.
struct Disjunction {
  llvm::SmallVector<std::tuple<unsigned, V, V>, 4> comparisons;
  llvm::SmallVector<V, 4> others;

  explicit Disjunction(V condition) { Add(condition); }
  void Add(V condition) {
    auto* either = llvm::dyn_cast<llvm::BinaryOperator>(condition);
    if (either && either->getOpcode() == llvm::Instruction::Or) {
      Add(either->getOperand(0));
      Add(either->getOperand(1));
    } else if (auto* comparison = llvm::dyn_cast<llvm::FCmpInst>(condition)) {
      // Predicates are sets: equal, greater, less, unordered.
      const unsigned when = comparison->getPredicate();
      V a = comparison->getOperand(0), b = comparison->getOperand(1);
      for (auto& [already, x, y] : comparisons)
        if (x == a && y == b) {
          already |= when;
          return;
        }
      comparisons.emplace_back(when, a, b);
    } else {
      others.push_back(condition);
    }
  }
};

}  // namespace

// Where masks are registers, a comparison can leave out the lanes of a mask, which makes a conjunction of comparisons
// one instruction each; a disjunction is the negation of one. Null: it is no disjunction of two of them.
V VectorBuilder::NegatedConjunction(V condition) {
  if (!target_.masked_memory || Lanes(condition) == 1 || !llvm::isa<llvm::BinaryOperator>(condition)) return nullptr;
  const Disjunction either(condition);
  if (either.comparisons.size() < 2) return nullptr;
  V all = nullptr;
  const auto and_not = [&](V not_so) { all = all ? ir_.CreateAnd(all, not_so) : not_so; };
  for (const auto& [when, a, b] : either.comparisons)
    and_not(ir_.CreateFCmp(llvm::CmpInst::getInversePredicate(static_cast<llvm::CmpInst::Predicate>(when)), a, b));
  for (V other : either.others) and_not(ir_.CreateNot(other));
  return all;
}

V VectorBuilder::Select(V condition, V a, V b) {
  Match(a, b);
  if (Lanes(condition) > 1 && Lanes(a) == 1) {
    a = Splat(a, Lanes(condition));
    b = Splat(b, Lanes(condition));
  }
  if (V neither = NegatedConjunction(condition)) return ir_.CreateSelect(neither, b, a);
  return ir_.CreateSelect(condition, a, b);
}

V VectorBuilder::CallPerLane(const char* name, std::initializer_list<V> args) {
  int lanes = 1;
  for (V a : args) lanes = std::max(lanes, Lanes(a));
  llvm::Type* scalar = (*args.begin())->getType()->getScalarType();
  llvm::SmallVector<llvm::Type*, 2> types;
  for (V a : args) types.push_back(a->getType()->getScalarType());
  llvm::FunctionCallee callee = module_.getOrInsertFunction(name, llvm::FunctionType::get(scalar, types, false));
  auto* function = llvm::cast<llvm::Function>(callee.getCallee());
  function->setDoesNotThrow();
  function->setDoesNotAccessMemory();
  function->setWillReturn();
  V out = lanes == 1 ? nullptr : llvm::PoisonValue::get(WithLanes(scalar, lanes));
  for (int i = 0; i < lanes; ++i) {
    llvm::SmallVector<V, 2> lane_args;
    for (V a : args) lane_args.push_back(Lane(a, i));
    V r = ir_.CreateCall(callee, lane_args);
    out = lanes == 1 ? r : ir_.CreateInsertElement(out, r, static_cast<uint64_t>(i));
  }
  return out;
}

V VectorBuilder::CallPerRegister(const char* name, V x, const std::function<V(V)>& body) {
  const Body of_first = [&](llvm::ArrayRef<V> x) { return body(x[0]); };
  return CallPerRegister(std::string(name), llvm::ArrayRef<V>(x), of_first);
}

// The arguments have the same type.
V VectorBuilder::CallPerRegister(const std::string& name, llvm::ArrayRef<V> arguments, const Body& body) {
  const int lanes = Lanes(arguments[0]), bits = ScalarBits(arguments[0]);
  if (lanes == 1) return body(arguments);
  if (lanes * bits > target_.vector_bytes * 8 && lanes % 2 == 0) {
    const auto half = [&](int first) {
      llvm::SmallVector<V, 2> parts;
      for (V a : arguments) parts.push_back(Slice(a, first, lanes / 2));
      return CallPerRegister(name, parts, body);
    };
    V low = half(0);
    return Concat(low, half(lanes / 2));
  }
  const std::string full = name + "x" + std::to_string(lanes) + (bits == 64 ? "d" : "");
  llvm::Function* function = module_.getFunction(full);
  if (!function) {
    const llvm::Function* caller = ir_.GetInsertBlock()->getParent();
    llvm::Type* type = arguments[0]->getType();
    const llvm::SmallVector<llvm::Type*, 2> types(arguments.size(), type);
    function = llvm::Function::Create(llvm::FunctionType::get(type, types, false), llvm::GlobalValue::InternalLinkage,
                                      full, module_);
    for (const llvm::Attribute& a : caller->getAttributes().getFnAttrs()) function->addFnAttr(a);
    function->addFnAttr(llvm::Attribute::NoInline);
    const IrBuilder::InsertPoint here = ir_.saveIP();
    ir_.SetInsertPoint(llvm::BasicBlock::Create(context(), "entry", function));
    llvm::SmallVector<V, 2> inside;
    for (llvm::Argument& a : function->args()) inside.push_back(&a);
    V result = body(inside);
    ir_.CreateRet(result);
    ir_.restoreIP(here);
  }
  return ir_.CreateCall(function, arguments);
}

V VectorBuilder::OnceIfQuick(const std::string& name, std::initializer_list<V> arguments, const Body& body) {
  llvm::SmallVector<V, 2> all(arguments);
  // Of what is known there may be a shorter way, with other roundings.
  if (!quick_ || std::any_of(all.begin(), all.end(), [](V a) { return llvm::isa<llvm::Constant>(a); }))
    return body(all);
  for (V& a : all)
    for (V& other : all) Match(a, other);
  return CallPerRegister(name, all, body);
}

llvm::BasicBlock* VectorBuilder::SplitBlock(const char* name) {
  llvm::BasicBlock* block = ir_.GetInsertBlock();
  if (ir_.GetInsertPoint() == block->end()) return llvm::BasicBlock::Create(context(), name, block->getParent());
  llvm::BasicBlock* rest = block->splitBasicBlock(ir_.GetInsertPoint(), name);
  block->getTerminator()->eraseFromParent();  // the branch to `rest` that splitting made
  ir_.SetInsertPoint(block);
  return rest;
}

void VectorBuilder::ContinueAt(llvm::BasicBlock* block) {
  if (block->getTerminator())
    ir_.SetInsertPoint(block, block->getFirstNonPHIIt());
  else
    ir_.SetInsertPoint(block);
}

V VectorBuilder::RarePath(V when, V usual, const std::function<V()>& slow) {
  V any = Lanes(when) == 1 ? when : ir_.CreateOrReduce(when);
  llvm::BasicBlock* join = SplitBlock("usual");
  llvm::BasicBlock* entry = ir_.GetInsertBlock();
  llvm::BasicBlock* rare = llvm::BasicBlock::Create(context(), "rare", entry->getParent(), join);
  ir_.CreateCondBr(any, rare, join, llvm::MDBuilder(context()).createBranchWeights(1, 1000));
  ir_.SetInsertPoint(rare);
  V special = Select(when, slow(), usual);
  rare = ir_.GetInsertBlock();
  ir_.CreateBr(join);
  ir_.SetInsertPoint(join, join->begin());
  llvm::PHINode* value = ir_.CreatePHI(usual->getType(), 2);
  value->addIncoming(usual, entry);
  value->addIncoming(special, rare);
  ContinueAt(join);
  return value;
}

}  // namespace strop
