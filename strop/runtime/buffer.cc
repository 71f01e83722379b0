#include "strop/runtime/buffer.h"

#include <mutex>

namespace strop {

std::string_view Name(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kDevice: return "device";
    case MemoryKind::kPinnedHost: return "pinned_host";
    case MemoryKind::kUnpinnedHost: return "unpinned_host";
  }
  return "unknown";
}

// ---- Storage --------------------------------------------------------------------------------------------------------

Result<Ref<Storage>> Storage::Allocate(Allocator& allocator, int64_t bytes) {
  STROP_ASSIGN(Block block, allocator.Allocate(bytes));
  Ref<Storage> storage = Ref<Storage>::Adopt(new Storage());
  storage->data_ = block.data;
  storage->size_ = bytes;
  storage->allocator_ = &allocator;
  storage->capacity_ = block.capacity;
  return storage;
}

Ref<Storage> Storage::View(void* data, int64_t bytes, std::function<void()> on_delete, bool writable) {
  Ref<Storage> storage = Ref<Storage>::Adopt(new Storage());
  storage->data_ = data;
  storage->size_ = bytes;
  storage->writable_ = writable;
  storage->on_delete_ = std::move(on_delete);
  return storage;
}

Result<Ref<Storage>> Storage::Slice(Ref<Storage> parent, int64_t offset, int64_t bytes) {
  if (offset < 0 || bytes < 0 || offset > parent->size_ || bytes > parent->size_ - offset) {
    return InvalidArgument("slice [", offset, ", +", bytes, ") lies outside of a storage of ", parent->size_, " bytes");
  }
  Ref<Storage> storage = Ref<Storage>::Adopt(new Storage());
  storage->data_ = static_cast<char*>(parent->data_) + offset;
  storage->size_ = bytes;
  storage->writable_ = false;  // the parent's other readers would see the writes
  storage->parent_ = std::move(parent);
  return storage;
}

Storage::~Storage() {
  if (allocator_) allocator_->Free({data_, capacity_});
  if (on_delete_) on_delete_();
}

void Storage::AddUse(EventRef done) {
  if (done->IsReady()) return;
  std::lock_guard<SpinLock> lock(lock_);
  std::erase_if(uses_, [](const EventRef& use) { return use->IsReady(); });
  uses_.push_back(std::move(done));
}

std::vector<EventRef> Storage::PendingUses() {
  std::lock_guard<SpinLock> lock(lock_);
  std::erase_if(uses_, [](const EventRef& use) { return use->IsReady(); });
  return uses_;
}

// ---- Buffer ---------------------------------------------------------------------------------------------------------

Buffer::Buffer(Ref<Storage> storage, Shape shape, int device, MemoryKind memory, EventRef definition)
    : state_(State::kLive),
      storage_(std::move(storage)),
      shape_(std::move(shape)),
      device_(device),
      memory_(memory),
      definition_(std::move(definition)) {
  if (storage_) storage_->buffers_.fetch_add(1, std::memory_order_relaxed);
  if (!shape_.IsStatic()) dynamic_dims_ = std::make_shared<Int64Vector>(shape_.dims());
}

Buffer Buffer::Error(Shape shape, int device, MemoryKind memory, Status status) {
  return Buffer(nullptr, std::move(shape), device, memory, Event::ReadyWith(std::move(status)));
}

Buffer::Buffer(Buffer&& other) noexcept
    : state_(std::exchange(other.state_, State::kDeleted)),
      storage_(std::move(other.storage_)),
      shape_(std::move(other.shape_)),
      device_(other.device_),
      memory_(other.memory_),
      definition_(std::exchange(other.definition_, Event::Ready())),
      dynamic_dims_(std::move(other.dynamic_dims_)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this == &other) return *this;
  Detach(State::kDeleted);
  state_ = std::exchange(other.state_, State::kDeleted);
  storage_ = std::move(other.storage_);
  shape_ = std::move(other.shape_);
  device_ = other.device_;
  memory_ = other.memory_;
  definition_ = std::exchange(other.definition_, Event::Ready());
  dynamic_dims_ = std::move(other.dynamic_dims_);
  return *this;
}

Buffer::~Buffer() { Detach(State::kDeleted); }

// Ends this buffer's hold. The storage is returned so that its release (user code, the system) happens without the
// lock.
Ref<Storage> Buffer::Detach(State state) {
  Ref<Storage> storage;
  std::lock_guard<SpinLock> lock(lock_);
  if (state_ == State::kLive) state_ = state;
  storage = std::move(storage_);
  if (storage) storage->buffers_.fetch_sub(1, std::memory_order_acq_rel);
  return storage;
}

Int64Vector Buffer::dynamic_dims() const { return dynamic_dims_ ? *dynamic_dims_ : shape_.dims(); }

Buffer::State Buffer::state() const {
  std::lock_guard<SpinLock> lock(lock_);
  return state_;
}

void Buffer::Delete() { Detach(State::kDeleted); }

Result<Ref<Storage>> Buffer::Acquire() const {
  {
    std::lock_guard<SpinLock> lock(lock_);
    if (state_ == State::kLive && storage_) return storage_;
    if (state_ == State::kDonated) return InvalidArgument("buffer has been donated");
    if (state_ == State::kDeleted) return InvalidArgument("buffer has been deleted");
  }
  Status error = definition_->status();
  return error.ok() ? Internal("live buffer without memory") : error;
}

Result<Buffer::Donation> Buffer::Donate() {
  Donation donation;
  {
    std::lock_guard<SpinLock> lock(lock_);
    if (state_ == State::kLive && storage_) {
      state_ = State::kDonated;
      donation.storage = std::move(storage_);
      bool sole = donation.storage->buffers_.fetch_sub(1, std::memory_order_acq_rel) == 1;
      donation.exclusive =
          sole && donation.storage->writable_ && donation.storage->external_refs_.load(std::memory_order_acquire) == 0;
      return donation;
    }
  }
  return Acquire().status();
}

Result<Ref<Storage>> Buffer::AcquireExternal() {
  {
    std::lock_guard<SpinLock> lock(lock_);
    if (state_ == State::kLive && storage_) {
      storage_->external_refs_.fetch_add(1, std::memory_order_acq_rel);
      return storage_;
    }
  }
  return Acquire().status();  // why there is none
}

void Buffer::DropExternal(Ref<Storage> storage) { storage->external_refs_.fetch_sub(1, std::memory_order_acq_rel); }

}  // namespace strop
