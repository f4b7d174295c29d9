// The kernels in Java; the Kotlin and Scala versions compute the same (tests/toolchains/kernels_test.ts compares them).
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.teavm.jso.JSExport;

public class Kernels {
    static int seed;

    static int random(int bound) {
        seed = seed * 1103515245 + 12345;
        return ((seed >>> 16) & 0x7fff) % bound;
    }

    // Rewriting of expression trees: virtual calls, casts, small objects.
    interface Expression {
        int value(int[] variables);
    }

    record Num(int value) implements Expression {
        public int value(int[] variables) {
            return value;
        }
    }

    record Variable(int index) implements Expression {
        public int value(int[] variables) {
            return variables[index];
        }
    }

    record Sum(Expression a, Expression b) implements Expression {
        public int value(int[] variables) {
            return a.value(variables) + b.value(variables);
        }
    }

    record Product(Expression a, Expression b) implements Expression {
        public int value(int[] variables) {
            return a.value(variables) * b.value(variables);
        }
    }

    static Expression grow(int depth) {
        if (depth == 0) return random(2) == 0 ? new Num(random(3)) : new Variable(random(4));
        Expression a = grow(depth - 1);
        Expression b = grow(depth - 1);
        return random(2) == 0 ? new Sum(a, b) : new Product(a, b);
    }

    static Expression simplify(Expression e) {
        if (e instanceof Sum s) {
            Expression a = simplify(s.a);
            Expression b = simplify(s.b);
            if (a instanceof Num x && b instanceof Num y) return new Num(x.value + y.value);
            if (a instanceof Num x && x.value == 0) return b;
            if (b instanceof Num y && y.value == 0) return a;
            return new Sum(a, b);
        }
        if (e instanceof Product p) {
            Expression a = simplify(p.a);
            Expression b = simplify(p.b);
            if (a instanceof Num x && b instanceof Num y) return new Num(x.value * y.value);
            if (a instanceof Num x) {
                if (x.value == 0) return x;
                if (x.value == 1) return b;
            }
            if (b instanceof Num y) {
                if (y.value == 0) return y;
                if (y.value == 1) return a;
            }
            return new Product(a, b);
        }
        return e;
    }

    static int expressions(int n) {
        Expression tree = grow(12);
        int[] variables = {1, 2, 3, 4};
        int sum = 0;
        for (int i = 0; i < n; i++) {
            variables[i & 3] = i;
            sum = sum * 31 + simplify(tree).value(variables) + tree.value(variables);
        }
        return sum;
    }

    // A map keyed by strings: hashing, boxes, comparators.
    record Count(String word, int times) {
    }

    static int words(int n) {
        Map<String, Integer> counts = new HashMap<>();
        for (int i = 0; i < n; i++) {
            String word = "w" + random(700) + "x" + random(3);
            Integer before = counts.get(word);
            counts.put(word, before == null ? 1 : before + 1);
        }
        List<Count> list = new ArrayList<>();
        for (Map.Entry<String, Integer> entry : counts.entrySet()) list.add(new Count(entry.getKey(), entry.getValue()));
        list.sort((x, y) -> x.times != y.times ? y.times - x.times : x.word.compareTo(y.word));
        int sum = list.size();
        for (Count count : list) {
            sum = sum * 31 + count.times;
            for (int i = 0; i < count.word.length(); i++) sum = sum * 7 + count.word.charAt(i);
        }
        return sum;
    }

    // The shortest path over a grid: a heap of objects with a comparator.
    record Step(int place, int cost) {
    }

    static final class Heap<T> {
        final ArrayList<T> items = new ArrayList<>();
        final Comparator<T> order;

        Heap(Comparator<T> order) {
            this.order = order;
        }

        void add(T item) {
            int at = items.size();
            items.add(item);
            while (at > 0) {
                int up = (at - 1) >> 1;
                T parent = items.get(up);
                if (order.compare(parent, item) <= 0) break;
                items.set(at, parent);
                at = up;
            }
            items.set(at, item);
        }

        T take() {
            T first = items.get(0);
            T item = items.remove(items.size() - 1);
            int size = items.size();
            if (size == 0) return first;
            int at = 0;
            while (true) {
                int down = at * 2 + 1;
                if (down >= size) break;
                if (down + 1 < size && order.compare(items.get(down + 1), items.get(down)) < 0) down++;
                if (order.compare(items.get(down), item) >= 0) break;
                items.set(at, items.get(down));
                at = down;
            }
            items.set(at, item);
            return first;
        }
    }

    static int paths(int size) {
        int[][] field = new int[size][size];
        for (int y = 0; y < size; y++) {
            for (int x = 0; x < size; x++) field[y][x] = 1 + random(9);
        }
        int[] best = new int[size * size];
        for (int i = 0; i < best.length; i++) best[i] = Integer.MAX_VALUE;
        Heap<Step> heap = new Heap<>((a, b) -> a.cost != b.cost ? a.cost - b.cost : a.place - b.place);
        best[0] = 0;
        heap.add(new Step(0, 0));
        int taken = 0;
        while (!heap.items.isEmpty()) {
            Step step = heap.take();
            if (step.cost > best[step.place]) continue;
            taken++;
            int x = step.place % size;
            int y = step.place / size;
            for (int d = 0; d < 4; d++) {
                int toX = x + (d == 0 ? 1 : d == 1 ? -1 : 0);
                int toY = y + (d == 2 ? 1 : d == 3 ? -1 : 0);
                if (toX < 0 || toY < 0 || toX >= size || toY >= size) continue;
                int cost = step.cost + field[toY][toX];
                int place = toY * size + toX;
                if (cost < best[place]) {
                    best[place] = cost;
                    heap.add(new Step(place, cost));
                }
            }
        }
        return best[size * size - 1] * 31 + taken;
    }

    // A parser that throws on invalid input.
    static final class Refused extends RuntimeException {
        final int at;

        Refused(int at) {
            super("refused", null, false, false);
            this.at = at;
        }
    }

    static final class Parser {
        final String text;
        int at;

        Parser(String text) {
            this.text = text;
        }

        char peek() {
            return at < text.length() ? text.charAt(at) : '$';
        }

        int sum() {
            int value = product();
            while (peek() == '+') {
                at++;
                value += product();
            }
            return value;
        }

        int product() {
            int value = atom();
            while (peek() == '*') {
                at++;
                value *= atom();
            }
            return value;
        }

        int atom() {
            char c = peek();
            if (c == '(') {
                at++;
                int value = sum();
                if (peek() != ')') throw new Refused(at);
                at++;
                return value;
            }
            if (c < '0' || c > '9') throw new Refused(at);
            at++;
            return c - '0';
        }
    }

    static int failures(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            StringBuilder text = new StringBuilder();
            int length = 3 + random(12);
            for (int k = 0; k < length; k++) text.append("0123456789+*()+*".charAt(random(16)));
            try {
                Parser parser = new Parser(text.toString());
                sum = sum * 31 + parser.sum();
            } catch (Refused e) {
                sum = sum * 31 - e.at;
            }
        }
        return sum;
    }

    // Arrays of numbers: bounds checks in loops.
    static int arrays(int n) {
        int size = 64;
        double[][] a = new double[size][size];
        double[][] b = new double[size][size];
        for (int y = 0; y < size; y++) {
            for (int x = 0; x < size; x++) {
                a[y][x] = random(100);
                b[y][x] = random(100);
            }
        }
        for (int i = 0; i < n; i++) {
            double[][] c = new double[size][size];
            for (int y = 0; y < size; y++) {
                for (int x = 0; x < size; x++) {
                    double sum = 0;
                    for (int k = 0; k < size; k++) sum += a[y][k] * b[k][x];
                    c[y][x] = sum - Math.floor(sum / 100) * 100;
                }
            }
            a = c;
        }
        int sum = 0;
        for (int y = 0; y < size; y++) {
            for (int x = 0; x < size; x++) sum = sum * 31 + (int) a[y][x];
        }
        return sum;
    }

    // Strings, by character and by substring.
    static int texts(int n) {
        StringBuilder made = new StringBuilder();
        for (int w = 0; w < 200; w++) {
            int length = 1 + random(9);
            for (int k = 0; k < length; k++) made.append((char) ('a' + random(26)));
            made.append(' ');
        }
        String text = made.toString();
        int sum = 0;
        for (int round = 0; round < n; round++) {
            int at = round % 50;
            String best = "";
            while (at < text.length()) {
                int end = at;
                while (end < text.length() && text.charAt(end) != ' ') end++;
                String word = text.substring(at, end);
                if (word.compareTo(best) > 0) best = word;
                if (word.equals(best)) sum = sum * 31 + word.length();
                int i = 0;
                int j = word.length() - 1;
                while (i < j && word.charAt(i) == word.charAt(j)) {
                    i++;
                    j--;
                }
                if (i >= j) sum++;
                at = end + 1;
            }
            sum = sum * 7 + best.charAt(0);
        }
        return sum;
    }

    @JSExport
    public static int run(int kernel, int n) {
        seed = 12345;
        return switch (kernel) {
            case 0 -> expressions(n);
            case 1 -> words(n);
            case 2 -> paths(n);
            case 3 -> failures(n);
            case 4 -> arrays(n);
            default -> texts(n);
        };
    }

    public static void main(String[] args) {
    }
}
