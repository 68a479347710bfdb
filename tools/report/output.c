// SPDX-License-Identifier: Apache-2.0
// The page is a template with the report's JSON in it.
#include "tools/report/output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/program/setting.h"
#include "tools/report/document.h"
#include "tools/report/facts.h"
#include "tools/report/trace.h"

// tools/report/page/page.html, as it is before and after the place of the data.
static const unsigned char page[] = {
#include "tools/report/page.inc"
};
static const char place[] = "@REPORT@";

// Copies JSON into an element of HTML. '<' is found in its texts only, where
// \u003c means the same, so that no text can end the element.
static void json_embed(FILE *from, FILE *to) {
  for (int c; (c = getc_unlocked(from)) != EOF;)
    if (c == '<')
      fputs("\\u003c", to);
    else
      putc_unlocked(c, to);
}

static sdg_status_t page_write(const recorded_t *run, int64_t events,
                               FILE *to) {
  const unsigned char *at = memmem(page, sizeof page, place, sizeof place - 1);
  if (!at)
    return sdg_fail(SDG_E_INTERNAL, "the page has no place for its data");
  FILE *json = tmpfile();
  if (!json)
    return sdg_fail(SDG_E_FILE_IO, "a temporary file: %s", strerror(errno));
  sdg_status_t status = document_write(run, events, json);
  if (status == SDG_OK && (fflush(json) != 0 || ferror(json)))
    status = sdg_fail(SDG_E_FILE_IO, "a temporary file: %s", strerror(errno));
  if (status == SDG_OK) {
    const unsigned char *rest = at + sizeof place - 1;
    rewind(json);
    fwrite(page, 1, (size_t)(at - page), to);
    json_embed(json, to);
    fwrite(rest, 1, (size_t)(page + sizeof page - rest), to);
  }
  fclose(json);
  return status;
}

// Devices and pipes are not removed; without `filled`, only an empty file is.
static void file_remove(const char *path, bool filled) {
  struct stat is;
  if (lstat(path, &is) == 0 && S_ISREG(is.st_mode) &&
      (filled || is.st_size == 0))
    (void)unlink(path);
}

void output_drop(const char *path) {
  file_remove(path, false);
}

static sdg_status_t own_check(const char *folder, const char *path) {
  return recorded_owns(folder, path)
             ? sdg_fail(SDG_E_OVERWRITE, "%s is a file of the record %s", path,
                        folder)
             : SDG_OK;
}

sdg_status_t output_check(const char *folder, const char *path) {
  SDG_TRY(own_check(folder, path));
  FILE *file = fopen(path, "ae");
  if (!file)
    return sdg_fail(SDG_E_FILE_IO, "%s: %s", path, strerror(errno));
  fclose(file);
  return SDG_OK;
}

sdg_status_t output_record_set(const char *report, const char *folder,
                               char out_record[PATH_MAX]) {
  const char *kept = sdg_options_get()->record;
  snprintf(out_record, PATH_MAX, "%s", kept);
  if (*kept)
    recorded_clear(kept);
  if (*kept || !report)
    return SDG_OK;
  int n = snprintf(out_record, PATH_MAX, "%s/record", folder);
  if (n < 0 || n >= PATH_MAX || mkdir(out_record, 0700) != 0)
    return sdg_fail(SDG_E_FOLDER, "%s: %s", out_record, strerror(errno));
  return setting_make("SUNDOG_RECORD", out_record, SDG_ORIGIN_COMMAND);
}

static sdg_status_t run_write(const recorded_t *run, output_form_t form,
                              int64_t events, const char *path) {
  bool standard = strcmp(path, "-") == 0;
  FILE *to = standard ? stdout : fopen(path, "we");
  if (!to)
    return sdg_fail(SDG_E_FILE_IO, "%s: %s", path, strerror(errno));
  sdg_status_t status = form == OUTPUT_JSON    ? document_write(run, events, to)
                        : form == OUTPUT_TRACE ? trace_write(run, to)
                                               : page_write(run, events, to);
  bool failed = fflush(to) != 0 || ferror(to);
  failed |= !standard && fclose(to) != 0;
  if (status == SDG_OK && failed)
    status = sdg_fail(SDG_E_FILE_IO, "%s: %s", path, strerror(errno));
  if (status != SDG_OK && !standard)
    file_remove(path, true);
  return status;
}

sdg_status_t output_write(const char *folder, output_form_t form,
                          int64_t events, const char *path, bool says_faults) {
  recorded_t run;
  SDG_TRY(own_check(folder, path));
  sdg_status_t status = recorded_read(folder, &run);
  if (status != SDG_OK) {
    file_remove(path, false);
    return status;
  }
  if (says_faults) {
    json_t *faults = facts_faults(&run);
    facts_faults_print(folder, faults);
    json_decref(faults);
  }
  status = run_write(&run, form, events, path);
  recorded_fini(&run);
  return status;
}

static sdg_status_t folder_load(const char *folder, json_t **out) {
  recorded_t run;
  char *text = NULL;
  size_t bytes = 0;
  SDG_TRY(recorded_read(folder, &run));
  FILE *memory = open_memstream(&text, &bytes);
  sdg_status_t status = memory ? document_write(&run, 1, memory)
                               : sdg_fail(SDG_E_NO_MEMORY, "a report");
  if (memory && fclose(memory) != 0 && status == SDG_OK)
    status = sdg_fail(SDG_E_NO_MEMORY, "a report");
  *out = status == SDG_OK ? json_loadb(text, bytes, 0, NULL) : NULL;
  free(text);
  recorded_fini(&run);
  return status == SDG_OK && !*out ? sdg_fail(SDG_E_NO_MEMORY, "a report")
                                   : status;
}

// A page has its JSON in an element of its own.
static sdg_status_t file_load(const char *path, json_t **out) {
  static const char begin[] = "id=\"report\">", end[] = "</script>";
  char *text = NULL;
  size_t room = 0;
  FILE *file = fopen(path, "re");
  if (!file)
    return sdg_fail(SDG_E_FILE_IO, "%s: %s", path, strerror(errno));
  ssize_t bytes = getdelim(&text, &room, '\0', file);
  fclose(file);
  const char *at = bytes > 0 ? text : "", *stop = at + (bytes > 0 ? bytes : 0);
  const char *page_at = strstr(at, begin);
  if (page_at && *at != '{') {
    at = page_at + sizeof begin - 1;
    const char *page_stop = strstr(at, end);
    stop = page_stop ? page_stop : stop;
  }
  *out = json_loadb(at, (size_t)(stop - at), 0, NULL);
  free(text);
  if (json_is_object(*out) && json_object_get(*out, "schema"))
    return SDG_OK;
  json_decref(*out);
  *out = NULL;
  return sdg_fail(SDG_E_FILE_IO, "%s is no report of sundog", path);
}

sdg_status_t output_load(const char *path, json_t **out) {
  struct stat is;
  *out = NULL;
  return stat(path, &is) == 0 && S_ISDIR(is.st_mode) ? folder_load(path, out)
                                                     : file_load(path, out);
}
