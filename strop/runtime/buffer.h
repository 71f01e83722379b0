// Storage: a counted piece of memory. Buffer: a typed array in some device's memory, as frameworks hold it.
//
// Tuples do not exist here: only leaves (arrays and tokens). Several buffers may share a storage (an output that is a
// parameter, an alias); donation takes a storage over only from its single holder and copies otherwise.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "strop/base/recycled.h"
#include "strop/base/ref.h"
#include "strop/base/spin_lock.h"
#include "strop/base/status.h"
#include "strop/runtime/allocator.h"
#include "strop/runtime/event.h"
#include "strop/types/shape.h"

namespace strop {

enum class MemoryKind : uint8_t { kDevice = 0, kPinnedHost = 1, kUnpinnedHost = 2 };
inline constexpr int kNumMemoryKinds = 3;
std::string_view Name(MemoryKind kind);  // "device", "pinned_host", "unpinned_host"

class Storage final : public RefCounted<Storage>, public Recycled<Storage> {
 public:
  // From the allocator, which must outlive the storage.
  static Result<Ref<Storage>> Allocate(Allocator& allocator, int64_t bytes);
  // Memory of somebody else. `on_delete` runs once, when the last reference is gone. `writable` false: donation copies.
  static Ref<Storage> View(void* data, int64_t bytes, std::function<void()> on_delete, bool writable);
  // bytes [offset, offset + bytes) of `parent`, which is kept alive. InvalidArgument if outside.
  static Result<Ref<Storage>> Slice(Ref<Storage> parent, int64_t offset, int64_t bytes);
  ~Storage();

  void* data() const { return data_; }
  int64_t size() const { return size_; }
  bool writable() const { return writable_; }
  // Memory that came from an Allocator (not a view or a slice).
  bool owned() const { return allocator_ != nullptr; }

  // Executions in flight that read or write this storage; donation and in-place reuse wait for them.
  void AddUse(EventRef done);
  std::vector<EventRef> PendingUses();

 private:
  friend class Buffer;
  Storage() = default;

  void* data_ = nullptr;
  int64_t size_ = 0;
  bool writable_ = true;
  Allocator* allocator_ = nullptr;
  int64_t capacity_ = 0;
  Ref<Storage> parent_;
  std::function<void()> on_delete_;
  std::atomic<int32_t> buffers_{0};        // live buffers that show this storage
  std::atomic<int32_t> external_refs_{0};  // frameworks that look at the memory directly
  SpinLock lock_;
  std::vector<EventRef> uses_;  // guarded by lock_
};

class Buffer {
 public:
  enum class State : uint8_t { kLive, kDonated, kDeleted };

  Buffer() = default;  // deleted
  Buffer(Ref<Storage> storage, Shape shape, int device, MemoryKind memory, EventRef definition);
  // A buffer that only carries an error: any use reports it.
  static Buffer Error(Shape shape, int device, MemoryKind memory, Status status);
  Buffer(Buffer&& other) noexcept;  // moving needs exclusive access to both
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  const Shape& shape() const { return shape_; }
  int device() const { return device_; }
  MemoryKind memory() const { return memory_; }
  // Ready when the contents are there; carries the error if they never will be. Never null.
  const EventRef& definition() const { return definition_; }
  int64_t byte_size() const { return shape_.IsArray() ? shape_.byte_size() : 0; }
  // Sizes of dynamic dimensions as computed; shape().dims() are bounds. Valid once definition() is ready.
  Int64Vector dynamic_dims() const;
  void set_dynamic_dims(Int64Vector dims) { *dynamic_dims_ = std::move(dims); }
  // Where an execution writes the sizes before it sets the definition event.
  const std::shared_ptr<Int64Vector>& dynamic_dims_cell() const { return dynamic_dims_; }

  State state() const;
  bool IsDeleted() const { return state() != State::kLive; }
  // Drops this buffer's hold on its memory; executions in flight keep theirs.
  void Delete();

  // The storage, kept alive by the returned reference. InvalidArgument if deleted or donated.
  Result<Ref<Storage>> Acquire() const;
  // Takes the contents away: this buffer becomes kDonated.
  // `exclusive` tells whether the storage may be written in place (one holder, writable, nobody looks at it from
  // outside).
  struct Donation {
    Ref<Storage> storage;
    bool exclusive = false;
  };
  Result<Donation> Donate();

  // A framework that reads the memory directly (zero-copy numpy, dlpack): keeps the storage and forbids in-place reuse.
  // The returned reference must be given to DropExternal.
  Result<Ref<Storage>> AcquireExternal();
  static void DropExternal(Ref<Storage> storage);

 private:
  Ref<Storage> Detach(State state);

  mutable SpinLock lock_;
  State state_ = State::kDeleted;  // state_ and storage_ are guarded by lock_
  Ref<Storage> storage_;
  Shape shape_;
  int device_ = 0;
  MemoryKind memory_ = MemoryKind::kDevice;
  EventRef definition_ = Event::Ready();
  std::shared_ptr<Int64Vector> dynamic_dims_;  // null for static shapes
};

}  // namespace strop
