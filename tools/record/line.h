/* SPDX-License-Identifier: Apache-2.0 */
/* Text of a record that may not be UTF-8. */
#ifndef SDG_TOOLS_RECORD_LINE_H
#define SDG_TOOLS_RECORD_LINE_H

/* Replaces bytes that are no UTF-8, as names of files may have, by '?': JSON
 * takes no others. */
void line_mend(char *text);

#endif
