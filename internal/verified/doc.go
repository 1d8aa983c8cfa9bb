// Package verified computes kernel values, expansions Σ_j α_j k(x_j, x) and the errors of solutions of (K + λW⁻¹)α
// + b·1 = y with proven bounds.
//
// A number is a Ball: a center of about 106 bits and a radius that bounds the distance between the center and the
// exact value. Every operation adds to the radius a bound on its rounding error and on the effect of the radii of
// its operands. The exact value of a kernel is that of its compiled program in exact arithmetic.
//
// The operations on centers are the double-word operations of Joldes, Muller and Popescu (2017), Tight and
// rigorous error bounds for basic building blocks of double-word arithmetic, ACM TOMS 44. The elementary functions
// are evaluated from tables and from series with bounded truncation errors, not by package math.
package verified
