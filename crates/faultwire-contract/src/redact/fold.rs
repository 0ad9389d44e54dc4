//! Letters that look like others: full-width and mathematical ones, and those of other scripts that
//! are drawn like Latin ones.

/// The plain letter that this one looks like. Letters of other scripts only count beside Latin
/// ones, where they are a disguise.
pub(super) fn letter(c: char, in_latin: bool) -> Option<char> {
    let plain = |from: u32, first: u8| {
        let n = u8::try_from(u32::from(c) - from).ok()?;
        Some(char::from(first + n))
    };
    match c {
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => Some(' '),
        '\u{ff01}'..='\u{ff5e}' => plain(0xff01, b'!'),
        '\u{24b6}'..='\u{24cf}' => plain(0x24b6, b'A'),
        '\u{24d0}'..='\u{24e9}' => plain(0x24d0, b'a'),
        '\u{249c}'..='\u{24b5}' => plain(0x249c, b'a'),
        '\u{1d400}'..='\u{1d6a3}' => alphabet((u32::from(c) - 0x1d400) % 52),
        '\u{1d7ce}'..='\u{1d7ff}' => char::from_digit((u32::from(c) - 0x1d7ce) % 10, 10),
        '\u{fe55}' | '\u{2236}' | '\u{a789}' | '\u{fe13}' => Some(':'),
        '\u{fe66}' | '\u{a78a}' => Some('='),
        '\u{fe33}' | '\u{fe4d}'..='\u{fe4f}' => Some('_'),
        '\u{201c}' | '\u{201d}' | '\u{201e}' => Some('"'),
        '\u{2018}' | '\u{2019}' => Some('\''),
        _ if in_latin => TWINS.iter().find(|(twin, _)| *twin == c).map(|(_, c)| *c),
        _ => None,
    }
}

fn alphabet(n: u32) -> Option<char> {
    let n = u8::try_from(n).ok()?;
    Some(char::from(if n < 26 { b'A' + n } else { b'a' + n - 26 }))
}

/// Whether the character only decorates the one before it.
pub(super) fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}')
}

/// The entities that can stand in a name, around it, or between it and its value.
pub(super) const ENTITIES: [(&str, char); 14] = [
    ("quot", '"'),
    ("apos", '\''),
    ("lt", '<'),
    ("gt", '>'),
    ("equals", '='),
    ("colon", ':'),
    ("lowbar", '_'),
    ("hyphen", '-'),
    ("dash", '-'),
    ("commat", '@'),
    ("sol", '/'),
    ("nbsp", ' '),
    ("Tab", '\t'),
    ("NewLine", '\n'),
];

/// Cyrillic and Greek letters, and the Latin ones they look like.
const TWINS: [(char, char); 32] = [
    ('а', 'a'),
    ('е', 'e'),
    ('о', 'o'),
    ('р', 'p'),
    ('с', 'c'),
    ('у', 'y'),
    ('х', 'x'),
    ('ѕ', 's'),
    ('і', 'i'),
    ('ј', 'j'),
    ('ԁ', 'd'),
    ('ԝ', 'w'),
    ('к', 'k'),
    ('т', 't'),
    ('һ', 'h'),
    ('А', 'A'),
    ('В', 'B'),
    ('Е', 'E'),
    ('К', 'K'),
    ('М', 'M'),
    ('О', 'O'),
    ('Р', 'P'),
    ('С', 'C'),
    ('Т', 'T'),
    ('ο', 'o'),
    ('α', 'a'),
    ('ρ', 'p'),
    ('κ', 'k'),
    ('ε', 'e'),
    ('ν', 'v'),
    ('Ѕ', 'S'),
    ('ı', 'i'),
];
