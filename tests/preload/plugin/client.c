// SPDX-License-Identifier: Apache-2.0
// A program without cuDNN that loads a plugin locally; the plugin uses cuDNN,
// so the real functions are in no global scope.
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
  void *plugin = argc > 1 ? dlopen(argv[1], RTLD_LAZY | RTLD_LOCAL) : NULL;
  if (!plugin) {
    fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  int (*plugin_main)(void);
  *(void **)&plugin_main = dlsym(plugin, "plugin_main");
  return plugin_main ? plugin_main() : 3;
}
