// SPDX-License-Identifier: Apache-2.0
// Replaces libsundog.so in tests of the command in which only its name matters.
int sundog_dummy;
