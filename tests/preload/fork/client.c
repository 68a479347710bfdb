// SPDX-License-Identifier: Apache-2.0
// Forks before and after its first call; the last child executes this program
// again.
#include <cudnn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void query(const char *who, int channels) {
  cudnnTensorDescriptor_t x;
  cudnnPoolingDescriptor_t op;
  int n, c, h, w;
  cudnnCreateTensorDescriptor(&x);
  cudnnCreatePoolingDescriptor(&op);
  cudnnSetTensor4dDescriptor(x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1,
                             channels, 8, 8);
  cudnnSetPooling2dDescriptor(op, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN, 2, 2,
                              0, 0, 2, 2);
  int status = cudnnGetPooling2dForwardOutputDim(op, x, &n, &c, &h, &w);
  printf("%s %d: %d %d\n", who, channels, status, c);
  fflush(stdout);
  cudnnDestroyPoolingDescriptor(op);
  cudnnDestroyTensorDescriptor(x);
}

static int child_run(void (*body)(char **), char **argv) {
  pid_t child = fork();
  if (child == 0) {
    body(argv);
    exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

static void early(char **argv) {
  (void)argv;
  query("child before", 1);
}

static void later(char **argv) {
  (void)argv;
  query("child after", 3);
}

static void again(char **argv) {
  execl(argv[0], argv[0], "again", (char *)NULL);
  _exit(9);
}

int main(int argc, char **argv) {
  if (argc > 1) {
    query("executed", 5);
    return 0;
  }
  int bad = child_run(early, argv);
  query("parent", 2);
  bad |= child_run(later, argv);
  query("parent", 4);
  bad |= child_run(again, argv);
  query("parent", 6);
  return bad != 0;
}
