//! Whether the names of one object differ, found out in passing.

/// The names of an object, as far as it takes to tell that a name is new.
#[derive(Default)]
pub(super) struct Names([u64; 4]);

impl Names {
    /// Whether the name is surely new. Two names that only look alike here take a closer look.
    pub(super) fn insert(&mut self, name: &[u8]) -> bool {
        let mark = mark(name);
        let (word, bit) = (&mut self.0[usize::from(mark & 3)], 1 << (mark >> 2));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}

/// One of 256 marks, the same for the same name. Names of one object often have the same beginning
/// or the same end, so both count.
fn mark(name: &[u8]) -> u8 {
    let (first, last) = if let (Some(first), Some(last)) = (name.first_chunk(), name.last_chunk()) {
        (u64::from_le_bytes(*first), u64::from_le_bytes(*last))
    } else {
        (name.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)), 0)
    };
    let mixed =
        (first ^ last.rotate_left(29) ^ name.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn x1_a_name_that_was_there_is_never_new(names in prop::collection::vec(any::<String>(), 1..20)) {
            let mut seen = Names::default();
            for name in &names {
                seen.insert(name.as_bytes());
            }
            for name in &names {
                prop_assert!(!seen.insert(name.as_bytes()));
            }
        }
    }

    #[test]
    fn usual_names_are_new() {
        let objects: [&[&str]; 4] = [
            &["path", "content", "encoding", "mode", "create", "overwrite"],
            &["owner", "repo", "title", "body", "head", "base", "draft", "maintainer_can_modify"],
            &["a", "b", "c", "d", "e", "f", "g", "h"],
            &["startLine", "endLine", "startColumn", "endColumn"],
        ];
        let mut alike = 0;
        for names in objects {
            let mut seen = Names::default();
            alike += names.iter().filter(|name| !seen.insert(name.as_bytes())).count();
        }
        assert_eq!(alike, 0);
    }
}
