/* Programs that `strop compile -o NAME.o` compiled ahead of time: NAME.h has a function for each, this is what they
   use. Link strop::model (examples/aot). Nothing here throws or aborts.

   A function that can fail returns NULL, or says what went wrong; the text stays until the thread's next call. */
#ifndef STROP_MODEL_H_
#define STROP_MODEL_H_
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What an object holds. */
typedef struct StropModelData {
  const void* bytes; /* an artifact */
  size_t size;
  const void* const* kinds; /* what its steps are made with: only that is linked */
  size_t num_kinds;
} StropModelData;

typedef struct StropModel StropModel;

/* Makes a program that runs on so many threads, the caller's included (0: as many as the process may use; 1: no thread
   is started). Several may exist. */
const char* strop_model_create(const StropModelData* data, int threads, StropModel** model);
/* Runs it: one address for each argument and each result, dense, the last dimension fastest, aligned to 64 bytes.
   Several threads may run one model at once. */
const char* strop_model_run(const StropModel* model, const void* const* arguments, void* const* results);
void strop_model_destroy(StropModel* model);

#ifdef __cplusplus
}
#endif
#endif
