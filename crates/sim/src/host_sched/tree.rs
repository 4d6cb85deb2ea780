//! Slots of the I/O queue in the order of a key, such as their first sector: the `sort_list` of Linux's elevators.
//!
//! A treap whose nodes lie in one array by slot. Many trees share the array, since a slot waits in one of them at a time;
//! nothing is allocated after construction. Priorities come from a counter by a fixed mixing function, so that equal
//! runs build equal trees. Equal keys are kept in the order of their insertion.

use crate::host::Slot;

const NIL: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Node<K> {
    key: K,
    /// Order of insertion: breaks ties, and seeds the priority.
    order: u64,
    priority: u64,
    parent: u32,
    children: [u32; 2],
}

/// The nodes of any number of trees over the same slots.
pub(crate) struct Nodes<K> {
    nodes: Vec<Node<K>>,
    inserted: u64,
}

impl<K: Copy + Ord + Default> Nodes<K> {
    /// For a number of slots.
    pub(crate) fn new(slots: u32) -> Nodes<K> {
        let node = Node { key: K::default(), order: 0, priority: 0, parent: NIL, children: [NIL; 2] };
        Nodes { nodes: vec![node; slots as usize], inserted: 0 }
    }

    /// The key under which a slot was last inserted.
    pub(crate) fn key(&self, slot: Slot) -> K {
        self.nodes[slot.index()].key
    }

    fn rank(&self, node: u32) -> (K, u64) {
        let node = &self.nodes[node as usize];
        (node.key, node.order)
    }

    fn side(&self, node: u32, parent: u32) -> usize {
        usize::from(self.nodes[parent as usize].children[1] == node)
    }

    /// The slot at one end of the subtree: 0 the lowest key, 1 the highest.
    fn extreme(&self, mut node: u32, side: usize) -> u32 {
        while self.nodes[node as usize].children[side] != NIL {
            node = self.nodes[node as usize].children[side];
        }
        node
    }

    /// The neighbour in order: 1 the next, 0 the one before.
    fn neighbour(&self, slot: Slot, side: usize) -> Option<Slot> {
        let mut node = slot.0;
        let child = self.nodes[node as usize].children[side];
        if child != NIL {
            return Some(Slot(self.extreme(child, 1 - side)));
        }
        loop {
            let parent = self.nodes[node as usize].parent;
            if parent == NIL {
                return None;
            }
            if self.side(node, parent) != side {
                return Some(Slot(parent));
            }
            node = parent;
        }
    }

    /// The request behind `slot` in its tree.
    pub(crate) fn next(&self, slot: Slot) -> Option<Slot> {
        self.neighbour(slot, 1)
    }

    /// The request before `slot` in its tree.
    pub(crate) fn previous(&self, slot: Slot) -> Option<Slot> {
        self.neighbour(slot, 0)
    }
}

/// One tree; its nodes are in a [`Nodes`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tree {
    root: u32,
}

impl Tree {
    pub(crate) const EMPTY: Tree = Tree { root: NIL };

    /// Replaces the child that `old` is by `new`.
    fn replace<K>(&mut self, nodes: &mut Nodes<K>, parent: u32, old: u32, new: u32) {
        if parent == NIL {
            self.root = new;
        } else {
            let children = &mut nodes.nodes[parent as usize].children;
            children[usize::from(children[1] == old)] = new;
        }
        if new != NIL {
            nodes.nodes[new as usize].parent = parent;
        }
    }

    /// Lifts `node` above its parent.
    fn rotate<K: Copy + Ord + Default>(&mut self, nodes: &mut Nodes<K>, node: u32) {
        let parent = nodes.nodes[node as usize].parent;
        let side = nodes.side(node, parent);
        let inner = nodes.nodes[node as usize].children[1 - side];
        let above = nodes.nodes[parent as usize].parent;
        self.replace(nodes, above, parent, node);
        nodes.nodes[parent as usize].children[side] = inner;
        if inner != NIL {
            nodes.nodes[inner as usize].parent = parent;
        }
        nodes.nodes[node as usize].children[1 - side] = parent;
        nodes.nodes[parent as usize].parent = node;
    }

    /// Adds a slot that is in no tree of these nodes.
    pub(crate) fn insert<K: Copy + Ord + Default>(&mut self, nodes: &mut Nodes<K>, slot: Slot, key: K) {
        nodes.inserted += 1;
        let order = nodes.inserted;
        let priority = mix(order);
        let (mut parent, mut side) = (NIL, 0);
        let mut at = self.root;
        while at != NIL {
            parent = at;
            side = usize::from((key, order) > nodes.rank(at));
            at = nodes.nodes[at as usize].children[side];
        }
        nodes.nodes[slot.index()] = Node { key, order, priority, parent, children: [NIL; 2] };
        match parent {
            NIL => self.root = slot.0,
            parent => nodes.nodes[parent as usize].children[side] = slot.0,
        }
        loop {
            let parent = nodes.nodes[slot.index()].parent;
            if parent == NIL || nodes.nodes[parent as usize].priority >= priority {
                return;
            }
            self.rotate(nodes, slot.0);
        }
    }

    /// Removes a slot that is in this tree.
    pub(crate) fn remove<K: Copy + Ord + Default>(&mut self, nodes: &mut Nodes<K>, slot: Slot) {
        loop {
            let Node { children: [left, right], parent, .. } = nodes.nodes[slot.index()];
            if left == NIL || right == NIL {
                let child = if left == NIL { right } else { left };
                self.replace(nodes, parent, slot.0, child);
                break;
            }
            let higher = nodes.nodes[left as usize].priority > nodes.nodes[right as usize].priority;
            self.rotate(nodes, if higher { left } else { right });
        }
    }

    /// The slot with the lowest key.
    pub(crate) fn first<K: Copy + Ord + Default>(&self, nodes: &Nodes<K>) -> Option<Slot> {
        (self.root != NIL).then(|| Slot(nodes.extreme(self.root, 0)))
    }

    /// The first slot whose key is `key` or higher.
    pub(crate) fn at_or_after<K: Copy + Ord + Default>(&self, nodes: &Nodes<K>, key: K) -> Option<Slot> {
        let (mut at, mut found) = (self.root, NIL);
        while at != NIL {
            let node = &nodes.nodes[at as usize];
            if node.key >= key {
                found = at;
                at = node.children[0];
            } else {
                at = node.children[1];
            }
        }
        (found != NIL).then_some(Slot(found))
    }

    /// The oldest slot with exactly this key.
    pub(crate) fn find<K: Copy + Ord + Default>(&self, nodes: &Nodes<K>, key: K) -> Option<Slot> {
        self.at_or_after(nodes, key).filter(|slot| nodes.key(*slot) == key)
    }
}

/// Spreads consecutive numbers over all 64 bits (the finaliser of SplitMix64).
fn mix(number: u64) -> u64 {
    let mut bits = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use planewise_model::rng::generator;
    use rand::RngExt;

    /// Against a sorted list, over random insertions and removals with many equal keys, in two trees over the same nodes.
    #[test]
    fn a_tree_is_a_sorted_list() {
        for seed in 0..20 {
            let mut random = generator(seed, "tree test");
            let mut nodes = Nodes::<u64>::new(96);
            let mut trees = [Tree::EMPTY; 2];
            let mut lists: [Vec<(u64, u64, u32)>; 2] = Default::default();
            let mut place = [None; 96];
            for order in 0..2_000u64 {
                let slot = random.random_range(0..96u32);
                match place[slot as usize].take() {
                    Some(which) => {
                        let which: usize = which;
                        trees[which].remove(&mut nodes, Slot(slot));
                        lists[which].retain(|&(.., member)| member != slot);
                    }
                    None => {
                        let which = random.random_range(0..2usize);
                        let key = random.random_range(0..40);
                        trees[which].insert(&mut nodes, Slot(slot), key);
                        lists[which].push((key, order, slot));
                        lists[which].sort_unstable();
                        place[slot as usize] = Some(which);
                    }
                }
                for (tree, list) in trees.iter().zip(&lists) {
                    let mut at = tree.first(&nodes);
                    let mut found = Vec::new();
                    while let Some(slot) = at {
                        found.push(slot.0);
                        at = nodes.next(slot);
                    }
                    let expected: Vec<u32> = list.iter().map(|&(.., slot)| slot).collect();
                    assert_eq!(found, expected, "seed {seed}");
                    let mut at = expected.last().map(|&slot| Slot(slot));
                    for slot in expected.iter().rev() {
                        assert_eq!(at, Some(Slot(*slot)), "seed {seed}");
                        at = nodes.previous(Slot(*slot));
                    }
                    assert_eq!(at, None, "seed {seed}");
                    let key = random.random_range(0..42);
                    let at_or_after = list.iter().find(|entry| entry.0 >= key);
                    assert_eq!(tree.at_or_after(&nodes, key), at_or_after.map(|entry| Slot(entry.2)));
                    assert_eq!(
                        tree.find(&nodes, key),
                        at_or_after.filter(|entry| entry.0 == key).map(|entry| Slot(entry.2))
                    );
                }
            }
        }
    }
}
