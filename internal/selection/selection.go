// Package selection finds the elements of given ranks without sorting all elements.
package selection

import (
	"cmp"
	"math/bits"
	"slices"
)

// Nth returns the value that would be at index k if a were sorted, and partitions a: no value before index k is
// larger, and no value after index k is smaller (Hoare 1961, with the median of three as the pivot). The slice a
// must not contain NaN.
func Nth(a []float64, k int) float64 {
	low, high := 0, len(a)-1
	for steps := 2 * bits.Len(uint(len(a))); low < high; steps-- {
		if steps == 0 {
			slices.Sort(a[low : high+1])
			break
		}
		x, y, z := a[low], a[(low+high)/2], a[high]
		pivot := max(min(x, y), min(max(x, y), z))
		i, j := low, high
		for i <= j {
			for a[i] < pivot {
				i++
			}
			for a[j] > pivot {
				j--
			}
			if i <= j {
				a[i], a[j] = a[j], a[i]
				i++
				j--
			}
		}
		switch {
		case k <= j:
			high = j
		case k >= i:
			low = i
		default:
			return a[k]
		}
	}
	return a[k]
}

// Largest returns the n indices of list with the largest keys, in descending order of the keys; indices with equal
// keys are in ascending order. It reorders list. The indices in list must be distinct. No key may be NaN.
func Largest(list []int, n int, key func(i int) float64) []int {
	order := func(a, b int) int { return cmp.Or(-cmp.Compare(key(a), key(b)), a-b) }
	if n < len(list) && n > 0 {
		keys := make([]float64, len(list))
		for p, i := range list {
			keys[p] = key(i)
		}
		smallest := Nth(keys, len(keys)-n)
		var equal []int
		larger := list[:0]
		for _, i := range list {
			switch v := key(i); {
			case v > smallest:
				larger = append(larger, i)
			case v == smallest:
				equal = append(equal, i)
			}
		}
		slices.Sort(equal)
		list = append(larger, equal[:n-len(larger)]...)
	}
	list = list[:min(n, len(list))]
	slices.SortFunc(list, order)
	return list
}
