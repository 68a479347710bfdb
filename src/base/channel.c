// SPDX-License-Identifier: Apache-2.0
// The calling thread's channel, and whether it is the thread's own.
#include "src/base/channel.h"

_Thread_local int sdg_channel_own;
_Thread_local bool sdg_channel_claimed;
_Thread_local bool sdg_channel_apart;
