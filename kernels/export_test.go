package kernels

// DerivativeOf returns the derivative of k with respect to parameter i. It accepts an i that k does
// not have, so that tests can check the error.
func DerivativeOf(k Kernel, i int) Kernel { return derivative{k, i} }

// StatDerivativeOf returns the derivative of k with respect to statistic i. It accepts an i that k
// does not have.
func StatDerivativeOf(k Kernel, i int) StatDerivative { return StatDerivative{k, i} }
