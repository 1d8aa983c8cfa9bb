// Package trees implements kernels over labeled, ordered trees in the bracket notation of the Penn Treebank:
//
//	(S (NP (DT the) (NN cat)) (VP (VBZ sleeps)))
//
// A node is ( label child … ), where each child is a node or a word. A word contains no space and
// no bracket; the treebank writes brackets as -LRB- and -RRB-. A node may have no label, like the
// outermost node in the treebank, but it must have children.
//
// Importing this package registers "subtree" with package objects.
package trees
