//! Names in Rust for the ids of codes.

use std::collections::BTreeMap;

use faultwire_contract::Code;
use proc_macro2::Span;
use syn::Ident;

/// What a code is called as a variant and as a function.
pub(crate) struct Names {
    pub variant: Ident,
    pub function: Ident,
}

impl Names {
    /// Of all codes, or which two would be called the same.
    pub(crate) fn all(codes: &[Code]) -> Result<Vec<Self>, String> {
        let mut seen: BTreeMap<String, &str> = BTreeMap::new();
        let mut all = Vec::with_capacity(codes.len());
        for code in codes {
            let variant = in_camel_case(&code.id);
            if let Some(other) = seen.insert(variant.clone(), &code.id) {
                return Err(format!("{:?} and {:?} would both be named {variant}", other, code.id));
            }
            let function = in_snake_case(&code.id);
            all.push(Self { variant: ident(&variant), function: ident(&function) });
        }
        Ok(all)
    }
}

/// A word that the language has taken is marked.
fn ident(name: &str) -> Ident {
    match syn::parse_str(name) {
        Ok(ident) => ident,
        Err(_) => Ident::new(&format!("{name}_"), Span::call_site()),
    }
}

fn words(id: &str) -> impl Iterator<Item = String> + '_ {
    let words = id.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase)
}

/// `port.berth_full` → `PortBerthFull`.
fn in_camel_case(id: &str) -> String {
    let camel = words(id).map(|word| word[..1].to_ascii_uppercase() + &word[1..]);
    begun_by_a_letter(camel.collect(), "Code")
}

/// `port.berth_full` → `port_berth_full`.
fn in_snake_case(id: &str) -> String {
    begun_by_a_letter(words(id).collect::<Vec<_>>().join("_"), "code_")
}

fn begun_by_a_letter(name: String, before: &str) -> String {
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        name
    } else {
        before.to_owned() + &name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_become_names() {
        for (id, camel, snake) in [
            ("SHIP_LOST", "ShipLost", "ship_lost"),
            ("x_tide_high", "XTideHigh", "x_tide_high"),
            ("port.berth_full", "PortBerthFull", "port_berth_full"),
            ("404", "Code404", "code_404"),
            ("type", "Type", "type"),
        ] {
            assert_eq!((in_camel_case(id), in_snake_case(id)), (camel.into(), snake.into()));
        }
        assert_eq!(ident("type").to_string(), "type_");
    }
}
