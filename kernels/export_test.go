package kernels

// DerivativeOf returns the derivative of k with respect to parameter i, which k need not have.
func DerivativeOf(k Kernel, i int) Kernel { return derivative{k, i} }

// StatDerivativeOf returns the derivative of k with respect to statistic i, which k need not have.
func StatDerivativeOf(k Kernel, i int) StatDerivative { return StatDerivative{k, i} }
