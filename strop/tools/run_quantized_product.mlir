// RUN: strop run %s --check | FileCheck %s --check-prefix=SAYS
// RUN: strop run %s --check --interpret | FileCheck %s --check-prefix=SAYS
// RUN: strop translate %s --to=hlo | FileCheck %s
// SAYS: 2 checks passed
// Large products of quantised tensors are products of their integers. The scales are powers of two here, so that the
// floats which they express give the same results.
// CHECK: s32[128,4] dot(
// CHECK: s32[2,9,9,4] convolution(
!left = !quant.uniform<i8:f32, 0.5:-20>
!right = !quant.uniform<i8:f32:1, {0.5, 0.25:3, 2.0, 1.0:-7}>
!image = !quant.uniform<i8:f32, 0.25:11>
!kernel = !quant.uniform<i8<-127:127>:f32:3, {0.5, 0.25, 2.0, 1.0}>
!out = !quant.uniform<i8:f32, 64.0:5>

module @quantized_product {
  func.func @main() {
    %0 = stablehlo.iota dim = 0 : tensor<128x64xi8>
    %1 = stablehlo.iota dim = 1 : tensor<128x64xi8>
    %2 = stablehlo.multiply %0, %1 : tensor<128x64xi8>
    %a = stablehlo.bitcast_convert %2 : (tensor<128x64xi8>) -> tensor<128x64x!left>
    %3 = stablehlo.iota dim = 0 : tensor<64x4xi8>
    %4 = stablehlo.multiply %3, %3 : tensor<64x4xi8>
    %b = stablehlo.bitcast_convert %4 : (tensor<64x4xi8>) -> tensor<64x4x!right>
    %dot = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<128x64x!left>, tensor<64x4x!right>) -> tensor<128x4x!out>
    %dot_bits = stablehlo.bitcast_convert %dot : (tensor<128x4x!out>) -> tensor<128x4xi8>
    %af = stablehlo.uniform_dequantize %a : (tensor<128x64x!left>) -> tensor<128x64xf32>
    %bf = stablehlo.uniform_dequantize %b : (tensor<64x4x!right>) -> tensor<64x4xf32>
    %dot_f = stablehlo.dot_general %af, %bf, contracting_dims = [1] x [0] : (tensor<128x64xf32>, tensor<64x4xf32>) -> tensor<128x4xf32>
    %dot_q = stablehlo.uniform_quantize %dot_f : (tensor<128x4xf32>) -> tensor<128x4x!out>
    %dot_wanted = stablehlo.bitcast_convert %dot_q : (tensor<128x4x!out>) -> tensor<128x4xi8>
    check.expect_eq %dot_bits, %dot_wanted : tensor<128x4xi8>

    // Padding is zero, which is not stored as zero.
    %5 = stablehlo.iota dim = 0 : tensor<1296xi8>
    %6 = stablehlo.multiply %5, %5 : tensor<1296xi8>
    %7 = stablehlo.reshape %6 : (tensor<1296xi8>) -> tensor<2x9x9x8xi8>
    %x = stablehlo.bitcast_convert %7 : (tensor<2x9x9x8xi8>) -> tensor<2x9x9x8x!image>
    %8 = stablehlo.iota dim = 2 : tensor<3x3x8x4xi8>
    %9 = stablehlo.iota dim = 1 : tensor<3x3x8x4xi8>
    %10 = stablehlo.subtract %8, %9 : tensor<3x3x8x4xi8>
    %w = stablehlo.bitcast_convert %10 : (tensor<3x3x8x4xi8>) -> tensor<3x3x8x4x!kernel>
    %conv = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x9x9x8x!image>, tensor<3x3x8x4x!kernel>) -> tensor<2x9x9x4x!out>
    %conv_bits = stablehlo.bitcast_convert %conv : (tensor<2x9x9x4x!out>) -> tensor<2x9x9x4xi8>
    %xf = stablehlo.uniform_dequantize %x : (tensor<2x9x9x8x!image>) -> tensor<2x9x9x8xf32>
    %wf = stablehlo.uniform_dequantize %w : (tensor<3x3x8x4x!kernel>) -> tensor<3x3x8x4xf32>
    %conv_f = stablehlo.convolution(%xf, %wf) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x9x9x8xf32>, tensor<3x3x8x4xf32>) -> tensor<2x9x9x4xf32>
    %conv_q = stablehlo.uniform_quantize %conv_f : (tensor<2x9x9x4xf32>) -> tensor<2x9x9x4x!out>
    %conv_wanted = stablehlo.bitcast_convert %conv_q : (tensor<2x9x9x4x!out>) -> tensor<2x9x9x4xi8>
    check.expect_eq %conv_bits, %conv_wanted : tensor<2x9x9x4xi8>
    return
  }
}
