// SPDX-License-Identifier: Apache-2.0
// Stands for libsundog.so where only its name matters: what the command does
// with its ranks does not depend on what the library does in them.
int sundog_dummy;
