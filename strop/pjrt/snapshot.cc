#include "strop/pjrt/snapshot.h"

#include <cstring>

#include "strop/base/log.h"
#include "strop/driver/xla_dump.h"

namespace strop::pjrt {
namespace {

// Row-major bytes of an array that lies in memory in the order of its layout.
Result<Literal> RowMajor(const Shape& shape, const uint8_t* data) {
  STROP_ASSIGN(Literal out, Literal::Zeros(shape.WithoutLayout()));
  const std::span<uint8_t> bytes = out.mutable_bytes();
  if (!shape.has_layout() || shape.layout().IsRowMajor() || bytes.empty()) {
    std::memcpy(bytes.data(), data, bytes.size());
    return out;
  }
  const int64_t element = Bytes(shape.type());
  std::vector<int64_t> stride(shape.rank()), index(shape.rank(), 0);
  int64_t next = element;
  for (int64_t d : shape.layout().minor_to_major) {
    stride[d] = next;
    next *= shape.dim(d);
  }
  for (int64_t linear = 0; linear < shape.num_elements(); ++linear) {
    int64_t at = 0;
    for (int64_t d = 0; d < shape.rank(); ++d) at += index[d] * stride[d];
    std::memcpy(&bytes[linear * element], data + at, element);
    for (int64_t d = shape.rank() - 1; d >= 0 && ++index[d] == shape.dim(d); --d) index[d] = 0;
  }
  return out;
}

// The values of a shape from those of its leaves.
Result<Literal> Assemble(const Shape& shape, std::span<const Literal> leaves, size_t& next) {
  if (shape.IsTuple()) {
    std::vector<Literal> elements;
    for (const Shape& element : shape.elements()) {
      STROP_ASSIGN(Literal literal, Assemble(element, leaves, next));
      elements.push_back(std::move(literal));
    }
    return Literal::Tuple(std::move(elements));
  }
  if (next >= leaves.size()) return Internal("a snapshot of ", leaves.size(), " leaves, which are too few");
  return leaves[next++];
}

Status Write(const Program& program, std::span<const Literal> leaves, std::span<Buffer> outputs) {
  std::vector<Buffer*> buffers;
  for (Buffer& output : outputs) buffers.push_back(&output);
  STROP_ASSIGN(const std::vector<Literal> results, ReadBuffers(buffers));
  STROP_ASSIGN(const std::shared_ptr<const Module> module, program.compiled->module->Get());
  const EntryLayout entry = module->EffectiveEntryLayout();
  std::vector<Literal> arguments;
  size_t next = 0;
  for (const Shape& parameter : entry.parameters) {
    STROP_ASSIGN(Literal argument, Assemble(parameter, leaves, next));
    arguments.push_back(std::move(argument));
  }
  next = 0;
  STROP_ASSIGN(const Literal result, Assemble(entry.result, results, next));
  return program.compiled->snapshots->Write(arguments, result);
}

}  // namespace

Result<std::vector<Literal>> ReadBuffers(std::span<Buffer* const> buffers) {
  std::vector<Literal> out;
  for (Buffer* buffer : buffers) {
    STROP_TRY(buffer->definition()->Await());
    if (!buffer->shape().IsArray()) {
      out.push_back(Literal::Token());
      continue;
    }
    STROP_ASSIGN(const Ref<Storage> storage, buffer->Acquire());
    STROP_ASSIGN(Literal literal, RowMajor(buffer->shape(), static_cast<const uint8_t*>(storage->data())));
    out.push_back(std::move(literal));
  }
  return out;
}

void WriteSnapshot(const Program& program, const Result<std::vector<Literal>>& arguments, std::span<Buffer> outputs) {
  Status status = arguments.ok() ? Write(program, *arguments, outputs) : arguments.status();
  if (!status.ok()) STROP_LOG_AT(1, "no snapshot of ", program.executable().name(), ": ", status.ToString());
}

}  // namespace strop::pjrt
