// LoopScopes: the nest of loops and conditional regions that code is being emitted into, and emission *at an outer
// level*.
//
// A value that does not depend on the inner loops (its level is lower) is emitted before them: at the hoist point of
// the loop that is entered next. So nothing is ever computed too deep, not even a whole reduction, and no later pass
// has to move it. Everything emitted for one level dominates what is emitted inside that level afterwards, which makes
// caches by level safe.
//
//   level 0   entry of the kernel
//   level 1   row loop            <- hoist point: the branch that enters it
//   level 2   vector loop
//   level 3   a reduction inside the body, or a branch (pad: inside or padding)
#pragma once
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "strop/codegen/vector_builder.h"

namespace strop {

class LoopScopes {
 public:
  using V = llvm::Value*;
  explicit LoopScopes(VectorBuilder& b) : b_(b), scopes_(1) {}

  int current() const { return current_; }
  // The innermost conditional region at or around the current level; what may trap must not leave it. 0: none.
  int innermost_conditional() const;
  // Runs fn with code going to `level` (<= current()).
  template <class Fn>
  auto At(int level, Fn&& fn) {
    Redirect redirect(*this, level);
    return fn();
  }

  // for (i = begin; i < end; i += step) carried = body(i, carried), one level deeper. Values at the end are returned.
  using LoopBody = std::function<std::vector<V>(V i, std::span<const V> carried)>;
  // `pinned`: what is emitted at positions stays inside, whatever level they have.
  std::vector<V> Loop(const char* name, V begin, V end, int64_t step, std::span<const V> init, const LoopBody& body,
                      bool pinned = false);
  void Loop(const char* name, V begin, V end, int64_t step, const std::function<void(V i)>& body);
  // while (goes_on(carried)) carried = body(carried), one level deeper, pinned. Values at the end are returned.
  using Carried = std::span<const V>;
  std::vector<V> While(const char* name, Carried init, const std::function<V(Carried)>& goes_on,
                       const std::function<std::vector<V>(Carried)>& body);
  // Loops of known trips are emitted trip by trip, so that every position in them is a constant, as long as no code is
  // repeated more often than this.
  void RepeatUpTo(int64_t copies) { copies_ = copies; }
  int64_t copies() const { return copies_; }
  // condition ? then() : otherwise(), as branches, each one level deeper; both give the same number of values.
  std::vector<V> If(V condition, const std::function<std::vector<V>()>& then,
                    const std::function<std::vector<V>()>& otherwise);

  // What has been emitted at `level` under a key; the reference is good until something else is cached.
  using Key = std::vector<uint64_t>;
  const std::vector<V>* Find(int level, const Key& key) const;
  void Remember(int level, Key key, std::vector<V> values);
  // A part of keys that nobody else has: of what means something to its owner alone.
  uint64_t NewOwner() { return ++owners_; }

 private:
  struct Scope {
    llvm::Instruction* hoist_point = nullptr;  // the branch into this scope
    bool conditional = false;
    std::map<Key, std::vector<V>> emitted;
  };
  class Redirect {
   public:
    Redirect(LoopScopes& s, int level);
    ~Redirect();

   private:
    LoopScopes& s_;
    int saved_level_;
    llvm::IRBuilderBase::InsertPoint saved_;
    bool moved_;
  };
  void Enter(llvm::Instruction* hoist_point, bool conditional);
  void Leave();

  VectorBuilder& b_;
  std::vector<Scope> scopes_;
  int current_ = 0;
  int64_t copies_ = 1;  // as often may code be repeated from here on
  uint64_t owners_ = 0;
};

}  // namespace strop
