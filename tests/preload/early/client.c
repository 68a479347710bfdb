// SPDX-License-Identifier: Apache-2.0
// A program whose calls are all in the constructor of its library.
int early_done(void);

int main(void) {
  return early_done();
}
