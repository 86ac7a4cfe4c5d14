// The labels of a kernel row live in engine/base, where collectives see them too.
#pragma once

#include "engine/base/tier.h"
