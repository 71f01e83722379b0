#include "strop/analysis/trip_count.h"

namespace strop {
namespace {

// An instruction, and the fusion that it is in, if it is in one.
struct Place {
  const Instruction* i;
  const Instruction* fusion = nullptr;
  Place operand(int64_t k) const { return {i->operand(k), fusion}; }
};

// What computes the same value: through copies, and into and out of fusions.
Place Source(Place at) {
  while (true) {
    if (at.i->op() == Op::Copy) {
      at = at.operand(0);
    } else if (at.fusion && at.i->IsParameter()) {
      at = {at.fusion->operand(at.i->parameter_number())};
    } else if (!at.fusion && at.i->op() == Op::Fusion && at.i->shape().IsArray()) {
      at = {at.i->called(0)->root(), at.i};
    } else if (!at.fusion && at.i->op() == Op::GetTupleElement && at.i->operand(0)->op() == Op::Fusion &&
               at.i->operand(0)->called(0)->root()->op() == Op::Tuple) {
      const Instruction* fusion = at.i->operand(0);
      at = {fusion->called(0)->root()->operand(at.i->tuple_index()), fusion};
    } else {
      return at;
    }
  }
}

std::optional<int64_t> ConstantInt(Place at) {
  for (at = Source(at); at.i->op() == Op::Reshape && at.i->shape().IsScalar();) at = Source(at.operand(0));
  const Instruction* i = at.i;
  if (!i->IsConstant() || !i->shape().IsScalar() || !IsInteger(i->shape().type())) return std::nullopt;
  const int64_t value = i->literal().GetInt(0);
  if (i->shape().type() == ElementType::U64 && value < 0) return std::nullopt;
  return value;
}

// The element of the state that is read there, or -1: get-tuple-element of the only parameter, or the parameter itself.
int64_t StateElement(Place at, const Computation& c) {
  const Instruction* i = Source(at).i;
  if (i == c.parameter(0)) return i->shape().IsTuple() ? -1 : 0;
  if (i->op() == Op::GetTupleElement && i->operand(0) == c.parameter(0)) return i->tuple_index();
  return -1;
}

const Instruction* Element(const Instruction* state, int64_t k) {
  if (!state->shape().IsTuple()) return state;
  return state->op() == Op::Tuple ? state->operand(k) : nullptr;
}

CompareDirection Mirrored(CompareDirection d) {
  switch (d) {
    case CompareDirection::Lt: return CompareDirection::Gt;
    case CompareDirection::Le: return CompareDirection::Ge;
    case CompareDirection::Gt: return CompareDirection::Lt;
    case CompareDirection::Ge: return CompareDirection::Le;
    default: return d;
  }
}

// Range of an integer type, u64 cut at INT64_MAX.
std::pair<__int128, __int128> RangeOf(ElementType t) {
  const int bits = Bits(t);
  if (IsSigned(t)) return {-(static_cast<__int128>(1) << (bits - 1)), (static_cast<__int128>(1) << (bits - 1)) - 1};
  return {0, bits == 64 ? static_cast<__int128>(INT64_MAX) : (static_cast<__int128>(1) << bits) - 1};
}

std::optional<int64_t> Trips(CompareDirection d, __int128 init, __int128 step, __int128 bound, ElementType type) {
  const auto [low, high] = RangeOf(type);
  if (d == CompareDirection::Le) d = CompareDirection::Lt, ++bound;
  if (d == CompareDirection::Ge) d = CompareDirection::Gt, --bound;
  __int128 n = 0;
  switch (d) {
    case CompareDirection::Lt:
      if (init >= bound) return 0;
      if (step <= 0) return std::nullopt;
      n = (bound - init + step - 1) / step;
      break;
    case CompareDirection::Gt:
      if (init <= bound) return 0;
      if (step >= 0) return std::nullopt;
      n = (init - bound - step - 1) / -step;
      break;
    case CompareDirection::Ne:
      if (init == bound) return 0;
      if (step == 0 || (bound - init) % step != 0 || (bound - init) / step < 0) return std::nullopt;
      n = (bound - init) / step;
      break;
    default:  // Eq: at most one trip unless the step is zero
      if (init != bound) return 0;
      if (step == 0) return std::nullopt;
      n = 1;
  }
  const __int128 last = init + n * step;  // must not wrap
  if (last < low || last > high || n > INT64_MAX) return std::nullopt;
  return static_cast<int64_t>(n);
}

}  // namespace

std::optional<Progression> FindProgression(const Instruction& loop, int64_t k) {
  const Computation& body = *loop.body();
  const Instruction* next = Element(body.root(), k);
  const Instruction* start = Element(loop.operand(0), k);
  if (!next || !start) return std::nullopt;
  const std::optional<int64_t> init = ConstantInt({start});
  if (!init) return std::nullopt;
  const ElementType type = start->shape().type();
  const Place update = Source({next});
  std::optional<int64_t> step;
  if (StateElement(update, body) == k) {
    step = 0;
  } else if (update.i->op() == Op::Add || update.i->op() == Op::Subtract) {
    if (StateElement(update.operand(0), body) == k)
      step = ConstantInt(update.operand(1));
    else if (update.i->op() == Op::Add && StateElement(update.operand(1), body) == k)
      step = ConstantInt(update.operand(0));
    if (step && update.i->op() == Op::Subtract)
      step = *step == INT64_MIN ? std::nullopt : std::optional<int64_t>(-*step);
  }
  if (!step) return std::nullopt;
  // Adding a large unsigned number is how some front ends count down.
  if (IsUnsigned(type) && Bits(type) < 64 && *step > (int64_t{1} << (Bits(type) - 1)))
    *step -= int64_t{1} << Bits(type);
  return Progression{*init, *step};
}

std::optional<Counter> FindCounter(const Instruction& loop) {
  const Computation& condition = *loop.condition();
  const Place compare = Source({condition.root()});
  if (compare.i->op() != Op::Compare) return std::nullopt;
  CompareDirection direction = compare.i->attrs<CompareAttrs>().direction;
  int64_t k = StateElement(compare.operand(0), condition);
  std::optional<int64_t> bound = ConstantInt(compare.operand(1));
  if (k < 0 || !bound) {
    k = StateElement(compare.operand(1), condition);
    bound = ConstantInt(compare.operand(0));
    direction = Mirrored(direction);
  }
  if (k < 0 || !bound) return std::nullopt;
  const Shape& counted = compare.i->operand(0)->shape();
  const ElementType type = counted.type();
  if (!IsInteger(type) || !counted.IsScalar()) return std::nullopt;
  const std::optional<Progression> counts = FindProgression(loop, k);
  if (!counts) return std::nullopt;
  const std::optional<int64_t> trips = Trips(direction, counts->init, counts->step, *bound, type);
  if (!trips) return std::nullopt;
  return Counter{k, counts->init, counts->step, *trips};
}

namespace {
constexpr std::string_view kKey = "\"known_trip_count\":{\"n\":\"";
}

void RecordTripCount(Instruction* loop, int64_t trips) {
  if (!loop->backend_config().empty()) return;
  loop->set_backend_config(StrCat("{", kKey, trips, "\"}}"));
}

std::optional<int64_t> RecordedTripCount(const Instruction& loop) {
  const std::string& config = loop.backend_config();
  const size_t at = config.find(kKey);
  if (at == config.npos) return std::nullopt;
  const size_t begin = at + kKey.size(), end = config.find('"', begin);
  if (end == config.npos) return std::nullopt;
  return ParseNumber<int64_t>(std::string_view(config).substr(begin, end - begin));
}

namespace {
constexpr const char* kIndependent = "strop_independent_trips";
}

void MarkIndependentTrips(Instruction* loop, int64_t trips) {
  RecordTripCount(loop, trips);
  loop->set_frontend_attribute(kIndependent, StrCat(trips));
}

void ForgetIndependentTrips(Instruction* loop) {
  FrontendAttributes attributes = loop->frontend_attributes();
  if (attributes.erase(kIndependent) > 0) loop->set_frontend_attributes(std::move(attributes));
}

int64_t IndependentTrips(const Instruction& loop) {
  const FrontendAttributes& attributes = loop.frontend_attributes();
  const auto mark = attributes.find(kIndependent);
  return mark == attributes.end() ? 0 : ParseNumber<int64_t>(mark->second).value_or(0);
}

}  // namespace strop
