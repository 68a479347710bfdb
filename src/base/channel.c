// SPDX-License-Identifier: Apache-2.0
// The calling thread's channel.
#include "src/base/channel.h"

_Thread_local int sdg_channel_own;
