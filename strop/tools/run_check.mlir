// Programs that check themselves, on the evaluator and compiled; the same with a wrong expectation must fail.
// RUN: strop run %s --check --interpret | FileCheck %s
// RUN: strop run %s | FileCheck %s
// RUN: sed 's/dense<\[2, 4\]>/dense<[2, 5]>/' %s > %t.mlir
// RUN: not strop run %t.mlir --interpret 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: not strop run %t.mlir 2>&1 | FileCheck %s --check-prefix=WRONG
// CHECK: 1 checks passed
// CHECK: 2 checks passed
// WRONG: check.expect_eq failed: element 1 is 4, expected 5
// WRONG: 1 of 1 checks failed

func.func @main() {
  %0 = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %1 = stablehlo.add %0, %0 : tensor<2xi32>
  check.expect_eq_const %1, dense<[2, 4]> : tensor<2xi32>
  func.return
}

// -----

func.func @main() {
  %0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %1 = stablehlo.exponential %0 : tensor<2xf32>
  check.expect_almost_eq_const %1, dense<[2.7182818, 7.389056]> : tensor<2xf32>
  stablehlo.custom_call @check.expect_close(%1, %1) {has_side_effect = true} : (tensor<2xf32>, tensor<2xf32>) -> ()
  func.return
}
