/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps waits for the device and sundog's own captures apart: CUDA refuses
 * cudaDeviceSynchronize while a stream of the device is captured, whoever
 * captures it, and the capture is invalid then. A wait lets a capture that has
 * begun end, which takes microseconds; a capture gives way to a wait, which may
 * take long. Any thread. */
#ifndef SDG_SRC_COMM_DEVICE_WAIT_H
#define SDG_SRC_COMM_DEVICE_WAIT_H

#include <stdbool.h>

/* Around the program's wait for the whole device. */
void sdg_device_wait_begin(void);
void sdg_device_wait_end(void);

/* False: a thread waits for the device, so nothing may be captured now. After
 * true, call sdg_device_capture_end. */
bool sdg_device_capture_begin(void);
void sdg_device_capture_end(void);

#endif
