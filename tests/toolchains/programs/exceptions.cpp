/* C++ with exceptions of every kind: by value, by base class, through destructors, nested, rethrown, from
 * constructors, from the element types of standard containers. Every event is written to standard output. */
#include "exceptions_runtime.h"

#include <cstdio>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

int alive;

struct Tracked {
  std::string name;
  explicit Tracked(std::string n) : name(std::move(n)) { alive++; }
  Tracked(const Tracked &other) : name(other.name) { alive++; }
  ~Tracked() { alive--; }
};

struct Base {
  virtual ~Base() = default;
  virtual std::string what() const { return "base"; }
};
struct Left : virtual Base {
  std::string what() const override { return "left"; }
};
struct Right : virtual Base {};
struct Both : Left, Right {
  int code;
  explicit Both(int c) : code(c) {}
  std::string what() const override { return "both " + std::to_string(code); }
};

/* A separate function that the compiler assumes to return: clang 14 cannot compile a throw with pending destructors. */
template <class Value>
__attribute__((noinline, optnone)) void raise(const Value &value) {
  throw value;
}

__attribute__((noinline)) void fail(int how) {
  Tracked tracked("fail");
  switch (how % 8) {
    case 0: raise(how); break;
    case 1: raise(std::string("text ") + std::to_string(how)); break;
    case 2: raise(std::runtime_error("runtime " + std::to_string(how))); break;
    case 3: raise(std::out_of_range("range")); break;
    case 4: raise(Both(how)); break;
    case 5: raise(Left()); break;
    case 6: raise(2.5 * how); break;
    default: return;
  }
}

__attribute__((noinline)) void middle(int how) {
  std::vector<Tracked> many;
  for (int i = 0; i < how % 5; i++) many.emplace_back("m" + std::to_string(i));
  try {
    fail(how);
  } catch (const std::out_of_range &e) {
    std::printf("  middle took %s\n", e.what());
    if (how % 3 == 0) throw;
    raise(std::logic_error("instead of " + std::string(e.what())));
  } catch (double d) {
    std::printf("  middle took %g\n", d);
  }
}

struct Half {
  Tracked first{"first"};
  Tracked second;
  explicit Half(int how) : second((fail(how), "second")) {}
};

void attempt(int how) {
  std::printf("%d:\n", how);
  try {
    middle(how);
    auto half = std::make_unique<Half>(how + 1);
    std::printf("  made %s\n", half->second.name.c_str());
  } catch (int i) {
    std::printf("  int %d\n", i);
  } catch (const std::exception &e) {
    std::printf("  exception %s\n", e.what());
  } catch (const Base &b) {
    std::printf("  %s\n", b.what().c_str());
  } catch (...) {
    try {
      throw;
    } catch (const std::string &s) {
      std::printf("  string %s\n", s.c_str());
    } catch (...) {
      std::printf("  something\n");
    }
  }
}

}

extern "C" __attribute__((export_name("run"))) int run(int n) {
  std::map<std::string, int> seen;
  for (int i = 0; i < n; i++) {
    attempt(i);
    try {
      fail(i * 3);
      seen["none"]++;
    } catch (...) {
      seen["some"]++;
    }
  }
  for (const auto &[name, count] : seen) std::printf("%s %d\n", name.c_str(), count);
  std::printf("alive %d\n", alive);
  std::fflush(stdout);
  return alive;
}
