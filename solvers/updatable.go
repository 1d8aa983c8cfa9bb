package solvers

import "github.com/mercer-go/mercer/backend"

// updatable is a symmetric matrix, or its factor, whose leading part can be worked
// with and whose rows can be moved.
type updatable interface {
	symmetric[float64]
	on(b backend.Backend[float64]) updatable // the same, in another queue
	leading(n int) updatable                 // the first n rows and columns
	// upload and download wait, and are as in backend.PackedBackend.
	upload(first int, h backend.Host[float64]) error
	download(h backend.Host[float64], first int) error
	substitute(r backend.Matrix[float64]) // r ← L⁻¹ r
}

func newUpdatable(b backend.Backend[float64], n int) (updatable, error) {
	if hb, ok := b.(backend.PackedBackend[float64]); ok {
		a, err := hb.NewPacked(n)
		if err != nil {
			return nil, err
		}
		return &updatablePacked{packedStored[float64]{hb, a}}, nil
	}
	a, err := b.New(n, n)
	if err != nil {
		return nil, err
	}
	return &updatableSquare{squareStored[float64]{b, a}}, nil
}

type updatablePacked struct{ packedStored[float64] }

func (g *updatablePacked) on(b backend.Backend[float64]) updatable {
	return &updatablePacked{packedStored[float64]{b.(backend.PackedBackend[float64]), g.a}}
}

func (g *updatablePacked) leading(n int) updatable {
	return &updatablePacked{packedStored[float64]{g.b, g.a.Leading(n)}}
}

func (g *updatablePacked) upload(first int, h backend.Host[float64]) error {
	return g.b.UploadPacked(g.a, first, h)
}

func (g *updatablePacked) download(h backend.Host[float64], first int) error {
	return g.b.DownloadPacked(h, g.a, first)
}

func (g *updatablePacked) substitute(r backend.Matrix[float64]) {
	g.b.TrsmPacked(backend.NoTrans, g.a, r)
}

type updatableSquare struct{ squareStored[float64] }

func (g *updatableSquare) on(b backend.Backend[float64]) updatable {
	return &updatableSquare{squareStored[float64]{b, g.a}}
}

func (g *updatableSquare) leading(n int) updatable {
	return &updatableSquare{squareStored[float64]{g.b, g.a.View(0, 0, n, n)}}
}

func (g *updatableSquare) upload(first int, h backend.Host[float64]) error {
	return g.b.Upload(g.a.View(first, 0, h.Rows, h.Cols), h)
}

func (g *updatableSquare) download(h backend.Host[float64], first int) error {
	return g.b.Download(h, g.a.View(first, 0, h.Rows, h.Cols))
}

func (g *updatableSquare) substitute(r backend.Matrix[float64]) {
	g.b.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, g.a, r)
}
