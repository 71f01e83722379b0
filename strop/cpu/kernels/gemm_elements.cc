// Conversion between the element types in memory and the types that sums are kept in.
#include <bit>
#include <cstring>

#include "strop/cpu/kernels/gemm.h"
#include "strop/cpu/kernels/half.h"

namespace strop::cpu {
namespace {

template <class T>
T Load(const void* data, int64_t i) {
  T v;
  std::memcpy(&v, static_cast<const uint8_t*>(data) + i * static_cast<int64_t>(sizeof(T)), sizeof v);
  return v;
}
template <class T>
void Store(void* data, int64_t i, T v) {
  std::memcpy(static_cast<uint8_t*>(data) + i * static_cast<int64_t>(sizeof(T)), &v, sizeof v);
}

}  // namespace

template <class T>
T LoadAs(ElementType type, const void* data, int64_t i) {
  switch (type) {
    case ElementType::F32: return static_cast<T>(Load<float>(data, i));
    case ElementType::F64: return static_cast<T>(Load<double>(data, i));
    case ElementType::BF16: return static_cast<T>(Bf16ToFloat(Load<uint16_t>(data, i)));
    case ElementType::F16: return static_cast<T>(HalfToFloat(Load<uint16_t>(data, i)));
    case ElementType::Pred: return static_cast<T>(Load<uint8_t>(data, i) != 0);
    case ElementType::S1:
    case ElementType::S2:
    case ElementType::S4:
    case ElementType::S8: return static_cast<T>(Load<int8_t>(data, i));
    case ElementType::U1:
    case ElementType::U2:
    case ElementType::U4:
    case ElementType::U8: return static_cast<T>(Load<uint8_t>(data, i));
    case ElementType::S16: return static_cast<T>(Load<int16_t>(data, i));
    case ElementType::U16: return static_cast<T>(Load<uint16_t>(data, i));
    case ElementType::S32: return static_cast<T>(Load<int32_t>(data, i));
    case ElementType::U32: return static_cast<T>(Load<uint32_t>(data, i));
    case ElementType::S64: return static_cast<T>(Load<int64_t>(data, i));
    case ElementType::U64: return static_cast<T>(Load<uint64_t>(data, i));
    default: return static_cast<T>(DecodeFloat(type, Load<uint8_t>(data, i)));  // f8, f4
  }
}

template <class T>
void StoreAs(ElementType type, void* data, int64_t i, T value) {
  switch (type) {
    case ElementType::F32: return Store(data, i, static_cast<float>(value));
    case ElementType::F64: return Store(data, i, static_cast<double>(value));
    case ElementType::BF16: return Store(data, i, FloatToBf16(static_cast<float>(value)));
    case ElementType::F16:
      if constexpr (std::is_same_v<T, float>)
        return Store(data, i, FloatToHalf(value));
      else
        return Store(data, i, static_cast<uint16_t>(EncodeFloat(type, static_cast<double>(value))));
    case ElementType::Pred: return Store(data, i, static_cast<uint8_t>(value != 0));
    case ElementType::S8:
    case ElementType::U8: return Store(data, i, static_cast<uint8_t>(static_cast<int64_t>(value)));
    case ElementType::S4:
      return Store(data, i, static_cast<int8_t>(static_cast<int8_t>(static_cast<int64_t>(value) << 4) >> 4));
    case ElementType::U4: return Store(data, i, static_cast<uint8_t>(static_cast<int64_t>(value) & 15));
    case ElementType::S2:
      return Store(data, i, static_cast<int8_t>(static_cast<int8_t>(static_cast<int64_t>(value) << 6) >> 6));
    case ElementType::U2: return Store(data, i, static_cast<uint8_t>(static_cast<int64_t>(value) & 3));
    case ElementType::S1: return Store(data, i, static_cast<int8_t>(-(static_cast<int64_t>(value) & 1)));
    case ElementType::U1: return Store(data, i, static_cast<uint8_t>(static_cast<int64_t>(value) & 1));
    case ElementType::S16:
    case ElementType::U16: return Store(data, i, static_cast<uint16_t>(static_cast<int64_t>(value)));
    case ElementType::S32:
    case ElementType::U32: return Store(data, i, static_cast<uint32_t>(static_cast<int64_t>(value)));
    case ElementType::S64:
    case ElementType::U64: return Store(data, i, static_cast<int64_t>(value));
    default: return Store(data, i, static_cast<uint8_t>(EncodeFloat(type, static_cast<double>(value))));
  }
}

template float LoadAs<float>(ElementType, const void*, int64_t);
template double LoadAs<double>(ElementType, const void*, int64_t);
template int32_t LoadAs<int32_t>(ElementType, const void*, int64_t);
template int64_t LoadAs<int64_t>(ElementType, const void*, int64_t);
template void StoreAs<float>(ElementType, void*, int64_t, float);
template void StoreAs<double>(ElementType, void*, int64_t, double);
template void StoreAs<int32_t>(ElementType, void*, int64_t, int32_t);
template void StoreAs<int64_t>(ElementType, void*, int64_t, int64_t);

}  // namespace strop::cpu
