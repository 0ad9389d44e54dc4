//! How long a text is, as the platform counts: an address is 23, without `https://` too if it has
//! a usual ending; letters of Europe and its neighbours are one, all others and an emoji two.

use std::sync::LazyLock;

use regex::Regex;
use unicode_normalization::UnicodeNormalization;

pub const MOST: usize = 280;

static PARTS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let domains = r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+";
    let ends = r"(?:com|org|net|io|dev|app|co|de|eu|uk|info|gov|edu)\b";
    let path = r"(?:[/?#][^\s]*[^\s.,;:!?'\x22)\]])?/?";
    let address = format!(r"(?i:(?:https?://{domains}[a-z]{{2,}}|\b{domains}{ends}){path})");
    let light = r"[\u{0}-\u{10ff}\u{2000}-\u{200d}\u{2010}-\u{201f}\u{2032}-\u{2037}]";
    // Keys and signs that look like letters without a mark; flags, and pictures joined to one.
    let marked = r"[0-9#*]\u{fe0f}?\u{20e3}|[©®]\u{fe0f}";
    let picture = r"\p{ExtPict}[\p{EMod}\u{fe0f}\u{e0020}-\u{e007f}]*";
    let emoji = format!(r"\p{{RI}}{{2}}|{picture}(?:\u{{200d}}{picture})*");
    Regex::new(&format!("(?<address>{address})|{marked}|(?<light>{light})|{emoji}|(?s:.)")).ok()
});

pub fn weighted(text: &str) -> usize {
    let text: String = text.nfc().collect();
    let parts = PARTS.iter().flat_map(|parts| parts.captures_iter(&text));
    let weights = parts.map(|part| match (part.name("address"), part.name("light")) {
        (Some(_), _) => 23,
        (None, Some(_)) => 1,
        (None, None) => 2,
    });
    weights.sum()
}
