package solvers

import "github.com/mercer-go/mercer/backend"

// grown is a symmetric matrix, or its factor, whose leading part can be worked
// with and whose rows can be moved.
type grown interface {
	symmetric[float64]
	on(b backend.Backend[float64]) grown // the same, in another queue
	leading(n int) grown                 // the first n rows and columns
	// upload and download wait, and are as in backend.PackedBackend.
	upload(first int, h backend.Host[float64]) error
	download(h backend.Host[float64], first int) error
	substitute(r backend.Matrix[float64]) // r ← L⁻¹ r
}

func newGrown(b backend.Backend[float64], n int) (grown, error) {
	if hb, ok := b.(backend.PackedBackend[float64]); ok {
		a, err := hb.NewPacked(n)
		if err != nil {
			return nil, err
		}
		return &grownPacked{packedStored[float64]{hb, a}}, nil
	}
	a, err := b.New(n, n)
	if err != nil {
		return nil, err
	}
	return &grownSquare{squareStored[float64]{b, a}}, nil
}

type grownPacked struct{ packedStored[float64] }

func (g *grownPacked) on(b backend.Backend[float64]) grown {
	return &grownPacked{packedStored[float64]{b.(backend.PackedBackend[float64]), g.a}}
}

func (g *grownPacked) leading(n int) grown {
	return &grownPacked{packedStored[float64]{g.b, g.a.Leading(n)}}
}

func (g *grownPacked) upload(first int, h backend.Host[float64]) error {
	return g.b.UploadPacked(g.a, first, h)
}

func (g *grownPacked) download(h backend.Host[float64], first int) error {
	return g.b.DownloadPacked(h, g.a, first)
}

func (g *grownPacked) substitute(r backend.Matrix[float64]) {
	g.b.TrsmPacked(backend.NoTrans, g.a, r)
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
