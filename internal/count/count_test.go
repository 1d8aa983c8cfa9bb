package count

import "testing"

func TestOf(t *testing.T) {
	for _, test := range []struct {
		n    int
		word string
		want string
	}{{1, "cell", "1 cell"}, {0, "row", "0 rows"}, {2, "class", "2 classes"}, {3, "entry", "3 entries"}, {2, "day", "2 days"}, {1, "class", "1 class"}, {-1, "point", "-1 points"}} {
		if got := Of(test.n, test.word); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}
