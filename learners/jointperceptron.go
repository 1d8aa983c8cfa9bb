package learners

import "github.com/mercer-go/mercer/internal/online"

// JointPerceptron is the perceptron of K classes on joint features φ(x, t): see package online. Perceptron
// is the special case φ(x, t) = x ⊗ e_t, where e_t is the unit vector of class t, computed on a device.
type JointPerceptron = online.Joint

// JointPerceptronModel is a fitted JointPerceptron.
type JointPerceptronModel = online.JointModel

// JointTerm is a pair of a sample and a class, with the weight of the pair.
type JointTerm = online.JointTerm
