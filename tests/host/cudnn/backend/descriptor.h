/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors of cuDNN's backend API in tests of Check. */
#ifndef SDG_TESTS_HOST_CUDNN_BACKEND_DESCRIPTOR_H
#define SDG_TESTS_HOST_CUDNN_BACKEND_DESCRIPTOR_H

#include <check.h>
#include <cudnn.h>

#include "tests/calls.h"

typedef cudnnBackendDescriptor_t descriptor_t;

static inline descriptor_t create(cudnnBackendDescriptorType_t kind) {
  descriptor_t made;
  OK(cudnnBackendCreateDescriptor(kind, &made));
  return made;
}

#define SET(to, name, type, count, from)                                       \
  OK(cudnnBackendSetAttribute(to, CUDNN_ATTR_##name, CUDNN_TYPE_##type, count, \
                              from))
/* A child that the program does not need any more. */
#define GIVE(to, name, child)                                                  \
  do {                                                                         \
    descriptor_t child_ = (child);                                             \
    SET(to, name, BACKEND_DESCRIPTOR, 1, &child_);                             \
    OK(cudnnBackendDestroyDescriptor(child_));                                 \
  } while (0)

#endif
