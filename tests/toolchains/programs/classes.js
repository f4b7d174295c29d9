// A JavaScript program for ahead-of-time compilation to WebAssembly: classes, exceptions, closures, strings, sorting.
class Account {
  constructor(owner, amount) {
    this.owner = owner;
    this.amount = amount;
  }
  take(n) {
    if (n > this.amount) throw new RangeError(this.owner + " has " + this.amount);
    this.amount -= n;
    return this.amount;
  }
}
let sum = 0;
for (let i = 0; i < 8; i++) {
  const account = new Account("abcdefgh"[i], i * 10);
  try {
    sum += account.take(35);
  } catch (e) {
    sum += 100;
    console.log(e.message);
  } finally {
    sum++;
  }
}
const squares = [3, 1, 2, 9, 4].map((x) => x * x).sort((a, b) => a - b);
console.log(squares.join("-"), sum, "done".toUpperCase());
