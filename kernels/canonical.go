package kernels

// Canonical returns the form of k that Parse produces: no Sum in a Sum, no Product or Scaled in a Product or
// Scaled, no Sum or Product of one kernel, at most one Constant in a Sum and none in a Product. Numeric factors
// become the weight of a Scaled around the product of the other factors, and constant terms become one Constant.
// All other terms and factors keep their order. A weight of 1 is not removed.
//
//	Product{Linear{}, Constant{2}, Scaled{3, Gaussian{1}}}  →  Scaled{6, Product{Linear{}, Gaussian{1}}}
//
// The value of k(x, z) changes only by rounding errors.
func Canonical(k Kernel) Kernel {
	switch k := k.(type) {
	case Sum:
		terms := addTerms(nil, k)
		if len(terms) == 1 {
			return terms[0]
		}
		return terms
	case Product, Scaled:
		var f factors
		f.add(k)
		return f.kernel()
	case ExpOf:
		return ExpOf{Canonical(k.Kernel)}
	case Normalized:
		return Normalized{Canonical(k.Kernel)}
	case Columns:
		return Columns{k.Indices, Canonical(k.Kernel)}
	}
	return k
}

// addTerms appends k to the terms of a sum, or the terms of k if k is itself a Sum.
func addTerms(terms Sum, k Kernel) Sum {
	switch k := k.(type) {
	case Sum:
		for _, t := range k {
			terms = addTerms(terms, t)
		}
		return terms
	case Product:
		if len(k) == 1 {
			return addTerms(terms, k[0])
		}
	}
	k = Canonical(k)
	if c, ok := k.(Constant); ok {
		for i, t := range terms {
			if first, ok := t.(Constant); ok {
				terms[i] = Constant{first.Value + c.Value}
				return terms
			}
		}
	}
	return append(terms, k)
}

// factors collects the factors of a product: the product of its numbers, and its kernels.
type factors struct {
	weight   float64
	weighted bool
	kernels  Product
}

func (f *factors) multiply(w float64) {
	if f.weighted {
		w *= f.weight
	}
	f.weight, f.weighted = w, true
}

func (f *factors) add(k Kernel) {
	switch k := k.(type) {
	case Constant:
		f.multiply(k.Value)
	case Scaled:
		f.multiply(k.Weight)
		f.add(k.Kernel)
	case Product:
		for _, t := range k {
			f.add(t)
		}
	case Sum:
		if len(k) == 1 {
			f.add(k[0])
			return
		}
		c := Canonical(k)
		if number, ok := c.(Constant); ok {
			f.multiply(number.Value)
			return
		}
		f.kernels = append(f.kernels, c)
	default:
		f.kernels = append(f.kernels, Canonical(k))
	}
}

func (f *factors) kernel() Kernel {
	var k Kernel = f.kernels
	if len(f.kernels) == 1 {
		k = f.kernels[0]
	}
	switch {
	case !f.weighted:
		return k
	case len(f.kernels) == 0:
		return Constant{f.weight}
	}
	return Scaled{f.weight, k}
}
