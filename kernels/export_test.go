package kernels

// DerivativeOf returns the derivative of k with respect to parameter i, even if k does not have it.
func DerivativeOf(k Kernel, i int) Kernel { return derivative{k, i} }

// StatDerivativeOf returns the derivative of k with respect to statistic i, even if k does not have this statistic.
func StatDerivativeOf(k Kernel, i int) StatDerivative { return StatDerivative{k, i} }
