// The kernels in Scala; the Java and Kotlin versions compute the same (tests/toolchains/kernels_test.ts compares them).
import scala.collection.mutable
import scala.scalajs.js.annotation.JSExportTopLevel

object Kernels {
  var seed = 0

  def random(bound: Int): Int = {
    seed = seed * 1103515245 + 12345
    ((seed >>> 16) & 0x7fff) % bound
  }

  // Rewriting of expression trees: virtual calls, casts, small objects.
  sealed trait Expression { def value(variables: Array[Int]): Int }
  case class Num(value: Int) extends Expression { def value(variables: Array[Int]): Int = value }
  case class Variable(index: Int) extends Expression { def value(variables: Array[Int]): Int = variables(index) }
  case class Sum(a: Expression, b: Expression) extends Expression {
    def value(variables: Array[Int]): Int = a.value(variables) + b.value(variables)
  }
  case class Product(a: Expression, b: Expression) extends Expression {
    def value(variables: Array[Int]): Int = a.value(variables) * b.value(variables)
  }

  def grow(depth: Int): Expression =
    if (depth == 0) { if (random(2) == 0) Num(random(3)) else Variable(random(4)) }
    else {
      val a = grow(depth - 1)
      val b = grow(depth - 1)
      if (random(2) == 0) Sum(a, b) else Product(a, b)
    }

  def simplify(e: Expression): Expression = e match {
    case Sum(x, y) =>
      (simplify(x), simplify(y)) match {
        case (Num(a), Num(b)) => Num(a + b)
        case (Num(0), b) => b
        case (a, Num(0)) => a
        case (a, b) => Sum(a, b)
      }
    case Product(x, y) =>
      (simplify(x), simplify(y)) match {
        case (Num(a), Num(b)) => Num(a * b)
        case (a @ Num(0), _) => a
        case (Num(1), b) => b
        case (_, b @ Num(0)) => b
        case (a, Num(1)) => a
        case (a, b) => Product(a, b)
      }
    case _ => e
  }

  def expressions(n: Int): Int = {
    val tree = grow(12)
    val variables = Array(1, 2, 3, 4)
    var sum = 0
    for (i <- 0 until n) {
      variables(i & 3) = i
      sum = sum * 31 + simplify(tree).value(variables) + tree.value(variables)
    }
    sum
  }

  // A map keyed by strings: hashing, boxes, comparators.
  def words(n: Int): Int = {
    val counts = mutable.HashMap.empty[String, Int]
    for (_ <- 0 until n) {
      val first = random(700)
      val word = "w" + first + "x" + random(3)
      counts(word) = counts.getOrElse(word, 0) + 1
    }
    val list = counts.toList.sortWith { case ((x, m), (y, k)) => if (m != k) m > k else x < y }
    var sum = list.size
    for ((word, times) <- list) {
      sum = sum * 31 + times
      for (c <- word) sum = sum * 7 + c
    }
    sum
  }

  // The shortest path over a grid: a heap of objects with a comparator.
  case class Step(place: Int, cost: Int)

  final class Heap[T](order: (T, T) => Int) {
    val items = mutable.ArrayBuffer.empty[T]

    def add(item: T): Unit = {
      var at = items.size
      items += item
      while (at > 0 && order(items((at - 1) >> 1), item) > 0) {
        items(at) = items((at - 1) >> 1)
        at = (at - 1) >> 1
      }
      items(at) = item
    }

    def take(): T = {
      val first = items(0)
      val item = items.remove(items.size - 1)
      val size = items.size
      if (size > 0) {
        var at = 0
        var down = 1
        while (down < size) {
          if (down + 1 < size && order(items(down + 1), items(down)) < 0) down += 1
          if (order(items(down), item) >= 0) down = size
          else {
            items(at) = items(down)
            at = down
            down = at * 2 + 1
          }
        }
        items(at) = item
      }
      first
    }
  }

  def paths(size: Int): Int = {
    val field = Array.fill(size, size)(1 + random(9))
    val best = Array.fill(size * size)(Int.MaxValue)
    val heap = new Heap[Step]((a, b) => if (a.cost != b.cost) a.cost - b.cost else a.place - b.place)
    best(0) = 0
    heap.add(Step(0, 0))
    var taken = 0
    while (heap.items.nonEmpty) {
      val step = heap.take()
      if (step.cost <= best(step.place)) {
        taken += 1
        val x = step.place % size
        val y = step.place / size
        for (d <- 0 until 4) {
          val toX = x + (if (d == 0) 1 else if (d == 1) -1 else 0)
          val toY = y + (if (d == 2) 1 else if (d == 3) -1 else 0)
          if (toX >= 0 && toY >= 0 && toX < size && toY < size) {
            val cost = step.cost + field(toY)(toX)
            val place = toY * size + toX
            if (cost < best(place)) {
              best(place) = cost
              heap.add(Step(place, cost))
            }
          }
        }
      }
    }
    best(size * size - 1) * 31 + taken
  }

  // A parser that throws on invalid input.
  final class Refused(val at: Int) extends RuntimeException("refused", null, false, false)

  final class Parser(text: String) {
    var at = 0

    def peek: Char = if (at < text.length) text.charAt(at) else '$'

    def sum(): Int = {
      var value = product()
      while (peek == '+') {
        at += 1
        value += product()
      }
      value
    }

    def product(): Int = {
      var value = atom()
      while (peek == '*') {
        at += 1
        value *= atom()
      }
      value
    }

    def atom(): Int = {
      val c = peek
      if (c == '(') {
        at += 1
        val value = sum()
        if (peek != ')') throw new Refused(at)
        at += 1
        value
      } else {
        if (c < '0' || c > '9') throw new Refused(at)
        at += 1
        c - '0'
      }
    }
  }

  def failures(n: Int): Int = {
    var sum = 0
    for (_ <- 0 until n) {
      val text = new StringBuilder
      val length = 3 + random(12)
      for (_ <- 0 until length) text.append("0123456789+*()+*".charAt(random(16)))
      try sum = sum * 31 + new Parser(text.toString).sum()
      catch { case e: Refused => sum = sum * 31 - e.at }
    }
    sum
  }

  // Arrays of numbers: bounds checks in loops.
  def arrays(n: Int): Int = {
    val size = 64
    var a = Array.ofDim[Double](size, size)
    val b = Array.ofDim[Double](size, size)
    for (y <- 0 until size; x <- 0 until size) {
      a(y)(x) = random(100)
      b(y)(x) = random(100)
    }
    for (_ <- 0 until n) {
      val c = Array.ofDim[Double](size, size)
      for (y <- 0 until size; x <- 0 until size) {
        var sum = 0.0
        for (k <- 0 until size) sum += a(y)(k) * b(k)(x)
        c(y)(x) = sum - math.floor(sum / 100) * 100
      }
      a = c
    }
    var sum = 0
    for (y <- 0 until size; x <- 0 until size) sum = sum * 31 + a(y)(x).toInt
    sum
  }

  // Strings, by character and by substring.
  def texts(n: Int): Int = {
    val made = new java.lang.StringBuilder
    for (_ <- 0 until 200) {
      val length = 1 + random(9)
      for (_ <- 0 until length) made.append((97 + random(26)).toChar)
      made.append(' ')
    }
    val text = made.toString
    var sum = 0
    for (round <- 0 until n) {
      var at = round % 50
      var best = ""
      while (at < text.length) {
        var end = at
        while (end < text.length && text.charAt(end) != ' ') end += 1
        val word = text.substring(at, end)
        if (word.compareTo(best) > 0) best = word
        if (word == best) sum = sum * 31 + word.length
        var i = 0
        var j = word.length - 1
        while (i < j && word.charAt(i) == word.charAt(j)) {
          i += 1
          j -= 1
        }
        if (i >= j) sum += 1
        at = end + 1
      }
      sum = sum * 7 + best.charAt(0)
    }
    sum
  }

  @JSExportTopLevel("run")
  def run(kernel: Int, n: Int): Int = {
    seed = 12345
    kernel match {
      case 0 => expressions(n)
      case 1 => words(n)
      case 2 => paths(n)
      case 3 => failures(n)
      case 4 => arrays(n)
      case _ => texts(n)
    }
  }
}
