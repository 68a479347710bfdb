/* SPDX-License-Identifier: Apache-2.0 */
/* What src/ has on the device, when the program resets it. */
#ifndef SDG_SRC_EXCHANGE_FORGET_H
#define SDG_SRC_EXCHANGE_FORGET_H

/* Ends the communicators, and forgets streams, events and memory, which are
 * made anew when they are needed. Nothing is in flight on the device, no other
 * thread makes tagged calls; the next ones of all ranks need every communicator
 * anew. */
void sdg_forget_device(void);

#endif
