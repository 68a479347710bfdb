// SPDX-License-Identifier: Apache-2.0
// Multiplies rows of vectors with the matrices of attention.
#include "rules/attention/call/project.h"

#include "rules/kit/merge.h"
#include "rules/kit/projection.h"

void sdg_attention_project_each(const sdg_attention_descriptor_t *desc,
                                int64_t out[SDG_ATTENTION_PARTS]) {
  out[SDG_ATTENTION_PART_Q] =
      desc->q_projected ? desc->q_projected : desc->q_size;
  out[SDG_ATTENTION_PART_K] =
      desc->k_projected ? desc->k_projected : desc->k_size;
  out[SDG_ATTENTION_PART_V] =
      desc->v_projected ? desc->v_projected : desc->v_size;
  out[SDG_ATTENTION_PART_O] = out[SDG_ATTENTION_PART_V];
}

static sdg_status_t param_get(sdg_attention_maker_t *m, int kind,
                              sdg_attention_param_t *out) {
  return sdg_attention_param_get(m->call, &m->a,
                                 (cudnnMultiHeadAttnWeightKind_t)kind, out);
}

sdg_status_t sdg_attention_project_open(sdg_attention_maker_t *m,
                                        sdg_attention_project_t *out) {
  *out = (sdg_attention_project_t){
      .m = m, .type = sdg_merge_type((sdg_type_t)m->a.desc.type)};
  sdg_attention_project_each(&m->a.desc, out->each);
  for (int i = 0; i < SDG_ATTENTION_PARTS; i++) {
    SDG_TRY(param_get(m, (int)CUDNN_MH_ATTN_Q_WEIGHTS + i, &out->matrix[i]));
    SDG_TRY(param_get(m, (int)CUDNN_MH_ATTN_Q_BIASES + i, &out->bias[i]));
    if (out->matrix[i].is_there)
      SDG_TRY(sdg_attention_param_read(m->plan, m->call, &m->a, &out->matrix[i],
                                       out->type, &out->w[i]));
  }
  return SDG_OK;
}

static sdg_projection_t product_of(const sdg_attention_project_t *p, int part,
                                   const sdg_subcall_tensor_t *left,
                                   const sdg_subcall_tensor_t *right) {
  return (sdg_projection_t){.left = *left,
                            .matrix = p->w[part],
                            .right = *right,
                            .math = p->m->a.desc.math};
}

static sdg_status_t bias_add(const sdg_attention_project_t *p, int part,
                             const sdg_subcall_tensor_t *rows) {
  const sdg_attention_maker_t *m = p->m;
  sdg_subcall_tensor_t bias;
  if (!p->bias[part].is_there)
    return SDG_OK;
  SDG_TRY(sdg_attention_param_read(m->plan, m->call, &m->a, &p->bias[part],
                                   p->type, &bias));
  return sdg_subcall_op(m->plan, CUDNN_OP_TENSOR_ADD, 1, rows, 1, &bias, 0,
                        rows);
}

sdg_status_t sdg_attention_project_right(const sdg_attention_project_t *p,
                                         int part,
                                         const sdg_subcall_tensor_t *left,
                                         const sdg_subcall_tensor_t *right) {
  sdg_projection_t product = product_of(p, part, left, right);
  SDG_TRY(sdg_projection_right(p->m->plan, &product));
  return bias_add(p, part, right);
}

sdg_status_t sdg_attention_project_left(const sdg_attention_project_t *p,
                                        int part,
                                        const sdg_subcall_tensor_t *left,
                                        const sdg_subcall_tensor_t *right) {
  sdg_projection_t product = product_of(p, part, left, right);
  return sdg_projection_left(p->m->plan, &product);
}

sdg_status_t sdg_attention_project_matrix(const sdg_attention_project_t *p,
                                          int part,
                                          const sdg_subcall_tensor_t *left,
                                          const sdg_subcall_tensor_t *right,
                                          int weights, bool adds) {
  const sdg_attention_maker_t *m = p->m;
  if (!p->matrix[part].is_there)
    return SDG_OK;
  sdg_projection_t product = product_of(p, part, left, right);
  SDG_TRY(sdg_attention_param_room(m->plan, &p->matrix[part], p->type,
                                   &product.matrix));
  SDG_TRY(sdg_projection_matrix(m->plan, &product));
  return sdg_attention_param_write(m->plan, m->call, &m->a, &p->matrix[part],
                                   &product.matrix, weights, adds);
}

sdg_status_t sdg_attention_project_bias(const sdg_attention_project_t *p,
                                        int part,
                                        const sdg_subcall_tensor_t *right,
                                        int weights, bool adds) {
  const sdg_attention_maker_t *m = p->m;
  sdg_subcall_tensor_t made;
  if (!p->bias[part].is_there)
    return SDG_OK;
  SDG_TRY(sdg_attention_param_room(m->plan, &p->bias[part], p->type, &made));
  // cudnnReduceTensor refuses to reduce a single row, so this copies it.
  if (right->box.dim[0].hi > 1)
    SDG_TRY(sdg_subcall_reduce(m->plan, CUDNN_REDUCE_TENSOR_ADD, 1, right, 0,
                               &made));
  else
    SDG_TRY(sdg_subcall_transform(m->plan, 1, right, 0, &made));
  return sdg_attention_param_write(m->plan, m->call, &m->a, &p->bias[part],
                                   &made, weights, adds);
}
