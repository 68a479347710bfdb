// SPDX-License-Identifier: Apache-2.0
// Plans of operation graphs: JSON of NVIDIA's library read and written again,
// engines, configurations and the graphs that an H100 has no engine for.
//
// usage: test_plan FOLDER (of plans that NVIDIA's 9.19 wrote for an H100)
#include "src/host/cudnn/plan/plan.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/harness.h"

static const char *folder;

static const char *const names[] = {
    "attention",     "attention_back", "attention_nodes", "conv_bias_relu",
    "data",          "filter",         "finalize",        "matmul",
    "matmul_limits", "norm",           "norm_back",       "norm_weights",
    "paddings",      "pooling",        "pooling_back",    "statistics",
    "upsampling"};
enum { NAMES = sizeof names / sizeof *names };

static json_t *recorded(const char *name) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s.json", folder, name);
  json_t *plan = json_load_file(path, 0, NULL);
  ck_assert_msg(plan != NULL, "%s", path);
  return plan;
}

static sdg_graph_reading_t read_plan(const json_t *plan, sdg_graph_t **graph,
                                     sdg_graph_config_t *config) {
  char *text = json_dumps(plan, JSON_COMPACT);
  sdg_graph_reading_t reading =
      sdg_graph_read(text, (int64_t)strlen(text) + 1, graph, config);
  free(text);
  return reading;
}

static sdg_graph_t *graph_of(const char *name) {
  sdg_graph_config_t config;
  sdg_graph_t *graph = NULL;
  json_t *plan = recorded(name);
  ck_assert_int_eq(read_plan(plan, &graph, &config), SDG_GRAPH_READ);
  json_decref(plan);
  return graph;
}

START_TEST(what_nvidia_wrote_is_written_again) {
  json_t *plan = recorded(names[_i]);
  sdg_graph_t *graph = NULL;
  sdg_graph_config_t config;
  ck_assert_int_eq(read_plan(plan, &graph, &config), SDG_GRAPH_READ);
  char *device = json_dumps(json_object_get(plan, "GPUProfile"), 0);
  char *text = host_plan_write(graph, &config, device);
  json_t *again = json_loads(text, 0, NULL);
  for (int i = 0; i < 2; i++) {
    const char *part = i ? "tensors" : "nodes";
    ck_assert_msg(
        json_equal(
            json_object_get(json_object_get(plan, "operationGraph"), part),
            json_object_get(json_object_get(again, "operationGraph"), part)),
        "%s: %s", part, text);
  }
  ck_assert(json_equal(json_object_get(plan, "GPUProfile"),
                       json_object_get(again, "GPUProfile")));
  json_t *engine = json_object_get(plan, "engine");
  ck_assert_int_eq(config.engine,
                   json_integer_value(json_object_get(engine, "engineId")));
  ck_assert(json_equal(
      json_object_get(engine, "knobChoices"),
      json_object_get(json_object_get(again, "engine"), "knobChoices")));
  free(device);
  free(text);
  json_decref(again);
  json_decref(plan);
  sdg_graph_release(graph);
}
END_TEST

// Each change makes a text that must not be read as something else.
START_TEST(what_is_not_known_is_refused) {
  static const struct {
    const char *at[3]; // keys, or numbers of elements
    const char *value;
  } changes[] = {
      {{"schemaVersion"}, "5"},
      {{"operationGraph", "nodes", "0"},
       "{\"operation\": \"CUDNN_BACKEND_"
       "OPERATION_SIGNAL_DESCRIPTOR\"}"},
      {{"operationGraph", "nodes", "0"}, "{}"},
      {{"operationGraph", "nodes"}, "[]"},
      {{"operationGraph", "tensors"}, "[]"},
      {{"operationGraph", "tensors", "0"}, "{\"name\": \"x\"}"},
      {{"engine"}, "{}"},
      {{"engine", "knobChoices", "CUDNN_KNOB_TYPE_NONE"}, "1"},
  };
  json_t *plan = recorded("conv_bias_relu"), *at = plan;
  sdg_graph_t *graph = NULL;
  sdg_graph_config_t config;
  int last = 0;
  while (last < 2 && changes[_i].at[last + 1])
    last++;
  for (int i = 0; i < last; i++)
    at = json_object_get(at, changes[_i].at[i]);
  json_t *value = json_loads(changes[_i].value, JSON_DECODE_ANY, NULL);
  if (json_is_array(at))
    json_array_set_new(at, strtoul(changes[_i].at[last], NULL, 10), value);
  else
    json_object_set_new(at, changes[_i].at[last], value);
  ck_assert_int_eq(read_plan(plan, &graph, &config), SDG_GRAPH_UNKNOWN);
  ck_assert_ptr_null(graph);
  json_decref(plan);
}
END_TEST

START_TEST(a_node_with_an_unknown_key_is_refused) {
  json_t *plan = recorded("data");
  json_t *nodes =
      json_object_get(json_object_get(plan, "operationGraph"), "nodes");
  sdg_graph_t *graph = NULL;
  sdg_graph_config_t config;
  json_object_set_new(json_array_get(nodes, 0), "ragged", json_true());
  ck_assert_int_eq(read_plan(plan, &graph, &config), SDG_GRAPH_UNKNOWN);
  json_decref(plan);
}
END_TEST

static json_t *first_tensor(json_t *plan) {
  return json_array_get(
      json_object_get(json_object_get(plan, "operationGraph"), "tensors"), 0);
}

START_TEST(a_tensor_with_an_unknown_key_is_refused) {
  json_t *plan = recorded("data");
  sdg_graph_t *graph = NULL;
  sdg_graph_config_t config;
  json_object_set_new(first_tensor(plan), "constantValue", json_real(2));
  ck_assert_int_eq(read_plan(plan, &graph, &config), SDG_GRAPH_UNKNOWN);
  json_decref(plan);
}
END_TEST

// cuDNN 9.19 writes the tensor of offsets in the place of a truth value.
START_TEST(a_ragged_tensor_is_known_as_one) {
  json_t *plan = recorded("data");
  sdg_graph_t *graph = NULL;
  sdg_graph_config_t config;
  json_object_set_new(first_tensor(plan), "isRagged",
                      json_pack("[{s:s}]", "name", "offsets"));
  ck_assert_int_eq(read_plan(plan, &graph, &config), SDG_GRAPH_READ);
  ck_assert(graph->tensor[0].is_ragged && !graph->tensor[1].is_ragged);
  sdg_graph_release(graph);
  json_decref(plan);
}
END_TEST

// cuDNN 9.19 writes 1.5f as the bytes of a double, of which the float is half.
START_TEST(a_padding_value_that_was_set_as_a_float_is_read) {
  json_t *plan = recorded("matmul_limits");
  json_t *node = json_array_get(
      json_object_get(json_object_get(plan, "operationGraph"), "nodes"), 0);
  sdg_graph_t *graph = NULL;
  sdg_graph_config_t config;
  json_object_set_new(node, "paddingDataType", json_string("CUDNN_TYPE_FLOAT"));
  json_object_set_new(node, "paddingValue", json_real(4.772418268e-314));
  ck_assert_int_eq(read_plan(plan, &graph, &config), SDG_GRAPH_READ);
  ck_assert_double_eq(
      sdg_graph_real(&graph->node[0], CUDNN_ATTR_MATMUL_PADDING_VALUE, 0), 1.5);
  sdg_graph_release(graph);
  json_decref(plan);
}
END_TEST

START_TEST(what_is_no_json_is_told_apart) {
  sdg_graph_t *graph = NULL;
  sdg_graph_config_t config;
  ck_assert_int_eq(sdg_graph_read("{\"a\":", 5, &graph, &config),
                   SDG_GRAPH_NO_JSON);
  ck_assert_int_eq(sdg_graph_read("", 0, &graph, &config), SDG_GRAPH_NO_JSON);
}
END_TEST

// Every configuration that is proposed can be planned, and read back.
START_TEST(proposed_configurations_are_accepted) {
  static const cudnnBackendHeurMode_t modes[] = {
      CUDNN_HEUR_MODE_INSTANT, CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_FALLBACK,
      CUDNN_HEUR_MODE_A};
  sdg_graph_t *graph = graph_of(names[_i]);
  for (int m = 0; m < 4; m++) {
    sdg_graph_config_t config[32];
    int count = host_plan_configs(graph, modes[m], 32, config);
    ck_assert_int_gt(count, 0);
    ck_assert_int_le(count, 32);
    for (int i = 0; i < count; i++) {
      host_engine_t engine;
      sdg_graph_config_t again;
      sdg_graph_t *read = NULL;
      ck_assert_int_eq(host_plan_check(graph, &config[i]),
                       CUDNN_STATUS_SUCCESS);
      ck_assert(host_plan_engine(graph, config[i].engine, &engine));
      ck_assert_int_eq(engine.knob_count, config[i].knob_count);
      ck_assert_int_ge(host_plan_workspace(graph, &config[i]), 0);
      char *text = host_plan_write(graph, &config[i], NULL);
      ck_assert_int_eq(
          sdg_graph_read(text, (int64_t)strlen(text), &read, &again),
          SDG_GRAPH_READ);
      ck_assert_int_eq(again.engine, config[i].engine);
      ck_assert_int_eq(again.knob_count, config[i].knob_count);
      free(text);
      sdg_graph_release(read);
    }
  }
  sdg_graph_release(graph);
}
END_TEST

START_TEST(other_engines_and_values_are_refused) {
  sdg_graph_t *graph = graph_of("data");
  sdg_graph_config_t config[8];
  int count = host_plan_configs(graph, CUDNN_HEUR_MODE_A, 8, config);
  ck_assert_int_gt(count, 0);
  config[0].knob[0].value = 1000;
  ck_assert_int_eq(host_plan_check(graph, &config[0]),
                   CUDNN_STATUS_NOT_SUPPORTED);
  config[0] = (sdg_graph_config_t){.engine = 999};
  ck_assert_int_eq(host_plan_check(graph, &config[0]),
                   CUDNN_STATUS_NOT_SUPPORTED);
  sdg_graph_release(graph);
}
END_TEST

// test_rules.c has each rule.
START_TEST(what_has_no_engine_on_an_h100_is_refused) {
  sdg_graph_t *graph = graph_of("statistics");
  ck_assert_ptr_null(host_plan_refuses(graph));
  int sum = sdg_graph_operand(&graph->node[graph->node_count - 1],
                              CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC);
  ck_assert_int_ge(sum, 0);
  graph->tensor[sum].type = CUDNN_DATA_HALF;
  ck_assert_ptr_nonnull(host_plan_refuses(graph));
  sdg_graph_config_t config;
  ck_assert_int_eq(host_plan_configs(graph, CUDNN_HEUR_MODE_A, 1, &config), 0);
  sdg_graph_release(graph);
}
END_TEST

int main(int count, char **words) {
  if (count < 2)
    return 2;
  folder = words[1];
  Suite *suite = suite_create("plan");
  TCase *tests = tcase_create("plan");
  tcase_add_loop_test(tests, what_nvidia_wrote_is_written_again, 0, NAMES);
  tcase_add_loop_test(tests, what_is_not_known_is_refused, 0, 8);
  tcase_add_test(tests, a_node_with_an_unknown_key_is_refused);
  tcase_add_test(tests, a_tensor_with_an_unknown_key_is_refused);
  tcase_add_test(tests, a_ragged_tensor_is_known_as_one);
  tcase_add_test(tests, a_padding_value_that_was_set_as_a_float_is_read);
  tcase_add_test(tests, what_is_no_json_is_told_apart);
  tcase_add_loop_test(tests, proposed_configurations_are_accepted, 0, NAMES);
  tcase_add_test(tests, other_engines_and_values_are_refused);
  tcase_add_test(tests, what_has_no_engine_on_an_h100_is_refused);
  suite_add_tcase(suite, tests);
  return harness_run(suite);
}
