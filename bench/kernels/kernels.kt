// The kernels in Kotlin; the Java and Scala versions compute the same (tests/toolchains/kernels_test.ts compares them).
@file:OptIn(kotlin.js.ExperimentalJsExport::class)

var seed = 0

fun random(bound: Int): Int {
    seed = seed * 1103515245 + 12345
    return ((seed ushr 16) and 0x7fff) % bound
}

// Rewriting of expression trees: virtual calls, casts, small objects.
sealed interface Expression {
    fun value(variables: IntArray): Int
}

class Num(val value: Int) : Expression {
    override fun value(variables: IntArray) = value
}

class Variable(val index: Int) : Expression {
    override fun value(variables: IntArray) = variables[index]
}

class Sum(val a: Expression, val b: Expression) : Expression {
    override fun value(variables: IntArray) = a.value(variables) + b.value(variables)
}

class Product(val a: Expression, val b: Expression) : Expression {
    override fun value(variables: IntArray) = a.value(variables) * b.value(variables)
}

fun grow(depth: Int): Expression {
    if (depth == 0) return if (random(2) == 0) Num(random(3)) else Variable(random(4))
    val a = grow(depth - 1)
    val b = grow(depth - 1)
    return if (random(2) == 0) Sum(a, b) else Product(a, b)
}

fun simplify(e: Expression): Expression = when (e) {
    is Sum -> {
        val a = simplify(e.a)
        val b = simplify(e.b)
        when {
            a is Num && b is Num -> Num(a.value + b.value)
            a is Num && a.value == 0 -> b
            b is Num && b.value == 0 -> a
            else -> Sum(a, b)
        }
    }
    is Product -> {
        val a = simplify(e.a)
        val b = simplify(e.b)
        when {
            a is Num && b is Num -> Num(a.value * b.value)
            a is Num && a.value == 0 -> a
            a is Num && a.value == 1 -> b
            b is Num && b.value == 0 -> b
            b is Num && b.value == 1 -> a
            else -> Product(a, b)
        }
    }
    else -> e
}

fun expressions(n: Int): Int {
    val tree = grow(12)
    val variables = intArrayOf(1, 2, 3, 4)
    var sum = 0
    for (i in 0 until n) {
        variables[i and 3] = i
        sum = sum * 31 + simplify(tree).value(variables) + tree.value(variables)
    }
    return sum
}

// A map keyed by strings: hashing, boxes, comparators.
class Count(val word: String, val times: Int)

fun words(n: Int): Int {
    val counts = HashMap<String, Int>()
    for (i in 0 until n) {
        val word = "w" + random(700) + "x" + random(3)
        counts[word] = (counts[word] ?: 0) + 1
    }
    val list = ArrayList<Count>()
    for ((word, times) in counts) list.add(Count(word, times))
    list.sortWith { x, y -> if (x.times != y.times) y.times - x.times else x.word.compareTo(y.word) }
    var sum = list.size
    for (count in list) {
        sum = sum * 31 + count.times
        for (c in count.word) sum = sum * 7 + c.code
    }
    return sum
}

// The shortest path over a grid: a heap of objects with a comparator.
class Step(val place: Int, val cost: Int)

class Heap<T>(val order: (T, T) -> Int) {
    val items = ArrayList<T>()

    fun add(item: T) {
        var at = items.size
        items.add(item)
        while (at > 0) {
            val up = (at - 1) shr 1
            val parent = items[up]
            if (order(parent, item) <= 0) break
            items[at] = parent
            at = up
        }
        items[at] = item
    }

    fun take(): T {
        val first = items[0]
        val item = items.removeAt(items.size - 1)
        val size = items.size
        if (size == 0) return first
        var at = 0
        while (true) {
            var down = at * 2 + 1
            if (down >= size) break
            if (down + 1 < size && order(items[down + 1], items[down]) < 0) down++
            if (order(items[down], item) >= 0) break
            items[at] = items[down]
            at = down
        }
        items[at] = item
        return first
    }
}

fun paths(size: Int): Int {
    val field = Array(size) { IntArray(size) { 1 + random(9) } }
    val best = IntArray(size * size) { Int.MAX_VALUE }
    val heap = Heap<Step> { a, b -> if (a.cost != b.cost) a.cost - b.cost else a.place - b.place }
    best[0] = 0
    heap.add(Step(0, 0))
    var taken = 0
    while (heap.items.size > 0) {
        val step = heap.take()
        if (step.cost > best[step.place]) continue
        taken++
        val x = step.place % size
        val y = step.place / size
        for (d in 0 until 4) {
            val toX = x + (if (d == 0) 1 else if (d == 1) -1 else 0)
            val toY = y + (if (d == 2) 1 else if (d == 3) -1 else 0)
            if (toX < 0 || toY < 0 || toX >= size || toY >= size) continue
            val cost = step.cost + field[toY][toX]
            val place = toY * size + toX
            if (cost < best[place]) {
                best[place] = cost
                heap.add(Step(place, cost))
            }
        }
    }
    return best[size * size - 1] * 31 + taken
}

// A parser that throws on invalid input.
class Refused(val at: Int) : RuntimeException("refused")

class Parser(val text: String) {
    var at = 0

    fun peek(): Char = if (at < text.length) text[at] else '$'

    fun sum(): Int {
        var value = product()
        while (peek() == '+') {
            at++
            value += product()
        }
        return value
    }

    fun product(): Int {
        var value = atom()
        while (peek() == '*') {
            at++
            value *= atom()
        }
        return value
    }

    fun atom(): Int {
        val c = peek()
        if (c == '(') {
            at++
            val value = sum()
            if (peek() != ')') throw Refused(at)
            at++
            return value
        }
        if (c !in '0'..'9') throw Refused(at)
        at++
        return c - '0'
    }
}

fun failures(n: Int): Int {
    var sum = 0
    for (i in 0 until n) {
        val text = StringBuilder()
        val length = 3 + random(12)
        for (k in 0 until length) text.append("0123456789+*()+*"[random(16)])
        try {
            sum = sum * 31 + Parser(text.toString()).sum()
        } catch (e: Refused) {
            sum = sum * 31 - e.at
        }
    }
    return sum
}

// Arrays of numbers: bounds checks in loops.
fun arrays(n: Int): Int {
    val size = 64
    var a = Array(size) { DoubleArray(size) }
    val b = Array(size) { DoubleArray(size) }
    for (y in 0 until size) {
        for (x in 0 until size) {
            a[y][x] = random(100).toDouble()
            b[y][x] = random(100).toDouble()
        }
    }
    for (i in 0 until n) {
        val c = Array(size) { DoubleArray(size) }
        for (y in 0 until size) {
            for (x in 0 until size) {
                var sum = 0.0
                for (k in 0 until size) sum += a[y][k] * b[k][x]
                c[y][x] = sum - kotlin.math.floor(sum / 100) * 100
            }
        }
        a = c
    }
    var sum = 0
    for (y in 0 until size) {
        for (x in 0 until size) sum = sum * 31 + a[y][x].toInt()
    }
    return sum
}

// Strings, by character and by substring.
fun texts(n: Int): Int {
    val made = StringBuilder()
    for (w in 0 until 200) {
        val length = 1 + random(9)
        for (k in 0 until length) made.append('a' + random(26))
        made.append(' ')
    }
    val text = made.toString()
    var sum = 0
    for (round in 0 until n) {
        var at = round % 50
        var best = ""
        while (at < text.length) {
            var end = at
            while (end < text.length && text[end] != ' ') end++
            val word = text.substring(at, end)
            if (word.compareTo(best) > 0) best = word
            if (word == best) sum = sum * 31 + word.length
            var i = 0
            var j = word.length - 1
            while (i < j && word[i] == word[j]) {
                i++
                j--
            }
            if (i >= j) sum++
            at = end + 1
        }
        sum = sum * 7 + best[0].code
    }
    return sum
}

@JsExport
fun run(kernel: Int, n: Int): Int {
    seed = 12345
    return when (kernel) {
        0 -> expressions(n)
        1 -> words(n)
        2 -> paths(n)
        3 -> failures(n)
        4 -> arrays(n)
        else -> texts(n)
    }
}
