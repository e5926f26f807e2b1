// For tests of kernels that are compiled for some processors only.
#ifndef FLYWHEEL_TEST_NEED_VECTORS_H
#define FLYWHEEL_TEST_NEED_VECTORS_H

#include <stdio.h>
#include <stdlib.h>

#include "processor.h"

// What run.mjs takes for "skipped".
enum { SKIPPED = 3 };

static void need_vectors(void) {
  if (processor_has_vectors()) return;
  puts("skipped: this processor lacks these instructions");
  exit(SKIPPED);
}

#endif
