// Package trees holds kernels over labeled, ordered trees in the brackets of
// the Penn Treebank:
//
//	(S (NP (DT the) (NN cat)) (VP (VBZ sleeps)))
//
// A node is ( label child … ), its children nodes or words. A word has no space
// and no bracket; texts write -LRB- and -RRB- for these. A node may be without a
// label, as the outermost one of the treebank is, but not without children.
//
// Importing it registers "subtree" with package objects.
package trees
