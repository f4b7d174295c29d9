// A command of WASI preview 1 by wasi-libc: arguments, variables, standard input, files, directories, the exit status.
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int entries(const char *path) {
  DIR *dir = opendir(path);
  int count = 0;
  if (dir == NULL) return -1;
  while (readdir(dir) != NULL) count++;
  closedir(dir);
  return count;
}

int main(int argc, char **argv) {
  char line[64], text[64];
  struct stat status;
  for (int k = 1; k < argc; k++) printf("argument %d: %s\n", k, argv[k]);
  printf("NAME is %s, OTHER is %s\n", getenv("NAME"), getenv("OTHER") == NULL ? "missing" : "there");
  while (fgets(line, sizeof line, stdin) != NULL) printf("read: %s", line);
  FILE *file = fopen("/data/notes.txt", "w+");
  fprintf(file, "%.3f %d\n", 1.5, 42);
  rewind(file);
  printf("file: %s", fgets(text, sizeof text, file));
  fclose(file);
  printf("mkdir: %d, again: %d", mkdir("/data/sub", 0777), mkdir("/data/sub", 0777));
  printf(" (%s)\n", strerror(errno));
  printf("rename: %d\n", rename("/data/notes.txt", "/data/sub/moved.txt"));
  printf("stat: %d, %lld bytes\n", stat("/data/sub/moved.txt", &status), (long long)status.st_size);
  printf("entries: %d and %d\n", entries("/data"), entries("/data/sub"));
  printf("rmdir: %d (%s)\n", rmdir("/data/sub"), strerror(errno));
  printf("unlink: %d, rmdir: %d\n", unlink("/data/sub/moved.txt"), rmdir("/data/sub"));
  printf("outside: %d\n", fopen("/etc/passwd", "r") == NULL);
  fprintf(stderr, "to the error stream\n");
  return 3;
}
