// SPDX-License-Identifier: Apache-2.0
// Operation graphs made by tests, with the memory of their tensors.
#include "tests/host/cudnn/compute/made.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/host/cudnn/base/view.h"
#include "src/host/cudnn/compute/run.h"
#include "tests/host/cudnn/case.h"
#include "tests/unit/harness.h"

void made_create(made_t *m) {
  memset(m, 0, sizeof *m);
  m->graph.tensor = calloc(MADE_TENSORS, sizeof *m->graph.tensor);
  m->graph.node = calloc(MADE_NODES, sizeof *m->graph.node);
  m->graph.references = 1;
}

void made_destroy(made_t *m) {
  for (int i = 0; i < m->graph.node_count; i++) {
    free(m->graph.node[i].operand);
    free(m->graph.node[i].parameter);
  }
  for (int i = 0; i < m->memories; i++) {
    free(m->memory[i].now);
    free(m->memory[i].before);
  }
  free(m->graph.node);
  free(m->graph.tensor);
}

size_t made_unit(cudnnDataType_t type) {
  return host_element_bytes(type);
}

static void store(cudnnDataType_t type, void *to, double value) {
  if (type == CUDNN_DATA_BOOLEAN)
    *(unsigned char *)to = value != 0;
  else
    host_elements_store(type, to, 1, 1, 1, &value, 0);
}

static double load(cudnnDataType_t type, const void *from) {
  double value;
  if (type == CUDNN_DATA_BOOLEAN)
    type = CUDNN_DATA_UINT8;
  host_elements_load(type, from, 1, 1, &value);
  return value;
}

double made_round(cudnnDataType_t type, double value) {
  char room[8];
  store(type, room, value);
  return load(type, room);
}

static int64_t count_of(const sdg_graph_tensor_t *t) {
  int64_t count = 1;
  for (int i = 0; i < t->rank; i++)
    count *= t->dim[i];
  return count;
}

int64_t made_count(const made_t *m, int tensor) {
  return count_of(&m->graph.tensor[tensor]);
}

int64_t made_byte(const sdg_graph_tensor_t *t, int64_t i) {
  int64_t at = 0;
  for (int d = t->rank - 1; d >= 0; d--) {
    at += i % t->dim[d] * t->stride[d];
    i /= t->dim[d];
  }
  return at * (int64_t)made_unit(t->type);
}

static double draw(cudnnDataType_t type) {
  switch ((int)type) {
  case CUDNN_DATA_BOOLEAN:
    return case_range(0, 1);
  case CUDNN_DATA_INT8:
  case CUDNN_DATA_INT32:
    return case_range(-9, 9);
  case CUDNN_DATA_UINT8:
    return case_range(0, 9);
  }
  return 2 * case_real();
}

/* Returns the elements that the memory spans. */
static int64_t lay_out(sdg_graph_tensor_t *t, made_layout_t layout) {
  int order[MADE_RANK], rank = t->rank; /* outermost first */
  for (int i = 0; i < rank; i++)
    order[i] = i;
  if (layout == MADE_CHANNELS && rank > 2)
    for (int i = 1; i < rank; i++)
      order[i] = i == rank - 1 ? 1 : i + 1;
  for (int i = rank - 1; i > 0 && layout == MADE_GAPS; i--) {
    int j = case_range(0, i), keep = order[i];
    order[i] = order[j];
    order[j] = keep;
  }
  int64_t at = layout == MADE_GAPS ? case_range(1, 2) : 1;
  for (int i = rank - 1; i >= 0; i--) {
    t->stride[order[i]] = layout == MADE_ONE ? 0 : at;
    at *= t->dim[order[i]] ? t->dim[order[i]] : 1;
    at += layout == MADE_GAPS ? case_range(0, 2) : 0;
  }
  return layout == MADE_ONE ? 1 : at;
}

static int add(made_t *m, cudnnDataType_t type, int rank, const int64_t *dim) {
  int index = m->graph.tensor_count++;
  REQUIRE(index < MADE_TENSORS);
  sdg_graph_tensor_t *t = &m->graph.tensor[index];
  *t = (sdg_graph_tensor_t){.uid = 100 + index,
                            .type = type,
                            .rank = rank,
                            .alignment = 1,
                            .vector_count = 1,
                            .vector_dimension = -1};
  for (int i = 0; i < rank; i++)
    t->dim[i] = dim ? dim[i] : 1;
  lay_out(t, MADE_DENSE);
  m->memory_of[index] = -1;
  return index;
}

int made_virtual(made_t *m, cudnnDataType_t type, int rank,
                 const int64_t *dim) {
  int index = add(m, type, rank, dim);
  m->graph.tensor[index].is_virtual = true;
  return index;
}

int made_real(made_t *m, cudnnDataType_t type, int rank, const int64_t *dim,
              made_layout_t layout) {
  int index = add(m, type, rank, dim);
  sdg_graph_tensor_t *t = &m->graph.tensor[index];
  size_t bytes = (size_t)lay_out(t, layout) * made_unit(type);
  m->memory_of[index] = m->memories++;
  made_memory_t *memory = &m->memory[m->memory_of[index]];
  memory->bytes = bytes;
  memory->now = malloc(bytes);
  memory->before = malloc(bytes);
  memset(memory->now, 0xa5, bytes);
  for (int64_t i = 0, n = count_of(t); i < n; i++)
    store(type, memory->now + made_byte(t, i), draw(type));
  memcpy(memory->before, memory->now, bytes);
  m->data[index] = memory->now;
  return index;
}

int made_number(made_t *m, cudnnDataType_t type, int rank, double value) {
  int index = made_real(m, type, rank, NULL, MADE_DENSE);
  m->graph.tensor[index].is_by_value = true;
  made_fill(m, index, &value);
  return index;
}

int made_alias(made_t *m, int like) {
  int index = add(m, m->graph.tensor[like].type, m->graph.tensor[like].rank,
                  m->graph.tensor[like].dim);
  memcpy(m->graph.tensor[index].stride, m->graph.tensor[like].stride,
         sizeof m->graph.tensor[like].stride);
  m->memory_of[index] = m->memory_of[like];
  m->data[index] = m->data[like];
  return index;
}

double *made_values(const made_t *m, int tensor, bool before) {
  const sdg_graph_tensor_t *t = &m->graph.tensor[tensor];
  const made_memory_t *memory = &m->memory[m->memory_of[tensor]];
  int64_t count = count_of(t);
  double *values = malloc(((size_t)count + 1) * sizeof *values);
  for (int64_t i = 0; i < count; i++)
    values[i] = load(t->type,
                     (before ? memory->before : memory->now) + made_byte(t, i));
  return values;
}

void made_fill(made_t *m, int tensor, const double *values) {
  const sdg_graph_tensor_t *t = &m->graph.tensor[tensor];
  made_memory_t *memory = &m->memory[m->memory_of[tensor]];
  for (int64_t i = 0, n = count_of(t); i < n; i++)
    store(t->type, memory->now + made_byte(t, i), values[i]);
  memcpy(memory->before, memory->now, memory->bytes);
}

void made_run(made_t *m) {
  const char *lacks = host_graph_lacks(&m->graph);
  REQUIRE_MSG(!lacks, "lacks %s:\n%s", lacks, made_text(m));
  REQUIRE(m->part ? host_run_parts(&m->graph, m->data, m->part)
                  : host_graph_compute(&m->graph, m->data));
  for (int k = 0; k < m->memories; k++) {
    bool *may = calloc(m->memory[k].bytes, sizeof *may);
    for (int i = 0; i < m->graph.tensor_count; i++) {
      const sdg_graph_tensor_t *t = &m->graph.tensor[i];
      if (m->memory_of[i] == k && m->written[i])
        for (int64_t e = 0, n = count_of(t); e < n; e++)
          memset(may + made_byte(t, e), 1, made_unit(t->type));
    }
    for (size_t i = 0; i < m->memory[k].bytes; i++)
      REQUIRE_MSG(may[i] || m->memory[k].now[i] == m->memory[k].before[i],
                  "byte %zu of memory %d was written:\n%s", i, k, made_text(m));
    free(may);
  }
}

void made_reset(made_t *m) {
  for (int k = 0; k < m->memories; k++)
    memcpy(m->memory[k].now, m->memory[k].before, m->memory[k].bytes);
}

const char *made_text(const made_t *m) {
  static char text[16384];
  size_t at = 0;
  const size_t room = sizeof text;
  for (int i = 0; i < m->graph.tensor_count && at < room - 512; i++) {
    const sdg_graph_tensor_t *t = &m->graph.tensor[i];
    at += (size_t)snprintf(text + at, room - at, "  t%d type %d%s", i, t->type,
                           t->is_virtual ? " virtual" : "");
    for (int d = 0; d < t->rank; d++)
      at += (size_t)snprintf(text + at, room - at, " %ld:%ld", t->dim[d],
                             t->stride[d]);
    at +=
        (size_t)snprintf(text + at, room - at, " memory %d\n", m->memory_of[i]);
  }
  for (int i = 0; i < m->graph.node_count && at < room - 1024; i++) {
    const sdg_graph_node_t *node = &m->graph.node[i];
    at += (size_t)snprintf(text + at, room - at, "  kind %d:", node->kind);
    for (int k = 0; k < node->operand_count; k++)
      at += (size_t)snprintf(text + at, room - at, " %d=t%d",
                             node->operand[k].name, node->operand[k].tensor);
    for (int k = 0; k < node->parameter_count; k++)
      for (int v = 0; v < node->parameter[k].count; v++) {
        const sdg_graph_parameter_t *p = &node->parameter[k];
        bool real = p->type == CUDNN_TYPE_DOUBLE || p->type == CUDNN_TYPE_FLOAT;
        at += (size_t)snprintf(text + at, room - at, " (%d)%g", p->name,
                               real ? p->value[v].real
                                    : (double)p->value[v].integer);
      }
    at += (size_t)snprintf(text + at, room - at, "\n");
  }
  return text;
}
