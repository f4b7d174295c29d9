/* A small Lisp: `lisp [FILE…]` evaluates files, or standard input, and prints the value of each form. Numbers are
 * 64-bit integers, symbols are interned, closures are lexical, tail calls use no stack. Memory is a growing pool that
 * is never freed. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum { NIL, NUMBER, SYMBOL, STRING, PAIR, BUILTIN, CLOSURE } Kind;

typedef struct Value Value;
typedef Value *(*Builtin)(Value *arguments);
struct Value {
  Kind kind;
  union {
    long long number;
    char *text;
    struct {
      Value *first, *rest;
    };
    Builtin builtin;
    struct {
      Value *lambda, *scope;
    };
  };
};

static Value nil_value = {NIL, {0}};
static Value *nil = &nil_value, *symbols = &nil_value, *globals, *t_symbol;
static Value *s_quote, *s_if, *s_define, *s_lambda, *s_let, *s_begin, *s_cond, *s_else, *s_and, *s_or;

static void fail(const char *what, const char *detail) {
  fflush(stdout);
  fprintf(stderr, "lisp: %s%s%s\n", what, detail[0] ? ": " : "", detail);
  exit(1);
}

static Value *make(Kind kind) {
  static Value *pool, *end;
  if (pool == end) {
    pool = malloc(4096 * sizeof *pool);
    if (!pool) fail("out of memory", "");
    end = pool + 4096;
  }
  pool->kind = kind;
  return pool++;
}

static Value *number(long long n) {
  Value *v = make(NUMBER);
  v->number = n;
  return v;
}

static Value *cons(Value *first, Value *rest) {
  Value *v = make(PAIR);
  v->first = first;
  v->rest = rest;
  return v;
}

static Value *symbol(const char *name) {
  for (Value *s = symbols; s != nil; s = s->rest) {
    if (!strcmp(s->first->text, name)) return s->first;
  }
  Value *v = make(SYMBOL);
  v->text = strdup(name);
  symbols = cons(v, symbols);
  return v;
}

static Value *first(Value *v) {
  if (v->kind != PAIR) fail("a pair is wanted", "");
  return v->first;
}
static Value *rest(Value *v) {
  if (v->kind != PAIR) fail("a pair is wanted", "");
  return v->rest;
}
static Value *second(Value *v) { return first(rest(v)); }
static long long integer(Value *v) {
  if (v->kind != NUMBER) fail("a number is wanted", "");
  return v->number;
}
static Value *truth(int yes) { return yes ? t_symbol : nil; }

/* Reading. */

static int next_char(FILE *in) {
  int c = getc(in);
  while (isspace(c) || c == ';') {
    if (c == ';') {
      while (c != '\n' && c != EOF) c = getc(in);
    } else {
      c = getc(in);
    }
  }
  return c;
}

static Value *read_form(FILE *in, int c, int depth);

static Value *read_list(FILE *in, int depth) {
  Value *head = nil, **tail = &head;
  if (depth > 1000) fail("nested too deeply", "");
  for (;;) {
    int c = next_char(in);
    if (c == ')') return head;
    if (c == EOF) fail("a list is not closed", "");
    *tail = cons(read_form(in, c, depth + 1), nil);
    tail = &(*tail)->rest;
  }
}

static Value *read_form(FILE *in, int c, int depth) {
  char word[256];
  size_t n = 0;
  if (c == '(') return read_list(in, depth);
  if (c == ')') fail("a ) too many", "");
  if (c == '\'') return cons(s_quote, cons(read_form(in, next_char(in), depth), nil));
  if (c == '"') {
    while ((c = getc(in)) != '"') {
      if (c == EOF) fail("a string is not closed", "");
      if (c == '\\') c = getc(in) == 'n' ? '\n' : '"';
      if (n < sizeof word - 1) word[n++] = (char)c;
    }
    word[n] = 0;
    Value *v = make(STRING);
    v->text = strdup(word);
    return v;
  }
  while (c != EOF && !isspace(c) && c != '(' && c != ')') {
    if (n < sizeof word - 1) word[n++] = (char)c;
    c = getc(in);
  }
  ungetc(c, in);
  word[n] = 0;
  char *end;
  long long value = strtoll(word, &end, 10);
  return *end == 0 && n > 0 ? number(value) : symbol(word);
}

/* Printing. */

static void print(Value *v, int quoted) {
  switch (v->kind) {
    case NIL: fputs("()", stdout); break;
    case NUMBER: printf("%lld", v->number); break;
    case SYMBOL: fputs(v->text, stdout); break;
    case STRING: printf(quoted ? "\"%s\"" : "%s", v->text); break;
    case BUILTIN: fputs("<builtin>", stdout); break;
    case CLOSURE: fputs("<closure>", stdout); break;
    case PAIR:
      putchar('(');
      for (;; v = v->rest) {
        print(v->first, quoted);
        if (v->rest->kind != PAIR) break;
        putchar(' ');
      }
      if (v->rest != nil) fputs(" . ", stdout), print(v->rest, quoted);
      putchar(')');
  }
}

/* Evaluating. A scope is a list of (symbol . value). */

static Value *find(Value *name, Value *scope) {
  for (; scope != nil; scope = scope->rest) {
    if (scope->first->first == name) return scope->first;
  }
  for (scope = globals; scope != nil; scope = scope->rest) {
    if (scope->first->first == name) return scope->first;
  }
  return NULL;
}

static Value *evaluate(Value *form, Value *scope);

static Value *evaluate_all(Value *forms, Value *scope) {
  Value *head = nil, **tail = &head;
  for (; forms->kind == PAIR; forms = forms->rest) {
    *tail = cons(evaluate(forms->first, scope), nil);
    tail = &(*tail)->rest;
  }
  return head;
}

static Value *bind(Value *names, Value *values, Value *scope) {
  for (; names->kind == PAIR; names = names->rest, values = rest(values)) scope = cons(cons(names->first, first(values)), scope);
  if (names->kind == SYMBOL) return cons(cons(names, values), scope);
  if (values != nil) fail("too many arguments", "");
  return scope;
}

/* Evaluates all but the last form of a body; the caller evaluates the last one, in tail position. */
static Value *up_to_last(Value *body, Value *scope) {
  for (; rest(body) != nil; body = body->rest) evaluate(body->first, scope);
  return body->first;
}

static Value *evaluate(Value *form, Value *scope) {
  for (;;) {
    if (form->kind == SYMBOL) {
      Value *found = find(form, scope);
      if (!found) fail("unknown name", form->text);
      return found->rest;
    }
    if (form->kind != PAIR) return form;
    Value *head = form->first, *arguments = form->rest;
    if (head == s_quote) return first(arguments);
    if (head == s_lambda) {
      Value *v = make(CLOSURE);
      v->lambda = arguments;
      v->scope = scope;
      return v;
    }
    if (head == s_define) {
      Value *name = first(arguments), *value;
      if (name->kind == PAIR) {
        value = make(CLOSURE);
        value->lambda = cons(name->rest, rest(arguments));
        value->scope = scope;
        name = name->first;
      } else {
        value = evaluate(second(arguments), scope);
      }
      Value *found = find(name, nil);
      if (found) found->rest = value;
      else globals = cons(cons(name, value), globals);
      return name;
    }
    if (head == s_if) {
      Value *branches = rest(arguments);
      if (evaluate(first(arguments), scope) != nil) form = first(branches);
      else if (rest(branches) != nil) form = second(branches);
      else return nil;
      continue;
    }
    if (head == s_cond) {
      for (; arguments != nil; arguments = rest(arguments)) {
        Value *clause = first(arguments);
        if (first(clause) == s_else || evaluate(first(clause), scope) != nil) break;
      }
      if (arguments == nil) return nil;
      form = up_to_last(rest(arguments->first), scope);
      continue;
    }
    if (head == s_and || head == s_or) {
      Value *value = truth(head == s_and);
      for (; arguments != nil; arguments = rest(arguments)) {
        value = evaluate(first(arguments), scope);
        if ((value == nil) == (head == s_and)) break;
      }
      return value;
    }
    if (head == s_let) {
      Value *inner = scope;
      for (Value *b = first(arguments); b != nil; b = rest(b)) inner = cons(cons(first(first(b)), evaluate(second(first(b)), scope)), inner);
      scope = inner;
      form = up_to_last(rest(arguments), scope);
      continue;
    }
    if (head == s_begin) {
      form = up_to_last(arguments, scope);
      continue;
    }
    Value *function = evaluate(head, scope);
    arguments = evaluate_all(arguments, scope);
    if (function->kind == BUILTIN) return function->builtin(arguments);
    if (function->kind != CLOSURE) fail("not a function", "");
    scope = bind(first(function->lambda), arguments, function->scope);
    form = up_to_last(rest(function->lambda), scope);
  }
}

static Value *b_add(Value *a) {
  long long sum = 0;
  for (; a != nil; a = a->rest) sum += integer(a->first);
  return number(sum);
}
static Value *b_subtract(Value *a) {
  long long value = integer(first(a));
  if (a->rest == nil) return number(-value);
  for (a = a->rest; a != nil; a = a->rest) value -= integer(a->first);
  return number(value);
}
static Value *b_multiply(Value *a) {
  long long product = 1;
  for (; a != nil; a = a->rest) product *= integer(a->first);
  return number(product);
}
static Value *b_quotient(Value *a) {
  if (integer(second(a)) == 0) fail("division by zero", "");
  return number(integer(first(a)) / integer(second(a)));
}
static Value *b_remainder(Value *a) {
  if (integer(second(a)) == 0) fail("division by zero", "");
  return number(integer(first(a)) % integer(second(a)));
}
static Value *b_less(Value *a) { return truth(integer(first(a)) < integer(second(a))); }
static Value *b_equal(Value *a) {
  Value *x = first(a), *y = second(a);
  if (x->kind != y->kind) return nil;
  if (x->kind == NUMBER) return truth(x->number == y->number);
  return truth(x == y || (x->kind == STRING && !strcmp(x->text, y->text)));
}
static Value *b_cons(Value *a) { return cons(first(a), second(a)); }
static Value *b_first(Value *a) { return first(first(a)); }
static Value *b_rest(Value *a) { return rest(first(a)); }
static Value *b_list(Value *a) { return a; }
static Value *b_is_null(Value *a) { return truth(first(a) == nil); }
static Value *b_is_pair(Value *a) { return truth(first(a)->kind == PAIR); }
static Value *b_display(Value *a) {
  for (; a != nil; a = a->rest) print(a->first, 0);
  putchar('\n');
  return nil;
}
static Value *b_getenv(Value *a) {
  const char *text = getenv(first(a)->kind == STRING ? first(a)->text : "");
  if (!text) return nil;
  Value *v = make(STRING);
  v->text = strdup(text);
  return v;
}
static Value *b_exit(Value *a) { exit((int)integer(first(a))); }

static void define_builtins(void) {
  static const struct {
    const char *name;
    Builtin function;
  } ROWS[] = {{"+", b_add}, {"-", b_subtract}, {"*", b_multiply}, {"quotient", b_quotient}, {"remainder", b_remainder}, {"<", b_less},
              {"=", b_equal}, {"cons", b_cons}, {"first", b_first}, {"rest", b_rest}, {"list", b_list}, {"null?", b_is_null},
              {"pair?", b_is_pair}, {"display", b_display}, {"getenv", b_getenv}, {"exit", b_exit}};
  globals = nil;
  for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
    Value *v = make(BUILTIN);
    v->builtin = ROWS[i].function;
    globals = cons(cons(symbol(ROWS[i].name), v), globals);
  }
  s_quote = symbol("quote"), s_if = symbol("if"), s_define = symbol("define"), s_lambda = symbol("lambda"), s_let = symbol("let");
  s_begin = symbol("begin"), s_cond = symbol("cond"), s_else = symbol("else"), s_and = symbol("and"), s_or = symbol("or");
  t_symbol = symbol("t");
  globals = cons(cons(t_symbol, t_symbol), globals);
}

static void run(FILE *in, int prints) {
  for (int c; (c = next_char(in)) != EOF;) {
    Value *value = evaluate(read_form(in, c, 0), nil);
    if (prints) print(value, 1), putchar('\n');
  }
}

int main(int argc, char **argv) {
  define_builtins();
  if (argc < 2) run(stdin, 1);
  for (int i = 1; i < argc; i++) {
    FILE *in = fopen(argv[i], "r");
    if (!in) fail("cannot open", argv[i]);
    run(in, 0);
    fclose(in);
  }
  return 0;
}
