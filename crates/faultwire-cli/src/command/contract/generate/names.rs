//! What codes are called in a language.

use std::collections::BTreeMap;

use faultwire_contract::Code;

use crate::args::Language;

/// The names of one code.
pub struct Names {
    /// Of its constructor.
    pub function: String,
    /// Of its constant, where the language has one.
    pub constant: String,
}

impl Names {
    /// Of all codes, or which two would be called the same.
    pub fn all(codes: &[Code], language: Language, taken: &[&str]) -> Result<Vec<Self>, String> {
        let mut seen: BTreeMap<String, &str> = BTreeMap::new();
        let named = codes.iter().map(|code| {
            let names = Self::of(&code.id, language, taken);
            match seen.insert(names.function.clone(), &code.id) {
                None => Ok(names),
                Some(other) => Err(format!(
                    "{other:?} and {:?} would both be named {}",
                    code.id, names.function
                )),
            }
        });
        named.collect()
    }

    fn of(id: &str, language: Language, taken: &[&str]) -> Self {
        let words: Vec<String> = id
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_ascii_lowercase)
            .collect();
        let function = match language {
            Language::Typescript => words.iter().enumerate().map(humped).collect(),
            Language::Python => words.join("_"),
        };
        Self {
            function: valid(function, "code", taken),
            constant: valid(words.join("_").to_ascii_uppercase(), "CODE_", &[]),
        }
    }
}

fn humped((at, word): (usize, &String)) -> String {
    match at {
        0 => word.clone(),
        _ => word[..1].to_ascii_uppercase() + &word[1..],
    }
}

/// A name begins with a letter, and is no word of the language or of the module.
fn valid(name: String, before: &str, taken: &[&str]) -> String {
    let name = if name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        name
    } else {
        format!("{before}{name}")
    };
    if taken.contains(&name.as_str()) { name + "_" } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_become_names_of_the_language() {
        for (id, typescript, python, constant) in [
            ("SHIP_LOST", "shipLost", "ship_lost", "SHIP_LOST"),
            ("port.berth_full", "portBerthFull", "port_berth_full", "PORT_BERTH_FULL"),
            ("x_tide_high", "xTideHigh", "x_tide_high", "X_TIDE_HIGH"),
            ("404", "code404", "code404", "CODE_404"),
            ("class", "class_", "class_", "CLASS"),
        ] {
            let of = |language| Names::of(id, language, &["class"]);
            let (ts, py) = (of(Language::Typescript), of(Language::Python));
            assert_eq!((&*ts.function, &*py.function), (typescript, python));
            assert_eq!(ts.constant, constant);
        }
    }
}
