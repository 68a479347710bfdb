// SPDX-License-Identifier: Apache-2.0
// Check, number, agree, run: what both views do with a tagged call.
#include "rules/step.h"

#include <cudnn.h>

#include "rules/vendor.h"
#include "src/agree.h"
#include "src/device.h"
#include "src/exec.h"
#include "src/job.h"
#include "src/log.h"
#include "src/lost.h"
#include "src/thread.h"
#include "src/vendor.h"

enum { PARAMETERS_BYTES = 1024 };

sdg_status_t sdg_step_check(const sdg_call_t *call) {
  for (int i = 0; i < call->operands; i++)
    if (call->operand[i].generation == 0)
      return sdg_fail(SDG_E_DESCRIPTOR, "%s of %s",
                      sdg_role_name(call->operand[i].role), call->entry_name);
  if (call->op_descriptor && call->op_generation == 0)
    return sdg_fail(SDG_E_DESCRIPTOR, "the op's of %s", call->entry_name);
  return SDG_OK;
}

void sdg_step_number(const sdg_call_t *call, bool counts) {
  static uint64_t numbers[SDG_CONTROL_THREADS];
  int channel = sdg_thread_channel();
  if (counts)
    sdg_control_count(sdg_job_control(), channel, ++numbers[channel],
                      call->entry_name);
  if (numbers[channel] > 0)
    sdg_log_set_place(sdg_job_call);
}

sdg_status_t sdg_step_agree(const sdg_call_t *call, const sdg_rule_t *rule,
                            int64_t *out_wait_ns) {
  char parameters[PARAMETERS_BYTES] = "";
  if (rule && rule->knows(call))
    SDG_TRY(rule->describe(call, parameters, sizeof parameters));
  return sdg_agree(call, parameters, out_wait_ns);
}

static sdg_status_t capture_check(const sdg_call_t *call, cudaStream_t stream) {
  const sdg_vendor_t *cuda = sdg_vendor_get();
  if (!cuda)
    return SDG_E_LIBRARY_MISSING;
  enum cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
  SDG_TRY(sdg_device_check(cuda->cudaStreamIsCapturing(stream, &capturing),
                           "cudaStreamIsCapturing"));
  if (capturing == cudaStreamCaptureStatusNone)
    return SDG_OK;
  return sdg_fail(SDG_E_CAPTURE, "%s", call->entry_name);
}

sdg_status_t sdg_step_stream(const sdg_call_t *call, cudaStream_t *out_stream) {
  const sdg_cudnn_t *cudnn = sdg_cudnn_get();
  if (!cudnn)
    return SDG_E_LIBRARY_MISSING;
  cudnnHandle_t handle = (cudnnHandle_t)(uintptr_t)call->handle;
  cudnnStatus_t got = cudnn->cudnnGetStream(handle, out_stream);
  if (got != CUDNN_STATUS_SUCCESS)
    return sdg_fail(SDG_E_VENDOR_CALL, "cudnnGetStream: %d", (int)got);
  return capture_check(call, *out_stream);
}

sdg_status_t sdg_step_run(sdg_call_t *call, const sdg_plan_entry_t *entry,
                          cudaStream_t stream) {
  SDG_TRY(sdg_exec_run(entry->plan, call, stream, entry->row, &call->result));
  if (call->result == CUDNN_STATUS_SUCCESS)
    return SDG_OK;
  return sdg_fail(
      SDG_E_VENDOR_CALL, "%s: %s", call->entry_name,
      sdg_cudnn_get()->cudnnGetErrorString((cudnnStatus_t)call->result));
}

bool sdg_step_is_verdict(sdg_status_t status) {
  const sdg_error_info_t *info = sdg_error_find(status);
  return info && (info->vendor == SDG_VENDOR_BAD_PARAM ||
                  info->vendor == SDG_VENDOR_UNSUPPORTED);
}

sdg_status_t sdg_step_accident(sdg_status_t status) {
  return status == SDG_OK || sdg_step_is_verdict(status)
             ? status
             : sdg_job_fail(sdg_lost_accident(status));
}
