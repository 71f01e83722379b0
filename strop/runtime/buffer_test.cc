#include "strop/runtime/buffer.h"

#include <gtest/gtest.h>

namespace strop {
namespace {

class BufferTest : public ::testing::Test {
 protected:
  Buffer NewBuffer() {
    return Buffer(*Storage::Allocate(allocator_, 16), shape_, 0, MemoryKind::kDevice, Event::Ready());
  }
  Allocator allocator_;
  Shape shape_ = Shape::Array(ElementType::F32, {4});
};

TEST_F(BufferTest, MemoryGoesBackWithTheLastHolder) {
  Buffer buffer = NewBuffer();
  Ref<Storage> held = *buffer.Acquire();
  buffer.Delete();
  EXPECT_TRUE(buffer.IsDeleted());
  EXPECT_EQ(buffer.Acquire().status().message(), "buffer has been deleted");
  EXPECT_GT(allocator_.stats().bytes_in_use, 0);
  held = nullptr;
  EXPECT_EQ(allocator_.stats().bytes_in_use, 0);
}

TEST_F(BufferTest, ViewsTellWhenTheyAreGone) {
  float data[4] = {};
  int deleted = 0;
  {
    Buffer view(
        Storage::View(data, sizeof data, [&] { ++deleted; }, false), shape_, 0, MemoryKind::kDevice, Event::Ready());
    Buffer moved = std::move(view);
    EXPECT_TRUE(view.IsDeleted());
    EXPECT_EQ((*moved.Acquire())->data(), data);
    EXPECT_FALSE(moved.Donate()->exclusive);  // not ours to write
    EXPECT_EQ(moved.state(), Buffer::State::kDonated);
    EXPECT_EQ(deleted, 1);
    EXPECT_EQ(moved.Donate().status().message(), "buffer has been donated");
  }
  EXPECT_EQ(deleted, 1);
}

TEST_F(BufferTest, DonationIsExclusiveOnlyForASoleHolder) {
  Buffer alone = NewBuffer();
  EXPECT_TRUE(alone.Donate()->exclusive);

  Buffer first = NewBuffer();
  Buffer second(*first.Acquire(), shape_, 0, MemoryKind::kDevice, Event::Ready());
  EXPECT_FALSE(first.Donate()->exclusive);
  EXPECT_TRUE(second.Donate()->exclusive);  // the first one is gone by now

  Buffer seen = NewBuffer();
  Ref<Storage> outside = *seen.AcquireExternal();
  EXPECT_FALSE(seen.Donate()->exclusive);
  Buffer::DropExternal(std::move(outside));
}

TEST_F(BufferTest, SlicesKeepTheirParent) {
  Ref<Storage> parent = *Storage::Allocate(allocator_, 100);
  EXPECT_FALSE(Storage::Slice(parent, 90, 11).ok());
  EXPECT_FALSE(Storage::Slice(parent, -1, 1).ok());
  EXPECT_FALSE(Storage::Slice(parent, 1, INT64_MAX).ok());
  Ref<Storage> slice = *Storage::Slice(parent, 10, 90);
  EXPECT_EQ(slice->data(), static_cast<char*>(parent->data()) + 10);
  parent = nullptr;
  EXPECT_GT(allocator_.stats().bytes_in_use, 0);
  slice = nullptr;
  EXPECT_EQ(allocator_.stats().bytes_in_use, 0);
}

TEST_F(BufferTest, ErrorBuffersReportTheirError) {
  Buffer bad = Buffer::Error(shape_, 0, MemoryKind::kDevice, InvalidArgument("no such file"));
  EXPECT_FALSE(bad.IsDeleted());
  EXPECT_EQ(bad.Acquire().status().message(), "no such file");
  EXPECT_EQ(bad.Donate().status().message(), "no such file");
}

TEST_F(BufferTest, UsesArePending) {
  Ref<Storage> storage = *Storage::Allocate(allocator_, 1);
  EventRef use = Make<Event>();
  storage->AddUse(use);
  storage->AddUse(Event::Ready());
  EXPECT_EQ(storage->PendingUses().size(), 1u);
  use->Set(OkStatus());
  EXPECT_TRUE(storage->PendingUses().empty());
}

}  // namespace
}  // namespace strop
