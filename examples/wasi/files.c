/*
 * A file tool: `files COMMAND ARGUMENT…`, one command per WASI file operation. Failures print the path and the error;
 * exit status 1.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int failures;

static int fail(const char *path) {
  fprintf(stderr, "files: %s: %s\n", path, strerror(errno));
  failures++;
  return -1;
}

static char kind_of(mode_t mode) {
  return S_ISDIR(mode) ? 'd' : S_ISREG(mode) ? 'f' : S_ISLNK(mode) ? 'l' : '?';
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* The names in a directory, sorted; the caller owns them. */
static char **names_in(const char *path, size_t *count) {
  DIR *dir = opendir(path);
  char **names = NULL;
  *count = 0;
  if (!dir) return fail(path), NULL;
  for (struct dirent *entry; (entry = readdir(dir));) {
    if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
    names = realloc(names, (*count + 1) * sizeof *names);
    names[(*count)++] = strdup(entry->d_name);
  }
  closedir(dir);
  if (*count) qsort(names, *count, sizeof *names, by_name);
  return names;
}

static void walk(const char *path, int depth, const char *wanted) {
  struct stat status;
  if (lstat(path, &status)) {
    fail(path);
    return;
  }
  const char *name = strrchr(path, '/');
  name = name ? name + 1 : path;
  if (!wanted) printf("%*s%s%s\n", depth * 2, "", name, S_ISDIR(status.st_mode) ? "/" : S_ISLNK(status.st_mode) ? "@" : "");
  else if (strstr(name, wanted)) puts(path);
  if (!S_ISDIR(status.st_mode)) return;
  size_t count;
  char **names = names_in(path, &count);
  for (size_t i = 0; i < count; i++) {
    char child[1024];
    snprintf(child, sizeof child, "%s/%s", path, names[i]);
    walk(child, depth + 1, wanted);
    free(names[i]);
  }
  free(names);
}

static int copy(const char *from, const char *to) {
  char piece[4096];
  int in = open(from, O_RDONLY);
  if (in < 0) return fail(from);
  int out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (out < 0) return close(in), fail(to);
  for (ssize_t n; (n = read(in, piece, sizeof piece)) != 0;) {
    if (n < 0 || write(out, piece, (size_t)n) != n) return fail(n < 0 ? from : to);
  }
  close(in);
  return close(out) ? fail(to) : 0;
}

static int print_file(const char *path) {
  char piece[4096];
  int in = strcmp(path, "-") ? open(path, O_RDONLY) : 0;
  if (in < 0) return fail(path);
  ssize_t n;
  while ((n = read(in, piece, sizeof piece)) > 0) write(1, piece, (size_t)n);
  if (in) close(in);
  return n < 0 ? fail(path) : 0;
}

static int print_status(const char *path) {
  struct stat status;
  if (lstat(path, &status)) return fail(path);
  printf("%s: %c size %lld links %lld\n", path, kind_of(status.st_mode), S_ISDIR(status.st_mode) ? 0LL : (long long)status.st_size,
         S_ISDIR(status.st_mode) ? 0LL : (long long)status.st_nlink);
  return 0;
}

static int append(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0666);
  if (fd < 0) return fail(path);
  if (write(fd, text, strlen(text)) < 0 || write(fd, "\n", 1) < 0) fail(path);
  return close(fd);
}

/* Overwrites a range in the middle, reads it back, and truncates the file. */
static int patch(const char *path, const char *offset, const char *text) {
  char back[256] = {0};
  int fd = open(path, O_RDWR);
  if (fd < 0) return fail(path);
  off_t at = strtoll(offset, NULL, 10);
  size_t length = strlen(text) < sizeof back ? strlen(text) : sizeof back - 1;
  if (pwrite(fd, text, length, at) < 0 || pread(fd, back, length, at) < 0) fail(path);
  if (ftruncate(fd, at + (off_t)length) || fsync(fd)) fail(path);
  printf("%s at %lld of %lld\n", back, (long long)at, (long long)lseek(fd, 0, SEEK_END));
  return close(fd);
}

static int set_time(const char *path, const char *seconds) {
  struct timespec times[2] = {{strtoll(seconds, NULL, 10), 0}, {strtoll(seconds, NULL, 10), 0}};
  struct stat status;
  if (utimensat(AT_FDCWD, path, times, 0) || stat(path, &status)) return fail(path);
  printf("%lld\n", (long long)status.st_mtim.tv_sec);
  return 0;
}

static int print_link(const char *path) {
  char target[1024];
  ssize_t n = readlink(path, target, sizeof target - 1);
  if (n < 0) return fail(path);
  printf("%.*s\n", (int)n, target);
  return 0;
}

extern char **environ;

int main(int argc, char **argv) {
  const char *command = argc > 1 ? argv[1] : "";
  int n = argc - 2;
  char **a = argv + 2;
  if (!strcmp(command, "tree") && n == 1) walk(a[0], 0, NULL);
  else if (!strcmp(command, "find") && n == 2) walk(a[0], 0, a[1]);
  else if (!strcmp(command, "cat")) for (int i = 0; i < n; i++) print_file(a[i]);
  else if (!strcmp(command, "cp") && n == 2) copy(a[0], a[1]);
  else if (!strcmp(command, "mv") && n == 2) rename(a[0], a[1]) ? fail(a[0]) : 0;
  else if (!strcmp(command, "ln") && n == 2) link(a[0], a[1]) ? fail(a[1]) : 0;
  else if (!strcmp(command, "symlink") && n == 2) symlink(a[0], a[1]) ? fail(a[1]) : 0;
  else if (!strcmp(command, "readlink") && n == 1) print_link(a[0]);
  else if (!strcmp(command, "mkdir")) for (int i = 0; i < n; i++) mkdir(a[i], 0777) ? fail(a[i]) : 0;
  else if (!strcmp(command, "rmdir")) for (int i = 0; i < n; i++) rmdir(a[i]) ? fail(a[i]) : 0;
  else if (!strcmp(command, "rm")) for (int i = 0; i < n; i++) unlink(a[i]) ? fail(a[i]) : 0;
  else if (!strcmp(command, "stat")) for (int i = 0; i < n; i++) print_status(a[i]);
  else if (!strcmp(command, "append") && n == 2) append(a[0], a[1]);
  else if (!strcmp(command, "patch") && n == 3) patch(a[0], a[1], a[2]);
  else if (!strcmp(command, "touch") && n == 2) set_time(a[0], a[1]);
  else if (!strcmp(command, "args")) for (int i = 0; i < n; i++) printf("[%s]\n", a[i]);
  else if (!strcmp(command, "env")) for (char **e = environ; *e; e++) puts(*e);
  else if (!strcmp(command, "exit") && n == 1) exit(atoi(a[0]));
  else if (!strcmp(command, "abort")) abort();
  else if (!strcmp(command, "sleep") && n == 1) usleep((useconds_t)atoi(a[0]) * 1000);
  else return fprintf(stderr, "usage: files tree|find|cat|cp|mv|ln|symlink|readlink|mkdir|rmdir|rm|stat|append|patch|touch|args|env|exit|abort|sleep …\n"), 2;
  return failures ? 1 : 0;
}
