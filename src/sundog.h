/* SPDX-License-Identifier: Apache-2.0 */
/* What a program can tell sundog, and ask it. No program has to: sundog works
 * on programs that know nothing of it.
 *
 * A program need not be linked to sundog either. It looks the functions up
 * and does without where they are not there:
 *
 *   #include <dlfcn.h>
 *   #include <sundog.h>
 *
 *   __typeof__(&sundog_thread) name_thread =
 *       (__typeof__(&sundog_thread))dlsym(RTLD_DEFAULT, "sundog_thread");
 *   if (name_thread && name_thread("loader") != 0)
 *     ...
 *
 * The names of this header and those that begin with SUNDOG_ or sundog_ are
 * sundog's. Functions that return int return 0, or the number nnn of a code
 * SDG-nnn (`sundog explain SDG-nnn`); what is wrong stands on stderr then, and
 * in sundog_error(). Any thread may call any of them. */
#ifndef SUNDOG_H
#define SUNDOG_H

#ifdef __cplusplus
extern "C" {
#endif

#define SUNDOG_API __attribute__((visibility("default")))

/* "0.1.0": of the library that answers. Static. */
SUNDOG_API const char *sundog_version(void);

/* "SDG-nnn what is wrong: the numbers" of the calling thread's last failure in
 * sundog, of these functions and of tagged calls alike; "" if there was none.
 * The library's, until the thread's next failure. */
SUNDOG_API const char *sundog_error(void);

/* Names the calling thread, for programs that make tagged calls from several
 * threads of a rank at once. What the ranks' threads of one name do belongs
 * together: each makes the same tagged calls in the same order, in whatever
 * order the threads come and run. One thread of a rank needs no name.
 *
 * `name`: 1 to 31 letters, digits, '.', '_' or '-', copied. One living thread
 * of a rank has a name at a time, the next one takes it over; a job has at most
 * seven names. It holds until the thread ends, takes another name or gives it
 * back by NULL. Agreements, plans, buffers and communicators are kept with the
 * name, so that threads that come and go under one name cost no more than one
 * thread.
 *
 * To be called before the thread's first tagged call. Fails with 305 for what
 * is no name. That a name is taken (305) or one too many (306), the thread's
 * first tagged call says. Does nothing where nothing is split. */
SUNDOG_API int sundog_thread(const char *name);

#ifdef __cplusplus
}
#endif

#endif
