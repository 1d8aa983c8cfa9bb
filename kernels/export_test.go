package kernels

// DerivativeOf returns the derivative of k with respect to parameter i, also if k has no such parameter.
func DerivativeOf(k Kernel, i int) Kernel { return derivative{k, i} }

// StatDerivativeOf returns the derivative of k with respect to statistic i, also if k has no such
// statistic.
func StatDerivativeOf(k Kernel, i int) StatDerivative { return StatDerivative{k, i} }
