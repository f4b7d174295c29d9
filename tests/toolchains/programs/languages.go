// Goroutines, channels, maps, closures, the collector, panics: prints the same compiled for this machine and for WASI.
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sort"
	"strings"
	"sync"
	"time"
)

type tree struct {
	left, right *tree
	value       int
}

func grow(depth int) *tree {
	if depth == 0 {
		return &tree{value: 1}
	}
	return &tree{grow(depth - 1), grow(depth - 1), depth}
}

func (t *tree) sum() int {
	if t == nil {
		return 0
	}
	return t.value + t.left.sum() + t.right.sum()
}

func words() {
	counts := map[string]int{}
	for i := 0; i < 5000; i++ {
		counts[fmt.Sprintf("k%d", i%37)] += i
	}
	keys := []string{}
	for key := range counts {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	fmt.Println(strings.Join(keys, " "), counts["k3"])
}

func workers() {
	var group sync.WaitGroup
	results := make(chan float64, 4)
	for i := 0; i < 20; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			time.Sleep(time.Microsecond)
			results <- float64(i*i) / 3
		}()
	}
	go func() { group.Wait(); close(results) }()
	list := []float64{}
	for result := range results {
		list = append(list, result)
	}
	sort.Float64s(list)
	fmt.Println(len(list), list[19])
}

func failing(index int) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("recovered: %v: %w", cause, errors.ErrUnsupported)
		}
	}()
	list := []int{1, 2, 3}
	return fmt.Errorf("found %d", list[index])
}

func main() {
	words()
	total := 0
	for i := 0; i < 20; i++ {
		total += grow(12).sum()
		runtime.GC()
	}
	fmt.Println(total)
	workers()
	fmt.Println(failing(1))
	fmt.Println(failing(7), errors.Is(failing(7), errors.ErrUnsupported))
	fmt.Printf("%v %x %q %.17g %e\n", struct {
		A int
		B string
	}{1, "b"}, "hex", "quoted\n", 0.1, 1e300)
	os.Exit(3)
}
