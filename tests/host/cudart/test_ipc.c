// SPDX-License-Identifier: Apache-2.0
// Device memory shared between two processes of the host device.
#include "tests/unit/harness.h"

#include <cuda_runtime_api.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/host/host.h"
#include "tests/calls.h"

enum { SIZES = 3 };
static const size_t sizes[SIZES] = {1000, 300, 5 << 20};

static void send_all(int fd, const void *data, size_t bytes) {
  ck_assert_int_eq(write(fd, data, bytes), (ssize_t)bytes);
}

static void receive_all(int fd, void *data, size_t bytes) {
  ck_assert_int_eq(recv(fd, data, bytes, MSG_WAITALL), (ssize_t)bytes);
}

/* The exporter: fills allocations, offers them, and checks the answer. Uses
 * exit codes, as assertions of the child are not collected. */
static int exporter(int fd) {
  cudaIpcMemHandle_t handles[SIZES];
  char *pointers[SIZES], ready;
  for (int i = 0; i < SIZES; i++) {
    if (cudaMalloc((void **)&pointers[i], sizes[i]) ||
        cudaMemset(pointers[i], 10 + i, sizes[i]) ||
        cudaIpcGetMemHandle(&handles[i], pointers[i]))
      return 1;
  }
  if (cudaDeviceSynchronize())
    return 1;
  void *same;
  if (cudaIpcOpenMemHandle(&same, handles[0], cudaIpcMemLazyEnablePeerAccess) ==
      cudaSuccess)
    return 2;
  if (write(fd, handles, sizeof handles) != sizeof handles ||
      read(fd, &ready, 1) != 1)
    return 3;
  for (int i = 0; i < SIZES; i++) {
    char last;
    if (cudaMemcpy(&last, pointers[i] + sizes[i] - 1, 1,
                   cudaMemcpyDeviceToHost) ||
        last != 20 + i)
      return 4;
  }
  return 0;
}

START_TEST(memory_of_another_process_can_be_read_and_written) {
  int pair[2], status;
  ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  pid_t child = fork();
  if (child == 0)
    _exit(exporter(pair[1]));
  cudaIpcMemHandle_t handles[SIZES];
  receive_all(pair[0], handles, sizeof handles);
  for (int i = 0; i < SIZES; i++) {
    char *pointer, *again, value;
    OK(cudaIpcOpenMemHandle((void **)&pointer, handles[i],
                            cudaIpcMemLazyEnablePeerAccess));
    OK(cudaIpcOpenMemHandle((void **)&again, handles[i],
                            cudaIpcMemLazyEnablePeerAccess));
    ck_assert_ptr_eq(pointer, again);
    ck_assert_ptr_nonnull(host_memory_resolve(pointer, sizes[i]));
    ck_assert_ptr_null(host_memory_resolve(pointer, sizes[i] + 1));
    struct cudaPointerAttributes attributes;
    OK(cudaPointerGetAttributes(&attributes, pointer));
    ck_assert_int_eq(attributes.type, cudaMemoryTypeDevice);
    OK(cudaMemcpy(&value, pointer + sizes[i] - 1, 1, cudaMemcpyDeviceToHost));
    ck_assert_int_eq(value, 10 + i);
    OK(cudaMemset(pointer, 20 + i, sizes[i]));
    OK(cudaDeviceSynchronize());
    ck_assert_int_eq(cudaFree(pointer), cudaErrorInvalidValue);
    OK(cudaIpcCloseMemHandle(pointer));
    ck_assert_ptr_nonnull(host_memory_resolve(pointer, 1));
    OK(cudaIpcCloseMemHandle(pointer));
    ck_assert_ptr_null(host_memory_resolve(pointer, 1));
    ck_assert_int_eq(cudaIpcCloseMemHandle(pointer), cudaErrorInvalidValue);
  }
  send_all(pair[0], "", 1);
  waitpid(child, &status, 0);
  ck_assert(WIFEXITED(status));
  ck_assert_int_eq(WEXITSTATUS(status), 0);
  void *late;
  ck_assert_int_eq(cudaIpcOpenMemHandle(&late, (cudaIpcMemHandle_t){{1}},
                                        cudaIpcMemLazyEnablePeerAccess),
                   cudaErrorInvalidValue);
}
END_TEST

START_TEST(a_handle_of_an_ended_process_is_refused) {
  int pair[2], status;
  ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  pid_t child = fork();
  if (child == 0)
    _exit(exporter(pair[1]));
  cudaIpcMemHandle_t handles[SIZES];
  receive_all(pair[0], handles, sizeof handles);
  send_all(pair[0], "", 1);
  waitpid(child, &status, 0);
  void *late;
  ck_assert_int_eq(
      cudaIpcOpenMemHandle(&late, handles[0], cudaIpcMemLazyEnablePeerAccess),
      cudaErrorMapBufferObjectFailed);
}
END_TEST

START_TEST(a_host_read_of_opened_memory_crashes) {
  int pair[2];
  ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  pid_t child = fork();
  if (child == 0)
    _exit(exporter(pair[1]));
  cudaIpcMemHandle_t handles[SIZES];
  volatile char *pointer;
  receive_all(pair[0], handles, sizeof handles);
  OK(cudaIpcOpenMemHandle((void **)&pointer, handles[0],
                          cudaIpcMemLazyEnablePeerAccess));
  send_all(pair[0], "", 1);
  waitpid(child, NULL, 0);
  harness_crash_plainly();
  (void)*pointer;
}
END_TEST

int main(void) {
  Suite *suite = suite_create("cudart_ipc");
  TCase *tests = tcase_create("ipc");
  tcase_add_test(tests, memory_of_another_process_can_be_read_and_written);
  tcase_add_test(tests, a_handle_of_an_ended_process_is_refused);
  tcase_add_test_raise_signal(tests, a_host_read_of_opened_memory_crashes,
                              SIGSEGV);
  suite_add_tcase(suite, tests);
  return harness_run(suite);
}
