// MLIR's i1 is one bit: eight of them are a byte, the first the lowest.
// RUN: strop run --check %s | FileCheck %s
// RUN: strop run --check --interpret %s | FileCheck %s
// RUN: strop explain %s | FileCheck %s --check-prefix=EXPLAIN
// CHECK: 4 checks passed
// EXPLAIN: interpreted: 0

func.func @main() {
  %bits = stablehlo.constant dense<[[true, false, true, false, false, false, false, true], [false, true, false, false, false, false, false, false]]> : tensor<2x8xi1>
  %bytes = stablehlo.bitcast_convert %bits : (tensor<2x8xi1>) -> tensor<2xui8>
  check.expect_eq_const %bytes, dense<[133, 2]> : tensor<2xui8>
  %signed = stablehlo.bitcast_convert %bits : (tensor<2x8xi1>) -> tensor<2xi8>
  check.expect_eq_const %signed, dense<[-123, 2]> : tensor<2xi8>
  %back = stablehlo.bitcast_convert %signed : (tensor<2xi8>) -> tensor<2x8xi1>
  check.expect_eq %back, %bits : tensor<2x8xi1>
  %half = stablehlo.constant dense<1.5> : tensor<f16>
  %spread = stablehlo.bitcast_convert %half : (tensor<f16>) -> tensor<16xi1>
  check.expect_eq_const %spread, dense<[false, false, false, false, false, false, false, false, false, true, true, true, true, true, false, false]> : tensor<16xi1>
  return
}
