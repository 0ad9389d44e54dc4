//! How long a text is, as the platform counts: 280 weighted characters at most. Whatever the length
//! of an address, it counts 23; letters of Europe and its neighbours count one, all others two, and
//! an emoji two as a whole.

use std::sync::LazyLock;

use regex::Regex;
use unicode_normalization::UnicodeNormalization;
use unicode_segmentation::UnicodeSegmentation;

pub const MOST: usize = 280;
const ADDRESS: usize = 23;

/// Characters that count one.
const LIGHT: [(u32, u32); 4] = [(0, 4351), (8192, 8205), (8208, 8223), (8242, 8247)];
/// Parts of an emoji: joiner, look, key.
const JOINTS: [char; 3] = ['\u{200d}', '\u{fe0f}', '\u{20e3}'];

/// With a scheme, or by the look of its end.
static ADDRESSES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let domains = r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+";
    let ends = r"(?:com|org|net|io|dev|app|co|de|eu|uk|info|gov|edu)\b";
    let path = r"(?:[/?#][^\s]*[^\s.,;:!?'\x22)\]])?/?";
    Regex::new(&format!(r"(?i)(?:https?://{domains}[a-z]{{2,}}|\b{domains}{ends}){path}")).ok()
});

pub fn weighted(text: &str) -> usize {
    let text: String = text.nfc().collect();
    let addresses: Vec<_> = ADDRESSES.iter().flat_map(|it| it.find_iter(&text)).collect();
    let inside: usize = addresses.iter().map(|address| weight(address.as_str())).sum();
    weight(&text) - inside + addresses.len() * ADDRESS
}

fn weight(text: &str) -> usize {
    text.graphemes(true).map(of_one).sum()
}

/// What people take for one character.
fn of_one(grapheme: &str) -> usize {
    let is_light = |c: char| LIGHT.iter().any(|(from, to)| (*from..=*to).contains(&(c as u32)));
    let heavy = grapheme.chars().next().is_some_and(|first| !is_light(first));
    if heavy || grapheme.contains(JOINTS) {
        return 2;
    }
    grapheme.chars().map(|c| if is_light(c) { 1 } else { 2 }).sum()
}
