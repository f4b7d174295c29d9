/*
 * What a program of preview 1 sees of the options: its arguments, variables and directories, a function of another
 * module, and a socket that listens. The first argument says which.
 */
#include <errno.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

__attribute__((import_module("other"), import_name("twice"))) int twice(int x);

static const char *text(const char *value) {
  return value ? value : "(none)";
}

static int by_name(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

static void list(const char *path) {
  char *names[64];
  int count = 0;
  DIR *directory = opendir(path);
  for (struct dirent *entry; (entry = readdir(directory)) && count < 64;) {
    if (entry->d_name[0] != '.') names[count++] = strdup(entry->d_name);
  }
  closedir(directory);
  qsort(names, count, sizeof *names, by_name);
  for (int k = 0; k < count; k++) printf("%s ", names[k]);
}

static void files(void) {
  char line[64] = "";
  FILE *file = fopen("data/new.txt", "w");
  fputs("written", file);
  fclose(file);
  rename("data/new.txt", "data/renamed.txt");
  list("data");
  file = fopen("data/renamed.txt", "r");
  printf("%s\n", fgets(line, sizeof line, file));
  fclose(file);
  file = fopen("data/../../outside", "r");
  printf("%s\n", file ? "opened" : strerror(errno));
  remove("data/renamed.txt");
}

/* Answers one connection with what it receives, reversed. */
static void answer(void) {
  char bytes[64];
  size_t count = 0;
  int connection = accept(3, NULL, NULL);
  for (ssize_t got; (got = recv(connection, bytes + count, sizeof bytes - count, 0)) > 0;) count += got;
  for (size_t k = 0; k < count; k++) send(connection, bytes + count - 1 - k, 1, 0);
  shutdown(connection, SHUT_RDWR);
  close(connection);
}

int main(int count, char **arguments) {
  const char *what = arguments[1];
  if (!strcmp(what, "arguments")) {
    for (int k = 0; k < count; k++) printf("%s\n", arguments[k]);
  } else if (!strcmp(what, "variables")) {
    printf("%s %s\n", text(getenv("GIVEN")), text(getenv("INHERITED")));
  } else if (!strcmp(what, "files")) {
    files();
  } else if (!strcmp(what, "preload")) {
    printf("%d\n", twice(21));
  } else if (!strcmp(what, "listen")) {
    answer();
  } else {
    return 2;
  }
  return 0;
}
