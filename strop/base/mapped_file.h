// A file as bytes in memory that are read from the disk when they are touched.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "strop/base/status.h"

namespace strop {

struct MappedFile {
  std::string_view bytes;  // begin at a page
  std::shared_ptr<const void> owner;
};
// NotFound if the file cannot be opened. Only for files that are replaced and never rewritten: whoever makes one
// shorter takes the pages away from those who look at it.
Result<MappedFile> MapFile(const std::string& path);
// Of an open file, which may then be closed; `path` is for errors.
Result<MappedFile> MapFile(int file, const std::string& path);

}  // namespace strop
