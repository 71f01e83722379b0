#include "strop/tools/stand_ins.h"

#include "strop/base/hash.h"
#include "strop/tools/inputs.h"
#include "strop/tools/same_results.h"

namespace strop::tools {
namespace {

uint64_t HashOf(std::string_view text) {
  Fnv1a hash;
  hash.Add(text);
  return hash.value();
}

}  // namespace

void StandIns::AddTo(InterpretOptions& options) {
  options.rng_repeats = true;
  options.custom_call = [this](const Instruction& i, std::span<const Literal> operands, Literal* result) {
    return CustomCall(i, operands, result);
  };
  options.communicate = [this](const Instruction& i, std::span<const Literal> operands, Literal* result) {
    return Communicate(i, operands, result);
  };
  options.absent_others = [this](const Instruction& i, std::span<const Literal> operands, Literal* result) {
    return AbsentOthers(i, operands, result);
  };
  options.infeed = [this](const Instruction& i, std::span<const Literal>, Literal* result) {
    STROP_ASSIGN(*result, RandomValue(i.shape(), ++fed_));
    return OkStatus();
  };
  options.outfeed = [this](const Instruction&, std::span<const Literal> operands, Literal* result) {
    Leave("outfeed", operands);
    *result = Literal::Token();
    return OkStatus();
  };
}

Status StandIns::CustomCall(const Instruction& i, std::span<const Literal> operands, Literal* result) {
  const auto& attrs = i.attrs<CustomCallAttrs>();
  if (attrs.has_side_effect) Leave(StrCat("custom call ", attrs.target), operands);
  std::string call = StrCat(attrs.target, ";", attrs.opaque);
  for (const Literal& operand : operands) StrAppend(call, ";", operand.Hash());
  STROP_ASSIGN(*result, RandomValue(i.shape(), HashOf(call)));
  return OkStatus();
}

// Of a collective that starts the answer is what its end gives: passes make the two one.
Status StandIns::AbsentOthers(const Instruction& i, std::span<const Literal> operands, Literal* result) {
  const bool starts = i.op() == Op::AllGatherStart || i.op() == Op::CollectivePermuteStart;
  std::string call = "others";
  for (const Literal& operand : operands) StrAppend(call, ";", operand.Hash());
  STROP_ASSIGN(*result, RandomValue(starts && i.shape().IsTuple() ? i.shape().element(1) : i.shape(), HashOf(call)));
  return OkStatus();
}

Status StandIns::Communicate(const Instruction& i, std::span<const Literal> operands, Literal* result) {
  const int64_t channel = i.attrs<ChannelAttrs>().channel_id;
  if (i.op() == Op::Send) {
    Leave(StrCat("send on channel ", channel), operands.first(1));
    *result = Literal::Token();
    return OkStatus();
  }
  STROP_ASSIGN(*result, RandomValue(i.shape().element(0), HashOf(StrCat(channel, ";", received_[channel]++))));
  return OkStatus();
}

void StandIns::Leave(std::string what, std::span<const Literal> values) {
  departures_.push_back({std::move(what), {values.begin(), values.end()}});
}

std::string FirstDifference(const std::vector<StandIns::Departure>& was, const std::vector<StandIns::Departure>& is) {
  for (size_t k = 0; k < std::min(was.size(), is.size()); ++k) {
    const std::string where = StrCat("departure ", k, " (", was[k].what, ") ");
    if (was[k].what != is[k].what) return StrCat(where, "is ", is[k].what);
    if (was[k].values.size() != is[k].values.size())
      return StrCat(where, "carries ", is[k].values.size(), " values, were ", was[k].values.size());
    for (size_t v = 0; v < was[k].values.size(); ++v) {
      const std::string difference = FirstDifference(was[k].values[v], is[k].values[v]);
      if (!difference.empty()) return StrCat(where, difference);
    }
  }
  if (was.size() != is.size()) return StrCat("there are ", is.size(), " departures, were ", was.size());
  return "";
}

}  // namespace strop::tools
