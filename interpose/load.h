/* SPDX-License-Identifier: Apache-2.0 */
/* The life of libsundog.so in a process: options, fork, exit. */
#ifndef SDG_INTERPOSE_LOAD_H
#define SDG_INTERPOSE_LOAD_H

/* Reads the options if the constructor has not run yet: constructors of other
 * libraries may call entries before ours. Idempotent, any thread. */
void sdg_load_options(void);

/* From now on, children of this process are disarmed. Idempotent, any thread
 * may call it. */
void sdg_load_watch_fork(void);

#endif
