/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An intrusive sorted tree: by key, and equal keys in the order of their
 * insertion. A treap, whose priorities come from that order by a mixing
 * function: its shape depends on no address and no time, and its depth is
 * logarithmic for all that drives see.
 */
#ifndef PLANEWISE_TREE_H
#define PLANEWISE_TREE_H

#include "core.h"

struct planewise_node {
	struct planewise_node *parent, *children[2];
	u64 key, priority;
};

struct planewise_tree {
	struct planewise_node *root;
};

/* Spreads consecutive numbers over all 64 bits (the finaliser of SplitMix64). */
static inline u64 planewise_mix(u64 number)
{
	u64 bits = number * 0x9e3779b97f4a7c15ULL;

	bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ULL;
	bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebULL;
	return bits ^ (bits >> 31);
}

/* In the place of one below a parent, another or nothing. */
static inline void planewise_tree_put(struct planewise_tree *tree, struct planewise_node *parent,
				      struct planewise_node *old, struct planewise_node *node)
{
	if (!parent)
		tree->root = node;
	else
		parent->children[parent->children[1] == old] = node;
	if (node)
		node->parent = parent;
}

/* A child and its parent change places. */
static inline void planewise_tree_rotate(struct planewise_tree *tree, struct planewise_node *child)
{
	struct planewise_node *parent = child->parent;
	int side = parent->children[1] == child;
	struct planewise_node *inner = child->children[!side];

	planewise_tree_put(tree, parent->parent, parent, child);
	parent->children[side] = inner;
	if (inner)
		inner->parent = parent;
	child->children[!side] = parent;
	parent->parent = child;
}

/* Each insertion into any tree has an order of its own, higher than all before. */
static inline void planewise_tree_insert(struct planewise_tree *tree, struct planewise_node *node,
					 u64 key, u64 order)
{
	struct planewise_node **at = &tree->root, *parent = NULL;

	while (*at) {
		parent = *at;
		at = &parent->children[key >= parent->key];
	}
	node->key = key;
	node->priority = planewise_mix(order);
	node->parent = parent;
	node->children[0] = NULL;
	node->children[1] = NULL;
	*at = node;
	while (node->parent && node->parent->priority < node->priority)
		planewise_tree_rotate(tree, node);
}

static inline void planewise_tree_remove(struct planewise_tree *tree, struct planewise_node *node)
{
	while (node->children[0] && node->children[1])
		planewise_tree_rotate(tree, node->children[node->children[1]->priority >
							   node->children[0]->priority]);
	planewise_tree_put(tree, node->parent, node,
			   node->children[0] ? node->children[0] : node->children[1]);
}

/* The first whose key is at least this. */
static inline struct planewise_node *planewise_tree_at_or_after(const struct planewise_tree *tree, u64 key)
{
	struct planewise_node *at = tree->root, *found = NULL;

	while (at) {
		if (at->key >= key) {
			found = at;
			at = at->children[0];
		} else {
			at = at->children[1];
		}
	}
	return found;
}

#endif
