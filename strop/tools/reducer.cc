#include "strop/tools/reducer.h"

#include <algorithm>
#include <optional>
#include <thread>

#include "strop/ir/verifier.h"
#include "strop/text/parser.h"
#include "strop/tools/reducer_edits.h"

namespace strop::tools {
namespace {

// Below this the first edits find the root as fast.
constexpr int64_t kFewInstructions = 16;

class Search {
 public:
  Search(std::unique_ptr<Module> module, const StillFails& still_fails, const ReduceOptions& options)
      : module_(std::move(module)), still_fails_(still_fails), options_(options), left_(options.max_checks) {}

  Status Run() {
    for (bool smaller = true; smaller && !Over();) {
      STROP_ASSIGN(smaller, FindRoot());
      for (const Edit& edit : Edits()) {
        // All places, halves, quarters; at last single ones.
        for (int64_t size = edit.several ? std::max<int64_t>(edit.count(*module_), 1) : 1; size > 0; size /= 2) {
          STROP_ASSIGN(const bool kept, TryEach(edit, size));
          smaller |= kept;
        }
      }
      STROP_ASSIGN(const bool rewritten, Rewrite());
      smaller |= rewritten;
    }
    return OkStatus();
  }
  std::unique_ptr<Module> Take() { return std::move(module_); }
  int64_t left() const { return left_; }
  bool Over() const { return left_ <= 0 || (options_.stop && options_.stop()); }

 private:
  using Make = std::function<std::unique_ptr<Module>(int64_t k)>;

  // The first of the candidates first <= k < count that is smaller and passes the test becomes the module. As many as
  // there are jobs are tried at once; which one is kept does not depend on that.
  Result<std::optional<int64_t>> TryFirst(int64_t first, int64_t count, const Make& make) {
    for (int64_t k = first; k < count && !Over();) {
      std::vector<std::pair<int64_t, std::unique_ptr<Module>>> batch;
      for (; k < count && static_cast<int64_t>(batch.size()) < std::min<int64_t>(options_.jobs, left_); ++k) {
        std::unique_ptr<Module> candidate = make(k);
        if (!candidate) continue;
        CleanUp(*candidate);
        if (SizeOf(*candidate) < SizeOf(*module_) && VerifyModule(*candidate).ok())
          batch.emplace_back(k, std::move(candidate));
      }
      std::vector<Result<bool>> fails(batch.size(), false);
      {
        std::vector<std::jthread> threads;
        for (size_t n = 1; n < batch.size(); ++n)
          threads.emplace_back([&, n] { fails[n] = still_fails_(*batch[n].second, static_cast<int>(n)); });
        if (!batch.empty()) fails[0] = still_fails_(*batch[0].second, 0);
      }
      left_ -= static_cast<int64_t>(batch.size());
      for (size_t n = 0; n < batch.size(); ++n) {
        STROP_TRY(fails[n]);
        if (!*fails[n]) continue;
        module_ = std::move(batch[n].second);
        if (options_.progress) options_.progress(*module_, options_.max_checks - left_);
        return std::optional<int64_t>(batch[n].first);
      }
    }
    return std::optional<int64_t>();
  }

  // Runs of `size` places, one after the other; after one that is kept, the next begins where that one did.
  Result<bool> TryEach(const Edit& edit, int64_t size) {
    bool any = false;
    for (int64_t run = 0;; any = true) {
      const int64_t count = edit.count(*module_);
      STROP_ASSIGN(const std::optional<int64_t> kept,
                   TryFirst(run, (count + size - 1) / size, [&](int64_t k) -> std::unique_ptr<Module> {
                     std::unique_ptr<Module> candidate = module_->Clone();
                     if (!edit.apply(*candidate, k * size, std::min(count, (k + 1) * size))) return nullptr;
                     return candidate;
                   }));
      if (!kept) return any;
      run = *kept;
    }
  }

  // The shortest prefix of the entry whose values show it; then its last value alone, or else all of them.
  Result<bool> FindRoot() {
    const int64_t count = module_->entry()->instruction_count();
    if (count < kFewInstructions) return false;
    int64_t low = 0, high = count;
    STROP_ASSIGN(bool shows, PrefixShows(high));
    if (!shows) return false;
    while (high - low > 1 && !Over()) {
      const int64_t middle = low + (high - low) / 2;
      STROP_ASSIGN(shows, PrefixShows(middle));
      (shows ? high : low) = middle;
    }
    STROP_ASSIGN(const std::optional<int64_t> kept, TryFirst(0, 2, [&](int64_t k) -> std::unique_ptr<Module> {
                   std::unique_ptr<Module> candidate = module_->Clone();
                   const bool made = k == 0 ? MakeRoot(*candidate, high - 1) : MakePrefixRoot(*candidate, high);
                   return made ? std::move(candidate) : nullptr;
                 }));
    return kept.has_value();
  }

  Result<bool> PrefixShows(int64_t k) {
    const std::unique_ptr<Module> candidate = module_->Clone();
    if (!MakePrefixRoot(*candidate, k)) return false;
    CleanUp(*candidate);
    if (Over() || !VerifyModule(*candidate).ok()) return false;
    --left_;
    return still_fails_(*candidate, 0);
  }

  Result<bool> Rewrite() {
    for (bool any = false;; any = true) {
      const std::vector<std::string> texts = Rewritings(*module_);
      STROP_ASSIGN(const std::optional<int64_t> kept,
                   TryFirst(0, static_cast<int64_t>(texts.size()), [&](int64_t k) -> std::unique_ptr<Module> {
                     Result<std::unique_ptr<Module>> candidate = ParseHloModule(texts[k]);
                     return candidate.ok() ? *std::move(candidate) : nullptr;
                   }));
      if (!kept) return any;
    }
  }

  std::unique_ptr<Module> module_;
  const StillFails& still_fails_;
  const ReduceOptions& options_;
  int64_t left_;
};

}  // namespace

Result<ReduceResult> Reduce(const Module& module, const StillFails& still_fails, const ReduceOptions& options) {
  Search search(module.Clone(), still_fails, options);
  STROP_TRY(search.Run());
  ReduceResult out;
  out.checks = options.max_checks - search.left();
  out.complete = !search.Over();
  out.module = search.Take();
  return out;
}

}  // namespace strop::tools
