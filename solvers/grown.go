package solvers

import "github.com/mercer-go/mercer/backend"

// grown is a symmetric matrix, or its factor, whose leading part can be worked
// with and whose rows can be moved.
type grown interface {
	symmetric[float64]
	on(b backend.Backend[float64]) grown // the same, in another queue
	leading(n int) grown                 // the first n rows and columns
	// upload and download wait, and are as in backend.HalfBackend.
	upload(first int, h backend.Host[float64]) error
	download(h backend.Host[float64], first int) error
	substitute(r backend.Matrix[float64]) // r ← L⁻¹ r
}

func newGrown(b backend.Backend[float64], n int) (grown, error) {
	if hb, ok := b.(backend.HalfBackend[float64]); ok {
		a, err := hb.NewHalf(n)
		if err != nil {
			return nil, err
		}
		return &grownHalf{halfStored[float64]{hb, a}}, nil
	}
	a, err := b.New(n, n)
	if err != nil {
		return nil, err
	}
	return &grownSquare{squareStored[float64]{b, a}}, nil
}

type grownHalf struct{ halfStored[float64] }

func (g *grownHalf) on(b backend.Backend[float64]) grown {
	return &grownHalf{halfStored[float64]{b.(backend.HalfBackend[float64]), g.a}}
}

func (g *grownHalf) leading(n int) grown {
	return &grownHalf{halfStored[float64]{g.b, g.a.Leading(n)}}
}

func (g *grownHalf) upload(first int, h backend.Host[float64]) error {
	return g.b.UploadHalf(g.a, first, h)
}

func (g *grownHalf) download(h backend.Host[float64], first int) error {
	return g.b.DownloadHalf(h, g.a, first)
}

func (g *grownHalf) substitute(r backend.Matrix[float64]) {
	g.b.TrsmHalf(backend.NoTrans, g.a, r)
}

type grownSquare struct{ squareStored[float64] }

func (g *grownSquare) on(b backend.Backend[float64]) grown {
	return &grownSquare{squareStored[float64]{b, g.a}}
}

func (g *grownSquare) leading(n int) grown {
	return &grownSquare{squareStored[float64]{g.b, g.a.View(0, 0, n, n)}}
}

func (g *grownSquare) upload(first int, h backend.Host[float64]) error {
	return g.b.Upload(g.a.View(first, 0, h.Rows, h.Cols), h)
}

func (g *grownSquare) download(h backend.Host[float64], first int) error {
	return g.b.Download(h, g.a.View(first, 0, h.Rows, h.Cols))
}

func (g *grownSquare) substitute(r backend.Matrix[float64]) {
	g.b.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, g.a, r)
}
