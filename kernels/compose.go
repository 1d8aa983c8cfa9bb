package kernels

import (
	"errors"
	"fmt"
	"strings"
)

// Sum is k(x, z) = Σ_i k_i(x, z).
type Sum []Kernel

// String returns "k1 + k2". A nested Sum is written without parentheses: see Canonical.
func (k Sum) String() string {
	texts := make([]string, len(k))
	for i, t := range k {
		texts[i] = text(t)
	}
	return strings.Join(texts, " + ")
}

// Check requires at least one term, and that all terms are valid.
func (k Sum) Check(d int) error { return checkAll("sum", k, d) }

func (k Sum) IsPSD() bool { return allPSD(k) }

func (k Sum) compile(c *compiler) {
	for i, t := range k {
		t.compile(c)
		if i > 0 {
			c.binary(Add)
		}
	}
}

// Product is k(x, z) = Π_i k_i(x, z).
type Product []Kernel

// String returns "k1*k2", with parentheses around a Sum.
func (k Product) String() string {
	texts := make([]string, len(k))
	for i, t := range k {
		texts[i] = text(t)
		if _, ok := t.(Sum); ok {
			texts[i] = "(" + texts[i] + ")"
		}
	}
	return strings.Join(texts, "*")
}

// Check requires at least one factor, and that all factors are valid.
func (k Product) Check(d int) error { return checkAll("product", k, d) }

func (k Product) IsPSD() bool { return allPSD(k) }

func (k Product) compile(c *compiler) {
	for i, t := range k {
		t.compile(c)
		if i > 0 {
			c.binary(Mul)
		}
	}
}

// Scaled is Weight · k(x, z) with Weight ≥ 0.
type Scaled struct {
	Weight float64
	Kernel Kernel
}

func (k Scaled) String() string {
	return Product{Constant{k.Weight}, k.Kernel}.String()
}

// Check requires a finite Weight ≥ 0 and a valid kernel.
func (k Scaled) Check(d int) error {
	if k.Kernel == nil {
		return errors.New("kernels: scaled: no kernel to scale")
	}
	if err := nonNegative.Check("kernels: scaled: weight", k.Weight); err != nil {
		return err
	}
	return k.Kernel.Check(d)
}

func (k Scaled) IsPSD() bool { return k.Check(-1) == nil && k.Kernel.IsPSD() }

func (k Scaled) compile(c *compiler) {
	k.Kernel.compile(c)
	c.unary(Instr{Op: Affine, A: k.Weight})
}

// Constant is k(x, z) = Value with Value ≥ 0. As a term of a Sum it adds a bias.
type Constant struct{ Value float64 }

func (k Constant) String() string      { return number(k.Value) }
func (k Constant) Check(int) error     { return checkParams("constant", k) }
func (k Constant) IsPSD() bool         { return k.Check(-1) == nil }
func (k Constant) compile(c *compiler) { c.push(Instr{Op: Const, A: k.Value}) }

// ExpOf is exp(k(x, z)). It is positive semi-definite if k is.
type ExpOf struct{ Kernel Kernel }

func (k ExpOf) String() string { return "exp(" + text(k.Kernel) + ")" }

// Check requires a valid kernel.
func (k ExpOf) Check(d int) error {
	if k.Kernel == nil {
		return errors.New("kernels: exp: the inner kernel is missing")
	}
	return k.Kernel.Check(d)
}

func (k ExpOf) IsPSD() bool { return k.Check(-1) == nil && k.Kernel.IsPSD() }

func (k ExpOf) compile(c *compiler) {
	k.Kernel.compile(c)
	c.unary(Instr{Op: Exp})
}

// text returns the text of k. It accepts a nil k, because String must not panic before Check.
func text(k Kernel) string {
	if k == nil {
		return "nil"
	}
	return k.String()
}

func checkAll(name string, ks []Kernel, d int) error {
	if len(ks) == 0 {
		return fmt.Errorf("kernels: %s: needs at least one kernel", name)
	}
	for _, k := range ks {
		if k == nil {
			return fmt.Errorf("kernels: %s: a kernel is nil", name)
		}
		if err := k.Check(d); err != nil {
			return err
		}
	}
	return nil
}

func allPSD(ks []Kernel) bool {
	for _, k := range ks {
		if k == nil || !k.IsPSD() {
			return false
		}
	}
	return len(ks) > 0
}
