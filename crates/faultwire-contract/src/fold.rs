//! Names as lenient parsers compare them. Go, .NET and Jackson find a member by a name in another
//! case, C libraries end a name at NUL, and other code normalises Unicode first: two names that
//! fold to the same text may be the same member to such a parser.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;

/// One pass can uncover characters for the next; a fourth never does.
const MOST_PASSES: usize = 4;

/// The name as lenient parsers compare it: compatibility characters replaced (NFKC), without case,
/// without characters that are not displayed, and cut at NUL.
///
/// ```
/// use faultwire_contract::fold;
///
/// assert_eq!(fold("filePath"), "filepath");
/// assert_eq!(fold("pa\u{200b}th"), "path");
/// assert_eq!(fold("ta\u{17f}\u{212a}"), "task");
/// ```
#[must_use]
pub fn fold(name: &str) -> Cow<'_, str> {
    if name.bytes().all(is_folded) {
        return Cow::Borrowed(name);
    }
    let name = name.split('\0').next().unwrap_or_default();
    if name.is_ascii() {
        return Cow::Owned(name.to_ascii_lowercase());
    }
    let mut folded = pass(name);
    for _ in 1..MOST_PASSES {
        let again = pass(&folded);
        if again == folded {
            break;
        }
        folded = again;
    }
    Cow::Owned(folded)
}

/// An ASCII character that folds to itself.
fn is_folded(byte: u8) -> bool {
    byte.is_ascii() && !byte.is_ascii_uppercase() && byte != 0
}

fn pass(name: &str) -> String {
    let plain = name.chars().filter(|c| !is_ignorable(*c)).nfkc();
    // Upper case first would keep the capital sharp s apart from `ss`, and lower case alone the
    // long s from `s`.
    let caseless = plain
        .flat_map(char::to_lowercase)
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase);
    let folded: String = caseless.nfkc().collect();
    // The lower case of the Turkish capital dotted I, which Turkish locales read as `i`.
    if folded.contains("i\u{307}") { folded.replace("i\u{307}", "i") } else { folded }
}

/// Default_Ignorable_Code_Point of Unicode: zero-width characters, soft hyphen, byte order mark,
/// variation selectors, tags and fillers.
fn is_ignorable(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(name: &str, folded: &str) {
        assert_eq!(fold(name), folded, "{name:?}");
    }

    #[test]
    fn x1_names_fold_as_lenient_parsers_read_them() {
        check("filePath", "filepath");
        check("FILE_PATH", "file_path");
        // Go's encoding/json folds these two besides ASCII.
        check("u\u{17f}er", "user");
        check("to\u{212a}en", "token");
        check("\u{ff50}\u{ff41}\u{ff54}\u{ff48}", "path");
        check("\u{ff30}ath", "path");
        check("\u{1d429}ath", "path");
        check("\u{fb01}le", "file");
        check("stra\u{df}e", "strasse");
        check("STRA\u{1e9e}E", "strasse");
        check("\u{3a3}\u{3a3}", "\u{3c3}\u{3c3}");
        check("\u{3c2}", "\u{3c3}");
        check("f\u{130}le", "file");
        check("f\u{131}le", "file");
        check("cafe\u{301}", "caf\u{e9}");
        for hidden in ["\u{200d}", "\u{200b}", "\u{ad}", "\u{feff}", "\u{fe0f}", "\u{e0061}"] {
            check(&format!("pa{hidden}th"), "path");
            check(&format!("{hidden}PATH"), "path");
        }
        check("path\0x", "path");
        check("P\u{e9}\0x", "p\u{e9}");
    }

    #[test]
    fn x1_other_names_stay_apart() {
        check("", "");
        check("path2", "path2");
        check("p.a_t-h", "p.a_t-h");
        check("\u{440}ath", "\u{440}ath");
        check("pfad\u{fc}ber", "pfad\u{fc}ber");
    }

    #[test]
    fn x1_a_name_that_is_folded_is_not_copied() {
        assert!(matches!(fold("file_path-2"), Cow::Borrowed(_)));
        assert!(matches!(fold("filePath"), Cow::Owned(_)));
    }

    proptest! {
        #[test]
        fn x1_neither_case_nor_folding_again_makes_a_difference(c in any::<char>()) {
            let name = format!("a{c}b");
            let once = fold(&name).into_owned();
            prop_assert_eq!(fold(&once), once.as_str());
            let upper: String = name.chars().flat_map(char::to_uppercase).collect();
            let lower: String = name.chars().flat_map(char::to_lowercase).collect();
            prop_assert_eq!(fold(&upper), once.as_str());
            prop_assert_eq!(fold(&lower), once.as_str());
        }
    }
}
