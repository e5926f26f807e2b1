// What this processor can do.
#ifndef FLYWHEEL_PROCESSOR_H
#define FLYWHEEL_PROCESSOR_H

#include <stdbool.h>

// What everything that the module is compiled for needs.
bool processor_has_vectors(void);

#if defined(VECTORS_AVX512)
bool processor_has_vnni(void);
// Asks the system for tiles too.
bool processor_has_amx(void);
#endif

#endif
