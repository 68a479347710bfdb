// SPDX-License-Identifier: Apache-2.0
// Which check finalizing makes, by kind of descriptor.
#include "src/host/cudnn/backend/check.h"
#include "src/host/cudnn/backend/engine.h"

#define KIND(name) CUDNN_BACKEND_##name##_DESCRIPTOR
#define OP(name)   KIND(OPERATION_##name)

// Kinds without a line are always complete.
static cudnnStatus_t (*const checks[HOST_KIND_COUNT])(host_object_t *) = {
    [KIND(TENSOR)] = host_check_tensor,
    [KIND(CONVOLUTION)] = host_check_convolution,
    [OP(CONVOLUTION_FORWARD)] = host_check_forward,
    [OP(CONVOLUTION_BACKWARD_DATA)] = host_check_backward_data,
    [OP(CONVOLUTION_BACKWARD_FILTER)] = host_check_backward_filter,
    [KIND(RESAMPLE)] = host_check_resample,
    [OP(RESAMPLE_FWD)] = host_check_resample_forward,
    [OP(RESAMPLE_BWD)] = host_check_resample_backward,
    [OP(POINTWISE)] = host_check_pointwise,
    [OP(MATMUL)] = host_check_matmul,
    [KIND(REDUCTION)] = host_check_reduction,
    [OP(REDUCTION)] = host_check_reduction_op,
    [OP(RESHAPE)] = host_check_reshape,
    [OP(CONCAT)] = host_check_concat,
    [KIND(RNG)] = host_check_rng,
    [OP(RNG)] = host_check_rng_op,
    [OP(NORM_FORWARD)] = host_check_norm_forward,
    [OP(NORM_BACKWARD)] = host_check_norm_backward,
    [KIND(OPERATIONGRAPH)] = host_build_graph,
    [KIND(VARIANT_PACK)] = host_check_pack,
    [KIND(DEVICEPROP)] = host_finalize_device,
    [KIND(ENGINE)] = host_finalize_engine,
    [KIND(ENGINECFG)] = host_finalize_config,
    [KIND(ENGINEHEUR)] = host_finalize_heuristic,
    [KIND(EXECUTION_PLAN)] = host_finalize_plan,
};

#define AT(name) CUDNN_ATTR_OPERATION_##name

// Operands that have to be finalized, and the status where one is not.
static const struct {
  int kind;
  cudnnStatus_t status;
  cudnnBackendAttributeName_t operand[9]; // ends with 0
} required[] = {
    {OP(BN_FINALIZE_STATISTICS),
     CUDNN_STATUS_NOT_SUPPORTED,
     {AT(BN_FINALIZE_Y_SUM_DESC), AT(BN_FINALIZE_Y_SQ_SUM_DESC),
      AT(BN_FINALIZE_SCALE_DESC), AT(BN_FINALIZE_BIAS_DESC)}},
    {OP(PAGED_CACHE_LOAD),
     CUDNN_STATUS_BAD_PARAM,
     {AT(PAGED_CACHE_LOAD_CONTAINER_DESC), AT(PAGED_CACHE_LOAD_YDESC),
      AT(PAGED_CACHE_LOAD_PAGE_TABLE_DESC)}},
    {OP(BLOCK_SCALE_QUANTIZE),
     CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
     {AT(BLOCK_SCALE_QUANTIZE_XDESC), AT(BLOCK_SCALE_QUANTIZE_YDESC),
      AT(BLOCK_SCALE_QUANTIZE_SCALE_DESC)}},
    {OP(BLOCK_SCALE_DEQUANTIZE),
     CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
     {AT(BLOCK_SCALE_DEQUANTIZE_XDESC), AT(BLOCK_SCALE_DEQUANTIZE_YDESC),
      AT(BLOCK_SCALE_DEQUANTIZE_SCALE_DESC)}},
    {OP(EXPAND_BAND_MATRIX),
     CUDNN_STATUS_BAD_PARAM,
     {AT(EXPAND_BAND_MATRIX_XDESC), AT(EXPAND_BAND_MATRIX_YDESC)}},
    {OP(CONTRACT_BAND_MATRIX),
     CUDNN_STATUS_BAD_PARAM,
     {AT(CONTRACT_BAND_MATRIX_XDESC), AT(CONTRACT_BAND_MATRIX_YDESC)}},
    {OP(MOE_GROUPED_MATMUL),
     CUDNN_STATUS_BAD_PARAM,
     {AT(MOE_GROUPED_MATMUL_TOKEN_DESC), AT(MOE_GROUPED_MATMUL_WEIGHT_DESC),
      AT(MOE_GROUPED_MATMUL_FIRST_TOKEN_OFFSET_DESC),
      AT(MOE_GROUPED_MATMUL_OUTPUT_DESC)}},
    {OP(SDPA_FWD),
     CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
     {AT(SDPA_FWD_QDESC), AT(SDPA_FWD_KDESC), AT(SDPA_FWD_VDESC),
      AT(SDPA_FWD_ODESC)}},
    {OP(SDPA_BWD),
     CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
     {AT(SDPA_BWD_QDESC), AT(SDPA_BWD_KDESC), AT(SDPA_BWD_VDESC),
      AT(SDPA_BWD_ODESC), AT(SDPA_BWD_DODDESC), AT(SDPA_BWD_DQDESC),
      AT(SDPA_BWD_DKDESC), AT(SDPA_BWD_DVDESC)}},
    {KIND(KERNEL_CACHE),
     CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
     {CUDNN_ATTR_KERNEL_CACHE_OPERATION_GRAPH}},
};

// What is set counts before it is finalized; the graph refuses tensors that
// were not.
static bool is_hasty(const host_object_t *op) {
  for (int i = 0; i < op->value_count; i++) {
    const host_value_t *value = &op->value[i];
    for (int64_t j = 0; j < value->count; j++)
      if (value->type == CUDNN_TYPE_BACKEND_DESCRIPTOR &&
          op->attribute[i].child == CUDNN_BACKEND_TENSOR_DESCRIPTOR &&
          value->slot[j].object && !value->slot[j].object->finalized)
        return true;
  }
  return false;
}

cudnnStatus_t host_object_check(host_object_t *object) {
  int kind = (int)object->kind;
  for (size_t i = 0; i < sizeof required / sizeof *required; i++)
    for (int j = 0; required[i].kind == kind && required[i].operand[j]; j++)
      REFUSE_IF(!host_operand_final(object, required[i].operand[j]),
                required[i].status);
  REFUSE_IF(kind == KIND(KNOB_INFO), CUDNN_STATUS_BAD_PARAM);
  return checks[kind] ? checks[kind](object) : CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t host_object_finalize(host_object_t *object) {
  object->hasty = is_hasty(object);
  return host_object_check(object);
}
