// The layout of .npy: "\x93NUMPY", version, length of the header (2 or 4 bytes), a Python dictionary as text, the data.
// Of zip: a central directory at the end names each member, its sizes and where its local header lies; members are
// stored or deflated.
#include "strop/tools/npy.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "strop/base/strings.h"

namespace strop::tools {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

uint64_t Little(std::string_view bytes, size_t at, int count) {
  uint64_t v = 0;
  for (int i = 0; i < count; ++i)
    v |= uint64_t{static_cast<unsigned char>(bytes[at + static_cast<size_t>(i)])} << (8 * i);
  return v;
}
void AppendLittle(std::string& out, uint64_t v, int count) {
  for (int i = 0; i < count; ++i) out.push_back(static_cast<char>(v >> (8 * i)));
}

// ---- types
// ------------------------------------------------------------------------------------------------------------

struct DtypeRow {
  ElementType type;
  std::string_view descr;  // "" where NumPy has only raw bytes
  std::string_view name;
};
constexpr DtypeRow kDtypes[] = {
    {ElementType::Pred, "|b1", "bool"},
    {ElementType::S8, "|i1", "int8"},
    {ElementType::S16, "<i2", "int16"},
    {ElementType::S32, "<i4", "int32"},
    {ElementType::S64, "<i8", "int64"},
    {ElementType::U8, "|u1", "uint8"},
    {ElementType::U16, "<u2", "uint16"},
    {ElementType::U32, "<u4", "uint32"},
    {ElementType::U64, "<u8", "uint64"},
    {ElementType::F16, "<f2", "float16"},
    {ElementType::F32, "<f4", "float32"},
    {ElementType::F64, "<f8", "float64"},
    {ElementType::C64, "<c8", "complex64"},
    {ElementType::C128, "<c16", "complex128"},
    {ElementType::BF16, "", "bfloat16"},
    {ElementType::S2, "", "int2"},
    {ElementType::S4, "", "int4"},
    {ElementType::U2, "", "uint2"},
    {ElementType::U4, "", "uint4"},
    {ElementType::F8E5M2, "", "float8_e5m2"},
    {ElementType::F8E4M3, "", "float8_e4m3"},
    {ElementType::F8E3M4, "", "float8_e3m4"},
    {ElementType::F8E4M3FN, "", "float8_e4m3fn"},
    {ElementType::F8E4M3B11FNUZ, "", "float8_e4m3b11fnuz"},
    {ElementType::F8E5M2FNUZ, "", "float8_e5m2fnuz"},
    {ElementType::F8E4M3FNUZ, "", "float8_e4m3fnuz"},
    {ElementType::F8E8M0FNU, "", "float8_e8m0fnu"},
    {ElementType::F4E2M1FN, "", "float4_e2m1fn"},
};

// "<f4", "|V2", "bfloat16". False if it is none of these.
bool ParseDescr(std::string_view descr, NpyArray* array) {
  for (const DtypeRow& row : kDtypes) {
    if (descr != row.name && (row.descr.empty() || descr.size() < 2 || descr.substr(1) != row.descr.substr(1)))
      continue;
    if (descr[0] == '>' && Bytes(row.type) > 1) return false;
    array->type = row.type;
    array->width = Bytes(row.type);
    return true;
  }
  if (descr.size() >= 3 && descr[1] == 'V' && descr[0] != '>') {
    const auto width = ParseNumber<int64_t>(descr.substr(2));
    if (!width || *width < 1 || *width > 16) return false;
    array->width = *width;
    return true;
  }
  return false;
}

// ---- .npy
// -------------------------------------------------------------------------------------------------------------

// The text after `'key':` in the header's dictionary.
std::optional<std::string_view> HeaderValue(std::string_view header, std::string_view key) {
  const size_t at = header.find(StrCat("'", key, "'"));
  if (at == std::string_view::npos) return std::nullopt;
  const size_t colon = header.find(':', at);
  if (colon == std::string_view::npos) return std::nullopt;
  return Trim(header.substr(colon + 1));
}

Status ParseHeader(std::string_view header, NpyArray* array, bool* fortran) {
  const auto descr = HeaderValue(header, "descr"), order = HeaderValue(header, "fortran_order"),
             shape = HeaderValue(header, "shape");
  if (!descr || !order || !shape || descr->empty() || shape->empty() || (*shape)[0] != '(')
    return InvalidArgument(".npy header lacks descr, fortran_order or shape: ", header);
  const char quote = (*descr)[0];
  const size_t end = descr->find(quote, 1);
  if ((quote != '\'' && quote != '"') || end == std::string_view::npos || !ParseDescr(descr->substr(1, end - 1), array))
    return InvalidArgument(".npy element type is not supported: ", *descr);
  *fortran = order->substr(0, 4) == "True";
  const size_t close = shape->find(')');
  if (close == std::string_view::npos) return InvalidArgument(".npy shape has no end: ", header);
  int64_t size = array->width;
  for (std::string_view item : Split(shape->substr(1, close - 1), ',')) {
    item = Trim(item);
    if (item.empty()) continue;
    const auto dim = ParseNumber<int64_t>(item);
    if (!dim || *dim < 0) return InvalidArgument(".npy dimension '", item, "' is no size");
    array->dims.push_back(*dim);
    size = SaturatingMultiply(size, *dim);
  }
  if (size == INT64_MAX || array->dims.size() > 64) return InvalidArgument(".npy shape is too large: ", *shape);
  return OkStatus();
}

// Column-major data to row-major; with the dimensions reversed, the way back.
std::string Reorder(const Int64Vector& dims, size_t width, std::string_view data) {
  std::string out(data.size(), '\0');
  const size_t rank = dims.size();
  std::vector<int64_t> index(rank, 0);
  for (size_t at = 0; at * width < data.size(); ++at) {  // `at` walks row-major
    size_t from = 0, stride = 1;
    for (size_t d = 0; d < rank; ++d) {
      from += static_cast<size_t>(index[d]) * stride;
      stride *= static_cast<size_t>(dims[d]);
    }
    std::memcpy(out.data() + at * width, data.data() + from * width, width);
    for (size_t d = rank; d-- > 0;) {
      if (++index[d] < dims[d]) break;
      index[d] = 0;
    }
  }
  return out;
}

Result<NpyArray> ReadOne(std::string_view file, std::string name) {
  if (file.size() < 12 || file.substr(0, kMagic.size()) != kMagic)
    return InvalidArgument("not a .npy file: no \\x93NUMPY at its start");
  const int length_bytes = file[6] == 1 ? 2 : 4;
  const size_t begin = 8 + static_cast<size_t>(length_bytes);
  const uint64_t length = Little(file, 8, length_bytes);
  if (length > file.size() - begin)
    return InvalidArgument(".npy header of ", length, " bytes in a file of ", file.size());
  NpyArray array;
  array.name = std::move(name);
  bool fortran = false;
  STROP_TRY(ParseHeader(file.substr(begin, length), &array, &fortran));
  int64_t size = array.width;
  for (int64_t d : array.dims) size *= d;
  const std::string_view data = file.substr(begin + length);
  if (static_cast<int64_t>(data.size()) < size)
    return InvalidArgument(".npy data ends after ", data.size(), " of ", size, " bytes");
  const std::string_view values = data.substr(0, static_cast<size_t>(size));
  array.bytes = fortran ? Reorder(array.dims, static_cast<size_t>(array.width), values) : std::string(values);
  return array;
}

// ---- zip
// --------------------------------------------------------------------------------------------------------------

struct Member {
  std::string_view name;
  uint64_t method, packed, size, offset;
};

// 64-bit sizes stand in an extra field where the 32-bit ones are all ones.
void ReadZip64(std::string_view extra, Member* m) {
  for (size_t at = 0; at + 4 <= extra.size();) {
    const uint64_t id = Little(extra, at, 2), length = Little(extra, at + 2, 2);
    size_t field = at + 4;
    const size_t end = std::min(extra.size(), field + static_cast<size_t>(length));
    if (id == 1)
      for (uint64_t* v : {&m->size, &m->packed, &m->offset})
        if (*v == 0xFFFFFFFF && field + 8 <= end) {
          *v = Little(extra, field, 8);
          field += 8;
        }
    at = end;
  }
}

Result<std::vector<Member>> ReadDirectory(std::string_view file) {
  constexpr size_t kEndSize = 22;
  const Status damaged = InvalidArgument("not a .npz file, or its directory is damaged");
  if (file.size() < kEndSize) return damaged;
  const size_t end = file.rfind("PK\x05\x06");
  if (end == std::string_view::npos || end + kEndSize > file.size()) return damaged;
  uint64_t count = Little(file, end + 10, 2), at = Little(file, end + 16, 4);
  if ((at == 0xFFFFFFFF || count == 0xFFFF) && end >= 20 && file.substr(end - 20, 4) == "PK\x06\x07") {
    const uint64_t end64 = Little(file, end - 12, 8);
    if (end64 > file.size() || file.size() - end64 < 56) return damaged;
    count = Little(file, end64 + 32, 8);
    at = Little(file, end64 + 48, 8);
  }
  std::vector<Member> members;
  for (uint64_t i = 0; i < count; ++i) {
    if (at > file.size() || file.size() - at < 46 || file.substr(at, 4) != "PK\x01\x02") return damaged;
    const uint64_t name = Little(file, at + 28, 2), extra = Little(file, at + 30, 2),
                   comment = Little(file, at + 32, 2);
    if (file.size() - at - 46 < name + extra + comment) return damaged;
    Member m{file.substr(at + 46, name), Little(file, at + 10, 2), Little(file, at + 20, 4), Little(file, at + 24, 4),
             Little(file, at + 42, 4)};
    ReadZip64(file.substr(at + 46 + name, extra), &m);
    members.push_back(m);
    at += 46 + name + extra + comment;
  }
  return members;
}

Result<std::string> Inflate(std::string_view packed, uint64_t size) {
  // Deflate packs at most about 1032 to 1: a larger claim is a lie.
  if (size / 1100 > packed.size() + 64)
    return InvalidArgument("a .npz member claims ", size, " bytes from ", packed.size());
  std::string out(size, '\0');
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return ResourceExhausted("zlib: out of memory");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  size_t in_left = packed.size(), out_left = out.size();
  int code = Z_OK;
  while (code == Z_OK) {
    stream.avail_in = static_cast<uInt>(std::min<size_t>(in_left, 1u << 30));
    stream.avail_out = static_cast<uInt>(std::min<size_t>(out_left, 1u << 30));
    const uInt in_before = stream.avail_in, out_before = stream.avail_out;
    code = inflate(&stream, Z_NO_FLUSH);
    in_left -= in_before - stream.avail_in;
    out_left -= out_before - stream.avail_out;
    if (code == Z_OK && stream.avail_in == in_before && stream.avail_out == out_before) break;
  }
  inflateEnd(&stream);
  if (code != Z_STREAM_END || out_left != 0)
    return InvalidArgument("a .npz member is damaged: its compressed data do not add up");
  return out;
}

Result<std::string> ReadMember(std::string_view file, const Member& m) {
  if (m.offset > file.size() || file.size() - m.offset < 30)
    return InvalidArgument("a .npz member lies outside of the file");
  const uint64_t begin = m.offset + 30 + Little(file, m.offset + 26, 2) + Little(file, m.offset + 28, 2);
  if (begin > file.size() || m.packed > file.size() - begin)
    return InvalidArgument("a .npz member lies outside of the file");
  const std::string_view packed = file.substr(begin, m.packed);
  if (m.method == 0) return std::string(packed);
  if (m.method == 8) return Inflate(packed, m.size);
  return Unimplemented("a .npz member is compressed by method ", m.method, "; stored and deflated ones are read");
}

}  // namespace

Result<std::vector<NpyArray>> ReadNpy(std::string_view file) {
  std::vector<NpyArray> arrays;
  if (file.substr(0, 2) != "PK") {
    STROP_ASSIGN(NpyArray array, ReadOne(file, ""));
    arrays.push_back(std::move(array));
    return arrays;
  }
  STROP_ASSIGN(std::vector<Member> members, ReadDirectory(file));
  for (const Member& m : members) {
    if (m.name.size() < 4 || m.name.substr(m.name.size() - 4) != ".npy") continue;
    STROP_ASSIGN(std::string data, ReadMember(file, m));
    STROP_ASSIGN(NpyArray array, ReadOne(data, std::string(m.name.substr(0, m.name.size() - 4))));
    arrays.push_back(std::move(array));
  }
  return arrays;
}

Result<Literal> ToLiteral(const NpyArray& array, const Shape& parameter) {
  Shape shape = parameter;
  for (int64_t d = 0; d < shape.rank() && array.dims.size() == shape.dims().size(); ++d)
    if (shape.is_unbounded(d)) shape.set_dim(d, array.dims[static_cast<size_t>(d)]);
  if (!shape.IsArray() || array.dims != shape.dims())
    return InvalidArgument("array '", array.name, "' of ", Shape::Array(array.type, array.dims).ToString(), " where ",
                           parameter.ToString(), " is expected");
  const bool raw = array.type == ElementType::Invalid && array.width == Bytes(shape.type());
  if (!raw && array.type != shape.type())
    return InvalidArgument(
        "array '", array.name, "' has elements of type ",
        array.type == ElementType::Invalid ? StrCat("V", array.width) : std::string(Name(array.type)), ", ",
        Name(shape.type()), " is expected");
  return Literal::FromBytes(shape.WithoutLayout(),
                            {reinterpret_cast<const uint8_t*>(array.bytes.data()), array.bytes.size()});
}

Result<std::string> WriteNpy(const Literal& literal, bool column_major) {
  const ElementType type = literal.type();
  if (!literal.shape().IsArray())
    return InvalidArgument("only arrays go into .npy files, not ", literal.shape().ToString());
  std::string descr = StrCat(Bytes(type) == 1 ? "|V" : "<V", Bytes(type));
  for (const DtypeRow& row : kDtypes)
    if (row.type == type && !row.descr.empty()) descr = row.descr;
  std::string header =
      StrCat("{'descr': '", descr, "', 'fortran_order': ", column_major ? "True" : "False", ", 'shape': (",
             Join(literal.shape().dims(), ", "), literal.shape().rank() == 1 ? ",), }" : "), }");
  while ((kMagic.size() + 4 + header.size() + 1) % 64 != 0) header.push_back(' ');
  header.push_back('\n');
  std::string out(kMagic);
  out += std::string_view("\x01\x00", 2);
  AppendLittle(out, header.size(), 2);
  out += header;
  const std::span<const uint8_t> bytes = literal.bytes();
  const std::string_view values(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  Int64Vector dims = literal.shape().dims();
  std::reverse(dims.begin(), dims.end());
  out += column_major ? Reorder(dims, static_cast<size_t>(Bytes(type)), values) : std::string(values);
  return out;
}

Result<std::string> WriteNpz(const std::vector<NamedArray>& arrays) {
  std::string out, directory;
  for (const auto& [name, literal, column_major] : arrays) {
    STROP_ASSIGN(std::string data, WriteNpy(literal, column_major));
    if (data.size() >= 0xFFFFFFFF || out.size() >= 0xFFFFFFFF)
      return Unimplemented(".npz files of 4 GiB and more are not written");
    const std::string file = name + ".npy";
    std::string facts;                             // what the local header and the directory have in common
    AppendLittle(facts, 20, 2);                    // version needed
    AppendLittle(facts, 0, 2);                     // flags
    AppendLittle(facts, 0, 2);                     // stored
    AppendLittle(facts, uint64_t{0x21} << 16, 4);  // 1980-01-01
    AppendLittle(facts, crc32_z(0, reinterpret_cast<const Bytef*>(data.data()), data.size()), 4);
    AppendLittle(facts, data.size(), 4);
    AppendLittle(facts, data.size(), 4);
    AppendLittle(facts, file.size(), 2);
    AppendLittle(facts, 0, 2);  // extra field
    directory += "PK\x01\x02";
    AppendLittle(directory, 20, 2);
    directory += facts;
    AppendLittle(directory, 0, 2);  // comment
    AppendLittle(directory, 0, 2);  // disk
    AppendLittle(directory, 0, 6);  // attributes
    AppendLittle(directory, out.size(), 4);
    directory += file;
    out += "PK\x03\x04" + facts + file + data;
  }
  const size_t at = out.size();
  out += directory;
  out += "PK\x05\x06";
  AppendLittle(out, 0, 4);
  AppendLittle(out, arrays.size(), 2);
  AppendLittle(out, arrays.size(), 2);
  AppendLittle(out, directory.size(), 4);
  AppendLittle(out, at, 4);
  AppendLittle(out, 0, 2);
  return out;
}

std::optional<ElementType> ParseDtypeName(std::string_view name) {
  for (const DtypeRow& row : kDtypes)
    if (row.name == name) return row.type;
  return ParseElementType(name);
}

}  // namespace strop::tools
