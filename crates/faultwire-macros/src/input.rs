//! What is written between the parentheses: `pub mod errors = "contract.toml"`.

use std::path::PathBuf;

use faultwire_contract::{BUILTINS, Contract};
use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Ident, LitStr, Token, Visibility};

/// The place of a contract and the name of its module.
pub(crate) struct Input {
    pub attributes: Vec<Attribute>,
    pub visibility: Visibility,
    pub name: Ident,
    place: LitStr,
    is_builtin: bool,
}

/// A contract, and how the compiled crate gets at its text.
pub(crate) struct Found {
    pub contract: Contract,
    pub text: Text,
}

/// The source of a contract's text.
pub(crate) enum Text {
    /// In this file.
    File(String),
    /// In the contract crate, under this name.
    Builtin(String),
}

impl Parse for Input {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let attributes = input.call(Attribute::parse_outer)?;
        let visibility = input.parse()?;
        input.parse::<Token![mod]>()?;
        let name = input.parse()?;
        input.parse::<Token![=]>()?;
        let builtin: Option<Ident> = input.parse()?;
        if let Some(word) = builtin.as_ref().filter(|word| *word != "builtin") {
            return Err(syn::Error::new(word.span(), "write the path of a contract file here"));
        }
        let place = input.parse()?;
        Ok(Self { attributes, visibility, name, place, is_builtin: builtin.is_some() })
    }
}

impl Input {
    /// Reads the contract. Its mistakes are reported at its path in the Rust source, with their
    /// lines in the file.
    pub(crate) fn find(&self) -> syn::Result<Found> {
        let wrong = |what: String| syn::Error::new(self.place.span(), what);
        let place = self.place.value();
        let (text, found) = if self.is_builtin {
            let builtin = BUILTINS.iter().find(|builtin| builtin.name == place);
            let builtin =
                builtin.ok_or_else(|| wrong(format!("there is no built-in contract {place:?}")))?;
            (builtin.text.to_owned(), Text::Builtin(place.clone()))
        } else {
            let path = self.path(&place).map_err(wrong)?;
            let read = std::fs::read_to_string(&path);
            let read = read.map_err(|e| wrong(format!("{}: {e}", path.display())))?;
            (read, Text::File(path.display().to_string()))
        };
        let contract = Contract::load(&place, &text).map_err(|m| wrong(m.to_string()))?;
        Ok(Found { contract, text: found })
    }
}

impl Input {
    /// The file, relative to the crate's root or to the file that names it.
    fn path(&self, place: &str) -> Result<PathBuf, String> {
        let beside = self.place.span().unwrap().local_file();
        let beside = beside.and_then(|file| Some(file.parent()?.join(place)));
        let found = [Some(root().join(place)), beside].into_iter().flatten();
        let found = found.filter_map(|path| path.canonicalize().ok()).find(|path| path.is_file());
        found.ok_or_else(|| {
            format!("cannot find the file {place:?} in the crate's root or beside this file")
        })
    }
}

/// The directory of the crate that is compiled.
#[expect(clippy::disallowed_methods, reason = "cargo passes it only in the environment")]
fn root() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default()
}
