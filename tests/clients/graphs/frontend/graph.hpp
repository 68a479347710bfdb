// SPDX-License-Identifier: Apache-2.0
// A graph of cudnn-frontend, with the memory of its tensors.
#pragma once
#include "arrays.hpp"

namespace fe = cudnn_frontend;
using fe::PointwiseMode_t;
using tensor_t = std::shared_ptr<fe::graph::Tensor_attributes>;

static cudnnHandle_t handle;

static void check(fe::error_t error) {
  check(error.is_good(), error.get_message());
}

struct graph_t : fe::graph::Graph {
  std::unordered_map<int64_t, void *> pack;
  std::vector<std::pair<std::string, array_t *>> named; // results
  explicit graph_t(DataType_t io, DataType_t between = f32,
                   DataType_t compute = f32) {
    set_io_data_type(io)
        .set_intermediate_data_type(between)
        .set_compute_data_type(compute);
  }
  // An input that is in memory.
  tensor_t use(const array_t &a) {
    tensor_t t = tensor(fe::graph::Tensor_attributes()
                            .set_dim(local_dim(a))
                            .set_stride(strides(local_dim(a), a.channels_last))
                            .set_data_type(a.type)
                            .set_uid(int64_t(pack.size()) + 1));
    pack[t->get_uid()] = a.device;
    return t;
  }
  tensor_t in(array_t &a) {
    input(a);
    return use(a);
  }
  // A result that gets the memory of the array.
  void give(tensor_t t, const array_t &a) {
    t->set_output(true)
        .set_dim(local_dim(a))
        .set_stride(strides(local_dim(a), a.channels_last))
        .set_data_type(a.type)
        .set_uid(int64_t(pack.size()) + 1);
    pack[t->get_uid()] = a.device;
  }
  void out(tensor_t t, array_t &a) {
    output(a);
    give(t, a);
  }
  // `finish` compares it.
  void out(tensor_t t, array_t &a, const std::string &name) {
    out(t, a);
    named.push_back({name, &a});
  }
  tensor_t op(PointwiseMode_t mode, tensor_t x, tensor_t b = nullptr) {
    auto how = fe::graph::Pointwise_attributes().set_mode(mode);
    return b ? pointwise(x, b, how) : pointwise(x, how);
  }
  // relu(x * scale + bias)
  tensor_t scale_bias_relu(tensor_t x, array_t &scale, array_t &bias) {
    tensor_t product = op(PointwiseMode_t::MUL, x, in(scale));
    return op(PointwiseMode_t::RELU_FWD,
              op(PointwiseMode_t::ADD, product, in(bias)));
  }
  void plan(
      fe::BuildPlanPolicy_t policy = fe::BuildPlanPolicy_t::HEURISTICS_CHOICE) {
    check(validate());
    check(build_operation_graph(handle));
    check(create_execution_plans({fe::HeurMode_t::A}));
    check(check_support(handle));
    check(build_plans(handle, policy));
  }
  void run() {
    int64_t size;
    check(get_workspace_size(size));
    void *workspace = memory(size_t(size));
    check(execute(handle, pack, workspace));
    check(cudaDeviceSynchronize());
    check(cudaFree(workspace));
  }
  // Plans, runs, and compares the results that have names.
  void finish() {
    check(!named.empty(), "nothing is compared");
    plan();
    run();
    for (auto &[name, result] : named)
      compare(name, *result);
  }
};

template <typename attributes_t> static attributes_t as(const window_t &v) {
  return attributes_t()
      .set_pre_padding(v.pre)
      .set_post_padding(v.post)
      .set_stride(v.stride)
      .set_dilation(v.dilation);
}
using forward_t = fe::graph::Conv_fprop_attributes;
using data_t = fe::graph::Conv_dgrad_attributes;
using filter_t = fe::graph::Conv_wgrad_attributes;
