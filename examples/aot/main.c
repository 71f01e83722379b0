/* A program that was compiled ahead of time, from C. */
#include <stdalign.h>
#include <stdio.h>

#include "softmax.h"

int main(void) {
  static alignas(64) float x[4 * 8], w[8 * 3], p[4 * 3];
  for (int i = 0; i < 32; ++i) x[i] = (float)(i % 5) - 2;
  for (int i = 0; i < 24; ++i) w[i] = (float)(i % 7) / 8;
  StropModel* model;
  const char* error = softmax_create(1, &model);
  if (!error) error = softmax_run(model, x, w, p);
  if (error) {
    fprintf(stderr, "%s\n", error);
    return 1;
  }
  for (int i = 0; i < 12; ++i) printf("%a%c", (double)p[i], i % 3 == 2 ? '\n' : ' ');
  softmax_destroy(model);
  return 0;
}
