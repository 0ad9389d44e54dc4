//! Hidden characters that belong to a visible one: joiners and selectors of emoji, the tags of a
//! flag, and joiners between letters of scripts that need them.

/// Whether a hidden character is kept, given the text kept before it and the text that follows.
pub(super) fn stays(before: &str, c: char, after: &str) -> bool {
    let last = before.chars().next_back();
    let next = after.chars().next();
    match c {
        '\u{fe0e}' | '\u{fe0f}' => {
            last.is_some_and(is_emoji) || (is_keycap(last) && next == Some('\u{20e3}'))
        }
        '\u{200d}' if next.is_some_and(is_emoji) => last.is_some_and(ends_emoji),
        '\u{200c}' | '\u{200d}' => last.is_some_and(is_joined) && next.is_some_and(is_joined),
        '\u{e0061}'..='\u{e007f}' => in_flag(before, c, after),
        _ => false,
    }
}

fn is_emoji(c: char) -> bool {
    matches!(c, '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}'
        | '\u{2190}'..='\u{21ff}' | '\u{2300}'..='\u{23ff}' | '\u{24c2}' | '\u{25a0}'..='\u{27bf}'
        | '\u{2934}' | '\u{2935}' | '\u{2b00}'..='\u{2bff}' | '\u{3030}' | '\u{303d}' | '\u{3297}'
        | '\u{3299}' | '\u{1f000}'..='\u{1faff}')
}

fn ends_emoji(c: char) -> bool {
    is_emoji(c) || matches!(c, '\u{fe0f}' | '\u{20e3}')
}

fn is_keycap(c: Option<char>) -> bool {
    matches!(c, Some('0'..='9' | '#' | '*'))
}

/// Letters of Arabic, the scripts of India and its neighbours, and Mongolian.
fn is_joined(c: char) -> bool {
    matches!(c, '\u{620}'..='\u{6ff}' | '\u{750}'..='\u{77f}' | '\u{8a0}'..='\u{dff}'
        | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17b3}' | '\u{17b6}'..='\u{17ff}' | '\u{1820}'..='\u{18af}')
}

/// The flags that Unicode recommends; other tags could carry a hidden text.
const FLAGS: [&str; 3] = ["gbeng", "gbsct", "gbwls"];

fn in_flag(before: &str, c: char, after: &str) -> bool {
    let Some((_, begun)) = before.rsplit_once('\u{1f3f4}') else { return false };
    let rest = after.chars().take_while(|c| matches!(c, '\u{e0061}'..='\u{e007f}'));
    let letters = begun.chars().take(8).chain([c]).chain(rest.take(8));
    let plain = |c: char| char::from_u32(u32::from(c).wrapping_sub(0xe0000)).unwrap_or(' ');
    let name: String = letters.map(plain).collect();
    name.strip_suffix('\u{7f}').is_some_and(|name| FLAGS.contains(&name))
}
