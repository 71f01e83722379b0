// The objects that a program's machine code comes from, for those who write the program down.
#pragma once
#include <memory>
#include <string>
#include <utility>

namespace strop {

class ObjectCode {
 public:
  virtual ~ObjectCode() = default;
  // What is to be written down; waits where better code is still being made.
  virtual std::shared_ptr<const std::string> Final() const = 0;
};

// Bytes that are as they will be.
class FinalObject final : public ObjectCode {
 public:
  explicit FinalObject(std::string bytes) : bytes_(std::make_shared<const std::string>(std::move(bytes))) {}
  explicit FinalObject(std::shared_ptr<const std::string> bytes) : bytes_(std::move(bytes)) {}
  std::shared_ptr<const std::string> Final() const override { return bytes_; }

 private:
  std::shared_ptr<const std::string> bytes_;
};

}  // namespace strop
