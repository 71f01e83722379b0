// A shared object without passes.
extern "C" __attribute__((visibility("default"))) int something_else() { return 1; }
