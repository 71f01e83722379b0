// What stands for the world outside of a program while two versions of it are compared: custom calls that nobody knows,
// feeds, channels, other devices and random numbers. Its answers depend on what it is asked alone (the target, the
// operands, how often the channel was read), so both versions get the same ones; floats of an answer are continuous in
// the operands' floats, as the two versions round differently. What leaves a program is kept, to be compared as well.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "strop/interp/interpreter.h"

namespace strop::tools {

class StandIns {
 public:
  // `this` must outlive the interpreter that is made with these options.
  void AddTo(InterpretOptions& options);

  // What left the program, in order: outfeeds, sends, operands of custom calls with effects.
  struct Departure {
    std::string what;  // "outfeed", "send on channel 3", "custom call foo"
    std::vector<Literal> values;
  };
  const std::vector<Departure>& departures() const { return departures_; }

 private:
  Status CustomCall(const Instruction& i, std::span<const Literal> operands, Literal* result);
  Status AbsentOthers(const Instruction& i, std::span<const Literal> operands, Literal* result);
  Status Communicate(const Instruction& i, std::span<const Literal> operands, Literal* result);
  void Leave(std::string what, std::span<const Literal> values);

  std::vector<Departure> departures_;
  std::map<int64_t, uint64_t> received_;  // by channel
  uint64_t fed_ = 0;
};

// "" or the first difference.
std::string FirstDifference(const std::vector<StandIns::Departure>& was, const std::vector<StandIns::Departure>& is);

}  // namespace strop::tools
