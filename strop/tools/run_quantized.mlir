// RUN: strop run %s --check | FileCheck %s
// RUN: strop run %s --check --interpret | FileCheck %s
// CHECK: 6 checks passed
// Quantised tensors are their stored integers; arithmetic is done on what they express.
!per_tensor = !quant.uniform<i8:f32, 0.5:-20>
!other = !quant.uniform<i8:f32, 0.1:-30>
!wide = !quant.uniform<i32:f32, 0.25>
!per_axis = !quant.uniform<i8:f32:1, {0.1:-30, 0.5:-20}>
!turned = !quant.uniform<i8:f32:0, {0.1:-30, 0.5:-20}>
!unsigned = !quant.uniform<u8<0:100>:f32, 0.5:10>

module @quantized {
  func.func @main() {
    %x = stablehlo.constant dense<[[1.0, 0.25], [2.0, 1000.0]]> : tensor<2x2xf32>
    %y = stablehlo.constant dense<[2.0, -1.0]> : tensor<2xf32>
    // Ties go to even, values beyond the storage are cut.
    %q = stablehlo.uniform_quantize %x : (tensor<2x2xf32>) -> tensor<2x2x!per_tensor>
    %bits = stablehlo.bitcast_convert %q : (tensor<2x2x!per_tensor>) -> tensor<2x2xi8>
    check.expect_eq_const %bits, dense<[[-18, -20], [-16, 127]]> : tensor<2x2xi8>
    %u = stablehlo.uniform_quantize %x : (tensor<2x2xf32>) -> tensor<2x2x!unsigned>
    %ubits = stablehlo.bitcast_convert %u : (tensor<2x2x!unsigned>) -> tensor<2x2xui8>
    check.expect_eq_const %ubits, dense<[[12, 10], [14, 100]]> : tensor<2x2xui8>

    // One scale a column.
    %c = stablehlo.uniform_quantize %x : (tensor<2x2xf32>) -> tensor<2x2x!per_axis>
    %t = stablehlo.transpose %c, dims = [1, 0] : (tensor<2x2x!per_axis>) -> tensor<2x2x!turned>
    %tbits = stablehlo.bitcast_convert %t : (tensor<2x2x!turned>) -> tensor<2x2xi8>
    check.expect_eq_const %tbits, dense<[[-20, -10], [-20, 127]]> : tensor<2x2xi8>

    // Of different scales, the result of a third.
    %a = stablehlo.uniform_quantize %y : (tensor<2xf32>) -> tensor<2x!per_tensor>
    %b = stablehlo.uniform_quantize %y : (tensor<2xf32>) -> tensor<2x!other>
    %sum = stablehlo.add %a, %b : (tensor<2x!per_tensor>, tensor<2x!other>) -> tensor<2x!per_tensor>
    %sum_f = stablehlo.uniform_dequantize %sum : (tensor<2x!per_tensor>) -> tensor<2xf32>
    check.expect_eq_const %sum_f, dense<[4.0, -2.0]> : tensor<2xf32>
    %dot = stablehlo.dot_general %a, %a, contracting_dims = [0] x [0] : (tensor<2x!per_tensor>, tensor<2x!per_tensor>) -> tensor<!wide>
    %dot_f = stablehlo.uniform_dequantize %dot : (tensor<!wide>) -> tensor<f32>
    check.expect_eq_const %dot_f, dense<5.0> : tensor<f32>

    // Moves elements, and reduces by a function of quantised values.
    %zero = stablehlo.constant() {value = dense<-20> : tensor<i8>} : () -> tensor<!per_tensor>
    %padded = stablehlo.pad %a, %zero, low = [1], high = [0], interior = [0] : (tensor<2x!per_tensor>, tensor<!per_tensor>) -> tensor<3x!per_tensor>
    %total = stablehlo.reduce(%padded init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<3x!per_tensor>, tensor<!per_tensor>) -> tensor<!per_tensor>
    %total_f = stablehlo.uniform_dequantize %total : (tensor<!per_tensor>) -> tensor<f32>
    check.expect_eq_const %total_f, dense<1.0> : tensor<f32>
    return
  }
}
